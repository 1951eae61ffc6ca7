"""Judges places that an order returned (`torch.topk`): of equal elements an implementation may name any.

An implementation may name another one of them. It may not name one twice, or one that is smaller.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from pypto_op.triton.run.inputs.packing import map_tensors, tensors_of

_ROUNDINGS = 16.0
"""Elements that were computed are equal where they differ by no more roundings of the greatest: a kernel rounds otherwise."""


class Order(NamedTuple):
    """An order whose places are an output.

    Attributes:
        position: of the output among all tensors.
        axis: along which elements were put in order.
        elements: these.
        exact: they were drawn, so no rounding parts what is equal.
    """

    position: int
    axis: int
    elements: torch.Tensor
    exact: bool


def settled(expected: Any, actual: Any, orders: Sequence[Sequence[Any]]) -> Any:
    """Return what an implementation returned, with the reference's places where its own ones name equal elements.

    Args:
        expected: what the reference returned.
        actual: what the implementation did.
        orders: of the reference (`Order`).
    """
    wants, gots = tensors_of(expected), tensors_of(actual)
    if not orders or len(wants) != len(gots):
        return actual
    found = {order.position: order for order in (Order(*order) for order in orders)}
    same = iter(
        want if position in found and _is_as_good(want, got, found[position]) else got
        for position, (want, got) in enumerate(zip(wants, gots, strict=True))
    )
    return map_tensors(actual, lambda _: next(same))


def _is_as_good(want: torch.Tensor, got: torch.Tensor, order: Order) -> bool:
    """Whether places are of the same elements, in their order, and none stands twice along the axis."""
    elements = order.elements.to(got.device)
    if want.shape != got.shape or want.dtype is not got.dtype or not got.numel():
        return False
    if int(got.min()) < 0 or int(got.max()) >= elements.shape[order.axis]:
        return False
    if bool((got.sort(order.axis).values.diff(dim=order.axis) == 0).any()):
        return False
    mine, right = (elements.gather(order.axis, places.long()).double() for places in (got, want))
    eps = 0.0 if order.exact else _ROUNDINGS * torch.finfo(elements.dtype).eps * float(elements.abs().max())
    return bool(((mine - right).abs() <= eps).all())
