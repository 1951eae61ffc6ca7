"""Measures how badly each sum of a running golden cancels: sum|terms| / |sum|, cell by cell.

The condition number of a sum is by how much it multiplies the relative errors of its terms (Higham, "Accuracy and
Stability of Numerical Algorithms", section 4.2). 1 is harmless; 1e5 in float32 leaves two good digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from pypto_op.dispatch_mode import DispatchMode
from pypto_op.stress.sites import site_in
from pypto_op.twins.decompose import decompositions

_MOST_CELLS = 1 << 16
"""Cells kept of one operator's result; of a larger one every n-th is taken."""
_MOST_OF_SITE = 1 << 18
"""Cells kept of one expression; where a loop computes it more often, every second of each result goes, as often as need be."""

aten = torch.ops.aten


@dataclass
class Site:
    """One expression of a golden."""

    expression: str  # its source text, as `sites.normalised` writes it
    kind: str  # what is computed there: `difference`, `sum`, `matmul` or `scan`
    _cells: list[torch.Tensor] = field(default_factory=list)
    _every: int = 1  # of so many cells one is kept
    _count: int = 0  # of `_cells`

    def add(self, conditions: torch.Tensor) -> None:
        """Take the condition numbers of one result."""
        flat = conditions.reshape(-1)
        self._cells.append(flat[:: max(1, -(-flat.numel() // _MOST_CELLS)) * self._every].clone())
        self._count += self._cells[-1].numel()
        if self._count > _MOST_OF_SITE:
            self._every *= 2
            self._cells = [torch.cat(self._cells)[::2].clone()]
            self._count = self._cells[0].numel()

    def condition(self, quantile: float) -> float:
        """Return the condition number that `quantile` of the cells reach or exceed (0.5: the median), 0 without cells."""
        cells = torch.cat(self._cells) if self._cells else torch.zeros(0)
        if not cells.numel():
            return 0.0
        rank = min(cells.numel() - 1, int((1.0 - quantile) * cells.numel()))
        return float(np.partition(cells.numpy(), rank)[rank])  # torch's own takes five times as long

    def settled(self, quantile: float) -> Site:
        """Return the site with nothing kept but its condition number."""
        return Site(self.expression, self.kind, [torch.tensor([self.condition(quantile)], dtype=torch.float64)])


class Conditions(DispatchMode):
    """While active, records the condition numbers of every sum and difference that code of one file computes.

    A cell whose result is exactly 0 counts as 0: terms that cancel without a rest have lost nothing that a kernel
    could get wrong. Cells that are not finite do not count.

    Args:
        file: the golden's file; its expressions name the sites.
    """

    def __init__(self, file: Path) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._file = file
        self._sites: dict[tuple[str, str], Site] = {}
        self.calls = 0  # operators that ran

    def sites(self) -> list[Site]:
        """Return every site, in the order of first use."""
        return list(self._sites.values())

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Run one operator, and measure it when it adds up."""
        kwargs = kwargs or {}
        self.calls += 1
        finer = decompositions().get(func)
        if finer is not None:
            with self:
                return finer(*args, **kwargs)
        measure = _MEASURES.get(func._schema.name.split("::")[-1].rstrip("_"))
        if measure is None or not any(isinstance(value, torch.Tensor) and value.is_floating_point() for value in args[:2]):
            return func(*args, **kwargs)
        kind, magnitude = measure
        terms = magnitude(*args, **kwargs)  # before the call: an in-place operator destroys its operand
        result = func(*args, **kwargs)
        if terms is not None and isinstance(result, torch.Tensor) and terms.shape == result.shape:
            self._record(kind, terms, result)
        return result

    def _record(self, kind: str, terms: torch.Tensor, result: torch.Tensor) -> None:
        expression = site_in(self._file)
        if not expression:
            return
        cells = (terms / result.abs()).masked_fill_(result == 0, 0.0)
        if not math.isfinite(float(terms.sum()) + float(result.sum())):  # sums tell it faster than a mask does
            cells = cells[torch.isfinite(terms) & torch.isfinite(result)]
        if cells.numel():
            self._sites.setdefault((expression, kind), Site(expression, kind)).add(cells.to(torch.float64))


def _abs(value: Any) -> Any:
    return value.abs() if isinstance(value, torch.Tensor) else abs(value)


def _pair(left: Any, right: Any, alpha: Any = 1, **_: Any) -> torch.Tensor:
    total = _abs(left) + abs(alpha) * _abs(right)
    return total if isinstance(total, torch.Tensor) else torch.tensor(float(total))


def _reversed_pair(left: Any, right: Any, alpha: Any = 1, **_: Any) -> torch.Tensor:
    return _pair(right, left, alpha)


def _over_axes(function: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    def magnitude(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        return function(tensor.abs(), *args, **kwargs)

    return magnitude


def _summed(tensor: torch.Tensor, dims: Any = None, keepdim: bool = False, **_: Any) -> torch.Tensor:
    if dims is None or (isinstance(dims, (list, tuple)) and not dims):
        return tensor.abs().sum()
    return tensor.abs().sum(dims, keepdim=keepdim)


def _product(left: torch.Tensor, right: torch.Tensor, **_: Any) -> torch.Tensor:
    return torch.matmul(left.abs(), right.abs())


_MEASURES: dict[str, tuple[str, Callable[..., torch.Tensor]]] = {
    "add": ("difference", _pair),
    "sub": ("difference", _pair),
    "rsub": ("difference", _reversed_pair),
    "sum": ("sum", _summed),
    "mean": ("sum", _over_axes(torch.mean)),
    "mm": ("matmul", _product),
    "bmm": ("matmul", _product),
    "cumsum": ("scan", _over_axes(torch.cumsum)),
}


def strongest(sites: Sequence[Site], expression: str | None, quantile: float) -> tuple[Site | None, float]:
    """Return the site that `expression` names, and its condition number; the worst one when it names none of them."""
    named = [site for site in sites if expression is not None and site.expression == expression]
    reached = [(site.condition(quantile), site) for site in named or sites]
    condition, found = max(reached, key=lambda pair: pair[0], default=(0.0, None))
    return found, condition
