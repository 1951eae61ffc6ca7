"""Finds for each operator of a reference the values that it never got: below or above a bound, negative, tied maxima.

A kernel that has no such side is right for these inputs. `relu6` of `torch.randn` shows both its bounds to nobody who looks
whether it changed anything at all: each bound is a side of its own. An exponential has one, too: numbers for which it overflows
where the operator does not. What multiplies by a logarithm has zero, so has a root, and what compares two tensors has elements
that are equal.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from pypto_op.triton.run.inputs import domains, narrow, pairs

LOWER, UPPER, FAR, TIES, ZERO, EQUAL, ROOT = "lower", "upper", "far", "ties", "zero", "equal", "root of zero"
HALF = "halfway"
"""Between two whole numbers; `torch.round` takes the even one there, and a kernel that adds 0.5 takes the greater one."""
CODES = "halfway by a scale"
"""The same of a quotient by a scale that follows from the inputs: `round(x / (amax / 127))`."""
ALIKE = "equal elements"
"""Among what an order or a median returns: a kernel that hides each element that it took, or counts smaller ones, loses one."""
CLOSE = "close"
"""Of a comparison of a difference: elements that are near to each other and not equal, some by their size alone."""
GUARD, NAN, WRAPS, UNNAMED = "guard of zero", "nan", "wraps", "unnamed place"
NOTHING, TWICE, ONE_SIGN = "zero against zero", "twice in a row", "one sign"
"""Of a comparison: zeros on both sides, which no rounding parts; several elements equal to what stands for their row.

