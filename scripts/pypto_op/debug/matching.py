"""Holds a kernel's results against a golden's tensors: which parts of which tensor of the golden does a kernel compute?

A kernel works in tiles and in an order of its own, so a result of it may lie anywhere in a tensor of the golden, or in none.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from pypto_op.tensor_bytes import bytes_in

_MOST_PLACES = 16
"""Candidates of each tensor that are compared whole."""

_TOLD_PLACES = 4
_MOST_ELEMENTS = 1 << 20
"""Elements that are compared at once."""

_MOST_SORTED = 1 << 25
"""Elements of a group that is sorted, which takes twice its memory once more; a larger one is searched as it stands."""

_PICKS = ("index", "index_select", "embedding")
"""Operations of torch that pick entries of the first axis of their first input."""
_RELATIVE = {torch.float16: 4e-3, torch.bfloat16: 3e-2}
_RELATIVE_ELSE = 2e-4

KINDS: Mapping[str, frozenset[str]] = {
    "sum": frozenset({"sum", "mean", "mm", "bmm", "cumsum"}),
    "amax": frozenset({"amax", "max", "maximum"}),
    "amin": frozenset({"amin", "min", "minimum"}),
    "exp": frozenset({"exp"}),
    "log": frozenset({"log"}),
    "sqrt": frozenset({"sqrt"}),
    "rsqrt": frozenset({"rsqrt"}),
    "sub": frozenset({"sub"}),
    "add": frozenset({"add"}),
    "mul": frozenset({"mul", "pow"}),
    "div": frozenset({"div", "reciprocal"}),
    "mm": frozenset({"mm", "bmm"}),
    "neg": frozenset({"neg"}),
}
"""Kind of a kernel's operation -> torch operators of which it can be a part."""

_PREFIXES = (
    ("ROWSUM", "sum"), ("SUM", "sum"), ("ROWMAX", "amax"), ("MAX", "amax"), ("ROWMIN", "amin"), ("MIN", "amin"), ("EXP", "exp"),
    ("LN", "log"), ("LOG", "log"), ("RSQRT", "rsqrt"), ("SQRT", "sqrt"), ("SUB", "sub"), ("ADD", "add"), ("MUL", "mul"),
    ("DIV", "div"), ("RECIP", "div"), ("A_MUL", "mm"), ("NEG", "neg"),
)  # fmt: skip


def kind_of(opcode: str) -> str:
    """Return the kind of a kernel's operation, "" for one that has no counterpart; EXPAND is no EXP."""
    if opcode.startswith("EXPAND"):
        return ""
    return next((kind for prefix, kind in _PREFIXES if opcode.startswith(prefix)), "")


def says_little(value: torch.Tensor) -> bool:
    """Whether a result could stand anywhere: a few numbers, or one number again and again."""
    return value.numel() < 4 or bool((value == value.reshape(-1)[0]).all())


def rounding_of(dtype: torch.dtype) -> float:
    """Return the relative error that counts as rounding in a dtype."""
    return _RELATIVE.get(dtype, _RELATIVE_ELSE)


@dataclass(frozen=True)
class Match:
    """A result that is a block of a tensor of the golden."""

    tensor: int  # number of that tensor
    line: int  # line of the golden that made it; 0 for an input or an output
    # (row, column) of the block in the tensor, seen as a matrix of its last two axes; a few of them
    places: tuple[tuple[int, int], ...]


