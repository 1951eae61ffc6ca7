"""Evaluates a golden in float64, also where it says float32 itself, with the roundings that it demands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from pypto_op.backends.worker import decisions, near_ties
from pypto_op.backends.worker.decisions import Step

_NARROW = frozenset({torch.float32, torch.float16, torch.bfloat16})
_CASTS = {torch.Tensor.float: torch.float32, torch.Tensor.half: torch.float16, torch.Tensor.bfloat16: torch.bfloat16}
_SAME = ("eq", "ne", "not_equal")
"""Comparisons that no rounding turns: `largest == 0`."""


def widened(value: Any) -> Any:
    """Return a float tensor as float64; everything else unchanged, lists and tuples item by item."""
    if isinstance(value, torch.Tensor):
        return value.double() if value.dtype in _NARROW else value
    if isinstance(value, (list, tuple)):
        return type(value)(widened(item) for item in value)
    return value


class Doubled(TorchFunctionMode):
    """Replaces each narrower floating dtype by float64: in `.float()`, `.to(torch.float32)`, `dtype=...`.

    A golden widens 16-bit inputs to float32 before it computes; taken literally, that would round float64 inputs
    down again. Casts to integers stay, since they are part of what the operator means. So does a rounding to fewer
    than 32 bits whose result is used further, where the golden's own steps are given. The last rounding, of an output,
    does not: every kernel makes it, and it is no part of what is right.

    Args:
        steps: of the golden as it stands, on the same inputs (`decisions.Recorder`); without them nothing is rounded.
        way: values near a tie fall as this way has it (`near_ties.moved`); 0: as they are.
    """

    def __init__(self, steps: Sequence[Step] = (), way: int = 0, narrow: frozenset[torch.dtype] = _NARROW) -> None:
        super().__init__()
        self._steps, self._way, self._narrow = steps, way, narrow
        self._done = 0
        self._aligned = bool(steps)
        self._unrounded: dict[tuple[Any, ...], tuple[torch.Tensor, int, torch.Tensor]] = {}
        self.ways = 0  # how many ways there are to tell, after a run; 0 where nothing lay near a tie
        self.codes = True  # the ties are those of roundings to whole numbers, of nothing else

    def __torch_function__(
        self, func: Callable[..., Any], types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Call `func` in float64."""
        args = tuple(map(self._wide, args))
        kwargs = {name: self._wide(value) for name, value in kwargs.items()} if kwargs else {}
        if not self._aligned:
            return self._call(func, args, kwargs)
        name = decisions.name_of(func)
        step = self._next(name)
        called = getattr(func, "__name__", "")  # `==` is called __eq__, which writes nothing
        in_place = called.endswith("_") and not called.endswith("__") and name not in decisions.WRITES and name != called
        if step is None or not step.counts or in_place:
            return self._call(func, args, kwargs)
        plain, args = args, self._tied(step, args, kwargs)
        if step.narrowed is None:
            result = self._call(func, args, kwargs)
            result = near_ties.as_they_were(result, step, args[0] if args else None, plain[0] if plain else None, plain, kwargs)
            alike = near_ties.alike(step, plain)
            if alike is not None and (other := near_ties.other_extreme(step, plain, alike, self._way)) is not None:
                return other
            return result if alike is None else torch.where(alike, func(*plain, **kwargs), result)
        at = next(iter(step.operands))
        value = args[at]
        rounded = value.to(step.narrowed).double()
        if name in decisions.WRITES:
            return func(*decisions.with_operand(args, at, rounded), **kwargs)
        self._unrounded[_place(rounded)] = (rounded, rounded._version, value)
        return rounded

    def unrounded(self, leaf: torch.Tensor) -> torch.Tensor:
        """Return an output before its own last rounding."""
        rounded, version, value = self._unrounded.get(_place(leaf), (leaf, -1, leaf))
        return value if rounded._version == version else leaf

    def _next(self, name: str) -> Step | None:
        """Return the native golden's step that this call is; None when it is none, or when the two have parted."""
        if name not in decisions.KNOWN:
            return None
        step = self._steps[self._done] if self._done < len(self._steps) else None
        self._done += 1
        if step is None or step.name != name:
            self._aligned = False  # a golden whose path depends on the dtype: from here on it is only widened
            return None
        return step

    def _tied(self, step: Step, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """Return the arguments with what lies near a tie as this way has it."""
        for at in step.operands:
            value = args[at] if at < len(args) else None
            if isinstance(value, torch.Tensor) and value.dtype is torch.float64:
                given = (step, at, value, self._way, self._done, args, kwargs)
                found, ways = near_ties.moved(*given)
                self.ways = max(self.ways, ways)
                self.codes &= ways == 0 or step.whole or step.name in _SAME
                args = decisions.with_operand(args, at, found)
        return args

    def _call(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if _CASTS.get(func) in self._narrow:
            return args[0].double()
        result = func(*args, **kwargs)
        if func is torch.Tensor.type and isinstance(result, torch.Tensor) and result.dtype in self._narrow:
            return result.double()
        return result

    def _wide(self, value: Any) -> Any:
        return torch.float64 if isinstance(value, torch.dtype) and value in self._narrow else value


def _place(tensor: torch.Tensor) -> tuple[Any, ...]:
    return tensor.data_ptr(), tuple(tensor.shape), tensor.stride()
