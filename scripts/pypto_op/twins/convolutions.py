"""Convolutions and their gradients as matrix products of patches: torch's own operators hide their sums.

Padding is written out as zeros, so its products are terms of the sums. Transposed convolutions stay as they are.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True)
class _Taps:
    """Where the taps of a convolution lie: one number per axis of the picture."""

    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]

    @classmethod
    def of(cls, weight: torch.Tensor, stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int]) -> _Taps:
        """Return the taps of a call; torch takes one number for all axes, too."""
        kernel = tuple(weight.shape[2:])
        every = (tuple(told) * (len(kernel) if len(told) == 1 else 1) for told in (stride, padding, dilation))
        return cls(kernel, *every)

    def padded(self, x: torch.Tensor) -> torch.Tensor:
        """Return a picture with its padding."""
        room = [pad for pad in reversed(self.padding) for _ in range(2)]
        return torch.nn.functional.pad(x, room) if any(room) else x

    def slices(self, outputs: Sequence[int]) -> Iterator[tuple[slice, ...]]:
        """Yield, tap by tap, which places of the padded picture it meets."""
        for tap in itertools.product(*(range(size) for size in self.kernel)):
            first = [at * apart for at, apart in zip(tap, self.dilation, strict=True)]
            ends = [start + step * (count - 1) + 1 for start, step, count in zip(first, self.stride, outputs, strict=True)]
            yield tuple(slice(*one) for one in zip(first, ends, self.stride, strict=True))

    def patches(self, x: torch.Tensor, outputs: Sequence[int], groups: int) -> torch.Tensor:
        """Return what each output sees: [batch, groups, channels of a group x taps, outputs]."""
        padded, every = self.padded(x), slice(None)
        seen = torch.stack([padded[(every, every, *place)] for place in self.slices(outputs)], dim=2)
        return seen.reshape(x.shape[0], groups, -1, math.prod(outputs))

    def put_back(self, patches: torch.Tensor, shape: Sequence[int], outputs: Sequence[int]) -> torch.Tensor:
        """Return a picture of `shape` to which each patch has added its part: the transpose of `patches`."""
        parts = patches.reshape(*shape[:2], math.prod(self.kernel), *outputs)
        sizes = [size + 2 * pad for size, pad in zip(shape[2:], self.padding, strict=True)]
        total, every = patches.new_zeros([*shape[:2], *sizes]), slice(None)
        for place, part in zip(self.slices(outputs), parts.unbind(2), strict=True):
            spread = torch.zeros_like(total)
            spread[(every, every, *place)] = part
            total = total + spread
        inner = (slice(pad, pad + size) for size, pad in zip(shape[2:], self.padding, strict=True))
        return total[(every, every, *inner)]


def convolution(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> torch.Tensor:
    """Return `aten.convolution`, whose arguments these are."""
    plain = torch.ops.aten.convolution.default
    if transposed or x.dim() != weight.dim():
        told = (x, weight, bias, stride, padding, dilation, transposed, output_padding, groups)
        return plain(*told)  # type: ignore[no-any-return]
    taps = _Taps.of(weight, stride, padding, dilation)
    outputs = _outputs(x, taps)
    patches = taps.patches(x, outputs, groups)
    rows = weight.reshape(groups, weight.shape[0] // groups, -1)
    found = torch.matmul(rows, patches).reshape(x.shape[0], weight.shape[0], *outputs)
    return found if bias is None else found + bias.reshape(-1, *[1] * len(outputs))


def convolution_backward(
    above: torch.Tensor,
    x: torch.Tensor,
    weight: torch.Tensor,
    bias_sizes: Sequence[int] | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    output_mask: Sequence[bool],
) -> tuple[torch.Tensor | None, ...]:
    """Return `aten.convolution_backward`, whose arguments these are: the gradients of picture, weight and bias."""
    if transposed or x.dim() != weight.dim():
        plain = torch.ops.aten.convolution_backward.default
        told = (above, x, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups, output_mask)
        return plain(*told)  # type: ignore[no-any-return]
    taps = _Taps.of(weight, stride, padding, dilation)
    outputs = above.shape[2:]
    rows = above.reshape(above.shape[0], groups, above.shape[1] // groups, -1)
    of_x = of_weight = of_bias = None
    if output_mask[0]:
        columns = torch.matmul(weight.reshape(groups, weight.shape[0] // groups, -1).transpose(-1, -2), rows)
        of_x = taps.put_back(columns, x.shape, outputs)
    if output_mask[1]:
        patches = taps.patches(x, outputs, groups)
        left, right = rows.permute(1, 2, 0, 3).flatten(2), patches.permute(1, 2, 0, 3).flatten(2)
        of_weight = torch.matmul(left, right.transpose(-1, -2)).reshape(weight.shape)
    if output_mask[2]:
        of_bias = above.sum(dim=[0, *range(2, above.dim())])
    return of_x, of_weight, of_bias


def _outputs(x: torch.Tensor, taps: _Taps) -> list[int]:
    """Return how many outputs there are along each axis."""
    told = zip(x.shape[2:], taps.kernel, taps.stride, taps.padding, taps.dilation, strict=True)
    return [(size + 2 * pad - apart * (kernel - 1) - 1) // step + 1 for size, kernel, step, pad, apart in told]


def table() -> dict[Any, Callable[..., Any]]:
    """Return operator overload -> function that computes the same with plainer operators."""
    aten = torch.ops.aten
    return {aten.convolution.default: convolution, aten.convolution_backward.default: convolution_backward}