Of a greatest or a least element: a row of the other sign, where there are both signs; a padding of zero is the answer there.
"""
SUNK = "far below"
"""Of a softmax: a row so far below zero that nothing is left of it beside a padding of zero, or a maximum that begins at zero."""
AT = "at the number"
"""Of a comparison of what was computed: elements that are exactly the number, where no rounding parts the two sides."""
COUNT = "a small count"
"""Of a comparison, or a bound, of what was counted: one member of a group, whose variance divides by nothing."""
BESIDE = "beside a small number"
"""Elements about as large as a small number that is added to them: where it stands, in the root or outside, shows there alone."""
TURN = "turn of"
"""Of a remainder: a whole number that it changes, before the one that it divides by."""
OF_ZERO = (ROOT, GUARD, NOTHING, BESIDE, domains.FACTOR)
"""Sides to which zeros alone come, or what is nearly zero."""
NEEDLESS = (FAR, CLOSE, WRAPS, UNNAMED, CODES, ALIKE, TWICE, ONE_SIGN, SUNK, AT, COUNT, *OF_ZERO, *domains.SIDES, *narrow.SIDES)
"""Sides that a task need not come to."""
WITHOUT = "without"
"""Before the number that an operator leaves out."""
_EXP, _EXP2 = 89.0, 128.0
"""exp() of the first is infinite in float32, and so are 2 to the power of the second."""
_OF_TWO = ("logaddexp2",)
STABLE = (*_OF_TWO, "log_sigmoid", "softplus", "binary_cross_entropy_with_logits")
"""They are called for their answers where an exponential overflows, however far that is (`skewed.FAR` does not come to each)."""
_NOTHING = (None, None)
Bounds = tuple[Any, Any]
"""Numbers or tensors below, and above which a side begins; None: there is none."""


def _given(position: int, name: str, usual: Any = None) -> Callable[[Any, Any], Any]:
    return lambda args, kwargs: args[position] if len(args) > position else kwargs.get(name, usual)


_FIRST, _SECOND = _given(1, "min"), _given(2, "max")
_SOFT_FACTOR, _SOFT_BOUND = _given(1, "beta", 1.0), _given(2, "threshold", 20.0)
_SHRINKS = _given(1, "lambd", 0.5)


def _power(args: Any, kwargs: Any) -> Bounds:
    """Whole powers beyond the square have a sign that exp(n * log(x)) does not."""
    power = args[1] if isinstance(args[0], torch.Tensor) else None
    return (0, 0) if isinstance(power, (int, float)) and float(power).is_integer() and power not in (0, 1, 2) else _NOTHING


def _norm(args: Any, kwargs: Any) -> Bounds:
    """A norm takes absolute values, but where its power is even."""
    power = _given(1, "ord", 2)(args, kwargs)
    return _NOTHING if power % 2 == 0 else (0, 0)


def _rounded(args: Any, kwargs: Any) -> Bounds:
    """A quotient that is rounded down is not one that is cut off."""
    return (0, None) if kwargs.get("rounding_mode") else _NOTHING


def _clipped(args: Any, kwargs: Any) -> Bounds:
    eps = _given(1, "eps")(args, kwargs)
    return _NOTHING if eps is None else (eps, 1 - eps)


_BOUNDS: dict[str, Callable[[Any, Any], Bounds]] = {
    "clamp": lambda args, kwargs: (_FIRST(args, kwargs), _SECOND(args, kwargs)),
    "clamp_min": lambda args, kwargs: (_FIRST(args, kwargs), None),
    "clamp_max": lambda args, kwargs: (None, _given(1, "max")(args, kwargs)),
    "hardtanh": lambda args, kwargs: (_given(1, "min_val", -1)(args, kwargs), _given(2, "max_val", 1)(args, kwargs)),
    "threshold": lambda args, kwargs: (args[1], args[1]),
    **dict.fromkeys(("__rshift", "bitwise_right_shift"), lambda args, kwargs: (0, None)),
    "histc": lambda args, kwargs: ends if (ends := args[2:4])[1:] and ends[0] < ends[1] else _NOTHING,
    "hardshrink": lambda args, kwargs: (-_SHRINKS(args, kwargs), _SHRINKS(args, kwargs)),
    "softshrink": lambda args, kwargs: (-_SHRINKS(args, kwargs), _SHRINKS(args, kwargs)),
    **dict.fromkeys(("hardsigmoid", "hardswish"), lambda args, kwargs: (-3, 3)),
    **dict.fromkeys(
        ("relu", "abs", "elu", "celu", "leaky_relu", "_prelu_kernel", "sign", "sgn", "floor", "ceil", "trunc", "round", "frac"),
        lambda args, kwargs: (0, 0),
    ),
}
_FLOATS: dict[str, Callable[[Any, Any], Bounds]] = {
    "pow": _power,
    "logit": _clipped,
    **dict.fromkeys(("atan2", "copysign"), lambda args, kwargs: (0, 0)),
    "linalg_vector_norm": _norm,
    "div": _rounded,
    **dict.fromkeys(("remainder", "fmod", "floor_divide", "prod", "cumprod"), lambda args, kwargs: (0, None)),
    **dict.fromkeys(
        ("erf", "erfc", "erfinv", "expm1", "asin", "acos", "atan", "sinh", "cosh", "asinh", "atanh"),
        lambda args, kwargs: (0, 0),
    ),
}
"""Whole numbers that are never negative are mostly places, and no kernel must take others.