class Golden:
    """A golden's tensors, ready to be searched.

    Args:
        tensors: as `golden_trace` wrote them.
        rows: likewise.
        numbers: likewise; what its operations take beside tensors.
    """

    def __init__(self, tensors: Sequence[torch.Tensor], rows: Sequence[Mapping[str, Any]], numbers: Iterable[float] = ()) -> None:
        self.tensors = tensors
        self.numbers = frozenset(numbers)
        self.rows = [row for row in rows if row["op"] not in ("input", "output")]
        self.inputs = [tensors[int(row["tensor"])] for row in rows if row["op"] == "input"]
        self.lines: dict[int, int] = {}
        for row in rows:
            self.lines.setdefault(int(row["tensor"]), int(row["line"]))
        self.made_by: dict[int, list[Mapping[str, Any]]] = {}
        self.used_by: dict[int, list[Mapping[str, Any]]] = {}
        for row in self.rows:
            self.made_by.setdefault(int(row["tensor"]), []).append(row)
            for given in row["inputs"]:
                self.used_by.setdefault(int(given), []).append(row)
        self.shapes = [tuple(tensor.shape) for tensor in tensors]
        sizes: dict[tuple[int, ...], list[tuple[int, torch.Tensor]]] = {}
        for number, tensor in enumerate(tensors):
            matrices = _matrices(tensor)
            sizes.setdefault(tuple(matrices.shape[1:]), []).append((number, matrices))
        self._groups = [_Group(members) for members in sizes.values()]
        self._found: dict[bytes, list[Match]] = {}

    def is_input(self, value: torch.Tensor) -> bool:
        """Say whether a tensor holds what an input of the golden holds, whatever its axes of size 1."""
        return any(one.squeeze().shape == value.squeeze().shape and one.squeeze().equal(value.squeeze()) for one in self.inputs)

    def picked(self, value: torch.Tensor) -> torch.Tensor | None:
        """Return which entries of an input's first axis the golden picks by a table, in a mask; None where it picks none.

        Args:
            value: what the input holds, perhaps in another shape.
        """
        masks = []
        for row in self.rows:
            source = self.tensors[int(row["inputs"][0])] if row["op"] in _PICKS and row["inputs"] else None
            if source is None or source.dim() < 2 or source.numel() != value.numel() or not self.is_input(source):
                continue
            if source.dtype == value.dtype and source.reshape(-1).equal(value.reshape(-1)):
                made = self.tensors[int(row["tensor"])]
                size = source[0].numel()
                taken = {bytes_in(one).numpy().tobytes() for one in made.reshape(-1, size)} if made.numel() % size == 0 else set()
                entries = source.reshape(len(source), -1)
                masks.append(torch.tensor([bytes_in(one).numpy().tobytes() in taken for one in entries]))
        return torch.stack(masks).any(0) if masks else None

    def matches(self, value: torch.Tensor, relative: float | None = None) -> list[Match]:
        """Return where `value` stands among the golden's tensors; [] for nowhere.

        Args:
            relative: the relative error that counts as rounding; default: that of the value's dtype.
        """
        relative = rounding_of(value.dtype) if relative is None else relative
        if value.numel() == 0:
            return []
        key = bytes(f"{relative}{value.dtype}{tuple(value.shape)}", "ascii") + bytes_in(value).numpy().tobytes()
        if key not in self._found:
            self._found[key] = self._search(value, relative)
        return self._found[key]

    def where(self, value: torch.Tensor, relative: float) -> Iterator[tuple[int, int, int, int]]:
        """Yield (tensor, batch, row, column) of blocks that hold `value` as it stands; the first place of each tensor."""
        block = _matrices(value)[0]
        for match in self.matches(value, relative):
            whole = _matrices(self.tensors[match.tensor])
            for batch, (row, column) in itertools.product(range(len(whole)), match.places):
                there = whole[batch, row : row + block.shape[0], column : column + block.shape[1]]
                if there.shape == block.shape and _near(there.numpy(), block.numpy(), relative).all():
                    yield match.tensor, batch, row, column
                    break

    def block(self, tensor: int, batch: int, place: tuple[int, int], shape: Sequence[int]) -> torch.Tensor | None:
        """Return the block of a tensor that belongs to a place of another, None where it has none of this shape.

        Axes of size 1 are spread along, so the block begins at 0 there.
        """
        whole = _matrices(self.tensors[tensor])
        wanted = [size for size in shape if size != 1]
        sizes = [*wanted, *[1] * (2 - len(wanted))] if len(wanted) < 2 else wanted[-2:]
        one = whole[min(batch, len(whole) - 1)]
        row, column = (at if size > 1 else 0 for at, size in zip(place, one.shape, strict=True))
        found = one[row : row + sizes[0], column : column + sizes[1]]
        return found.reshape(tuple(shape)) if found.numel() == math.prod(shape) else None

    def _search(self, value: torch.Tensor, relative: float) -> list[Match]:
        block = _matrices(value)
        if block.shape[0] != 1:
            return []
        one = block.numel() == 1
        forms = [_Form(form, relative) for form in ([block[0]] if one else [block[0], block[0].T])]
        found: dict[int, list[tuple[int, int]]] = {}
        for group in self._groups:
            for form in reversed(forms):  # as it stands goes before transposed
                found |= form.places(group)
        return [Match(number, self.lines.get(number, 0), tuple(places)) for number, places in sorted(found.items())]


