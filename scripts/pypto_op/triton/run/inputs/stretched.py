"""Whole numbers over all of the range that a reference takes: labels of the last classes, full lengths, sums beyond 24 bits.

A task draws labels up to 100 for a table of 300 rows, and a kernel that keeps them in eight bits is right. So one pass stretches
whole numbers. Where they name rows, or are compared with places in their order, they reach the last one. Where the reference
only computes with them, they become large, and so do bytes that become floats. Their order, their sign, zero and what is equal
stay, also between tensors that are asked for equal elements. Where they name the places that something is added to, and were
drawn one by one, two are equal: a kernel that adds without atomics loses one of them.

How a reference uses them is seen while it runs. Where it uses them otherwise (a size, a position that is computed), they stay.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import Any

import torch

from pypto_op.dispatch_mode import COPIES, DispatchMode
from pypto_op.triton.run.inputs import skewed
from pypto_op.triton.run.inputs.edges import is_sorted
from pypto_op.triton.run.inputs.packing import address, changed_copy, holds_integers, map_tensors, memory_of, tensors_of

MOVE, BELOW = "stretched", "negative"
"""The names of these moves, beside those of `skewed`: the second lets whole numbers that are only computed with be below zero.

A quotient that is cut off, a remainder with the sign of what is divided, and a greatest element that begins at zero or at -1
show there alone, and are said: no draw of the task comes there. Only what is divided or compared so gets it, and nothing that
names a place or a length.
"""
MOVES = (MOVE, BELOW)
WHAT_BELOW = "some whole numbers of this pass are below zero, where the reference only computes with them"
TOLD_BELOW = (
    "with whole numbers below zero, which the task never draws, the answer is wrong: `//` and `%` of a kernel cut a quotient off "
    "where PyTorch rounds it down, and a greatest element may begin at zero or at -1"
)
"""Said, not held against a kernel: `//` is right for numbers from zero, as a maximum from zero is for floats of one sign."""
TOLD = (
    "the whole numbers of this pass reach as far as the reference takes them: the last rows that they may name, also twice, full "
    "lengths, large ones where it only computes with them"
)
_CAPS = (30, 22, 14)
"""Powers of two that whole numbers may reach; the first is tried first."""
_WORD = 2**31 - 1
"""What a kernel may add up in 32 bits."""
_TURN = 7919
"""Spreads what lies between the multiples that a factor makes; a value depends on the one that it replaces alone."""
_FLAGS, _BYTE = 2, 1
_ROWS = frozenset((
    "gather", "index_select", "scatter", "scatter_add", "scatter_reduce", "index_add", "index_copy", "index_fill", "index_reduce",
))  # fmt: skip
"""They are given a tensor, an axis of it, and places on that axis."""
_ADDS = frozenset(("scatter_add", "scatter_reduce", "index_add", "index_reduce"))
_PUTS = "scatter"
_TABLES = frozenset(("embedding", "_embedding_bag", "_embedding_bag_forward_only"))
_LABELS = frozenset(("nll_loss_forward", "nll_loss2d_forward"))
_PICKS = frozenset(("gather", "index_select", "index"))
_VIEWS = frozenset(("_unsafe_view", "unsqueeze", "squeeze", "transpose", "t"))
"""Operators that look at the same numbers though torch calls them no views: a copy of no account, and what is done in place."""
_MAKES = re.compile(r"(empty|zeros|ones|full|rand\w*)_like|new_\w+")
"""How what takes from a tensor its shape alone is called."""
_TO_FLOATS = frozenset(("_to_copy", "div"))
_SUMS = frozenset(("sum", "cumsum", "mm", "bmm"))
_COMPUTES = _SUMS | {
    "add", "sub", "rsub", "mul", "pow", "floor_divide", "remainder", "fmod", "neg", "abs", "sign", "bitwise_and", "bitwise_or",
    "bitwise_xor", "bitwise_not", "__lshift__", "bitwise_left_shift", "__rshift__", "bitwise_right_shift", "amax", "amin", "max",
    "min", "sort", "maximum", "minimum",
    "clamp", "clamp_min", "clamp_max", "gcd", "lcm", "where", "cat", "stack", "flip", "roll",
}  # fmt: skip
_REACHES_SIZE, _STAYS_BELOW = frozenset(("lt", "ge")), frozenset(("le", "gt"))
"""With places in their order on the left: `place < length` may be asked of a full length, `place <= last` of a last place."""
_QUOTIENTS = frozenset(("floor_divide", "div", "remainder", "fmod"))
_RESTS = frozenset(("remainder", "fmod"))
_MULTIPLES = 4
"""One number of so many leaves no rest by one of the numbers that divide it."""
_EXTREMES = frozenset(("amax", "amin", "max", "min", "sort"))
_OF_BITS = frozenset((
    "gcd", "lcm", "pow", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "__lshift__", "bitwise_left_shift",
    "__rshift__", "bitwise_right_shift",
))  # fmt: skip
"""What a loop over bits, or down to zero, makes of numbers below zero nobody asked."""
_EACH = 5
"""Beside the first half, every so many numbers are below zero."""
_ALIKE = frozenset(("eq", "ne", "isin"))
_COMPARES = _REACHES_SIZE | _STAYS_BELOW | _ALIKE
_MIRRORED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}


class _Uses(DispatchMode):
    """Notes what a reference does with whole numbers among its inputs while it is active.

    Attributes:
        most: by position of a tensor: the greatest number that names a row, or fits beside places in their order.
        computed: the positions of those that are computed with.
        summed: of those, which are added up.
        floats: those that become floats: what reaches a last row or place may, too (a mean over lengths).
        other: those that are used otherwise.
        added: those that name places which something is added to.
        put: those that name places which something is put into.
        divided: those that are divided into whole numbers.
        extreme: those of whose elements the greatest, or the least, is taken.
        paired: those that are compared with each other for being equal.
        known: those that are compared with a number, zero left out.
        moduli: by position, the numbers of whose quotients the rest is taken: what leaves none is seldom drawn.
        unsigned: those that divide, that are taken apart into bits, or that are compared with places.
    """

    def __init__(self, inputs: Any) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.most: dict[int, int] = {}
        self.computed: set[int] = set()
        self.summed: set[int] = set()
        self.floats: set[int] = set()
        self.other: set[int] = set()
        self.added: set[int] = set()
        self.put: set[int] = set()
        self.divided: set[int] = set()
        self.extreme: set[int] = set()
        self.paired: set[int] = set()
        self.unsigned: set[int] = set()
        self.known: set[int] = set()
        self.moduli: dict[int, set[int]] = {}
        held = [(position, tensor) for position, tensor in enumerate(tensors_of(inputs)) if holds_integers(tensor)]
        self._own = {address(tensor): position for position, tensor in held}
        self._made: dict[int, set[int]] = {}  # memory of what was computed with them

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call the operator, and look what it is given."""
        name = str(func.overloadpacket.__name__)
        plain = name.rstrip("_") if not name.startswith("__") else name
        given = tensors_of([args, kwargs or {}])
        used = {position for tensor in given for position in self._of(tensor)}
        out = func(*args, **(kwargs or {}))
        made = [tensor for tensor in tensors_of(out) if address(tensor) not in {*map(address, given)}]
        for tensor in made:
            self._own.pop(address(tensor), None)
            self._made.pop(address(tensor), None)
        if used and not func.is_view and plain not in _VIEWS and not _MAKES.fullmatch(plain):
            self._note(plain, args, used, given, made)
        return out

    def _note(self, name: str, args: Any, used: set[int], given: list[torch.Tensor], made: list[torch.Tensor]) -> None:
        whole = all(not tensor.is_floating_point() for tensor in [*given, *made])
        if name in COPIES and whole:
            own = self._own.get(address(given[0]))
            for tensor in made:
                if own is not None:
                    self._own[address(tensor)] = own
                else:
                    self._made[address(tensor)] = used
        elif name in _COMPARES and whole:
            self.unsigned |= used if any(isinstance(one, torch.Tensor) for one in args[1:]) else set()
            self._note_alike(name, args, used)
            self._note_order(name, args)
        elif (rows := list(_rows(name, args))) or name in _PICKS:
            self._note_rows(name, args, rows, used, made)
            named = {own for places, _ in rows if (own := self._own.get(address(places))) is not None}
            if name in _ADDS or (name == "index_put" and len(rows) == 1 and True in args[3:4]):
                self.added |= named
            elif name == _PUTS:
                self.put |= named
        elif (name in _COMPUTES or name in _QUOTIENTS) and whole:
            self.computed |= used
            self.divided |= self._of(args[0]) if name in _QUOTIENTS else set()
            for position in self._of(args[0]) if name in _RESTS and type(args[1]) is int and args[1] > 1 else ():
                self.moduli.setdefault(position, set()).add(args[1])
            self.unsigned |= self._of(args[1]) if name in _QUOTIENTS else used if name in _OF_BITS else set()
            self.extreme |= used if name in _EXTREMES else set()
            self.summed |= used if name in _SUMS else set()
            self._made |= dict.fromkeys(map(address, made), used)
        elif name in _TO_FLOATS:
            self.floats |= used
        else:
            self.other |= used

    def _note_rows(
        self, name: str, args: Any, rows: list[tuple[torch.Tensor, int]], used: set[int], made: list[torch.Tensor]
    ) -> None:
        """Note up to where whole numbers may name rows; what is picked from them is still theirs."""
        for places, size in rows:
            self._bound(places, size - 1)
        picked = self._of(args[0])
        self._made |= dict.fromkeys(map(address, made), picked) if picked and name in _PICKS else {}
        named = {position for places, _ in rows for position in self._of(places)}
        self.other |= used - named - (picked if name in _PICKS else set())

    def _note_alike(self, name: str, args: Any, used: set[int]) -> None:
        """Note whether whole numbers are compared with each other alone."""
        self.known |= used if type(args[1]) is int and args[1] else set()
        self.paired |= used if name in _ALIKE and all(map(self._of, args[:2])) else set()

    def _note_order(self, name: str, args: Any) -> None:
        """Note up to where whole numbers are compared with others that are none of the inputs': places in their order."""
        for mine, other, asked in ((args[1], args[0], name), (args[0], args[1], _MIRRORED.get(name, name))):
            if not isinstance(mine, torch.Tensor) or not self._of(mine):
                continue
            if isinstance(other, torch.Tensor) and other.numel() > 1 and not self._of(other):
                self._bound(mine, int(other.max()) + (asked in _REACHES_SIZE))

    def _bound(self, tensor: torch.Tensor, most: int) -> None:
        own = self._own.get(address(tensor))
        if own is None:
            self.other |= self._of(tensor)
        else:
            self.most[own] = min(most, self.most.get(own, most))

    def _of(self, tensor: Any) -> set[int]:
        if not isinstance(tensor, torch.Tensor):
            return set()
        own = self._own.get(address(tensor))
        return self._made.get(address(tensor), set()) if own is None else {own}