Products of logarithms, the usual series, and roots in the place of an inverse are right above zero alone.
"""
_SUMS_OF_EXPONENTIALS = ("_softmax", "_log_softmax", "logsumexp")
_SOFT = (*_SUMS_OF_EXPONENTIALS, "sigmoid", "silu")
_OVERFLOWS: dict[str, Callable[[Any, Any], Bounds]] = {
    "softplus": lambda args, kwargs: (None, max(_EXP, _SOFT_BOUND(args, kwargs)) / (_SOFT_FACTOR(args, kwargs) or 1.0)),
    **dict.fromkeys((*_SOFT, "logaddexp", "logcumsumexp"), lambda args, kwargs: (None, _EXP)),
    **dict.fromkeys(_OF_TWO, lambda args, kwargs: (None, _EXP2)),
    "tanh": lambda args, kwargs: (-_EXP, _EXP),
    "binary_cross_entropy_with_logits": lambda args, kwargs: (-_EXP, _EXP),
    "log_sigmoid_forward": lambda args, kwargs: (-_EXP, None),
    "mish": lambda args, kwargs: (None, _EXP / 2),
    "gelu": lambda args, kwargs: (None, 20.0),
}
_DET = "_linalg_det"
_ZEROS = frozenset(("xlogy", "special_xlog1py", "special_entr", "sinc", "binary_cross_entropy", _DET))
"""Their formulas have a logarithm of zero, or divide by it (an elimination without pivots does); they do not."""
_GUARDS = 1e-3
"""A number up to this that is added guards against zero: beside anything else, however small, another term may hide it."""
_LEAST_GUARD, _ABOUT = 1e-9, 16.0
"""Smaller numbers guard against zero alone; an element is as large as one where it is not more than so many times as far off."""
COUNTED = frozenset(("gt", "ge", "lt", "le", "eq", "ne", "clamp", "clamp_min"))
"""What is asked of counts, and bounds them."""
_SIGNS = frozenset(("sign", "sgn"))
"""They are zero at zero, and a kernel that asks for `x > 0` alone has two answers."""
_ROOTS = frozenset(("sqrt", "linalg_vector_norm"))
"""A root of zero is zero, and `x * rsqrt(x)` is no number."""
_LEAVE_NAN_OUT = frozenset(("nansum", "fmax", "fmin"))
_MAY_WRAP: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda one, other: one + other,
    "sub": lambda one, other: one - other,
    "mul": lambda one, other: one * other,
}
_CAST = "_to_copy"
_SHORT, _NO_FLAGS = 2, 8
"""Whole numbers of so many bytes wrap around soon; smaller ones than the second are mostly flags, and stay so."""
_POOLS = frozenset(("max_pool2d_with_indices", "max_pool3d_with_indices", "adaptive_max_pool2d", "adaptive_max_pool3d"))
_BAGS, _GREATEST_OF_BAG = frozenset(("_embedding_bag", "_embedding_bag_forward_only")), 2
BOTH_SIGNS = ("sort", "cummax", "cummin", "max_pool", "adaptive_max_pool", "embedding_bag")
"""How what picks elements is called that must do so among elements of either sign, whichever it was given."""
EXTREMES = ("max ", "amax ", "argmax ", "min ", "amin ", "argmin ")
"""How a plain extreme is called in what is idle."""
ORDERS = frozenset(("gt", "ge", "lt", "le"))
ASK_SIGNS = ORDERS | _SIGNS | {"eq", "ne"}
"""What asks for the sign of a difference, or whether there is one."""
_SEARCHES = frozenset(("bucketize", "searchsorted"))
_EQUAL_PART, _FEW = 0.02, 8
_HALFWAY_PART, _HALFWAY_NUMBERS = 1 / 8, 6
"""So many elements, and so many different ones, lie halfway where a scale is exact."""
DISTANCE = "dist"
_DISTANCES = frozenset(("_cdist_forward", "_euclidean_dist"))
_GREATEST = {"argmax": torch.amax, "argmin": torch.amin, "max": torch.amax, "min": torch.amin}
NAMED = frozenset(("argmax", "argmin"))
"""They return places alone; of `max` it is mostly the values that are used, whose places go nowhere."""
_EXTREMES = {"amax": torch.amax, "amin": torch.amin}
_RUNNING = frozenset(("cummax", "cummin"))
"""Torch names the last one of equal elements, on every device."""
_UNORDERED = frozenset(("sort", "topk", "argsort", "kthvalue", "median", "nanmedian", "mode"))
"""Which of equal elements these return is said nowhere."""
VALUES = frozenset(("sort", "topk", "kthvalue", "median", "nanmedian"))
"""They return elements beside their places; where nobody looks at the places, equal elements have one right answer."""
ORDERED = frozenset(("sort", "topk"))
"""Of these, what puts a whole row in order: it names each element once."""
GROUPED = ("scatter_reduce", "index_reduce")
_REDUCES_INTO = frozenset(GROUPED)
"""What they make of a place that no index names is what lay there before, or nothing, as they are told."""
NAMES = frozenset((
    *ORDERED, "angle", _CAST, *_MAY_WRAP, *_BOUNDS, *_FLOATS, *_OVERFLOWS, *_GREATEST, *_EXTREMES, *_ZEROS, *_ROOTS, *_POOLS,
    *_BAGS, *_LEAVE_NAN_OUT, *_REDUCES_INTO, *_RUNNING, *domains.NAMES,
))  # fmt: skip
PICKS = frozenset((*_GREATEST, *_EXTREMES, *_POOLS, *_UNORDERED, *_RUNNING, "aminmax", "sort", "maximum", "minimum"))
"""What only picks elements follows their scale, and a kernel that hides some behind a number of its own does not."""
PAIRS = ORDERS | _SEARCHES | _DISTANCES
"""What compares the elements of two tensors (`are_never_equal`)."""
COMPARES = PAIRS | {"eq", "ne"}


def is_unordered(name: str, kwargs: Any) -> bool:
    """Whether nobody knows which of equal elements an operator means."""
    return name in _UNORDERED and not kwargs.get("stable")


def idle(name: str, args: Any, kwargs: Any, given: torch.Tensor, out: Any) -> dict[str, bool]:
    """Return by side of an operator of `NAMES` whether a call never came to it.

    Args:
        name: of the operator.
        args: of the call.
        kwargs: of the call.
        given: its first tensor, as it was before the call.
        out: what it returned.
    """
    if name == "angle" and given.is_complex():
        return {LOWER: not _any(given.real, 0, above=False), UPPER: not _any(given.real, 0, above=True)}
    if name in _SIGNS and given.is_complex():
        return {ZERO: not bool((given == 0).any())}
    if not given.numel() or given.is_complex() or given.dtype is torch.bool:
        return {}
    if name in _GREATEST:
        return _ties(name, args, kwargs, given, out) | _one_sign(name, args, kwargs, given)
    if name in _EXTREMES:
        return _one_sign(name, args, kwargs, given)
    if name in _RUNNING:
        found = {TIES: not _stays(given, out[0], args[1])} if given.dim() else {}
        return found | ({ONE_SIGN: not bool((out[0] < 0 if name == "cummax" else out[0] > 0).any())} if found else {})
    if name in ORDERED:
        axis = args[1] if len(args) > 1 else kwargs.get("dim", -1)
        stable = kwargs.get("stable") and given.dim()
        found = {TIES: not bool((out[0].diff(dim=axis) == 0).any())} if stable else {}
        return found | ({ONE_SIGN: not bool((out[0] < 0).any())} if given.is_floating_point() else {})
    if name in _POOLS:
        found = {domains.DEEP: not domains.are_deep(out[0], greatest=True), ONE_SIGN: not bool((out[0] < 0).any())}
        return found | {TIES: not pairs.are_greatest_alike(given, out[0])}
    if name in _BAGS:
        empty = {UNNAMED: never} if (never := narrow.are_never_empty(args[2])) is not None else {}
        return empty | ({ONE_SIGN: not bool((out[0] < 0).any())} if args[4] == _GREATEST_OF_BAG else {})
    if name in _REDUCES_INTO:
        unnamed = {UNNAMED: args[2].unique().numel() >= given.shape[args[1]]} if given.dim() else {}
        return unnamed | _of_groups(args, given, out)
    if name == _CAST:
        return {} if given.is_floating_point() else _wraps(lambda one, _: one, given.to(out.device), 0, out)
    if name in _MAY_WRAP:
        if given.is_floating_point():
            return _guards(args, given) if name == "add" else {}
        return _wraps(_MAY_WRAP[name], given, _given(1, "other")(args, kwargs), out, kwargs.get("alpha", 1))
    if name == "remainder" and not given.is_floating_point():
        number = args[1]
        return {f"{TURN} {number}": not _any(given, number - 1, above=True)} if type(number) is int and number > 1 else {}
    if name in _LEAVE_NAN_OUT:
        return {NAN: not bool(given.isnan().any())}
    if name in _ZEROS:
        return {ZERO: not bool(((given[..., 0, 0] if name == _DET else given) == 0).any())}
    found = {ROOT: not bool((out == 0).any())} if name in _ROOTS and given.is_floating_point() else {}
    if name in _SUMS_OF_EXPONENTIALS and given.is_floating_point() and given.dim():
        found[SUNK] = not bool((given.amax(args[1]) < -_EXP).any())
    if name in _SIGNS and given.is_floating_point():
        found[ZERO] = not bool((given == 0).any())
    return found | domains.idle(name, args, given) | _bounded(name, args, kwargs, given)


def _bounded(name: str, args: Any, kwargs: Any, given: torch.Tensor) -> dict[str, bool]:
    """Return by side of an operator with bounds, or with numbers for which a formula overflows, whether it was not come to."""
    if name == "copysign":
        given = args[1] if isinstance(args[1], torch.Tensor) else torch.tensor([-1.0, 1.0])
    whole = not given.is_floating_point()
    tables = (_BOUNDS,) if whole else (_BOUNDS, _FLOATS)
    low, high = next((table[name](args, kwargs) for table in tables if name in table), _NOTHING)
    found = {LOWER: low, UPPER: high}
    sides = {side: not _any(given, bound, above=side == UPPER) for side, bound in found.items() if bound is not None}
    if name in _OVERFLOWS and not whole:
        low, high = _OVERFLOWS[name](args, kwargs)
        sides[FAR] = any(bound is not None and not _any(given, bound, above=up) for bound, up in ((low, False), (high, True)))
    return sides


def are_never_alike(name: str, given: torch.Tensor, values: torch.Tensor, axis: int) -> bool:
    """Whether hardly a row of an operator of `VALUES` returned an element that another is equal to, but those of one value."""
    if not given.dim():
        return True
    rows, axis = (given, axis) if values.dim() else (given.reshape(-1), 0)
    varied = (rows != rows.narrow(axis, 0, 1)).any(axis, keepdim=True)
    if values.dim() == rows.dim() and values.shape[axis] > 1:
        alike = ((values.diff(dim=axis) == 0) & varied).any(axis)
    else:
        one = values if values.dim() == rows.dim() else values.unsqueeze(axis)
        alike = (((rows == one).sum(axis, keepdim=True) > 1) & varied).any(axis)
    return _FEW * int(alike.sum()) < alike.numel()


def are_never_equal(name: str, one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether an operator of `PAIRS` meets hardly any equal elements, or rows, of two tensors."""
    if name in _DISTANCES:
        rows = (one == other).all(-1) if one.shape == other.shape else torch.ones(1)
        return _FEW * int(rows.sum()) < rows.numel()  # one of zeros shows no rounding
    equal = torch.isin(one, other) if name in _SEARCHES else one == other
    return int(equal.sum()) < _EQUAL_PART * equal.numel()