def _matrices(tensor: torch.Tensor) -> torch.Tensor:
    """Return [batch, rows, columns] in float64; axes of size 1 are left out, all but the last two are the batch."""
    wide = tensor.to(torch.float64).squeeze()
    while wide.dim() < 2:
        wide = wide.unsqueeze(-1)
    return wide.reshape(-1, *wide.shape[-2:])


class _Group:
    """Tensors whose matrices have one size, put together: a golden that walks over tokens has thousands of them.

    What is searched is numpy's: a search takes many steps with few numbers each, which cost a fifth of torch's there.

    Args:
        members: (number, [batch, rows, columns]).
    """

    def __init__(self, members: Sequence[tuple[int, torch.Tensor]]) -> None:
        self.whole = torch.cat([matrices for _, matrices in members])
        self.flat = self.whole.reshape(-1).numpy()
        self.owners = np.array([number for number, matrices in members for _ in range(len(matrices))])
        self._sorted: tuple[Any, Any] | None = None
        self._zeros: torch.Tensor | None = None
        self._of_zeros: dict[tuple[int, int], dict[int, list[tuple[int, int]]]] = {}

    def near_rarest(self, values: Sequence[float], allowed: Sequence[float]) -> tuple[int, Any]:
        """Return which of `values` the fewest elements are near to, and the flat indices of these elements, in order.

        Args:
            values: at least one.
            allowed: what each element may differ by; one for each value.
        """
        if self.flat.size > _MOST_SORTED:
            return 0, np.flatnonzero(np.abs(self.flat - values[0]) <= allowed[0])
        if self._sorted is None:
            values_up, places = self.whole.reshape(-1).sort()
            self._sorted = values_up.numpy(), places.numpy()
        ranked, order = self._sorted
        firsts = ranked.searchsorted([value - off for value, off in zip(values, allowed, strict=True)])
        lasts = ranked.searchsorted([value + off for value, off in zip(values, allowed, strict=True)], "right")
        rarest = int((lasts - firsts).argmin())
        return rarest, np.sort(order[firsts[rarest] : lasts[rarest]])

    def zeros(self, rows: int, columns: int) -> dict[int, list[tuple[int, int]]]:
        """Return (row, column) of some blocks of zeros of that size, by the number of the tensor that holds them.

        Of each matrix only the first is looked at: they stand at so many places that looking at each would take longer than all
        other searches of a run. Zeros of one size are asked for in several dtypes, and as they stand and transposed.
        """
        if (rows, columns) not in self._of_zeros:
            self._of_zeros[rows, columns] = _few(self._first_zeros(rows, columns))
        return self._of_zeros[rows, columns]

    def _first_zeros(self, rows: int, columns: int) -> Iterator[tuple[int, int, int]]:
        if self._zeros is None:  # how many zeros there are above and to the left of a place
            counted = (self.whole == 0).cumsum(1, dtype=torch.int32).cumsum(2, dtype=torch.int32)
            self._zeros = torch.nn.functional.pad(counted, (1, 0, 1, 0))
        before, after = self._zeros[:, :-rows], self._zeros[:, rows:]
        inside = after[..., columns:] - after[..., :-columns] - before[..., columns:] + before[..., :-columns]
        full = (inside == rows * columns).flatten(1)
        batches = full.any(1).nonzero().squeeze(1)
        places = full[batches].to(torch.uint8).argmax(1)
        for batch, place in zip(batches.tolist(), places.tolist(), strict=True):
            yield int(self.owners[batch]), *divmod(place, inside.shape[2])


