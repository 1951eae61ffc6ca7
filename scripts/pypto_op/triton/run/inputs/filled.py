"""Weights that a constructor fills alike for every seed: a norm's ones and zeros hide a kernel that leaves them out.

A trained model has others. So a later pass gives both models other values for them. A parameter that holds several values may
be the same for every seed, too (decays: the logarithms of 1 to n), and a kernel may know them by heart.

Buffers of one value (a scale, a mask) get others in a pass of their own, since the reference may not take them. So do buffers
that were drawn, or made of drawn weights: who computes such anew reads another number than the reference. So do constants,
which are buffers, and parameters without a gradient, of several values (slopes, a window). A kernel may compute such on its own.
That is said.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import torch

from pypto_op.triton.run.inputs import one_value
from pypto_op.triton.run.inputs.packing import same_layout

_BUFFERS = ("running_mean", "running_var")
"""Buffers that training changes; of others the reference is asked."""
_VARIANCE, _SMALL = "running_var", 2.0**-17
"""The last of its elements becomes so much smaller: an epsilon that is left out shows there alone."""
_ROUND = 1024.0
"""A single number that is no multiple of 1/1024 was drawn."""
_MOST_KEPT = 1 << 16
"""Elements of a parameter; what is larger was drawn."""
WEIGHTS, GAINS = "weights", {"gains": 8.0, "opposite gains": -8.0}
"""How weights may be turned (`turn`): drawn ones below zero, or by what the others are multiplied."""
TOLD = "buffers, or weights that constructors fill with one value (ones, zeros), or alike for every seed, had other values here"


class Alike:
    """Parameters, or constants, that hold several values, the same ones for every seed."""

    def __init__(self, *, constants: bool = False) -> None:
        self._held = _constants if constants else _trained
        self._first: dict[str, torch.Tensor] = {}
        self._seed: int | None = None

    def names(self, model: Any, seed: int) -> list[str]:
        """Return the names of those that hold what they held under the first seed; none while there was no other seed."""
        held = {
            name: value for name, value in self._held(model).items() if 1 < value.numel() <= _MOST_KEPT and not _is_filled(value)
        }
        if self._seed is None:
            self._seed, self._first = seed, {name: value.clone() for name, value in held.items()}
        if seed == self._seed:
            return []
        return [name for name, value in held.items() if name in self._first and torch.equal(value, self._first[name])]


def names(model: Any) -> list[str]:
    """Return the names of a model's weights that hold one value throughout."""
    return list(_found(model))


def buffers(model: Any) -> list[str]:
    """Return the names of the other buffers that hold one value throughout, and that are saved with the model."""
    return list(_buffers(model))


def drawn(model: Any) -> list[str]:
    """Return the names of buffers of several values that are saved with the model; those that are made of weights are such."""
    held = _saved(model) if isinstance(model, torch.nn.Module) else {}
    return [
        name
        for name, value in held.items()
        if 1 < value.numel() <= _MOST_KEPT and value.is_floating_point() and value.element_size() > 1 and not _is_filled(value)
    ]


def vary(model: Any, wanted: Collection[str], seed: int) -> None:
    """Give those weights of a model other values: around 0 for zeros, else of the same sign, half to one and a half times."""
    draws = torch.Generator().manual_seed(seed)
    filled = _found(model)
    with torch.no_grad():
        for name, tensor in filled.items():
            if name in wanted:
                value = float(tensor.reshape(-1)[0])
                part = torch.rand(tensor.shape, generator=draws) - 0.5
                tensor.copy_(value * (1.0 + part) if value else part)
                if name.rpartition(".")[2] == _VARIANCE and tensor.numel() > 1:
                    tensor.reshape(-1)[-1] *= _SMALL
        for name, tensor in (_trained(model) | _constants(model)).items():
            if name in wanted and name not in filled:
                tensor.mul_(0.75 + 0.5 * torch.rand(tensor.shape, generator=draws).to(tensor))
        for name, tensor in _buffers(model).items():
            if name in wanted:
                other = same_layout(tensor)
                one_value.write(other, tensor, draws)
                tensor.copy_(other)


def turn_of(way: str) -> str:
    """Return how weights are turned by a way of that name (`reaching`), "" for not at all."""
    return max((turn for turn in (WEIGHTS, *GAINS) if turn in way), key=len, default="")


def turn(model: Any, how: str) -> None:
    """Let drawn weights be below zero: no row of sums of products has a greatest element above it then. Or turn gains.

    Those are parameters with one axis at most (temperatures, slopes, biases, too): a reference may bound them.
    """
    with torch.no_grad():
        for tensor in _trained(model).values() if how else ():
            if how != WEIGHTS and sum(size > 1 for size in tensor.shape) <= 1:
                tensor.mul_(GAINS[how])
            elif how == WEIGHTS and bool((tensor < 0).any() and (tensor > 0).any()):
                tensor.abs_().neg_()


def _found(model: Any) -> dict[str, torch.Tensor]:
    if not isinstance(model, torch.nn.Module):
        return {}
    buffers = {name: value for name, value in model.named_buffers() if name.rpartition(".")[2] in _BUFFERS}
    held = {**dict(model.named_parameters()), **buffers}
    return {name: value.detach() for name, value in held.items() if _is_filled(value.detach())}


def _trained(model: Any) -> dict[str, torch.Tensor]:
    """Return the parameters of floats that training changes: one without a gradient is a constant of the task."""
    held = model.named_parameters() if isinstance(model, torch.nn.Module) else ()
    return {name: value.detach() for name, value in held if value.requires_grad and value.element_size() > 1}


def _constants(model: Any) -> dict[str, torch.Tensor]:
    """Return the parameters without a gradient, and the buffers that are saved with the model, but those of `_found`."""
    if not isinstance(model, torch.nn.Module):
        return {}
    held = {name: value.detach() for name, value in model.named_parameters() if not value.requires_grad} | _saved(model)
    return {name: value for name, value in held.items() if value.is_floating_point() and value.element_size() > 1}


def _buffers(model: Any) -> dict[str, torch.Tensor]:
    held = _saved(model) if isinstance(model, torch.nn.Module) else {}
    return {name: value for name, value in held.items() if value.numel() > 1 and (_is_on(value) or _is_filled(value))}


def _saved(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {
        f"{path}.{name}" if path else name: tensor
        for path, module in model.named_modules()
        for name, tensor in module.named_buffers(recurse=False)
        if name not in module._non_persistent_buffers_set and name not in _BUFFERS
    }


def _is_on(tensor: torch.Tensor) -> bool:
    return tensor.dtype is torch.bool and bool((tensor == tensor.reshape(-1)[0]).all())


def _is_filled(tensor: torch.Tensor) -> bool:
    if not tensor.is_floating_point() or not tensor.numel() or tensor.element_size() < 2:
        return False
    first = tensor.reshape(-1)[0]
    if not bool(torch.isfinite(first)) or not bool((tensor == first).all()):
        return False
    return tensor.numel() > 1 or float(first) * _ROUND == round(float(first) * _ROUND)