def just_counted(name: str, args: Any, kwargs: Any) -> Any:
    """Return the number of an operator of `COUNTED` at which its other side is nearest; None where there is none."""
    if name not in ("clamp", "clamp_min"):
        return args[1] if len(args) > 1 else None
    least = _FIRST(args, kwargs)
    return least - 1 if type(least) in (int, float) else None


def scaled_places(given: torch.Tensor, kwargs: Any) -> torch.Tensor:
    """Return what `torch.round` rounds to whole numbers: with decimals so many places more."""
    return given.double() * 10.0 ** kwargs.get("decimals", 0) if kwargs else given


def is_never_halfway(given: torch.Tensor) -> bool:
    """Whether hardly any element lies halfway between two whole numbers; of large ones some do by chance."""
    return int((given.double().frac().abs() == 0.5).sum()) < _EQUAL_PART * given.numel()


def is_seldom_halfway(given: torch.Tensor) -> bool:
    """Whether few quotients, or few different ones, lie halfway between two whole numbers.

    Of large ones in 16 bits some do by rounding, and half of the greatest one lies at 63.5 times its 127th part.
    """
    halves = given[given.double().frac().abs() == 0.5]
    if halves.numel() < max(1.0, _HALFWAY_PART * given.numel()):
        return True
    return int((halves.sort().values.diff() != 0).sum()) + 1 < _HALFWAY_NUMBERS


