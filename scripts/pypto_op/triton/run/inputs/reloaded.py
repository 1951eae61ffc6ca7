"""Other parameters for the call before the judged one: a second set of parameters must give other outputs.

An implementation may keep what it made of its parameters in its first call (a weight that it transposed or packed). Whoever loads
others later, or trains, gets the outputs of the first ones. So in the second pass both models get other parameters, are
called, get their own ones again, in place as `load_state_dict` writes them, and the call after that is judged.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator
from typing import Any

import torch

_FACTOR = 0.75
TOLD = (
    "in this pass the model was called with other parameters before, and then got these: what it kept of the first ones is stale "
    "(make it anew when `_version` of the parameter is another)"
)


def names(model: Any) -> list[str]:
    """Return the names of a model's parameters that get others."""
    held = model.named_parameters(remove_duplicate=False) if isinstance(model, torch.nn.Module) else ()
    return [name for name, value in held if value.is_floating_point() and value.element_size() > 1]


@contextlib.contextmanager
def others(weights: dict[str, torch.Tensor], wanted: Collection[str]) -> Iterator[None]:
    """Let the wanted ones of these weights hold other values meanwhile: each that of its neighbour, smaller."""
    held = {name: weights[name].detach() for name in wanted if name in weights}
    kept = {name: value.clone() for name, value in held.items()}
    with torch.no_grad():
        for name, value in kept.items():
            held[name].copy_(value.reshape(-1).roll(1).reshape(value.shape) * _FACTOR)
    try:
        yield
    finally:
        with torch.no_grad():
            for name, value in kept.items():
                held[name].copy_(value)
