"""Operators of a reference that change nothing for the task's inputs: a relu of what is never negative, a bound never reached.

A kernel that leaves such an operator out is right wherever it stays idle. So an operator that was idle in every pass, or a side
of it (`sides`), gets one with inputs that come there, where the reference takes such (`reaching`). A comparison that has one
answer throughout (a padding token that is never drawn, an index that is never beyond the range, a guard for zero) is idle, too.
What stays idle then is said.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import torch

from pypto_op.dispatch_mode import COPIES, DispatchMode, place_in
from pypto_op.triton.run.inputs import domains, grids, narrow, pairs, sides, turns
from pypto_op.triton.run.inputs.packing import address, tensors_of

_CHANGES = frozenset(("maximum", "minimum", "where", "masked_fill", "nan_to_num"))
_LOSSES = {"huber_loss": 3, "smooth_l1_loss": 3}
"""They are squares up to a difference, which is the argument of this number; 1.0 where it is left out."""
_COMPARES = frozenset(("eq", "ne", "lt", "le", "gt", "ge", "isnan", "isinf", "isposinf", "isneginf", "signbit"))
_USUAL, _NONE = -100, -1
_IGNORES = {
    **dict.fromkeys(("nll_loss_forward", "nll_loss2d_forward"), (4, _USUAL)),
    **dict.fromkeys(("_embedding_bag", "_embedding_bag_forward_only"), (8, _NONE)),
    "multilabel_margin_loss_forward": (None, -1),
}
"""They leave out whole numbers of one value: the argument of this number, and the value that it has where nobody says one.