class _Puts(DispatchMode):
    """Notes, while it is active, whether two different numbers were put in one place, of which one is lost."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.lost = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call the operator, and look for what it was given where it put it."""
        out = func(*args, **(kwargs or {}))
        if str(func.overloadpacket.__name__).rstrip("_") == _PUTS and len(args) > 3 and isinstance(args[3], torch.Tensor):
            put = args[3][tuple(map(slice, args[2].shape))]
            self.lost = self.lost or not torch.equal(out.gather(args[1], args[2]), put)
        return out


def ways(inputs: Any, call: Callable[[Any], Any], repeating: Sequence[bool] = ()) -> Iterator[tuple[str, Any]]:
    """Yield what the move is called and inputs whose whole numbers reach farther, those that reach farthest first.

    Args:
        inputs: stay as they are.
        call: calls the reference; it may raise.
        repeating: by tensor, whether two of its numbers may be equal.
    """
    if not any(map(holds_integers, tensors_of(inputs))):
        return
    with _Uses(inputs) as uses:
        call(inputs)
    for power in _CAPS if uses.computed - {*uses.most} - uses.other - uses.floats else _CAPS[:1]:
        for places in (uses.added | uses.put, uses.added) if uses.put else (uses.added,):
            found = _stretched(inputs, uses, 2**power, [at in places and may for at, may in enumerate(repeating)])
            if found is not None and _keeps_order(inputs, found) and _fits(found, call):
                yield f"{MOVE} {power}", found


