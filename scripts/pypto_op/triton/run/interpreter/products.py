"""Products of float32 blocks (`tl.dot`): without `input_precision="ieee"` NVIDIA's GPUs round their operands to TF32.

That leaves 10 bits of the fraction; the interpreter rounds nothing. So one call is judged with operands that are rounded, and
what is wrong then is said. A device without TF32 computes as the interpreter does, so it is not refused.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

_DROPPED = 13
"""Bits of a float32's fraction that TF32 lacks."""
WORDS = (
    'tl.dot of float32 without input_precision="ieee": on a GPU that rounds its operands to TF32, '
    "the answer is outside of the policy"
)


class Products:
    """Stands behind the interpreter's products.

    Attributes:
        rounded: operands are rounded where a device may do so.
        met: there was such a product.
    """

    def __init__(self) -> None:
        self.rounded = self.met = False

    def install(self, builder: Any) -> None:
        """Wrap the function of the interpreter's builder that products come to."""
        original = builder.create_dot

        @functools.wraps(original)
        def dot(builder: Any, left: Any, right: Any, total: Any, precision: Any, *args: Any) -> Any:
            single = all(side.data.dtype == np.float32 for side in (left, right))
            if single and str(precision).rpartition(".")[2].upper() == "TF32":
                self.met = True
                left, right = (_rounded(left), _rounded(right)) if self.rounded else (left, right)
            return original(builder, left, right, total, precision, *args)

        builder.create_dot = dot


def _rounded(handle: Any) -> Any:
    from triton.runtime.interpreter import TensorHandle

    bits = np.ascontiguousarray(handle.data).view(np.uint32).astype(np.uint64)
    found = ((bits + (1 << _DROPPED >> 1)) >> _DROPPED << _DROPPED).astype(np.uint32).view(np.float32)
    return TensorHandle(np.where(np.isfinite(handle.data), found, handle.data), handle.dtype)
