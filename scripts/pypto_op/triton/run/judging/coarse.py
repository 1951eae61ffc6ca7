"""Whether an answer to inputs far beyond the task's own is grossly wrong: not finite, or of another size.

Such inputs magnify rounding (a softmax of large logits is all or nothing). So the reference's own error is allowed many times
over, and some elements may be anything.
"""

from __future__ import annotations

from typing import Any

import torch

from pypto_op.triton.run.inputs.packing import tensors_of

_PART, _OF_GREATEST = 0.1, 0.02
"""What an element may be off by: a part of itself, and of the greatest one."""
_TIMES = 16.0
"""So many times the reference's own greatest error is allowed."""
_MOST = 0.02
"""Of the elements so many may be wrong, as long as they are finite where the reference is well within its dtype's range."""
_FAR = 0.25
"""What the answer for a whole row may be off by, as a part of the greatest one."""
_ROW, _NOTHING = 8, 0.01
"""A row of so many elements is lost where each is less than this part of what its greatest should be: a softmax adds to 1."""


def gross(expected: Any, actual: Any, truth: Any, *, inputs: Any = (), strict: bool = False) -> str:
    """Return what is grossly wrong with an answer of the right structure; "" for nothing.

    Args:
        inputs: of the call: where an output has far fewer elements, each answers for many.
        strict: no element may be wrong: the answer is picked from the inputs, or only follows their scale.
        expected: what the reference returned.
        actual: what the implementation did.
        truth: what the reference returned in float64; None when it does not run there.
    """
    wants, gots = tensors_of(expected), tensors_of(actual)
    rights = tensors_of(truth) if truth is not None else wants
    if not len(wants) == len(gots) == len(rights):
        return ""
    most, elements = 0.0 if strict else _MOST, max((tensor.numel() for tensor in tensors_of(inputs)), default=0)
    leaves = zip(wants, gots, rights, strict=True)
    return next(filter(None, (_gross(number, *leaf, most, elements) for number, leaf in enumerate(leaves))), "")


def _gross(position: int, want: torch.Tensor, got: torch.Tensor, right: torch.Tensor, most: float, elements: int) -> str:
    if not want.numel() or want.is_complex() or want.shape != got.shape or want.shape != right.shape:
        return ""
    limit = torch.finfo(want.dtype).max / 2 if want.is_floating_point() else float("inf")
    want, got, right = (tensor.detach().cpu().double() for tensor in (want, got, right))
    told = torch.isfinite(want) & torch.isfinite(right)
    if not bool(told.any()):
        return ""
    hidden = torch.isinf(want) & (want == right)
    own = float((want - right)[told].abs().max())
    allowed = _PART * want.abs() + _OF_GREATEST * float(want[told].abs().max()) + _TIMES * own
    allowed = allowed * float(limit < float("inf") or most > 0)  # the next place is another one
    wrong = (told & ~((got - want).abs() <= allowed)) | (hidden & (got != want))
    count = int(wrong.sum())
    lost = int((wrong & ~torch.isfinite(got) & ((want.abs() < limit) | got.isnan())).sum())
    rows = _lost_rows(want, got, wrong)
    far = limit < float("inf") and want.numel() * _ROW <= elements and _are_far(want, got, wrong & told)
    if count <= most * want.numel() and not lost and not rows and not far:
        return ""
    more = f", {rows} row(s) are nearly zero" if rows else ""
    return f"output {position}: {count} of {want.numel()} element(s) are grossly wrong, {lost} of them not finite{more}"


def _are_far(want: torch.Tensor, got: torch.Tensor, wrong: torch.Tensor) -> bool:
    """Whether an element that answers for many is off by a good part of the greatest: its row was lost."""
    return bool(((got - want).abs()[wrong] > _FAR * float(want[torch.isfinite(want)].abs().max())).any())


def _lost_rows(want: torch.Tensor, got: torch.Tensor, wrong: torch.Tensor) -> int:
    """Return how many rows are nearly zero where the greatest element of the reference is not."""
    if not want.dim() or want.shape[-1] < _ROW:
        return 0
    greatest, at = want.abs().nan_to_num(0.0, 0.0, 0.0).max(-1, keepdim=True)
    nothing = got.abs().amax(-1, keepdim=True) <= _NOTHING * greatest
    return int((nothing & wrong.gather(-1, at)).sum())