None: they always leave out that one.
"""
_WATCHED = frozenset((
    *_CHANGES, *_LOSSES, *_COMPARES, *_IGNORES, *sides.NAMES, *sides.COMPARES, *sides.VALUES, *narrow.SIGNS, *narrow.SAMPLERS,
))  # fmt: skip
Pair = tuple[torch.Tensor, torch.Tensor]
_SAYS = "ignore_index"
"""A kernel need not know the usual value to ignore, but where the task says this."""
_NAN = "nan_to_num"
_MOST = 3
_MOST_ORDERED = 1 << 24
"""Elements that were put in order go to the judge beside their places; more would take longer than what they show."""


class Idle(DispatchMode):
    """Notes which operators, or sides of them, change nothing while it is active.

    Attributes:
        found: by the operator's name, its side and its place in the task: whether it worked on whole numbers alone.
        busy: the same of what did something in some call.
        unordered: which of equal elements is meant nobody knows.
        picks: an operator picks some of its elements (`sides.PICKS`).
        tied: of what is busy, what was computed and met its number (`sides.AT`), as `found` has it.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.found: dict[str, bool] = {}
        self.busy: set[str] = set()
        self.tied: dict[str, bool] = {}
        self.unordered = self.picks = False
        self._path = str(path)
        text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
        self._says, self._rounds = _SAYS in text, "round" in text
        self._places: list[torch.Tensor] = []  # of elements that an order returned; kept, so that nothing else lies there
        self._places_of: dict[tuple[str, int], list[int]] = {}  # by what an operator does, and its line: its instructions
        self._looks = False  # the reference uses such places
        self._named: list[torch.Tensor] = []  # places of greatest elements, of which the first of equal ones is meant
        self._uses_named = False  # the reference counts by them, say
        self._orders: list[tuple[torch.Tensor, int, torch.Tensor, bool]] = []  # places, axis, elements, whether those were drawn
        self._made: set[int] = set()  # memory of what an operator computed
        self._exact: set[int] = set()  # of that, memory that no rounding moved off a half
        self._rough: set[int] = set()  # and memory that follows from a division that left a rest
        self._apart: dict[int, list[Pair]] = {}  # by memory of a difference of what was drawn: what it is the difference of
        self._turns = turns.Turns()
        self._grid: set[int] = set()  # and memory that would hold no rounding, were all drawn elements multiples of a half

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call the operator, and look whether it changed anything."""
        name = str(func.overloadpacket.__name__)
        plain = name.rstrip("_") or name
        self.unordered = self.unordered or sides.is_unordered(plain, kwargs or {})
        self.picks = self.picks or plain in sides.PICKS
        copies = name != plain and plain in _WATCHED
        halves = grids.keeps_halves(plain, args) and any(self._is_exact(value) for value in args)
        apart = self._apart_in(plain, args)
        grid = grids.keeps_grid(plain, args) and all(self._is_on_grid(value) for value in grids.of_grid(plain, args))
        given = [value.clone() if copies else value for value in args if isinstance(value, torch.Tensor)]
        out = func(*args, **(kwargs or {}))
        self._note_looks(plain, [args, kwargs or {}], out)
        self._note_turns(name, args, out)
        if plain in sides.NAMED:
            self._named += tensors_of(out)[-1:]
        self._keep_made(plain, given, out, exact=halves, grid=grid, apart=apart)
        self._keep_rough(plain, args, out)
        if plain not in _WATCHED or not given:
            return out
        called = plain.strip("_").removesuffix("_kernel").removesuffix("_only").removesuffix("_forward")
        whole = not (given[0].is_floating_point() or given[0].is_complex())
        if plain == "round":
            exact, rounded = self._is_exact(given[0]), sides.scaled_places(given[0], kwargs)
            idle = sides.is_never_halfway(rounded) if exact else sides.is_seldom_halfway(rounded) or self._is_rough(given[0])
            if exact or not kwargs:
                self._note(f"{called} ({sides.HALF if exact else sides.CODES})", idle, whole=whole)
        if plain in sides.VALUES:
            self._note_values(called, plain, args, given[0], tensors_of(out), free=sides.is_unordered(plain, kwargs or {}))
        if plain in sides.ORDERS:
            self._note_order(called, plain, args, given, out)
        if plain in sides.ASK_SIGNS:
            self._note_signs(called, args, given[0])
        if plain in sides.COMPARES and len(given) == 2:
            self._note_pair(called, plain, given)
        if plain in sides.COUNTED and len(given) == 1 and not self._is_as_given(given[0]):
            least = pairs.is_never_count(given[0], sides.just_counted(plain, args, kwargs or {}))
            self._note(f"{called} ({sides.COUNT})", least, whole=True)
        self._note_narrow(called, plain, args, given)
        if plain in _IGNORES:
            position, usual = _IGNORES[plain]
            ignored = args[position] if position is not None and len(args) > position else usual
            if position is None or ignored != usual or (self._says and usual == _USUAL):
                self._note(f"{called} ({sides.WITHOUT} {ignored})", not bool((args[1] == ignored).any()), whole=True)
        if plain in sides.NAMES:
            for side, idle in sides.idle(plain, args, kwargs or {}, given[0], out).items():
                self._note(f"{called} ({side})", idle, whole=whole)
        elif plain in _COMPARES:
            number = args[1] if plain in sides.COMPARES and whole and type(args[1]) is int else None
            known = number is not None and (number != _USUAL or self._says)  # a loss with smoothed labels compares with it, too
            side = f" ({sides.WITHOUT} {number})" if known else ""
            self._note(f"{called}{side}", _is_one_sided(out), whole=not any(one.is_floating_point() for one in given))
        elif plain in _LOSSES:
            self._note(called, _is_within(given, args, kwargs or {}, _LOSSES[plain]), whole=whole)
        elif plain in _CHANGES:
            idle = _is_unchanged(out, given) or (plain == _NAN and not _holds_all(given[0]))
            self._note(called, idle, whole=whole and not out.is_floating_point())
        return out

    def _note_pair(self, called: str, name: str, given: list[torch.Tensor]) -> None:
        """Note what a comparison of two tensors never met: equal elements where both were drawn, zeros where one was computed."""
        if name not in sides.PAIRS:
            if not pairs.stands_for_rows(*given) and not all(map(self._is_as_given, given)):
                return
            self._note(f"{called} ({sides.TWICE})", pairs.is_never_twice(*given), whole=not given[0].is_floating_point())
        elif all(map(self._is_drawn, given)):
            self._note(f"{called} ({sides.EQUAL})", sides.are_never_equal(name, *given), whole=False)
        elif name in sides.ORDERS and all(one.is_floating_point() for one in given):
            self._note(f"{called} ({sides.NOTHING})", pairs.are_never_zero(*given), whole=False)
            if all(map(self._is_on_grid, given)):
                self._note(f"{called} ({sides.AT})", pairs.are_never_equal_on_a_grid(*given), whole=False)

    def _note_narrow(self, called: str, name: str, args: Any, given: list[torch.Tensor]) -> None:
        """Note what never met numbers that differ in their last bits alone, a zero below zero, or a place between two pixels."""
        whole = not given[0].is_floating_point()
        if not all(map(self._is_as_given, given)):
            return
        if name in narrow.COMPARES and len(given) == 2:
            self._note(f"{called} ({narrow.LAST})", narrow.is_never_by_bits(*given), whole=whole)
        elif name in sides.NAMED:
            self._note(f"{called} ({narrow.LAST})", narrow.is_never_first_by_bits(name, args, given[0]), whole=whole)
        elif name in narrow.SIGNS:
            self._note(f"{called} ({narrow.MINUS})", narrow.is_never_minus(name, args), whole=False)
        elif name in narrow.SAMPLERS and (places := narrow.coordinates(args)) is not None:
            self._note(f"{called} ({sides.HALF})", sides.is_never_halfway(places), whole=False)

    def _note_order(self, called: str, name: str, args: Any, given: list[torch.Tensor], out: torch.Tensor) -> None:
        """Note whether what was computed never met the number, or no difference was small, beside which it is compared."""
        if len(given) == 1 and not self._is_drawn(given[0]) and self._is_on_grid(given[0]):
            self._note(f"{called} ({sides.AT})", grids.is_never_at(given[0], args[1]), whole=False)
        if len(given) == 1 and args[1] == 0 and given[0].is_floating_point() and not self._is_drawn(given[0]):
            self._note(f"{called} ({sides.NOTHING})", not bool((given[0] == 0).any()), whole=False)  # of a row of zeros
        if self._apart.get(address(given[0])) and given[0].is_floating_point():
            self._note(f"{called} ({sides.CLOSE})", pairs.is_never_close(name, given[0], out), whole=False)

    def _note_signs(self, called: str, args: Any, given: torch.Tensor) -> None:
        """Note whether a difference of drawn elements, whose sign is asked for, never was that of two equal ones of a row."""
        by_zero = len(args) < 2 or (type(args[1]) in (int, float) and args[1] == 0)
        for one, other in self._apart.get(address(given), []) if by_zero else []:
            self._note(f"{called} ({sides.TWICE})", pairs.is_never_twice(one, other), whole=not one.is_floating_point())

    def _note_turns(self, name: str, args: Any, out: Any) -> None:
        """Note whether an operator in a loop returned what it had returned a turn before."""
        place = (name, *place_in(self._path))
        for side, idle in self._turns.note(place, args, out, writes=name.endswith("_")):
            self._note(f"{name.strip('_')} ({side})", idle, whole=not out.is_floating_point())

    def _note_looks(self, name: str, given: Any, out: Any) -> None:
        """Note whether an operator is given places of elements that an order returned; a copy of them is no use."""
        if self._named and not self._uses_named and name not in COPIES and name != "detach":
            self._uses_named = _holds_one(given, self._named)
        if not self._places or self._looks or name == "detach" or not _holds_one(given, self._places):
            return
        if name in COPIES and isinstance(out, torch.Tensor) and not out.is_floating_point():
            at = address(tensors_of(given)[0])
            self._orders += [(out, order[1], order[2], order[3]) for order in self._orders if address(order[0]) == at]
            self._places.append(out)
        else:
            self._looks = True

    def _note_values(
        self, called: str, name: str, args: Any, given: torch.Tensor, out: list[torch.Tensor], *, free: bool
    ) -> None:
        """Note whether an order, whose places are kept, returned equal elements; `free`: any of them may come first."""
        if not (out and out[0].is_floating_point() and given.numel()):
            return
        self._places += out[1:]
        position = 1 if name in ("median", "nanmedian", "sort") else 2
        axis = args[position] if len(args) > position and type(args[position]) is int else -1
        if free and name in sides.ORDERED and given.dim() and given.numel() <= _MOST_ORDERED:
            self._orders += [(places, axis, given, self._is_drawn(given)) for places in out[1:]]
        self._note(f"{called} ({sides.ALIKE})", sides.are_never_alike(name, given, out[0], axis), whole=False)

    def orders(self, outputs: Any) -> list[tuple[int, int, torch.Tensor, bool]]:
        """Return the orders whose places the reference returned and used for nothing else (`equals.Order`)."""
        at = {address(tensor): (position, tensor) for position, tensor in enumerate(tensors_of(outputs))}
        found: list[tuple[int, int, torch.Tensor, bool]] = []
        for places, axis, elements, drawn in [] if self._looks else self._orders:
            position, output = at.get(address(places), (0, places[:0]))
            found += [(position, axis, elements, drawn)] if output.shape == places.shape else []
        return found

    def _keep_made(self, name: str, given: list[torch.Tensor], out: Any, apart: list[Pair], **kinds: bool) -> None:
        """Note the memory of what an operator made; a view or a copy of what was drawn holds drawn values, too."""
        alike = len({tensor.is_floating_point() for tensor in (*given, *tensors_of(out))}) == 1
        if name in COPIES and alike and all(map(self._is_as_given, given)):
            self._made.difference_update(map(address, tensors_of(out)))
            return
        made = {*map(address, tensors_of(out))} - {*map(address, given)}
        self._made |= made
        for kind, memory in (("exact", self._exact), ("grid", self._grid)):
            (memory.update if kinds[kind] else memory.difference_update)(made)
        self._apart |= dict.fromkeys(made, apart)

    def _keep_rough(self, name: str, args: Any, out: Any) -> None:
        """Note the memory of what a division that left a rest made, and of what follows from it, where the reference rounds."""
        if self._rounds and isinstance(out, torch.Tensor):
            rough = any(map(self._is_rough, args)) or grids.is_rough(name, args, out)
            (self._rough.add if rough else self._rough.discard)(address(out))

    def _is_rough(self, value: Any) -> bool:
        return isinstance(value, torch.Tensor) and address(value) in self._rough

    def _is_exact(self, value: Any) -> bool:
        return isinstance(value, torch.Tensor) and (self._is_drawn(value) or address(value) in self._exact)

    def _is_on_grid(self, value: Any) -> bool:
        return not isinstance(value, torch.Tensor) or self._is_drawn(value) or address(value) in self._grid

    def _apart_in(self, name: str, args: Any) -> list[Pair]:
        """Return of what an operator returns the difference, its absolute value or sign, or a product of such; [] for else."""
        tensors = [value for value in args if isinstance(value, torch.Tensor)]
        if name == "sub":
            return [(tensors[0], tensors[1])] if len(tensors) == 2 and all(map(self._is_as_given, tensors)) else []
        known = [self._apart.get(address(tensor), []) for tensor in tensors] if name in pairs.KEEP_SIGNS else []
        return [pair for of_one in known for pair in of_one] if known and all(known) else []

    def _is_drawn(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor holds floats as they were drawn; what was computed differs between kernels by its rounding."""
        return tensor.is_floating_point() and self._is_as_given(tensor)

    def _is_as_given(self, tensor: torch.Tensor) -> bool:
        return tensor.numel() > 1 and address(tensor) not in self._made

    def still_idle(self, before: dict[str, bool] | None, outputs: Any, *, gross: bool, exact: bool) -> dict[str, bool]:
        """Return what of `before` (None: of anything) was idle again.

        A product that happens to be a half shows nothing of `>` and `>=` where honest rounding may take it to either side.

        Args:
            before: what was idle so far.
            outputs: what the reference returned.
            gross: only gross errors count in this pass, so it tests what lies far away alone: elements that happen to be equal
                among large ones show nothing.
            exact: values near ties may not fall on either side in this pass, so it shows sides of exact numbers.
        """
        found = self.idle(outputs) | ({} if exact else self.tied)
        if before is None:
            return found
        far = (f"({sides.FAR})", f"({sides.SUNK})", f"({domains.DEEP})", f"({domains.STEEP})", f"({domains.PEAKS})")
        return {key: whole for key, whole in before.items() if key in found or (gross and not any(side in key for side in far))}

    def idle(self, outputs: Any) -> dict[str, bool]:
        """Return what was idle and can show in what the reference returned: which of two equal elements it names only there."""
        ordered = {position for position, *_ in self.orders(outputs)}
        others = [tensor for position, tensor in enumerate(tensors_of(outputs)) if position not in ordered]
        kinds = {tensor.dtype for tensor in others if not tensor.is_floating_point()}
        hidden = [sides.TIES] if not kinds and not self._uses_named else []
        hidden = [sides.TIES, sides.EQUAL] if self.unordered else hidden
        hidden += [sides.ALIKE] if kinds - {torch.bool} or self._looks else []
        return {key: whole for key, whole in self.found.items() if not any(f"({side})" in key for side in hidden)}

    def _note(self, what: str, idle: bool | None, *, whole: bool) -> None:
        """Keep whether a call was idle; None: that cannot be said of it."""
        if idle is None:
            return
        line, instruction = place_in(self._path)
        places = self._places_of.setdefault((what, line), [])
        places += [] if instruction in places else [instruction]
        turn = places.index(instruction)
        key = f"{what} in line {line}{f', place {turn + 1}' if turn else ''}"
        if not idle or key in self.busy:
            self.busy.add(key)
            self.found.pop(key, None)
            if f"({sides.AT})" in key:
                self.tied[key] = whole
        else:
            self.found[key] = whole