def _one_sign(name: str, args: Any, kwargs: Any, given: torch.Tensor) -> dict[str, bool]:
    """Whether floats, or whole numbers of both signs, have no row of the sign that the other extreme has."""
    axis = args[1] if len(args) > 1 else kwargs.get("dim")
    both = given.is_floating_point() or bool((given < 0).any() and (given > 0).any())
    if isinstance(axis, torch.Tensor) or not both:
        return {}
    greatest = name in ("max", "argmax", "amax")
    rows = given if axis not in (None, []) else given.reshape(-1)
    best = (torch.amax if greatest else torch.amin)(rows, 0 if axis in (None, []) else axis)
    deep = {domains.DEEP: not domains.are_deep(best, greatest=greatest)} if given.is_floating_point() else {}
    return {ONE_SIGN: not bool((best < 0 if greatest else best > 0).any())} | deep


def _of_groups(args: Any, given: torch.Tensor, out: torch.Tensor) -> dict[str, bool]:
    """Whether no group of floats, of which an extreme is put into a place, has the sign of the other extreme."""
    reduce = args[4] if len(args) > 4 else ""
    if reduce not in _EXTREMES or not given.is_floating_point() or not given.dim() or not args[2].numel():
        return {}
    named = torch.zeros_like(given, dtype=torch.bool)
    rows = args[2].dim() == given.dim() > 1
    named = named.scatter(args[1], args[2], True) if rows else named.index_fill(args[1], args[2], True)
    best, greatest = out[named], reduce == "amax"
    deep = not domains.are_deep(best, greatest=greatest)
    return {ONE_SIGN: not bool((best < 0 if greatest else best > 0).any()), domains.DEEP: deep}