class _Form:
    """A block that is looked for, one way round.

    Args:
        block: [rows, columns], float64.
        relative: what counts as rounding.
    """

    def __init__(self, block: torch.Tensor, relative: float) -> None:
        self._block, self._relative = block.numpy(), relative
        finite = np.where(np.isfinite(self._block), np.abs(self._block), 0.0)
        rows, columns = self._block.shape
        first = divmod(int(finite.argmax()), columns)
        self._allowed = relative * float(finite.max())
        spread = {(0, 0), (0, columns - 1), (rows - 1, 0), (rows - 1, columns - 1), (rows // 2, columns // 3)}
        spread |= {(rows // 3, columns // 2), divmod(int(np.nan_to_num(self._block).argmin()), columns)}
        self._places = [first, *sorted(spread - {first})]
        self._witnesses = [(at, value) for at in self._places if math.isfinite(value := float(self._block[at]))]
        self._is_zero = not self._block.any()

    def places(self, group: _Group) -> dict[int, list[tuple[int, int]]]:
        """Return (row, column) of some places of the block, by the number of the tensor that holds it."""
        (rows, columns), (_, height, width) = self._block.shape, group.whole.shape
        if rows > height or columns > width:
            return {}
        if self._is_zero and group.flat.size <= _MOST_SORTED:
            return group.zeros(rows, columns)
        starts = self._candidates(group)
        if not len(starts):  # so it is of most groups
            return {}
        starts = self._few_of_each(starts, group)
        some = max(1, _MOST_ELEMENTS // (rows * columns))
        parts = (starts[at : at + some] for at in range(0, len(starts), some))
        there = (start for part in parts for start in part[self._stands_at(part, group)].tolist())
        return _few((int(group.owners[at // (height * width)]), at // width % height, at % width) for at in there)

    def _candidates(self, group: _Group) -> Any:
        """Return the flat indices where the block may begin: a few elements agree, before whole blocks are compared."""
        _, height, width = group.whole.shape
        down, right = height - self._block.shape[0] + 1, width - self._block.shape[1] + 1
        if not self._witnesses:  # no number of the block is finite
            starts = np.arange(group.flat.size).reshape(-1, height, width)[:, :down, :right].reshape(-1)
            for row, column in self._places:
                starts = starts[_equal(group.flat[starts + (row * width + column)], self._block[row, column])]
            return starts
        values = [value for _, value in self._witnesses]
        allowed = [self._allowed + self._relative * abs(value) for value in values]
        rarest, at = group.near_rarest(values, allowed)
        if not len(at):  # so it is of most sizes
            return at
        (row, column), _ = self._witnesses[rarest]
        rows, columns = at // width % height - row, at % width - column
        starts = at[(rows >= 0) & (rows < down) & (columns >= 0) & (columns < right)] - (row * width + column)
        for turn, ((row, column), value) in enumerate(self._witnesses):
            if turn != rarest and len(starts):
                starts = starts[np.abs(group.flat[starts + (row * width + column)] - value) <= allowed[turn]]
        return starts

    @staticmethod
    def _few_of_each(starts: Any, group: _Group) -> Any:
        owners = group.owners[starts // math.prod(group.whole.shape[1:])]
        rank = np.arange(len(owners)) - np.searchsorted(owners, owners)
        return starts[rank < _MOST_PLACES]

    def _stands_at(self, starts: Any, group: _Group) -> Any:
        """Return for each candidate whether the whole block stands there."""
        rows, columns = (np.arange(size) for size in self._block.shape)
        parts = group.flat[starts.reshape(-1, 1, 1) + (rows.reshape(-1, 1) * group.whole.shape[2] + columns)]
        return _near(parts, self._block, self._relative).reshape(len(starts), -1).all(1)


def _near(parts: Any, block: Any, relative: float) -> Any:
    """Return for each element whether it is a block's, but for rounding; what is not finite has to be the same."""
    finite = np.isfinite(block)
    allowed = np.where(finite, relative * (np.abs(block) + np.abs(block[finite]).max(initial=0.0)), -1.0)
    with np.errstate(invalid="ignore"):  # an infinite number less another
        return (np.abs(parts - block) <= allowed) | _equal(parts, block)


def _equal(some: Any, others: Any) -> Any:
    return (some == others) | (np.isnan(some) & np.isnan(others))


def _few(places: Iterable[tuple[int, int, int]]) -> dict[int, list[tuple[int, int]]]:
    """Return the first (row, column) of each tensor."""
    found: dict[int, list[tuple[int, int]]] = {}
    for number, row, column in places:
        known = found.setdefault(number, [])
        if len(known) < _TOLD_PLACES:
            known.append((row, column))
    return found