def told(idle: Collection[str]) -> list[str]:
    """Return what to say of operators that were idle in every pass; no task needs overflows, or zeros for their own sake."""
    named = sorted(key for key in idle if not any(f"({side})" in key for side in (*sides.NEEDLESS, *turns.SIDES)))
    if not named:
        return turns.told(idle)
    more = f" and {len(named) - _MOST} more" if len(named) > _MOST else ""
    return [
        f"of the reference {', '.join(named[:_MOST])}{more} changed nothing in any pass: what it bounds was not tested",
        *turns.told(idle),
    ]


def _is_unchanged(out: Any, given: list[torch.Tensor]) -> bool:
    if not isinstance(out, torch.Tensor):
        return False
    if out.numel() > 1 and bool((out == out[(0,) * out.dim()]).all()):  # nothing comes through
        return True
    alike = [one for one in given if (one.shape, one.dtype, one.device) == (out.shape, out.dtype, out.device)]
    return any(torch.equal(one, out) for one in alike)


def _is_one_sided(out: Any) -> bool | None:
    """Whether a comparison has one answer throughout; None for a single one."""
    if not isinstance(out, torch.Tensor) or out.numel() < 2:
        return None
    return bool((out == out[(0,) * out.dim()]).all())


def _holds_all(tensor: torch.Tensor) -> bool:
    """Whether a tensor holds all that `nan_to_num` replaces."""
    return bool(tensor.isnan().any() and tensor.isposinf().any() and tensor.isneginf().any())


def _is_within(given: list[torch.Tensor], args: Any, kwargs: Any, position: int) -> bool:
    limit = args[position] if len(args) > position else kwargs.get("delta", kwargs.get("beta", 1.0))
    return len(given) >= 2 and bool(((given[0] - given[1]).abs() <= limit).all())


def _holds_one(given: Any, places: Sequence[torch.Tensor]) -> bool:
    """Whether one of some tensors lies among what an operator is given."""
    return not {*map(address, places)}.isdisjoint(map(address, tensors_of(given)))
