"""Which sides of an operator its inputs never came to: below a bound or above it, negative or positive, a tie of maxima.

A kernel that has no such side is right for these inputs. `relu6` of `torch.randn` shows both its bounds to nobody who looks
whether it changed anything at all: each bound is a side of its own. An exponential has one, too: numbers for which it overflows
where the operator does not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

LOWER, UPPER, FAR, TIES = "lower", "upper", "far", "ties"
_EXP = 89.0
"""exp() of it is infinite in float32."""
_NOTHING = (None, None)
Bounds = tuple[Any, Any]
"""Numbers or tensors below, and above which a side begins; None: there is none."""


def _given(position: int, name: str, usual: Any = None) -> Callable[[Any, Any], Any]:
    return lambda args, kwargs: args[position] if len(args) > position else kwargs.get(name, usual)


_FIRST, _SECOND = _given(1, "min"), _given(2, "max")
_SOFT_FACTOR, _SOFT_BOUND = _given(1, "beta", 1.0), _given(2, "threshold", 20.0)
_SHRINKS = _given(1, "lambd", 0.5)
_BOUNDS: dict[str, Callable[[Any, Any], Bounds]] = {
    "clamp": lambda args, kwargs: (_FIRST(args, kwargs), _SECOND(args, kwargs)),
    "clamp_min": lambda args, kwargs: (_FIRST(args, kwargs), None),
    "clamp_max": lambda args, kwargs: (None, _given(1, "max")(args, kwargs)),
    "hardtanh": lambda args, kwargs: (_given(1, "min_val", -1)(args, kwargs), _given(2, "max_val", 1)(args, kwargs)),
    "threshold": lambda args, kwargs: (args[1], args[1]),
    "histc": lambda args, kwargs: ends if (ends := args[2:4])[1:] and ends[0] < ends[1] else _NOTHING,
    "hardshrink": lambda args, kwargs: (-_SHRINKS(args, kwargs), _SHRINKS(args, kwargs)),
    "softshrink": lambda args, kwargs: (-_SHRINKS(args, kwargs), _SHRINKS(args, kwargs)),
    **dict.fromkeys(("hardsigmoid", "hardswish"), lambda args, kwargs: (-3, 3)),
    **dict.fromkeys(
        ("relu", "abs", "elu", "celu", "leaky_relu", "_prelu_kernel", "sign", "sgn", "floor", "ceil", "trunc", "round", "frac"),
        lambda args, kwargs: (0, 0),
    ),
}
_FLOATS: dict[str, Callable[[Any, Any], Bounds]] = dict.fromkeys(
    ("remainder", "fmod", "floor_divide"), lambda args, kwargs: (0, None)
)
"""Whole numbers that are never negative are mostly places, and no kernel must take others."""
_OVERFLOWS: dict[str, Callable[[Any, Any], Bounds]] = {
    "softplus": lambda args, kwargs: (None, max(_EXP, _SOFT_BOUND(args, kwargs)) / (_SOFT_FACTOR(args, kwargs) or 1.0)),
    **dict.fromkeys(("_softmax", "_log_softmax", "logsumexp", "sigmoid", "silu"), lambda args, kwargs: (None, _EXP)),
    "tanh": lambda args, kwargs: (-_EXP, _EXP),
    "binary_cross_entropy_with_logits": lambda args, kwargs: (-_EXP, _EXP),
    "log_sigmoid_forward": lambda args, kwargs: (-_EXP, None),
    "mish": lambda args, kwargs: (None, _EXP / 2),
    "gelu": lambda args, kwargs: (None, 20.0),
}
_GREATEST = {"argmax": torch.amax, "argmin": torch.amin, "max": torch.amax, "min": torch.amin}
UNORDERED = frozenset(("sort", "topk", "argsort", "kthvalue", "median", "nanmedian", "mode", "cummax", "cummin"))
"""Which of equal elements these return is said nowhere."""
NAMES = frozenset((*_BOUNDS, *_FLOATS, *_OVERFLOWS, *_GREATEST))


def idle(name: str, args: Any, kwargs: Any, given: torch.Tensor, out: Any) -> dict[str, bool]:
    """Return by side of an operator of `NAMES` whether a call never came to it.

    Args:
        name: of the operator.
        args: of the call.
        kwargs: of the call.
        given: its first tensor, as it was before the call.
        out: what it returned.
    """
    if not given.numel() or given.is_complex() or given.dtype is torch.bool:
        return {}
    if name in _GREATEST:
        return _ties(name, args, kwargs, given, out)
    whole = not given.is_floating_point()
    tables = (_BOUNDS,) if whole else (_BOUNDS, _FLOATS)
    low, high = next((table[name](args, kwargs) for table in tables if name in table), _NOTHING)
    found = {LOWER: low, UPPER: high}
    sides = {side: not _any(given, bound, above=side == UPPER) for side, bound in found.items() if bound is not None}
    if name in _OVERFLOWS and not whole:
        low, high = _OVERFLOWS[name](args, kwargs)
        sides[FAR] = any(bound is not None and not _any(given, bound, above=up) for bound, up in ((low, False), (high, True)))
    return sides


def _any(given: torch.Tensor, bound: Any, *, above: bool) -> bool:
    return bool((given > bound if above else given < bound).any())


def _ties(name: str, args: Any, kwargs: Any, given: torch.Tensor, out: Any) -> dict[str, bool]:
    """Whether no row has two greatest elements: then any of them may be named."""
    axis = args[1] if len(args) > 1 else kwargs.get("dim")
    if given.numel() < 2 or isinstance(axis, torch.Tensor) or (axis is None and name in ("max", "min")):
        return {}
    rows = given.reshape(-1) if axis is None else given
    best = _GREATEST[name](rows, 0 if axis is None else axis, keepdim=True)
    count = (rows == best).sum(0 if axis is None else axis)
    return {TIES: not bool((count > 1).any())}
