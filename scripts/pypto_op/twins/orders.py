"""Orders in which a kernel may add up: each folds the terms of a sum, the partial products of a matmul, and a scan.

All of them are exact over the real numbers. In float32 they differ by rounding only, each as some real kernel would:
a plain loop, a loop that runs backwards, tiles added one after another, a tree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

_LONGEST_LOOP = 1 << 16
"""Single terms are grouped beyond so many: a kernel with one accumulator for more is a poor one. Shorter sums are whole loops,
because a loop's error grows with its steps: of 25600 terms in groups of 7 it was 0.4 of what torch's own gradient has."""

_MOST_STEPS = 4096
"""Blocks of a matmul: beyond so many they grow, so that a long axis stays affordable."""

TILE = 64
"""Terms of a tile, and the K block of a tiled matmul: a common vector width of the device."""

CUBE = 16
"""K block of the finest matmul that is large: one step of the cube unit."""

_FEW_PRODUCTS = 1 << 18
"""So many products are made at once, where one call takes less time than a loop; of more, the memory takes as long."""
_MOST_PRODUCTS = 1 << 24
"""A matmul of so many products is also added up term by term, as a vector kernel does; a larger one in blocks."""

Fold = Callable[[torch.Tensor], torch.Tensor]
"""Sums the last axis of a float32 tensor."""


@dataclass(frozen=True)
class Order:
    """One honest way to add up."""

    name: str  # as policies and reports name it
    fold: Fold  # sums the last axis
    k_block: int  # terms of a matmul that are contracted at once
    combine: Callable[[Sequence[torch.Tensor]], torch.Tensor]  # adds the partial products of a matmul, in the order of K
    backwards: bool = False  # walk sums, K and scans from the end
    apart: bool = False  # take a sum of differences as the difference of two sums (`twins.differences`)
    by_terms: bool = False  # contract a matmul of few products term by term, each product rounded
    shifted: bool = False  # take a mean from the distances to one of the values (`twins.shifts`)


def _one_by_one(terms: torch.Tensor) -> torch.Tensor:
    """Add term after term to one accumulator."""
    count = terms.shape[-1]
    if count > _LONGEST_LOOP:
        terms = _tile_sums(terms, -(-count // _LONGEST_LOOP))
    return _accumulated(terms)[..., -1].clone()


def _accumulated(terms: torch.Tensor) -> torch.Tensor:
    """Return every total on the way of a loop over the last axis, rounded to the terms' own dtype after each step.

    NumPy's running sum is that loop, bit for bit, without a call of torch for each term. torch's own keeps a float64 total.
    """
    return torch.from_numpy(terms.detach().numpy().cumsum(axis=-1))


def _tile_sums(terms: torch.Tensor, tile: int) -> torch.Tensor:
    """Return the sums of neighbouring tiles, the last one padded with zeros: [..., n] -> [..., ceil(n / tile)]."""
    missing = -terms.shape[-1] % tile
    padded = torch.nn.functional.pad(terms, (0, missing)) if missing else terms
    return padded.reshape(*terms.shape[:-1], -1, tile).sum(dim=-1)


def _tile_by_tile(terms: torch.Tensor) -> torch.Tensor:
    return _one_by_one(_tile_sums(terms, TILE))


def _pairwise(terms: torch.Tensor) -> torch.Tensor:
    """Add neighbours, then their sums, and so on up a tree."""
    while terms.shape[-1] > 1:
        if terms.shape[-1] % 2:
            terms = torch.nn.functional.pad(terms, (0, 1))
        terms = terms[..., 0::2] + terms[..., 1::2]
    return terms[..., 0].clone()


def _backwards(terms: torch.Tensor) -> torch.Tensor:
    return terms.flip(-1).contiguous().sum(dim=-1)


def _in_turn(parts: Sequence[torch.Tensor]) -> torch.Tensor:
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def _as_tree(parts: Sequence[torch.Tensor]) -> torch.Tensor:
    level = list(parts)
    while len(level) > 1:
        level = [_in_turn(level[i : i + 2]) for i in range(0, len(level), 2)]
    return level[0]


ORDERS = {
    order.name: order
    for order in (
        Order("reversed", _backwards, TILE, _in_turn, backwards=True, apart=True, shifted=True),
        Order("tiled", _tile_by_tile, TILE, _in_turn),
        Order("pairwise", _pairwise, TILE, _as_tree, apart=True, shifted=True),
        Order("sequential", _one_by_one, CUBE, _in_turn, by_terms=True),
    )
}
"""Every order, by name."""


def total(terms: torch.Tensor, order: Order) -> torch.Tensor:
    """Return the sum over the last axis, of at least one term."""
    return order.fold(terms)


def contract(left: torch.Tensor, right: torch.Tensor, order: Order) -> torch.Tensor:
    """Return left @ right for [..., M, K] and [..., K, N], K split into blocks that are added in `order`."""
    if order.backwards:
        left, right = left.flip(-1), right.flip(-2)
    size = left.shape[-1]
    if order.by_terms and size <= _MOST_STEPS and _products(left, right) <= _MOST_PRODUCTS:
        return _by_terms(left, right)
    block = max(order.k_block, -(-size // _MOST_STEPS))
    parts = [
        torch.matmul(left[..., start : start + block], right[..., start : start + block, :]) for start in range(0, size, block)
    ]
    return order.combine(parts) if len(parts) > 1 else parts[0]


def _products(left: torch.Tensor, right: torch.Tensor) -> int:
    """Return how many products a matmul makes, at least; one operand may lack the other's batches."""
    return max(left.numel() * right.shape[-1], right.numel() * left.shape[-2])


def _by_terms(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Return left @ right as a loop over K that multiplies, rounds, and adds to one accumulator."""
    if left[..., 0].numel() * right.shape[-1] > 1 and _products(left, right) <= _FEW_PRODUCTS:
        products = (left.unsqueeze(-1) * right.unsqueeze(-3)).movedim(-2, 0)  # [K, ..., M, N]
        # NumPy's sum over an outer axis is that loop, bit for bit; over the only axis it would be pairwise.
        return torch.from_numpy(np.add.reduce(products.contiguous().numpy(), axis=0))
    found = left[..., :1] * right[..., :1, :]
    for term in range(1, left.shape[-1]):
        found = found.add_(left[..., term : term + 1] * right[..., term : term + 1, :])
    return found


def scan(terms: torch.Tensor, order: Order) -> torch.Tensor:
    """Return the running sums along the last axis, accumulated in the terms' own dtype."""
    return _doubling_scan(terms) if order.combine is _as_tree else _accumulated(terms)


def _doubling_scan(terms: torch.Tensor) -> torch.Tensor:
    """Hillis and Steele's scan: after step s each cell holds the sum of its last 2^s terms."""
    shift = 1
    while shift < terms.shape[-1]:
        moved = torch.nn.functional.pad(terms[..., :-shift], (shift, 0))
        terms, shift = terms + moved, 2 * shift
    return terms
