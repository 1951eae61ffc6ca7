"""A golden whose numbers on the way end where float16 ends: what a kernel makes of it that keeps them in float16."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from pypto_op.dispatch_mode import DispatchMode
from pypto_op.twins.decompose import decompositions

HALF_RANGE = "half_range"
"""Its name among the ways to run a golden. It is no honest one."""

_GREATEST = torch.finfo(torch.float16).max
_CONSTANTS = ("full", "full_like", "new_full", "scalar_tensor", "masked_fill", "masked_fill_", "where")
"""What computes nothing: a golden that masks by -1e30 means what a kernel of float16 writes as -inf."""


class HalfRange(DispatchMode):
    """While active, each float32 and bfloat16 number beyond 65504 that a golden computes becomes infinite; rounding stays."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.orders_values = False  # as of `Reordered`, which takes ties otherwise

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
                if returned.alias_info is None or returned.alias_info.is_write:  # a view computes nothing
                    _cut(value)
        return found


def _cut(value: Any) -> None:
    if isinstance(value, torch.Tensor) and value.dtype in (torch.float32, torch.bfloat16):
        value.masked_fill_(value > _GREATEST, torch.inf).masked_fill_(value < -_GREATEST, -torch.inf)