def _stays(given: torch.Tensor, best: torch.Tensor, axis: int) -> bool:
    """Whether an element is equal to the greatest, or least, one before it."""
    size = given.shape[axis]
    return bool((given.narrow(axis, 1, size - 1) == best.narrow(axis, 0, size - 1)).any()) if size > 1 else False


def _any(given: torch.Tensor, bound: Any, *, above: bool) -> bool:
    return bool((given > bound if above else given < bound).any())


def _wraps(operator: Callable[[Any, Any], Any], given: torch.Tensor, other: Any, out: Any, times: Any = 1) -> dict[str, bool]:
    """Whether no short whole number came out that does not fit: a kernel may keep to the ends of the range instead."""
    if out.is_floating_point() or out.dtype is torch.bool or out.element_size() > _SHORT:
        return {}
    other = other.long() if isinstance(other, torch.Tensor) else other
    if not isinstance(other, (int, torch.Tensor)) or int(given.long().abs().max()) < _NO_FLAGS:
        return {}
    return {WRAPS: torch.equal(operator(given.long(), other * times), out.long())}


def _guards(args: Any, given: torch.Tensor) -> dict[str, bool]:
    """Whether a small number that is added guards nothing."""
    number = args[1] if len(args) > 1 else None
    if not isinstance(number, float) or not 0.0 < number <= _GUARDS or not given.is_floating_point():
        return {}
    sizes = given.abs()
    found = {GUARD: not bool((sizes == 0).any())}
    if number >= _LEAST_GUARD and given.element_size() > _SHORT:
        found[BESIDE] = not bool(((number / _ABOUT <= sizes) & (sizes <= _ABOUT * number)).any())
    return found


def _ties(name: str, args: Any, kwargs: Any, given: torch.Tensor, out: Any) -> dict[str, bool]:
    """Whether no row has two greatest elements: then any of them may be named."""
    axis = args[1] if len(args) > 1 else kwargs.get("dim")
    if given.numel() < 2 or isinstance(axis, torch.Tensor) or (axis is None and name in ("max", "min")):
        return {}
    rows = given.reshape(-1) if axis is None else given
    best = _GREATEST[name](rows, 0 if axis is None else axis, keepdim=True)
    count = (rows == best).sum(0 if axis is None else axis)
    return {TIES: not bool((count > 1).any())}
