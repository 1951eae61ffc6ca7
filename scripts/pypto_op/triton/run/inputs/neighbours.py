"""Other inputs that a model is called with before the judged call: another case's, of other shapes, or another draw.

Scratch memory, a mask or a table that a model keeps from its first call has the sizes of that call. What a larger call left
there, or what is too short for a larger one, shows in a later call of other shapes alone. Each case has a model of its own.

What a model keeps of whole numbers and masks (places, lengths, a table) shows where these are others. They cannot be moved as
floats are, since they may be no valid ones then. So the task draws them again.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

import torch

from pypto_op.triton.run.inputs.packing import elements_of, tensors_of

SHAPES, DRAWN = "shapes", "drawn"
"""What differs in the call before."""
TOLD = {
    SHAPES: "before this call the model was called with another case's inputs, of other shapes: memory that it keeps may not fit",
    DRAWN: "before this call the model was called with other whole numbers or masks: what it keeps of them is wrong now",
}


def of(what: str, groups: Any, index: int, draw: Callable[[], Any]) -> Any | None:
    """Return the inputs of the call before a case; None where there are none.

    Args:
        what: `SHAPES`: those of the case with the most elements among all whose shapes differ; `DRAWN`: those of this case, drawn
            again, where whole numbers or masks are others then.
        groups: the inputs of all cases; a generator cannot be asked for another one.
        index: of the case.
        draw: draws the inputs of all cases again.
    """
    if not isinstance(groups, (list, tuple)) or not 0 <= index < len(groups):
        return None
    if what == DRAWN:
        if not any(map(is_whole, tensors_of(groups[index]))):
            return None
        again = next(islice(draw(), index, None), None)
        return again if _parts(groups[index], again) else None
    own = shapes_of(groups[index])
    return max((group for group in groups if shapes_of(group) != own), key=elements_of, default=None)


def shapes_of(group: Any) -> list[torch.Size]:
    """Return the shapes of a structure's tensors."""
    return [tensor.shape for tensor in tensors_of(group)]


def _parts(group: Any, other: Any) -> bool:
    """Whether tensors have the same shapes, and some that hold no floats differ."""
    if shapes_of(group) != shapes_of(other):
        return False
    pairs = zip(tensors_of(group), tensors_of(other), strict=True)
    return any(is_whole(one) and not torch.equal(one, two) for one, two in pairs)


def is_whole(tensor: torch.Tensor) -> bool:
    """Whether a tensor holds whole numbers, or a mask."""
    return not (tensor.is_floating_point() or tensor.is_complex())
