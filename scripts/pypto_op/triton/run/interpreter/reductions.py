"""`tl.reduce` by a function of the file, in the order of a device: lanes meet in pairs, i with i + n / 2.

Triton's interpreter takes lanes from the first to the last, one by one. There a function that minds their order ("the last one
that is not zero"), or that adds a lane to what was found so far (`a + b * b`), looks right; on a device both are wrong. Whole
blocks meet here, which takes one call of the function for each halving instead of one for each lane.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def install() -> set[str]:
    """Replace the interpreter's function in this process; return the names of the functions that will have reduced."""
    import triton.language as tl
    from triton.runtime import interpreter

    names: set[str] = set()

    def reduced(reduction: Any, given: tuple[Any, ...]) -> list[Any]:
        function = reduction.combine_fn
        if function == getattr(tl.standard, "_xor_combine", None):  # each exchange of a sort is one: it takes half the time
            data = np.bitwise_xor.reduce(given[0].handle.data, axis=reduction.axis, keepdims=reduction.keep_dims)
            return [reduction.to_tensor(data, given[0].dtype)]
        if not function.fn.__module__.startswith("triton."):
            names.add(function.fn.__name__)
        return in_pairs(reduction, given)

    interpreter.ReduceOps.generic_reduce = reduced
    return names


def in_pairs(reduction: Any, given: tuple[Any, ...]) -> list[Any]:
    """Stand for `ReduceOps.generic_reduce`: `given` are tensors of one shape; returns one of each, without the axis."""
    shape, kinds = given[0].handle.data.shape, [tensor.dtype for tensor in given]
    whole, axis = reduction.axis is None, (reduction.axis or 0) % len(shape)
    lanes = [tensor.handle.data.reshape(-1) if whole else np.moveaxis(tensor.handle.data, axis, 0) for tensor in given]
    while (count := len(lanes[0])) > 1:
        half = (count + 1) // 2
        met = _met(reduction, [lane[: count - half] for lane in lanes], [lane[half:] for lane in lanes], kinds)
        lanes = [np.concatenate([new, lane[count - half : half]]) for new, lane in zip(met, lanes, strict=True)]
    kept = (1,) * len(shape) if whole else (*shape[:axis], 1, *shape[axis + 1 :])
    ends = [lane.reshape(kept) if reduction.keep_dims else lane[0] for lane in lanes]
    return [reduction.to_tensor(end, kind) for end, kind in zip(ends, kinds, strict=True)]


def _met(reduction: Any, left: Sequence[Any], right: Sequence[Any], kinds: Sequence[Any]) -> list[Any]:
    """Return what the function makes of two arrays of each kind, element by element."""
    from triton.language.core import tensor

    asked = tensor.__bool__
    tensor.__bool__ = _refused  # the interpreter would take every block for true
    try:
        found = _called(reduction, [*left, *right], kinds)
    except _AsksForTruth:
        pass
    else:
        return [np.broadcast_to(new, old.shape).astype(old.dtype) for new, old in zip(found, left, strict=True)]
    finally:
        tensor.__bool__ = asked
    made = [np.empty_like(part) for part in left]
    for place in np.ndindex(left[0].shape):
        for new, number in zip(made, _called(reduction, [part[place] for part in (*left, *right)], kinds), strict=True):
            new[place] = np.asarray(number).item()
    return made


def _called(reduction: Any, parts: Sequence[Any], kinds: Sequence[Any]) -> list[Any]:
    given = (reduction.to_tensor(part, kind) for part, kind in zip(parts, [*kinds, *kinds], strict=True))
    found = reduction.combine_fn.fn(*given)
    values = found if isinstance(found, tuple) else (found,)
    return [getattr(getattr(value, "handle", None), "data", value) for value in values]


class _AsksForTruth(Exception):
    """A function branches, so it takes numbers alone."""


def _refused(_: Any) -> bool:
    raise _AsksForTruth
