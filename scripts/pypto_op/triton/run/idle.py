"""Operators of a reference that change nothing for the task's inputs: a relu of what is never negative, a bound never reached.

A kernel that leaves such an operator out is right wherever it stays idle. So an operator that was idle in every pass gets one
with inputs far beyond the task's: of both signs, up to thousands, whole numbers too where it works on such, and with NaN and
infinities where it replaces those. What stays idle then, or where the reference does not take such inputs, is said.
"""

from __future__ import annotations

import sys
from collections.abc import Collection
from pathlib import Path
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from pypto_op.triton.run import skewed
from pypto_op.triton.run.packing import map_tensors, memory_of, same_layout

REACH = "reach"
"""The name of this move, beside those of `skewed`."""
_BOUNDS = frozenset(
    ("relu", "clamp", "clamp_min", "clamp_max", "hardtanh", "threshold", "abs", "elu", "celu", "leaky_relu", "_prelu_kernel")
    + ("maximum", "minimum", "where", "masked_fill", "nan_to_num")
)
_LOSSES = {"huber_loss": 3, "smooth_l1_loss": 3}
"""They are squares up to a difference, which is the argument of this number; 1.0 where it is left out."""
_NAN = "nan_to_num"
_ONE_SIGN = 8.0
_FAR, _FAR_HALF = 2.0**14, 16.0
_MOST = 3
TOLD = (
    "an operator of the reference changes nothing for the task's own inputs (a bound that they do not reach); in this pass they "
    "were far beyond: of both signs and large, and only gross errors counted"
)


class Idle(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes which operators that bound something change nothing while it is active.

    Attributes:
        found: by the operator's name and its line in the task: whether it worked on whole numbers alone.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.found: dict[str, bool] = {}
        self._path = str(path)
        self._busy: set[str] = set()

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # else torch loads its compiler, which takes more than a second

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call the operator, and look whether it changed anything."""
        name = str(func.overloadpacket.__name__)
        plain = name.rstrip("_") or name
        if plain not in _BOUNDS and plain not in _LOSSES:
            return func(*args, **(kwargs or {}))
        given = [value.clone() if name != plain else value for value in args if isinstance(value, torch.Tensor)]
        out = func(*args, **(kwargs or {}))
        key = f"{plain.strip('_').removesuffix('_kernel')} in line {self._line()}"
        idle = _is_within(given, args, kwargs or {}, _LOSSES[plain]) if plain in _LOSSES else _is_unchanged(out, given)
        if not idle or key in self._busy:
            self._busy.add(key)
            self.found.pop(key, None)
        else:
            self.found[key] = not given[0].is_floating_point() and not out.is_floating_point()
        return out

    def _line(self) -> int:
        frame = sys._getframe(2)
        while frame is not None and frame.f_code.co_filename != self._path:
            frame = frame.f_back  # type: ignore[assignment]
        return 0 if frame is None else frame.f_lineno


def reaching(inputs: Any, idle: dict[str, bool]) -> Any | None:
    """Return inputs of the same layout that reach what these operators bound, if anything does; None where none can."""
    floats, whole = not all(idle.values()), any(idle.values())
    nan = any(key.startswith(_NAN) for key in idle)
    movable = iter(skewed.movable(inputs))
    changed = False

    def one(tensor: torch.Tensor) -> torch.Tensor:
        nonlocal changed
        copy = same_layout(tensor)
        if next(movable) and floats:
            changed = True
            _spread(copy, tensor)
            if nan:
                memory_of(copy)[:: max(1, copy.numel() // 7)] = float("nan")
                memory_of(copy)[1 :: max(2, copy.numel() // 5)] = float("inf")
        elif whole and not tensor.is_floating_point() and not tensor.is_complex() and tensor.dtype is not torch.bool:
            changed = changed or tensor.numel() > 1
            _spread_whole(copy)
        return copy

    found = map_tensors(inputs, one)
    return found if changed else None


def told(idle: Collection[str]) -> list[str]:
    """Return what to say of operators that were idle in every pass."""
    if not idle:
        return []
    named = sorted(idle)
    more = f" and {len(named) - _MOST} more" if len(named) > _MOST else ""
    return [f"of the reference {', '.join(named[:_MOST])}{more} changed nothing in any pass: what it bounds was not tested"]


def _is_unchanged(out: Any, given: list[torch.Tensor]) -> bool:
    if not isinstance(out, torch.Tensor):
        return False
    if out.numel() > 1 and bool((out == out[(0,) * out.dim()]).all()):  # nothing comes through
        return True
    return any(value.shape == out.shape and value.dtype is out.dtype and torch.equal(value, out) for value in given)


def _is_within(given: list[torch.Tensor], args: Any, kwargs: Any, position: int) -> bool:
    limit = args[position] if len(args) > position else kwargs.get("delta", kwargs.get("beta", 1.0))
    return len(given) >= 2 and bool(((given[0] - given[1]).abs() <= limit).all())


def _spread(copy: torch.Tensor, tensor: torch.Tensor) -> None:
    """Let a tensor of one sign have both, and one around zero be far larger."""
    low, high = (float(end) for end in torch.aminmax(tensor))
    memory = memory_of(copy)
    if low < 0 < high:
        memory.mul_((_FAR_HALF if tensor.dtype is torch.float16 else _FAR) / max(-low, high))
    else:
        memory.sub_((low + high) / 2).mul_(2 * _ONE_SIGN / (high - low))


def _spread_whole(copy: torch.Tensor) -> None:
    """Spread whole numbers over those of their dtype up to some thousands."""
    limits = torch.iinfo(copy.dtype)
    memory = memory_of(copy)
    low, high = max(limits.min, -int(_FAR)), min(limits.max, int(_FAR))
    first, last = int(memory.min()), int(memory.max())
    places = (memory.double() - first) / max(1, last - first)
    memory.copy_((low + places * (high - low)).to(copy.dtype))
