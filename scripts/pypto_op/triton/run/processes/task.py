"""The role of the process that holds the task: inputs, weights and golden outputs, case by case."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

from pypto_op.backends.worker.loading import Failure, failure_of, load_module
from pypto_op.dispatch_mode import DispatchMode
from pypto_op.triton.run.inputs import (
    arguments,
    before,
    comes,
    constructor,
    deadly,
    edges,
    filled,
    fixed,
    idle,
    infinite,
    known,
    masks,
    neighbours,
    one_value,
    reaching,
    rehearsed,
    reloaded,
    skewed,
    stretched,
    suits,
    unread,
    whole,
)
from pypto_op.triton.run.inputs.draws import Draws, seed_all
from pypto_op.triton.run.inputs.packing import map_tensors, plain, same_layout, tensors_of
from pypto_op.triton.run.inputs.refresh import refresh
from pypto_op.triton.run.judging import small
from pypto_op.triton.run.processes import earlier, gradients, otherwise
from pypto_op.triton.run.processes import golden as goldens
from pypto_op.triton.run.processes import model as models
from pypto_op.triton.run.processes.clock import Clock
from pypto_op.vocabulary import Outcome

_END = object()


class Task:
    """`Model`, `get_init_inputs` and `get_input_groups` (or `get_inputs`) of the task's file.

    Messages: `open` (start a pass over the cases, seeded), `case` (the next one: inputs, weights, golden), `again`
    (golden of the present case, its values rolled), those of `otherwise.CALLS` (the present case, computed otherwise),
    `time` (time the present case).
    """

    def __init__(self, document: dict[str, Any]) -> None:
        self._device = models.prepare(document)
        self._path = Path(document["file"])
        self._module = load_module(self._path, sha256=document["sha256"])
        for name in ("Model", "get_init_inputs"):
            self._needed(name)
        self._clock, self._rehearsal = Clock(self._device), rehearsed.Rehearsal(self._device, self._on_cpu, self._on_device)
        self._numbers: list[float] = document.get("numbers", [])  # that stand in the files (`edges`)
        self._draws = Draws(self._device, self._drawn)
        self._groups: Any = ()
        self._cases: Iterator[Any] = iter(())
        self._position = self._seed = self._model_seed = 0
        self._model: Any = None
        self._init: tuple[list[Any], dict[str, Any]] = ([], {})
        self._inputs: Any = None
        self._former: Task | None = None  # as it stood at the case before
        self._earlier = earlier.Earlier()
        self._suits = suits.Suits(self._path, self._tried)
        self._movable: dict[int, list[bool]] = {}  # by case: which tensors may hold other values of their range
        self._same = fixed.Same()
        self._habits: dict[int, list[masks.Habit | None]] = {}  # by case: what the rows of a mask have in common (`masks`)
        self._idle: dict[int, dict[str, bool]] = {}  # by case: what changed nothing in any pass (`idle`)
        self._deadly = deadly.Deadly(Path(document["enclosure"]["scratch"]))
        self._comes = comes.Comes(self._device, self._numbers, self._comes_to)
        self._places: dict[str, list[int]] = {}  # of the inputs that no kernel read (`unread`)
        self._varied: list[str] = []  # weights that are given other values (`filled`)
        self._turned = ""  # how weights are turned (`filled.turn`)
        self._alike, self._constants = filled.Alike(), filled.Alike(constants=True)
        self._called = gradients.Caller(self._renewed)
        self._repeating: list[bool] = []  # which tensors of the arguments may hold a number twice (`draws`)

    def handle(self, message: dict[str, Any]) -> tuple[list[torch.Tensor], dict[str, Any]]:
        """Answer one message."""
        facts: dict[str, Any] = {"outcome": str(Outcome.OK), "detail": "", "structure": ""}
        try:
            call = otherwise.CALLS.get(message["call"])
            answer, more = (call(self._present(message), message), {}) if call else getattr(self, f"_{message['call']}")(message)
            values = models.packed(answer, self._path.name)
            facts |= more
        except Failure as failure:
            models.check_device(self._device)
            values = []
            facts |= {"outcome": str(failure.outcome), "detail": failure.detail}
        return values, facts

    def _needed(self, name: str) -> Any:
        found = getattr(self._module, name, None)
        if not callable(found):
            raise Failure(Outcome.MISSING_WRAPPER, f"{self._path.name} has no {name}")
        return found

    def _ask(self, name: str) -> Any:
        function = self._needed(name)
        try:
            return function()
        except BaseException as error:
            raise failure_of(error, self._path, Outcome.EXCEPTION, f" in {name}") from None

    def _open(self, message: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        self._seed = message["seed"]
        groups = self._draws.of(self._seed)
        self._groups, self._cases, self._position = groups, iter(groups), 0
        return None, {"total": len(groups) if hasattr(groups, "__len__") else None}

    def _drawn(self) -> Any:
        groups = callable(getattr(self._module, "get_input_groups", None))
        return self._ask("get_input_groups") if groups else [self._ask("get_inputs")]

    def _case(self, message: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Advance to the case of that index and answer with everything about it; its outputs only where they are to be judged."""
        self._former = self._kept() if message["holds"] else None
        index, seed, group = message["index"], message["seed"], self._group(message["index"])
        if group is _END:
            return None, {"end": True}
        own, facts = self._make(message)
        if facts is None:
            return None, {"same": True}
        inputs = arguments.of_case(group, forward := getattr(self._model, "forward", self._model), self._path)
        self._called.wanted = [tensor.requires_grad for tensor in tensors_of(inputs)]
        self._repeating = [self._draws.may_repeat(tensor) for tensor in tensors_of(inputs)]
        inputs = map_tensors(inputs, plain)
        self._inputs = models.placed(models.checked(inputs, f"{self._path.name}: an input"), self._device)
        facts["one_value"] = one_value.found(inputs)
        if index not in self._movable:
            self._movable[index] = skewed.movable(self._inputs)
            facts |= known.of_case(own, inputs, self._inputs, models.weights_of(self._model), forward, self._needed("Model"))
        facts |= self._moved(own, message)
        if not message["used"] and message["move"] and not facts["skewed"] and not self._varied:
            return None, {"same": True, "untested": facts.get("untested", [])}
        was, after = self._earlier, message["after"]
        was.begin(self._inputs, reloads=message["reloads"])
        facts["reloaded"] = was.reloads and message["used"]
        reloads = reloaded.names(self._model) if was.reloads else []
        weights = {name: value.detach().clone() for name, value in models.weights_of(self._model).items()}
        answer = {"init": list(self._init), "weights": weights, "inputs": self._inputs, "reloads": reloads}
        if after in neighbours.TOLD:
            was.other = answer["earlier"] = self._before_other(after, index)
            if was.other is None:
                return None, {"same": True}
        if message["used"]:
            golden_of = partial(self._plain_golden, seed=seed)
            self._model = was.make(self._model, golden_of, lambda: self._build(seed), after)
        if after and was.turn not in (before.OTHER, before.SEVERAL):
            return None, {"same": True}
        if not message["judged"]:
            return {**answer, "warmed": was.turn}, {}
        kept = models.marks(was.first)
        golden, more = self._golden_and_idle(index, seed, facts["skewed"])
        facts |= more | {"overwritten": bool(models.changed(was.first, kept))}
        if self._varied:
            facts["suits"] = self._suits.has_suited(golden["outputs"], self._inputs, seed)
        return {**answer, **golden, "warmed": was.turn, "changes": more["changes"]}, facts

    def _group(self, index: int) -> Any:
        """Advance to the case of that index; return its arguments as the task's file gives them, `_END` where there is none."""
        group: Any = _END
        while self._position <= index:
            seed_all(self._seed + self._position)  # a generator draws now, after models used another seed
            try:
                group = next(self._cases, _END)
            except BaseException as error:
                raise failure_of(error, self._path, Outcome.EXCEPTION, " while it made the inputs") from None
            self._position += 1
        return group

    def _make(self, message: dict[str, Any]) -> tuple[constructor.Given, dict[str, Any] | None]:
        """Make the present model; return the task's own numbers, and which weights vary: None where others make no model."""
        seed = message["seed"]
        seed_all(seed)
        own = self._init = arguments.of_constructor(self._ask("get_init_inputs"), self._needed("Model"))
        self._varied, self._turned = [], ""
        if message["move"] in constructor.INPUTS:
            self._init = constructor.moved(own, message["places"])
        try:
            self._model = self._build(seed)
        except Exception:
            if self._init is own:
                raise
            return own, None  # this process, which takes long to start, goes on without the other numbers
        facts = {
            "filled": [*filled.names(self._model), *self._alike.names(self._model, seed)],
            "buffers": [*filled.buffers(self._model), *filled.drawn(self._model)],
            "constants": self._constants.names(self._model, seed),
        }
        self._varied = [name for names in facts.values() for name in names if name in message["vary"]]
        if self._varied:
            self._model = self._build(seed)
        return own, {**facts, "varied": self._varied}

    def _moved(self, own: constructor.Given, message: dict[str, Any]) -> dict[str, Any]:
        """Move the present case's inputs as a message asks; return what was moved, and what could not be."""
        index, move, seed = message["index"], message["move"], message["seed"]
        self._habits[index] = masks.habits(self._inputs, self._habits.get(index))
        facts: dict[str, Any] = {"same_inputs": self._same.note(index, self._inputs, self._movable[index])}
        self._places = message["places"]
        facts["skewed"] = self._skew(index, constructor.INPUTS.get(move, move), seed, weights=filled.WEIGHTS in message["vary"])
        if move == constructor.MOVE or (move == constructor.FAR and facts["skewed"]):
            facts["skewed"] = move if self._tells_of(own, seed) else ""
        facts["picked"] = facts["skewed"] == skewed.FAR and index in self._suits.picked
        facts["edged"] = move == skewed.UP and self._edge(index, seed)
        if move == one_value.OTHER:
            taken, same = bool(facts["skewed"]), self._same.of(index)
            one = "" if taken else one_value.untested(self._inputs)
            facts["untested"] = [*filter(None, [one]), *fixed.told(self._inputs, same, taken=taken)]
        return facts

    def _before_other(self, what: str, index: int) -> list[Any] | None:
        """Return the inputs of another case, or another draw, for the call before the judged one; None where there are none."""
        found = neighbours.of(what, self._groups, index, lambda: self._draws.of(self._seed + 1))
        if found is None:
            return None
        found = arguments.of_case(found, getattr(self._model, "forward", self._model), self._path)
        return [models.placed(one, self._device) for one in map_tensors(found, plain)]

    def _skew(self, index: int, move: str, seed: int, *, weights: bool) -> str:
        """Move the inputs, and `weights` where the implementation takes others; return the move that was made, "" for none."""
        if not move or not self._suits.may(index, move):
            return ""
        if move == one_value.OTHER:
            ways = one_value.ways(self._inputs, self._seed + index, self._same.of(index))
            return move if any(self._suit(index, name, moved, seed) for name, moved in ways) else ""
        if move in stretched.MOVES:
            stretches = stretched.of_move(move, self._inputs, lambda inputs: self._tried(inputs, seed), self._repeating)
            return move if any(self._suit(index, name, moved, seed) for name, moved in stretches) else ""
        if move == masks.MOVE:
            moved = masks.moved(self._inputs, self._habits[index], self._same.of(index))
        elif move in (reaching.REACH, reaching.MEET):
            name, self._inputs = self._comes.by(move, index, self._inputs, self._idle.get(index, {}), seed, weights=weights)
            self._turn(seed, filled.turn_of(name))
            return name.partition(" ")[0]
        elif move == whole.MOVE:
            ((place, (value,)),) = self._places.items()
            move, moved = f"{move} {place} {value}", whole.moved(self._inputs, place, value)
        elif move == unread.MOVE:
            moved = unread.moved(self._inputs, self._movable[index], self._places)
        else:
            moved = infinite.moved(self._inputs, partial(skewed.skewed, move=move))
            if moved is not None and move in (skewed.LOW, skewed.HIGH):
                moved = edges.scattered(moved, self._movable[index], self._seed + index, last=move == skewed.LOW)
        taken = self._suit(index, move, moved, seed)
        if move == skewed.FAR and index in self._suits.picks:
            taken = self._suit(index, *skewed.farther(self._inputs), seed) or taken
        lesser = skewed.OF_FAR[1:] if move == skewed.FAR and not taken and index in self._suits.overflowed else ()
        moves = ((less, infinite.moved(self._inputs, partial(skewed.skewed, move=less))) for less in lesser)
        return move if taken or any(self._suit(index, less, moved, seed) for less, moved in moves) else ""

    def _comes_to(self, name: str, moved: Any, seed: int) -> set[str]:
        """Return what the inputs of a way, and its weights, come to; then the model is a new one of its own weights."""
        if self._deadly.has(name):
            return set()
        self._turn(seed, filled.turn_of(name))
        with self._deadly.tried(name):
            found = self._suits.come_to(moved, seed)
        self._turn(seed, "")
        return found

    def _turn(self, seed: int, how: str) -> None:
        """Let the present model have its weights turned (`filled.turn`), or its own."""
        if self._turned != how:
            self._turned, self._model = how, None
            self._model = self._build(seed)

    def _edge(self, index: int, seed: int) -> bool:
        """Put extremes and numbers of the files into the inputs, or extremes alone, where the reference takes that (`edges`)."""
        ways = [way for way in (("numbers", self._numbers), ("edges", [])) if self._suits.may(index, way[0])]
        made = partial(edges.edged, self._inputs, self._movable[index], seed=self._seed + index, often=index in self._suits.few)
        made = partial(made, scales=skewed.movable(self._inputs, scales=True))
        return any(self._suit(index, name, made(numbers=put), seed) for name, put in ways)

    def _suit(self, index: int, move: str, moved: Any, seed: int) -> bool:
        """Take moved inputs where the reference does."""
        takes = self._suits.takes(index, move, moved, self._inputs, seed)
        self._inputs = moved if takes else self._inputs
        return takes

    def _tried(self, inputs: Any, seed: int, draws: int | None = None, watch: DispatchMode | None = None) -> Any:
        """Return what the model, which nobody called, makes of inputs, which stay as they are; then it is a new one.

        `watch` sees that call alone: the rehearsal's tensors lie on another device, and its operators would count twice.
        """
        if inputs is not self._inputs:
            self._rehearsal.of(inputs, self._inputs)
        seed_all(seed if draws is None else draws)
        try:
            with watch or contextlib.nullcontext():
                return self._called(self._model, map_tensors(inputs, same_layout))
        finally:
            models.check_device(self._device)
            self._model = self._build(seed)

    def _tells_of(self, own: constructor.Given, seed: int) -> bool:
        """Whether the present model takes the inputs, and answers otherwise than one with the task's own numbers."""
        try:
            self._rehearsal.of(self._inputs, self._inputs, lambda inputs: self._on_cpu(inputs, own))
            found = self._tried(self._inputs, seed)
            suits = self._suits.has_suited(found, self._inputs, seed)
            self._model = self._build(seed, init=own)
            return suits and whole.shows(self._tried(self._inputs, seed), found)
        except Exception:  # a table with a row less, say
            return False

    def _on_cpu(self, inputs: Any, init: constructor.Given | None = None) -> Any:
        return self._called(self._build(self._model_seed, torch.device("cpu"), init), inputs)

    def _on_device(self, inputs: Any) -> Any:
        return self._called(self._build(self._model_seed), map_tensors(inputs, same_layout))

    def _build(self, seed: int, device: torch.device | None = None, init: constructor.Given | None = None) -> Any:
        self._model_seed = seed
        model = models.build(self._needed("Model"), init or self._init, seed, device or self._device, self._path)
        if self._varied:
            filled.vary(model, self._varied, seed)
        filled.turn(model, self._turned)
        return model

    def _rolled(self, shift: int) -> Any:
        inputs = map_tensors(self._inputs, same_layout)
        refresh(inputs, self._inputs, shift)
        return inputs

    def _again(self, message: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        return self._golden(self._rolled(message["shift"]), message["seed"])

    def _present(self, message: dict[str, Any]) -> otherwise.Present:
        one = self._former or self if message.get("former") else self
        return otherwise.Present(one._path, one._inputs, one._build, one._called, one._warmed_by, one._rolled)

    def _kept(self) -> Task:
        """Return a task that stays at the present case, for who asks about that when this one has gone on."""
        kept = copy.copy(self)
        kept._former, kept._earlier = None, copy.copy(self._earlier)
        kept._called = self._called.renewing(kept._renewed)
        return kept

    def _warmed_by(self, model: Any, seed: int, change: otherwise.Change) -> None:
        """Call a model as the present one was called before the call that is judged, its inputs changed."""

        def call(model: Any, inputs: Any) -> Any:
            seed_all(seed)
            return self._called(model, inputs)

        self._earlier.repeat(model, call, change)

    def _renewed(self, model: Any) -> Any:
        """Return a new model in the place of the present one, and any other one as it is."""
        if model is self._model:
            model = self._model = self._build(self._model_seed)
        return model

    def _golden_and_idle(self, index: int, seed: int, move: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the golden of the present case, moved so, and among its facts what changed nothing so far (`idle`)."""
        inputs = map_tensors(self._inputs, same_layout)
        if not self._idle.get(index, True) and index not in self._suits.ordered:
            return self._golden(inputs, seed)
        watch, terms = idle.Idle(self._path), small.Small(self._path)
        golden, facts = self._golden(inputs, seed, [watch, terms] if index not in self._idle else [watch])
        judged = {"gross": move == skewed.FAR, "exact": move in reaching.EXACTLY}
        self._idle[index] = watch.still_idle(self._idle.get(index), golden["outputs"], **judged)
        golden["orders"] = watch.orders(golden["outputs"])
        self._suits.note(index, golden["outputs"], picks=watch.picks, orders=bool(golden["orders"]))
        return golden, facts | {"idle": list(self._idle[index]), "small": sorted(terms.places)}

    def _plain_golden(self, model: Any, inputs: Any, seed: int) -> Any:
        """Return what a model, which becomes the present one, returns."""
        self._model = model
        return self._golden(inputs, seed)[0]["outputs"]

    def _golden(self, inputs: Any, seed: int, watches: Sequence[DispatchMode] = ()) -> tuple[dict[str, Any], dict[str, Any]]:
        seed_all(seed)
        return goldens.of(self._model, self._called, inputs, self._device, self._path, watches)

    def _time(self, message: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        try:
            called = partial(self._called.by_arguments, self._model) if self._called.differentiates else self._model
            return None, self._clock.time(called, self._inputs, message).facts()
        except BaseException as error:
            raise failure_of(error, self._path, Outcome.EXCEPTION, " while it was timed") from None
