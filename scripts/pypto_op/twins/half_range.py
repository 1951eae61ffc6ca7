"""A golden whose numbers on the way end where float16 ends, or whose smallest become 0: what other arithmetic makes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from pypto_op.dispatch_mode import DispatchMode
from pypto_op.twins.decompose import decompositions

HALF_RANGE = "half_range"
"""What a kernel makes of a golden that keeps numbers in float16: its name among the ways to run one. It is no honest one."""
FLUSHED = "flushed"
"""What a device makes of it that flushes small numbers; with room, for a kernel that takes its factors in another order."""

_LEAST = 2.0**-110
"""Float32 ends at 2^-126, where devices flush what is smaller; 2^16 above that another order of factors still holds."""
_GREATEST = torch.finfo(torch.float16).max
_CONSTANTS = ("full", "full_like", "new_full", "scalar_tensor", "masked_fill", "masked_fill_", "where")
"""What computes nothing: a golden that masks by -1e30 means what a kernel of float16 writes as -inf."""


class Cut(DispatchMode):
    """While active, each float32 and bfloat16 number that a golden computes is cut; rounding stays.

    Args:
        cut: changes a tensor in place.
    """

    def __init__(self, cut: Callable[[torch.Tensor], None]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.orders_values = False  # as of `Reordered`, which takes ties otherwise
        self._cut = cut

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Run one operator."""
        finer = decompositions().get(func)
        if finer is not None:
            with self:
                return finer(*args, **(kwargs or {}))
        found = func(*args, **(kwargs or {}))
        schema = func._schema
        if schema.name.rpartition("::")[2] not in _CONSTANTS:
            told = found if isinstance(found, (tuple, list)) else (found,)
            for value, returned in zip(told, schema.returns, strict=False):
                computed = returned.alias_info is None or returned.alias_info.is_write  # a view computes nothing
                if computed and isinstance(value, torch.Tensor) and value.dtype in (torch.float32, torch.bfloat16):
                    self._cut(value)
        return found


def half_range() -> Cut:
    """Return the mode in which each number beyond 65504 becomes infinite."""
    return Cut(_end)


def flushed() -> Cut:
    """Return the mode in which each number below 2^-110 becomes 0."""
    return Cut(_flush)


def _end(value: torch.Tensor) -> None:
    value.masked_fill_(value > _GREATEST, torch.inf).masked_fill_(value < -_GREATEST, -torch.inf)


def _flush(value: torch.Tensor) -> None:
    value.masked_fill_(value.abs() < _LEAST, 0.0)


CUTS: Mapping[str, Callable[[], Cut]] = {HALF_RANGE: half_range, FLUSHED: flushed}
