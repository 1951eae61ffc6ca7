"""Which elements of its inputs a golden does not read: the padding behind a length, the pages that no table names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

_DRAWS = 4
"""The values change places so often: what one draw leaves without effect (the losers of a maximum) another may need."""


def unread(golden: Callable[..., Any], values: Sequence[Any]) -> list[torch.Tensor]:
    """Return, for each input, a mask of the elements that no floating output depends on by its gradient.

    An element whose gradient is zero may matter all the same, so the masks are a guess; who uses one asks the golden again.

    Returns:
        One bool mask per argument, of its shape for a floating tensor, else empty; [] where there are no gradients.
    """
    masks = [_is_floating(value) and torch.ones(value.shape, dtype=torch.bool) for value in values]
    generator = torch.Generator().manual_seed(0)
    for draw in range(_DRAWS):
        given = [_leaf(value, generator if draw else None) if _is_floating(value) else value for value in values]
        outputs = [leaf for leaf in _leaves(golden(*given)) if leaf.requires_grad]
        if not outputs:
            return []
        weights = [torch.randn(leaf.shape, generator=generator).to(leaf.dtype) for leaf in outputs]
        leaves = [value for value in given if _is_floating(value)]
        gradients = iter(torch.autograd.grad(outputs, leaves, weights, allow_unused=True))
        for place, value in enumerate(given):
            if _is_floating(value) and (gradient := next(gradients)) is not None:
                masks[place] &= gradient == 0  # a NaN is no zero
    return [mask if isinstance(mask, torch.Tensor) else torch.zeros(0, dtype=torch.bool) for mask in masks]


def _leaves(returned: Any) -> Iterator[torch.Tensor]:
    """Yield what a golden returned with its gradients, which `outputs.leaves_of` cuts off."""
    for item in returned if isinstance(returned, (tuple, list)) else (returned,):
        if isinstance(item, torch.Tensor):
            yield item
        elif isinstance(item, (tuple, list)):
            yield from _leaves(item)


def _is_floating(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def _leaf(value: torch.Tensor, generator: torch.Generator | None) -> torch.Tensor:
    """Return a copy that gradients are wanted of, its values at other places where there is a generator."""
    made = value.detach().clone()
    if generator is not None:
        made = made.reshape(-1)[torch.randperm(made.numel(), generator=generator)].reshape(value.shape)
    return made.requires_grad_()
