"""Operators of a reference that change nothing for the task's inputs: a relu of what is never negative, a bound never reached.

A kernel that leaves such an operator out is right wherever it stays idle. So an operator that was idle in every pass gets one
with inputs far beyond the task's: of both signs, up to thousands, whole numbers too where it works on such, and with NaN and
infinities where it replaces those. A comparison of whole numbers that has one answer throughout (a padding token that is never
drawn, an index that is never beyond the range) is idle, too: it also meets the numbers of the files. What stays idle then, or
where the reference does not take such inputs, is said.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from pypto_op.triton.run import skewed
from pypto_op.triton.run.packing import map_tensors, memory_of, same_layout, tensors_of

REACH, MEET = "reach", "meet"
"""The names of these moves, beside those of `skewed`: inputs far beyond the task's, and numbers of the files among whole ones."""
_BOUNDS = frozenset(
    ("relu", "clamp", "clamp_min", "clamp_max", "hardtanh", "threshold", "abs", "elu", "celu", "leaky_relu", "_prelu_kernel")
    + ("maximum", "minimum", "where", "masked_fill", "nan_to_num")
)
_LOSSES = {"huber_loss": 3, "smooth_l1_loss": 3}
"""They are squares up to a difference, which is the argument of this number; 1.0 where it is left out."""
_COMPARES = frozenset(("eq", "ne", "lt", "le", "gt", "ge"))
_IGNORES = {"nll_loss_forward": 4, "nll_loss2d_forward": 4}
"""They leave out targets of one number, which is the argument of this number."""
_USUAL = -100
"""That number where nobody says one: a kernel need not know it."""
_NAN, _LOST = "nan_to_num", (float("nan"), float("inf"), float("-inf"))
_ONE_SIGN = 8.0
_FAR, _FAR_HALF = 2.0**14, 16.0
_BOTH, _UP, _DOWN = "both", "up", "down"
_SHARE = 4
"""One whole number of so many meets a number of the files."""
_MOST = 3
TOLD = (
    "an operator of the reference changes nothing for the task's own inputs (a bound that they do not reach); in this pass they "
    "were far beyond: of both signs and large, and only gross errors counted"
)
TOLD_MET = (
    "a comparison of the reference has one answer throughout for the task's own inputs (a token that is never drawn); "
    "in this pass some whole numbers were those that stand in the files, and sizes of the inputs"
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
        if not any(plain in names for names in (_BOUNDS, _LOSSES, _COMPARES, _IGNORES)):
            return func(*args, **(kwargs or {}))
        given = [value.clone() if name != plain else value for value in args if isinstance(value, torch.Tensor)]
        out = func(*args, **(kwargs or {}))
        key = f"{plain.strip('_').removesuffix('_kernel').removesuffix('_forward')} in line {self._line()}"
        if plain in _COMPARES or plain in _IGNORES:
            idle = _is_one_sided(out, given) if plain in _COMPARES else _ignores_nothing(args, _IGNORES[plain])
            self._note(key, idle, whole=True)
        else:
            idle = _is_within(given, args, kwargs or {}, _LOSSES[plain]) if plain in _LOSSES else _is_unchanged(out, given)
            idle = idle or (plain == _NAN and not _holds_all(given[0]))
            self._note(key, idle, whole=not given[0].is_floating_point() and not out.is_floating_point())
        return out

    def _note(self, key: str, idle: bool | None, *, whole: bool) -> None:
        """Keep whether a call was idle; None: that cannot be said of it."""
        if idle is None:
            return
        if not idle or key in self._busy:
            self._busy.add(key)
            self.found.pop(key, None)
        else:
            self.found[key] = whole

    def _line(self) -> int:
        frame = sys._getframe(2)
        while frame is not None and frame.f_code.co_filename != self._path:
            frame = frame.f_back  # type: ignore[assignment]
        return 0 if frame is None else frame.f_lineno


def reaching(inputs: Any, idle: dict[str, bool]) -> Iterator[Any]:
    """Yield inputs of the same layout that may reach what these operators bound; the reference may take some only."""
    for way in (_BOTH, _UP, _DOWN) if any(idle.values()) else (_BOTH,):
        if (found := _reaching(inputs, idle, way)) is not None:
            yield found


def meeting(inputs: Any, idle: dict[str, bool], numbers: Sequence[float]) -> Iterator[Any]:
    """Yield inputs of which every fourth whole number is one of the files', or about the size of an axis."""
    if not any(idle.values()):
        return
    sizes = {size + more for tensor in tensors_of(inputs) for size in tensor.shape for more in (-1, 0, 1)}
    whole = sorted({int(number) for number in numbers if number.is_integer() and abs(number) <= _FAR} | sizes)
    for some in (whole, [number for number in whole if number >= 0], [number for number in whole if number < 0]):
        if (found := _meeting(inputs, some)) is not None:
            yield found


def _meeting(inputs: Any, numbers: list[int]) -> Any | None:
    changed = False

    def one(tensor: torch.Tensor) -> torch.Tensor:
        nonlocal changed
        copy = same_layout(tensor)
        if _is_whole(tensor):
            limits, memory = torch.iinfo(tensor.dtype), memory_of(copy)
            fitting = [number for number in numbers if limits.min <= number <= limits.max]
            places = torch.arange(1, memory.numel(), _SHARE, device=memory.device)
            if fitting and len(places):
                turns = torch.arange(len(places), device=memory.device) % len(fitting)
                memory[places] = torch.tensor(fitting, device=memory.device)[turns].to(tensor.dtype)
                changed = True
        return copy

    found = map_tensors(inputs, one)
    return found if changed else None


def _is_whole(tensor: torch.Tensor) -> bool:
    return not (tensor.is_floating_point() or tensor.is_complex() or tensor.dtype is torch.bool)


def _reaching(inputs: Any, idle: dict[str, bool], way: str) -> Any | None:
    floats, whole = not all(idle.values()), any(idle.values())
    nan = any(key.startswith(_NAN) for key in idle)
    movable = iter(skewed.movable(inputs))
    changed = False

    def one(tensor: torch.Tensor) -> torch.Tensor:
        nonlocal changed
        copy = same_layout(tensor)
        moves = next(movable) and floats
        if moves or (nan and tensor.is_floating_point() and not bool(torch.isfinite(tensor).all())):
            changed = True
            if moves:
                _spread(copy, tensor)
            if nan:
                for first, value in enumerate(_LOST):
                    memory_of(copy)[first :: max(len(_LOST), copy.numel() // 7)] = value
        elif whole and _is_whole(tensor):
            changed = changed or tensor.numel() > 1
            _spread_whole(copy, way)
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


def _is_one_sided(out: Any, given: list[torch.Tensor]) -> bool | None:
    """Whether a comparison of whole numbers has one answer throughout; None for others."""
    if not all(map(_is_whole, given)) or not isinstance(out, torch.Tensor) or out.numel() < 2:
        return None
    return bool((out == out[(0,) * out.dim()]).all())


def _ignores_nothing(args: Any, position: int) -> bool | None:
    ignored = args[position] if len(args) > position else _USUAL
    return None if ignored == _USUAL else not bool((args[1] == ignored).any())


def _holds_all(tensor: torch.Tensor) -> bool:
    """Whether a tensor holds all that `nan_to_num` replaces."""
    return bool(tensor.isnan().any() and tensor.isposinf().any() and tensor.isneginf().any())


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


def _spread_whole(copy: torch.Tensor, way: str) -> None:
    """Spread whole numbers over those of their dtype up to some thousands, on both sides or on one."""
    limits = torch.iinfo(copy.dtype)
    memory = memory_of(copy)
    low, high = max(limits.min, -int(_FAR)), min(limits.max, int(_FAR))
    first, last = int(memory.min()), int(memory.max())
    low, high = min(first, high) if way == _UP else low, max(last, low) if way == _DOWN else high
    places = (memory.double() - first) / max(1, last - first)
    memory.copy_((low + places * (high - low)).to(copy.dtype))
