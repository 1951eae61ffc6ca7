"""Holds a kernel's results against a golden's tensors: which parts of which tensor of the golden does a kernel compute?

A kernel works in tiles and in an order of its own, so a result of it may lie anywhere in a tensor of the golden, or in none.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

_MOST_PLACES = 16
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
    """A result that is a block of a tensor of the golden.

    Attributes:
        tensor: number of that tensor.
        line: line of the golden that made it; 0 for an input or an output.
        places: (row, column) of the block in the tensor, seen as a matrix of its last two axes; a few of them.
    """

    tensor: int
    line: int
    places: tuple[tuple[int, int], ...]


class Golden:
    """A golden's tensors, ready to be searched.

    Args:
        tensors: as `golden_trace` wrote them.
        rows: likewise.
    """

    def __init__(self, tensors: Sequence[torch.Tensor], rows: Sequence[Mapping[str, Any]]) -> None:
        self.rows = [row for row in rows if row["op"] not in ("input", "output")]
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
        self._wide = [_matrices(tensor) for tensor in tensors]
        self._found: dict[bytes, list[Match]] = {}

    def matches(self, value: torch.Tensor, relative: float | None = None) -> list[Match]:
        """Return where `value` stands among the golden's tensors; [] for nowhere.

        Args:
            relative: the relative error that counts as rounding; default: that of the value's dtype.
        """
        relative = rounding_of(value.dtype) if relative is None else relative
        if value.numel() == 0:
            return []
        key = (
            bytes(f"{relative}{value.dtype}{tuple(value.shape)}", "ascii") + value.reshape(-1).view(torch.uint8).numpy().tobytes()
        )
        if key not in self._found:
            self._found[key] = self._search(value, relative)
        return self._found[key]

    def _search(self, value: torch.Tensor, relative: float) -> list[Match]:
        block = _matrices(value)
        if block.shape[0] != 1:
            return []
        found = []
        one = block.numel() == 1
        forms = [_Form(form, relative) for form in ([block[0]] if one else [block[0], block[0].T])]
        for number, whole in enumerate(self._wide):
            for form in forms:
                places = form.places(whole)
                if places:
                    found.append(Match(number, self.lines.get(number, 0), places))
                    break
        return found


def _matrices(tensor: torch.Tensor) -> torch.Tensor:
    """Return [batch, rows, columns] in float64; axes of size 1 are left out, all but the last two are the batch."""
    wide = tensor.to(torch.float64).squeeze()
    while wide.dim() < 2:
        wide = wide.unsqueeze(-1)
    return wide.reshape(-1, *wide.shape[-2:])


class _Form:
    """A block that is looked for, one way round.

    Args:
        block: [rows, columns], float64.
        relative: what counts as rounding.
    """

    def __init__(self, block: torch.Tensor, relative: float) -> None:
        self._block, self._relative = block, relative
        finite = torch.where(block.isfinite(), block.abs(), torch.zeros_like(block))
        rows, columns = block.shape
        first = divmod(int(finite.argmax()), columns)
        self._allowed = relative * float(finite.max())
        spread = {(0, 0), (0, columns - 1), (rows - 1, 0), (rows - 1, columns - 1), (rows // 2, columns // 3)}
        spread |= {(rows // 3, columns // 2), divmod(int(block.nan_to_num().argmin()), columns)}
        values = block.tolist()
        self._witnesses = [(at, values[at[0]][at[1]]) for at in (first, *sorted(spread - {first}))]
        self._witnesses = [(at, value) for at, value in self._witnesses if math.isfinite(value)]

    def places(self, whole: torch.Tensor) -> tuple[tuple[int, int], ...]:
        """Return (row, column) of some places of the block in the matrices `whole`."""
        rows, columns = self._block.shape
        if rows > whole.shape[1] or columns > whole.shape[2]:
            return ()
        candidates = self._candidates(whole)
        found = []
        for batch, row, column in candidates[:_MOST_PLACES].tolist():
            part = whole[batch, row : row + rows, column : column + columns]
            near = (part - self._block).abs() <= self._allowed + self._relative * self._block.abs()
            if bool(near.all()) or bool((near | (part == self._block) | (part.isnan() & self._block.isnan())).all()):
                found.append((row, column))
                if len(found) == 4:
                    break
        return tuple(found)

    def _candidates(self, whole: torch.Tensor) -> torch.Tensor:
        """Return [batch, row, column] of the places where a few elements agree, before whole blocks are compared."""
        down, right = whole.shape[1] - self._block.shape[0] + 1, whole.shape[2] - self._block.shape[1] + 1
        agree = torch.ones((whole.shape[0], down, right), dtype=torch.bool)
        candidates = None
        for (row, column), value in self._witnesses:
            allowed = self._allowed + self._relative * abs(value)
            if candidates is None:
                agree = (whole[:, row : row + down, column : column + right] - value).abs() <= allowed
                candidates = agree.nonzero()
            elif len(candidates):
                there = whole[candidates[:, 0], candidates[:, 1] + row, candidates[:, 2] + column]
                candidates = candidates[(there - value).abs() <= allowed]
        return agree.nonzero() if candidates is None else candidates
