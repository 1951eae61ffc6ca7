"""The inputs of another case, of other shapes, that a model is called with before a case of its own.

Scratch memory, a mask or a table that a model keeps from its first call has the sizes of that call. What a larger call left
there, or what is too short for a larger one, shows in a later call of other shapes alone. Each case has a model of its own.
"""

from __future__ import annotations

from typing import Any

from pypto_op.triton.run.packing import elements_of, tensors_of

TOLD = "before this call the model was called with the inputs of another case, of other shapes: memory that it keeps may not fit"


def of(groups: Any, index: int) -> Any | None:
    """Return, of the cases whose shapes differ from those of a case, the one with the most elements; None where there is none.

    Args:
        groups: the inputs of all cases; a generator cannot be asked for another one.
        index: of the case.
    """
    if not isinstance(groups, (list, tuple)) or not 0 <= index < len(groups):
        return None
    own = _shapes(groups[index])
    return max((group for group in groups if _shapes(group) != own), key=elements_of, default=None)


def _shapes(group: Any) -> list[Any]:
    return [tensor.shape for tensor in tensors_of(group)]