def of_move(move: str, inputs: Any, call: Callable[[Any], Any], repeating: Sequence[bool] = ()) -> Iterator[tuple[str, Any]]:
    """Return the inputs of one of `MOVES` (`ways`, `below_zero`)."""
    return below_zero(inputs, call) if move == BELOW else ways(inputs, call, repeating)


def below_zero(inputs: Any, call: Callable[[Any], Any]) -> Iterator[tuple[str, Any]]:
    """Yield what the move is called and inputs whose whole numbers are below zero where that tells something (`BELOW`)."""
    whole = [tensor for tensor in tensors_of(inputs) if holds_integers(tensor)]
    if not any(_is_never_negative(tensor) for tensor in whole):
        return
    with _Uses(inputs) as uses:
        call(inputs)
    one_sign = not skewed.of_both_signs(inputs) and not any(bool((tensor < 0).any()) for tensor in whole)
    wanted = (uses.divided | (uses.extreme if one_sign else set())) - {*uses.most} - uses.other - uses.floats - uses.unsigned
    positions = iter(range(len(tensors_of(inputs))))

    def change(copy: torch.Tensor, tensor: torch.Tensor) -> bool:
        if next(positions) not in wanted or not _is_never_negative(tensor):
            return False
        memory = memory_of(copy)
        memory[: len(memory) // 2].neg_()
        memory[len(memory) // 2 :: _EACH].neg_()
        return True

    found = changed_copy(inputs, change)
    if found is not None and _fits(found, call):
        yield BELOW, found


def _is_never_negative(tensor: torch.Tensor) -> bool:
    """Whether a tensor holds whole numbers, not flags, none of which is below zero, in no order that others would break."""
    if not holds_integers(tensor) or not tensor.numel() or torch.iinfo(tensor.dtype).min == 0:
        return False
    if tensor.dim() == 1 and is_sorted(tensor, 2):
        return False
    return bool((tensor >= 0).all()) and int(tensor.max()) >= _FLAGS and not is_sorted(tensor)


def _stretched(inputs: Any, uses: _Uses, cap: int, repeating: Sequence[bool]) -> Any | None:
    positions = iter(range(len(tensors_of(inputs))))
    otherwise = uses.known | uses.other | uses.floats | uses.summed | {*uses.most}
    paired = uses.paired if not uses.paired & otherwise else set()
    alike = [one for position, one in enumerate(tensors_of(inputs)) if position in paired and one.numel()]
    common = max((int(one.long().abs().max()) for one in alike), default=0)
    least = min((torch.iinfo(one.dtype).max for one in alike), default=0)

    def change(copy: torch.Tensor, tensor: torch.Tensor) -> bool:
        position = next(positions)
        if not holds_integers(tensor) or position in uses.other or not tensor.numel():
            return False
        memory = memory_of(copy)
        greatest, limit = int(memory.long().abs().max()), torch.iinfo(tensor.dtype).max
        if position in uses.most:
            repeats = repeating[position : position + 1] == [True] and _repeat(copy)
            return _reach(memory, min(uses.most[position], limit)) or repeats
        if tensor.element_size() == _BYTE and position in uses.floats - uses.computed and greatest >= _FLAGS:
            return _fill(memory, greatest, limit)
        if position not in paired | (uses.computed - uses.floats) or greatest < _FLAGS:
            return False
        short = tensor.element_size() <= 4 and position in uses.summed
        factor = min(cap, limit, _WORD // memory.numel() if short else cap) // greatest
        factor = min(cap, least) // common if position in paired else factor
        wide = memory.long().abs()
        if factor > 1:
            memory.copy_(memory.sign() * (wide * factor - wide * wide * _TURN % (factor // 2)))
            _leave_no_rest(memory, sorted(uses.moduli.get(position, ())))
        elif position in paired or not bool((wide[wide > 0] == greatest).all()):
            return False
        else:  # nothing, or all: a coverage of 0 and 255 has parts in between
            parts = torch.arange(len(memory), device=memory.device) * _TURN % (greatest + 1)
            memory.copy_(torch.where(memory.long().abs() > 0, memory.sign() * parts, 0))
        return True

    return changed_copy(inputs, change)


def _leave_no_rest(memory: torch.Tensor, moduli: Sequence[int]) -> None:
    """Let some numbers be multiples of each of these: every hundredth year is one of a hundred."""
    for turn, number in enumerate(moduli):
        some = memory[turn :: _MULTIPLES * len(moduli)]
        some -= some % number


def _reach(memory: torch.Tensor, most: int) -> bool:
    """Let the greatest number be this one, and the others above zero as much larger."""
    greatest = int(memory.max())
    if not 0 < greatest < most:
        return False
    memory.copy_(torch.where(memory > 0, memory.long() * most // greatest, memory.long()))
    return True


def _fill(memory: torch.Tensor, greatest: int, limit: int) -> bool:
    """Let bytes that become floats reach the end of their range: a task may draw codes of four bits for weights of eight."""
    wide = memory.to(torch.int32)
    memory.copy_(wide.sign() * (wide.abs() * limit // greatest).clamp(max=limit))
    return greatest < limit


def _repeat(copy: torch.Tensor) -> bool:
    """Let the last number of each row be equal to the first one, where none is equal to another."""
    rows = copy if copy.dim() and copy.shape[-1] > 1 else memory_of(copy)
    if rows.shape[-1] < 2 or bool((rows.sort(-1).values.diff(dim=-1) == 0).any()):
        return False
    rows[..., -1] = rows[..., 0].clone()
    return True


def _rows(name: str, args: Any) -> Iterator[tuple[torch.Tensor, int]]:
    """Yield the tensors that name rows, and how many rows there are."""
    if name in _ROWS and args[0].dim():
        yield args[2], args[0].shape[args[1]]
    elif name in _TABLES:
        yield args[1], args[0].shape[0]
    elif name in _LABELS:
        yield args[1], args[0].shape[min(1, args[0].dim() - 1)]
    elif name in ("index", "index_put") and all(one is None or holds_integers(one) for one in args[1]):
        yield from ((places, args[0].shape[axis]) for axis, places in enumerate(args[1]) if places is not None)


def _keeps_order(inputs: Any, found: Any) -> bool:
    """Whether what begins before another tensor's number still does: two ends of a segment."""
    pairs = [(one, two) for one, two in zip(tensors_of(inputs), tensors_of(found), strict=True) if holds_integers(one)]
    alike = [(one, other) for one, other in combinations(pairs, 2) if one[0].shape == other[0].shape]
    return all(torch.equal((a[0] <= b[0]), (a[1] <= b[1])) or not _is_ordered(a[0], b[0]) for a, b in alike)


def _is_ordered(one: torch.Tensor, other: torch.Tensor) -> bool:
    return bool((one <= other).all() | (one >= other).all())


def _fits(found: Any, call: Callable[[Any], Any]) -> bool:
    """Whether nothing that the reference computes wraps around, or is put where another number is: nobody says what follows."""
    try:
        with _Puts() as puts:
            wide = call(map_tensors(found, lambda tensor: tensor.long() if holds_integers(tensor) else tensor))
        if puts.lost:
            return False
        pairs = zip(tensors_of(call(found)), tensors_of(wide), strict=True)
        return all(torch.equal(one.to(other.dtype), other) for one, other in pairs)
    except Exception:  # of another dtype the reference may not take it; beyond its range neither
        return False
