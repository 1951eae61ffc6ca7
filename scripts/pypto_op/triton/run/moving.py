"""The present case of a task: its model, and inputs that are moved where the reference takes that."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import torch

from pypto_op.backends.worker.loading import Failure, load_module
from pypto_op.triton.run import (
    constructor,
    edges,
    filled,
    fixed,
    idle,
    masks,
    one_value,
    reaching,
    rehearsed,
    skewed,
    unread,
    whole,
)
from pypto_op.triton.run import model as models
from pypto_op.triton.run.kept import Kept
from pypto_op.triton.run.packing import map_tensors, same_layout, tensors_of
from pypto_op.vocabulary import Outcome

_NEEDS_GRADIENTS = re.compile("does not require grad|does not have a grad_fn")


class Moving:
    """The task's file, the present case with its model, and what is known of that case from earlier passes."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._device = models.prepare(document)
        self._path = Path(document["file"])
        self._module = load_module(self._path, sha256=document["sha256"])
        for name in ("Model", "get_init_inputs"):
            self._needed(name)
        self._rehearsal = rehearsed.Rehearsal(self._device, self._on_cpu)
        self._numbers: list[float] = document.get("numbers", [])  # that stand in the files (`edges`)
        self._seed = 0
        self._model: Any = None
        self._model_seed = 0
        self._init: tuple[list[Any], dict[str, Any]] = ([], {})
        self._inputs: Any = None
        self._kept = Kept(-1)  # of the present case
        self._places: dict[str, list[int]] = {}  # of the inputs that no kernel read (`unread`)
        self._varied: list[str] = []  # weights that are given other values (`filled`)
        self._differentiates = False  # forward asks for gradients, so it must run with them
        self._wanted: list[bool] = []  # which tensors of the arguments were drawn with `requires_grad`

    def _needed(self, name: str) -> Any:
        found = getattr(self._module, name, None)
        if not callable(found):
            raise Failure(Outcome.MISSING_WRAPPER, f"{self._path.name} has no {name}")
        return found

    def _moved(self, own: constructor.Given, message: dict[str, Any]) -> dict[str, Any]:
        """Move the inputs as the message asks, where the reference takes that; return what was done."""
        move, seed, kept = message["move"], message["seed"], self._kept
        kept.habits = masks.habits(self._inputs, kept.habits)
        facts: dict[str, Any] = {"same_inputs": self._note_same()}
        self._places = message["places"]
        told = move == constructor.MOVE and self._tells_of(own, seed)
        facts["skewed"] = move if told else self._skew(move, seed)
        facts["edged"] = move == skewed.UP and self._edge(seed)
        if move == one_value.OTHER:
            facts["untested"] = self._untested(taken=bool(facts["skewed"]))
        return facts

    def _known(self, own: constructor.Given, inputs: list[Any], weights: dict[str, torch.Tensor]) -> dict[str, Any]:
        """Return what may be moved of a case that is met for the first time, and what cannot; nothing later."""
        if self._kept.movable is not None:
            return {}
        self._kept.movable = skewed.movable(self._inputs)
        tensors = [*tensors_of(inputs), *weights.values()]
        return {
            "one_sign": skewed.of_one_sign(self._inputs),
            "masks": masks.found(inputs),
            "whole": whole.found(inputs, getattr(self._model, "forward", self._model)),
            "given": constructor.found(own, self._needed("Model"), tensors),
        }

    @property
    def _movable(self) -> list[bool]:
        return self._kept.movable or []

    def _note_same(self) -> bool:
        """Note in the second pass which inputs are those of the first; return whether there are such."""
        kept = self._kept
        if kept.marks is None:
            kept.marks = fixed.marks(self._inputs, self._movable)
        elif kept.same is None:
            kept.same = fixed.fixed(kept.marks, fixed.marks(self._inputs, self._movable))
        return any(kept.same or ())

    def _untested(self, *, taken: bool) -> list[str]:
        """Return what to say of inputs of one value, and of those that are the same for every seed, without other values."""
        one = "" if taken else one_value.untested(self._inputs)
        return [*filter(None, [one]), *fixed.told(self._inputs, self._kept.same or (), taken=taken)]

    def _skew(self, move: str, seed: int) -> str:
        """Move the inputs, where the reference takes that; return the move that was made, "" for none (`skewed`, `one_value`)."""
        kept, drawn = self._kept, self._seed + self._kept.index
        if move in ("", constructor.MOVE) or not kept.suits.get(move, True):
            return ""
        if move == one_value.OTHER:
            moved = one_value.varied(self._inputs, drawn, kept.same or ())
        elif move == masks.MOVE:
            moved = masks.moved(self._inputs, kept.habits or [], kept.same or ())
        elif move in (reaching.REACH, reaching.MEET):
            return self._reach(move, seed)
        elif move == whole.MOVE:
            ((place, (value,)),) = self._places.items()
            move, moved = f"{move} {place} {value}", whole.moved(self._inputs, int(place), value)
        elif move == unread.MOVE:
            moved = unread.moved(self._inputs, self._movable, self._places)
        else:
            moved = skewed.skewed(self._inputs, move)
            if moved is not None and move in (skewed.LOW, skewed.HIGH):
                moved = edges.scattered(moved, self._movable, drawn, last=move == skewed.LOW)
        if self._suit(move, moved, seed):
            return move
        lesser = skewed.OF_FAR[1:] if move == skewed.FAR and kept.overflowed else ()
        return move if any(self._suit(less, skewed.skewed(self._inputs, less), seed) for less in lesser) else ""

    def _reach(self, move: str, seed: int) -> str:
        """Take the inputs that come to most of what is idle, and that the reference takes, too; return how they were moved."""
        bounds = reaching.within_reason(self._inputs, self._kept.idle or {})
        meets = move == reaching.MEET
        ways = reaching.meeting(self._inputs, bounds, self._numbers) if meets else reaching.reaching(self._inputs, bounds)
        name, moved = reaching.chosen(ways, bounds, self._kept.comes, lambda moved: self._come_to(moved, seed))
        self._inputs = moved if name else self._inputs
        return name

    def _come_to(self, moved: Any, seed: int) -> set[str]:
        """Return which operators do something with moved inputs; none where the reference does not take them."""
        try:
            with idle.Idle(self._path) as watch:
                found = self._tried(moved, seed)
        except Exception:  # an index, say, beyond its table
            return set()
        return watch.busy if skewed.are_finite(found) else set()

    def _edge(self, seed: int) -> bool:
        """Put extremes and numbers of the files into the inputs, or extremes alone, where the reference takes that (`edges`)."""
        for name, numbers in (("numbers", self._numbers), ("edges", [])):
            wanted = self._kept.suits.get(name, True)
            moved = edges.edged(self._inputs, self._movable, numbers, self._seed + self._kept.index) if wanted else None
            if self._suit(name, moved, seed):
                return True
        return False

    def _suit(self, move: str, moved: Any, seed: int) -> bool:
        """Take moved inputs where the reference does; whether it does is asked once."""
        if moved is None:
            return False
        suits = self._kept.suits
        if move not in suits:
            try:
                suits[move] = self._takes(moved, move, seed)
            except Exception:  # an inverse, say, that these values do not have
                suits[move] = False
        if suits[move]:
            self._inputs = moved
        return suits[move]

    def _takes(self, moved: Any, move: str, seed: int) -> bool:
        """Whether moved inputs suit the reference, and show something new; what it draws itself (dropout) nobody can match."""
        found = self._tried(moved, seed)
        if not skewed.are_finite(found):
            self._kept.overflowed |= move == skewed.FAR
            return False
        if move == one_value.OTHER:
            pairs = zip(tensors_of(found), tensors_of(self._tried(moved, seed, draws=seed + 1)), strict=True)
            return all(torch.allclose(one, other, rtol=1e-3) for one, other in pairs)
        if move.startswith(whole.MOVE):
            return whole.shows(self._tried(self._inputs, seed), found)
        if move == unread.MOVE:
            pairs = zip(tensors_of(found), tensors_of(self._tried(self._inputs, seed)), strict=True)
            return not all(torch.equal(one, other) for one, other in pairs)
        return move != skewed.FAR or self._kept.picks or skewed.has_half(moved) or self._tells_scales(seed)

    def _tried(self, inputs: Any, seed: int, draws: int | None = None) -> Any:
        """Return what the model, which nobody called, makes of inputs, which stay as they are; then it is a new one."""
        if inputs is not self._inputs:
            self._rehearsal.of(inputs, self._inputs)
        models.seed_all(seed if draws is None else draws)
        try:
            return self._called(self._model, map_tensors(inputs, same_layout))
        finally:
            self._model = self._build(seed)

    def _tells_scales(self, seed: int) -> bool:
        """Whether larger inputs show more of the reference than the same answer, multiplied."""
        larger, factor = skewed.scaled(self._inputs)
        return not skewed.follows_scale(self._tried(self._inputs, seed), self._tried(larger, seed), factor)

    def _builds(self, seed: int, *, other: bool) -> bool:
        """Make the present model; with other numbers it may fail, and this process, which takes long to start, goes on."""
        try:
            self._model = self._build(seed)
        except Exception:
            if not other:
                raise
            return False
        return True

    def _tells_of(self, own: constructor.Given, seed: int) -> bool:
        """Whether the present model takes the inputs, and answers otherwise than one with the task's own numbers."""
        try:
            self._rehearsal.of(self._inputs, self._inputs, lambda inputs: self._on_cpu(inputs, own))
            found = self._tried(self._inputs, seed)
            self._model = self._build(seed, init=own)
            return skewed.are_finite(found) and whole.shows(self._tried(self._inputs, seed), found)
        except Exception:  # a table with a row less, say
            return False

    def _on_cpu(self, inputs: Any, init: constructor.Given | None = None) -> Any:
        return self._called(self._build(self._model_seed, torch.device("cpu"), init), inputs)

    def _build(self, seed: int, device: torch.device | None = None, init: constructor.Given | None = None) -> Any:
        self._model_seed = seed
        model = models.build(self._needed("Model"), init or self._init, seed, device or self._device, self._path)
        if self._varied:
            filled.vary(model, self._varied, seed)
        return model

    def _called(self, model: Any, inputs: Any) -> Any:
        """Call a model, with gradients where its forward asks for them (`torch.autograd.grad`), which an error of torch tells."""
        with torch.set_grad_enabled(self._differentiates):
            for tensor, wanted in zip(tensors_of(inputs), self._wanted, strict=True):
                tensor.requires_grad_(wanted and self._differentiates)
            try:
                return map_tensors(model(*inputs), torch.Tensor.detach)
            except RuntimeError as error:
                if self._differentiates or not _NEEDS_GRADIENTS.search(str(error)):
                    raise
        self._differentiates = True
        if model is self._model:  # the call that failed may have changed what it holds
            model = self._model = self._build(self._model_seed)
        return self._called(model, inputs)
