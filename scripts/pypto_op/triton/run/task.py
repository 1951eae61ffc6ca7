"""The role of the process that holds the task: inputs, weights and golden outputs, case by case."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch

from pypto_op.backends.worker.loading import Failure, failure_of
from pypto_op.triton.run import (
    arguments,
    before,
    constructor,
    draws,
    filled,
    idle,
    one_value,
    otherwise,
    reloaded,
    skewed,
    small,
)
from pypto_op.triton.run import model as models
from pypto_op.triton.run.clock import Clock
from pypto_op.triton.run.kept import Kept
from pypto_op.triton.run.memory import address
from pypto_op.triton.run.moving import Moving
from pypto_op.triton.run.packing import map_tensors, same_layout, tensors_of
from pypto_op.triton.run.refresh import refresh
from pypto_op.vocabulary import Outcome

_END = object()


class Task(Moving):
    """`Model`, `get_init_inputs` and `get_input_groups` (or `get_inputs`) of the task's file.

    Messages: `open` (start a pass over the cases, seeded), `case` (the next one: inputs, weights, golden), `again`
    (golden of the present case, its values rolled), those of `otherwise.CALLS` (the present case, computed otherwise),
    `time` (time the present case).
    """

    def __init__(self, document: dict[str, Any]) -> None:
        super().__init__(document)
        self._clock = Clock(self._device)
        self._draws = draws.Draws(self._device, self._drawn)
        self._cases: Iterator[Any] = iter(())
        self._position = 0
        self._warmed: int | None = None
        self._first: Any = None  # what the call before the judged one returned
        self._of: dict[int, Kept] = {}  # by case
        self._reloads = False  # the first of two calls is made with other parameters (`reloaded`)
        self._alike = filled.Alike()

    def handle(self, message: dict[str, Any]) -> tuple[list[torch.Tensor], dict[str, Any]]:
        """Answer one message."""
        facts: dict[str, Any] = {"outcome": str(Outcome.OK), "detail": "", "structure": ""}
        try:
            known = otherwise.CALLS.get(message["call"])
            answer, more = (known(self._present(), message), {}) if known else getattr(self, f"_{message['call']}")(message)
            values = models.packed(answer, self._path.name)
            facts |= more
        except Failure as failure:
            values = []
            facts |= {"outcome": str(failure.outcome), "detail": failure.detail}
        return values, facts

    def _ask(self, name: str) -> Any:
        try:
            return self._needed(name)()
        except Failure:
            raise
        except BaseException as error:
            raise failure_of(error, self._path, Outcome.EXCEPTION, f" in {name}") from None

    def _open(self, message: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        self._seed = message["seed"]
        groups = self._draws.of(self._seed)
        self._cases, self._position = iter(groups), 0
        return None, {"total": len(groups) if hasattr(groups, "__len__") else None}

    def _drawn(self) -> Any:
        if callable(getattr(self._module, "get_input_groups", None)):
            return self._ask("get_input_groups")
        return [self._ask("get_inputs")]

    def _case(self, message: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Advance to the case of that index and answer with everything about it; its outputs only where they are to be judged."""
        group, seed = self._group(message["index"]), message["seed"]
        if group is _END:
            return None, {"end": True}
        own, facts = self._make(message)
        if facts is None:
            return None, {"same": True}
        inputs = arguments.of_case(group, getattr(self._model, "forward", self._model), self._path)
        self._wanted = [tensor.requires_grad for tensor in tensors_of(inputs)]
        inputs = map_tensors(inputs, torch.Tensor.detach)
        weights = {name: value.detach().clone() for name, value in models.weights_of(self._model).items()}
        self._inputs = models.placed(models.checked(inputs, f"{self._path.name}: an input"), self._device)
        facts |= {"one_value": one_value.found(inputs)} | self._known(own, inputs, weights) | self._moved(own, message)
        if not message["used"] and message["move"] and not facts["skewed"] and not self._varied:
            return None, {"same": True, "untested": facts.get("untested", [])}
        self._reloads = message["reloads"]
        facts["reloaded"] = self._reloads and message["used"]
        reloads = reloaded.names(self._model) if self._reloads else []
        answer = {"init": list(self._init), "weights": weights, "inputs": self._inputs, "reloads": reloads}
        self._first = None
        self._warmed = self._warm(seed) if message["used"] else None
        if not message["judged"]:
            return {**answer, "warmed": self._warmed}, {}
        kept = models.marks(self._first)
        golden, more = self._golden_and_idle(seed, gross=facts["skewed"] == skewed.FAR)
        facts |= more | {"overwritten": bool(models.changed(self._first, kept))}
        return {**answer, **golden, "warmed": self._warmed, "changes": more["changes"]}, facts

    def _group(self, index: int) -> Any:
        """Advance to the case of that index; return its arguments as the task's file gives them, `_END` where there is none."""
        group: Any = _END
        while self._position <= index:
            models.seed_all(self._seed + self._position)  # a generator draws now, after models used another seed
            try:
                group = next(self._cases, _END)
            except BaseException as error:
                raise failure_of(error, self._path, Outcome.EXCEPTION, " while it made the inputs") from None
            self._position += 1
        self._kept = self._of.setdefault(index, Kept(index))
        return group

    def _make(self, message: dict[str, Any]) -> tuple[constructor.Given, dict[str, Any] | None]:
        """Make the present model; return the task's own numbers, and which weights vary: None where others make no model."""
        seed = message["seed"]
        models.seed_all(seed)
        own = self._init = arguments.of_constructor(self._ask("get_init_inputs"), self._needed("Model"))
        self._varied = []
        if message["move"] == constructor.MOVE:
            self._init = constructor.moved(own, message["places"])
        if not self._builds(seed, other=self._init is not own):
            return own, None
        constant = [*filled.names(self._model), *self._alike.names(self._model, seed)]
        buffers = filled.buffers(self._model)
        self._varied = [name for name in (*constant, *buffers) if name in message["vary"]]
        if self._varied:
            self._model = self._build(seed)
        return own, {"filled": constant, "buffers": buffers, "varied": self._varied}

    def _warm(self, seed: int) -> int:
        """Call the model on other values, and return which (`before`); a model may keep a state (an RNN's)."""
        floats = any(tensor.is_floating_point() for tensor in tensors_of(self._inputs))
        for turn in (before.SHARED, before.ROLLED, before.SAME)[0 if floats else 2 :]:  # other integers may be no valid ones
            try:
                with self._reloading(self._model):
                    self._first = self._golden(self._before(turn), seed)[0]["outputs"]
            except Failure:
                self._model = self._build(seed)
            else:
                return turn
        return before.SAME

    def _reloading(self, model: Any) -> contextlib.AbstractContextManager[None]:
        return reloaded.others(models.weights_of(model), reloaded.names(model) if self._reloads else ())

    def _before(self, turn: int) -> Any:
        inputs = map_tensors(self._inputs, same_layout)
        before.fill(inputs, self._inputs, turn)
        return inputs

    def _rolled(self, shift: int) -> Any:
        inputs = map_tensors(self._inputs, same_layout)
        refresh(inputs, self._inputs, shift)
        return inputs

    def _again(self, message: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        return self._golden(self._rolled(message["shift"]), message["seed"])

    def _present(self) -> otherwise.Present:
        return otherwise.Present(self._path, self._inputs, self._build, self._called, self._warmed_by, self._rolled)

    def _warmed_by(self, model: Any, seed: int, change: otherwise.Change) -> None:
        """Call a model as the present one was called before the call that is judged, its inputs changed."""
        if self._warmed is None:
            return
        models.seed_all(seed)
        with self._reloading(model):
            self._called(model, map_tensors(self._before(self._warmed), change))

    def _golden_and_idle(self, seed: int, *, gross: bool) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the golden of the present case, and among its facts the operators that changed nothing so far (`idle`)."""
        inputs, kept = map_tensors(self._inputs, same_layout), self._kept
        if kept.idle is not None and not kept.idle:
            return self._golden(inputs, seed)
        watch, terms = idle.Idle(self._path), small.Small(self._path)
        with watch, terms if kept.idle is None else contextlib.nullcontext():
            golden, facts = self._golden(inputs, seed)
        kept.picks |= watch.picks
        kept.idle = watch.still_idle(kept.idle, golden["outputs"], gross=gross)
        return golden, facts | {"idle": list(kept.idle), "small": sorted(terms.lines)}

    def _golden(self, inputs: Any, seed: int) -> tuple[dict[str, Any], dict[str, Any]]:
        marks = models.marks(inputs)
        models.seed_all(seed)
        buffers = models.states_of(self._model)
        stood = models.marks(buffers)
        try:
            outputs = self._called(self._model, inputs)
            models.synchronize(self._device)
        except BaseException as error:
            raise failure_of(error, self._path, Outcome.EXCEPTION, " in the reference's forward") from None
        models.checked(outputs, f"{self._path.name}: the reference's output")
        mutated = models.changed(inputs, marks)
        held = {address(tensor): i for i, tensor in enumerate(tensors_of(inputs)) if tensor.numel()}
        aliased = sorted({held[address(leaf)] for leaf in tensors_of(outputs) if leaf.numel() and address(leaf) in held})
        changes = [name for name, one, other in zip(buffers, stood, models.marks(buffers), strict=True) if one != other]
        return {"outputs": outputs, "mutated": mutated}, {"aliased_inputs": aliased, "changes": changes}

    def _time(self, message: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        try:
            model = self._model if not self._differentiates else lambda *inputs: self._called(self._model, inputs)
            return None, self._clock.time(model, self._inputs, message).facts()
        except BaseException as error:
            raise failure_of(error, self._path, Outcome.EXCEPTION, " while it was timed") from None
