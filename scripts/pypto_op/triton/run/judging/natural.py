"""The second look at float outputs that the contract's rule refuses: is the error as small as float arithmetic makes it?

Where outputs cancel (a float32 product of matrices with K = 1024), two right orders of summation differ by more than the
rule's relative error allows, because it divides by a reference that is nearly 0. So both sides are held against the
reference in float64: the implementation may be as wrong as the reference, times a small factor.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import torch

from pypto_op.compare import compare_leaves
from pypto_op.documents.policy import Policy, get_policy
from pypto_op.triton.run.inputs.packing import tensors_of

FACTOR = 16.0
"""Another order of summation costs up to about 5 times the reference's error; products in TF32 or half precision over 100."""
ORDERS_FACTOR = 4.0
"""The same for the greatest error of several orders. A fifth order seldom errs by more than 1.3 times as much."""

ROUNDINGS = 4.0
"""A right kernel may err by so many roundings of what it returns for larger inputs: 1 - 2 / (exp(2x) + 1) does at tanh(0)."""

_COMPUTED = 4
"""Bytes of the floats that kernels compute in."""


def policy(factor: float) -> Policy:
    """Return the rule: the bundle's `twin`."""
    return get_policy({"name": "twin", "version": 1, "factor": {"mare": factor, "mere": factor, "rmse": factor}})


def is_natural(
    leaves: Sequence[tuple[torch.Tensor, torch.Tensor, torch.Tensor]], orders: Sequence[Sequence[torch.Tensor]] = ()
) -> bool:
    """Whether float outputs are as near to the truth as arithmetic in their dtype lets them be.

    Args:
        leaves: per output: what the reference returned, what the implementation returned (same shape and dtype), and what
            the reference returns in float64.
        orders: what the reference returns in other orders of additions, output by output; without any, its own error counts
            `FACTOR` times.
    """
    factor = ORDERS_FACTOR if orders else FACTOR
    if any(want.shape != right.shape or not _near(want, right) for want, _, right in leaves):
        return False
    wants, gots, rights = ([leaf[i] for leaf in leaves] for i in range(3))
    twins = [wants, *([one.to(want) for one, want in zip(order, wants, strict=True)] for order in orders)]
    if not leaves or not all(_each_element(*leaf, *others, factor=factor) for leaf, *others in zip(leaves, *twins, strict=True)):
        return False
    names = [str(position) for position in range(len(leaves))]
    return compare_leaves(gots, rights, names=names, policy=policy(factor), twins=twins).all_close


def of_16_bits(outputs: Sequence[torch.Tensor]) -> bool:
    """Whether all floats among outputs have 16 bits, and there are some."""
    floats = [output for output in outputs if output.is_floating_point()]
    return bool(floats) and all(output.dtype in (torch.float16, torch.bfloat16) for output in floats)


def is_of_products(leaves: Sequence[tuple[torch.Tensor, torch.Tensor, torch.Tensor]], rounded: Sequence[torch.Tensor]) -> bool:
    """Whether outputs of 16 bits are as near to the truth as products are whose operands have 16 bits.

    An output near 0 is what large terms leave. Its relative error says little then, whoever computes it.

    Args:
        leaves: as in `is_natural`.
        rounded: per output: what the reference returns so.
    """
    if any(other.shape != want.shape or not _near(want, right) for (want, _, right), other in zip(leaves, rounded, strict=True)):
        return False
    twins = [other.to(want.device, want.dtype) for (want, _, _), other in zip(leaves, rounded, strict=True)]
    names = [str(position) for position in range(len(leaves))]
    gots, rights = [leaf[1] for leaf in leaves], [leaf[2] for leaf in leaves]
    return compare_leaves(gots, rights, names=names, policy=get_policy("twin@2"), twins=[twins]).all_close


def is_magnified(outputs: Any, truth: Any) -> bool:
    """Whether a reference is far from its float64 run as a whole: such inputs magnify rounding, whoever computes."""
    pairs = zip(tensors_of(outputs), tensors_of(truth), strict=False)
    return any(right.dtype is torch.float64 and not _near(output, right.to(output.device)) for output, right in pairs)


def is_near(leaves: Sequence[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]) -> bool:
    """Whether what the implementation returned is near to the truth as a whole, so that a look at single elements is worth it."""
    return all(_near(output, truth) for _, output, truth in leaves)


def is_of_larger(leaves: Sequence[tuple[torch.Tensor, torch.Tensor, torch.Tensor]], larger: Sequence[torch.Tensor]) -> bool:
    """Whether what small inputs give is right but for a few roundings of what larger ones give.

    A kernel may subtract numbers of the size that its task's own inputs lead to, wherever these inputs lie. One of 16 bits
    computes in 32, so nothing is left of that after the last rounding.

    Args:
        leaves: as in `is_natural`.
        larger: per output: elements that the reference returned for the larger inputs.
    """
    computed = all(want.element_size() >= _COMPUTED for want, _, _ in leaves)
    if len(leaves) != len(larger) or not leaves or not computed or not is_near(leaves):
        return False
    return all(
        bool(((got - want).abs() <= ROUNDINGS * torch.finfo(want.dtype).eps * most.abs().max()).all())
        for (want, got, _), most in zip(leaves, larger, strict=True)
        if want.numel()
    )


def _each_element(
    reference: torch.Tensor, output: torch.Tensor, truth: torch.Tensor, *twins: torch.Tensor, factor: float
) -> bool:
    """Whether each element fits the contract's greatest relative error or what the twins err by in its row and column.

    Rows and columns, so that one row of large numbers does not excuse the others; from 32 elements on, where a maximum
    means something.
    """
    rule = _contract(reference)
    want, got = reference.to(torch.float64), output.to(torch.float64)
    error = (got - truth).abs().nan_to_num(0.0, 0.0)
    own = reduce(torch.maximum, [(twin.to(torch.float64) - truth).abs().nan_to_num(0.0, 0.0) for twin in twins])
    allowed = torch.full_like(own, float(own.max()))
    table = own.reshape(-1, own.shape[-1]) if own.dim() > 1 else own.reshape(1, -1)
    for axis, size in enumerate(table.shape):
        if size >= 32:
            allowed = torch.minimum(allowed, table.amax(axis, keepdim=True).expand_as(table).reshape(own.shape))
    relative = (got - want).abs() <= rule["mare"] * want.abs().clamp(min=rule["clamp"])
    return bool((relative | (error <= factor * allowed) | ~torch.isfinite(want)).all())


def _near(reference: torch.Tensor, truth: torch.Tensor) -> bool:
    """Whether the reference is near (root mean square, relative) to its float64 run, or that is none (dropout, a cast)."""
    if truth.dtype is not torch.float64:
        return False
    wide = reference.to(torch.float64)
    both = torch.isfinite(truth) & torch.isfinite(wide)
    right, off = truth[both], wide[both] - truth[both]
    return bool(off.square().mean().sqrt() <= _contract(reference)["mere"] * right.square().mean().sqrt())


def _contract(tensor: torch.Tensor) -> dict[str, float]:
    """Return the contract's numbers for a tensor's dtype."""
    return get_policy("mere_mare@1").for_dtype(str(tensor.dtype))
