"""By which numbers scales may divide, and which of these a device divides by exactly.

There `/` in a kernel multiplies with an approximate reciprocal.
A scale that follows from the greatest element is one step off then, and a quotient that lies exactly halfway between two whole
numbers falls on either side, in a right kernel, too. An H200 divides multiples of 127 exactly, and not those of 255.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

_LEAST_CODE, _GREATEST_CODE = 3, 512
_DIVISORS = (7.0, 15.0, 127.0, 255.0)
"""By such numbers a quantisation divides the greatest element; the last ones are the greatest codes of 4 and 8 bits."""
_POWERS = range(-40, 24)
"""Of two: as many scales are asked for."""
Divide = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
"""Divides float32 tensors of one shape and of one axis."""


def divisors(numbers: Sequence[float]) -> list[float]:
    """Return by which numbers, of the files and usual ones, a quantisation may divide the greatest element."""
    return sorted(filter(_is_divisor, {*_DIVISORS, *numbers}))


def _is_divisor(number: float) -> bool:
    """Whether a scale may be the greatest element over this number, and is exact for its multiples, however it is computed."""
    if not (_LEAST_CODE <= number <= _GREATEST_CODE and number.is_integer()):
        return False
    one = torch.tensor(1.0)
    return bool(one / number * number == one)


def exact(numbers: Sequence[float], divide: Divide) -> list[float]:
    """Return those of the numbers that a greatest element may be divided by, or that may be divided by it.

    Args:
        numbers: float32 has `1 / number * number == 1`.
        divide: as kernels divide.
    """
    scales = torch.exp2(torch.tensor([float(power) for power in _POWERS]))
    codes = torch.arange(-512, 513) / 2
    scaled = (codes[:, None] * scales).flatten()
    halves = torch.equal(divide(scaled, scales.repeat(len(codes))), codes.repeat_interleave(len(scales)))
    found = []
    for number in numbers if halves else ():
        greatest, same = scales * number, torch.full_like(scales, number)
        if torch.equal(divide(greatest, same), scales) and torch.equal(divide(same, greatest), 1 / scales):
            found.append(number)
    return found


def of_kernels(device: torch.device) -> Divide:
    """Return how Triton kernels divide on a device.

    Raises:
        Exception: whatever importing, compiling or launching raises there.
    """
    import triton.language as tl

    import triton

    @triton.jit  # type: ignore[untyped-decorator]
    def kernel(x_ptr, by_ptr, out_ptr, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + i, mask=i < n)
        tl.store(out_ptr + i, x / tl.load(by_ptr + i, mask=i < n, other=1), mask=i < n)

    def divide(x: torch.Tensor, by: torch.Tensor) -> torch.Tensor:
        x, by = x.to(device), by.to(device)
        out = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 1024),)](x, by, out, x.numel(), BLOCK=1024)
        return out.cpu()

    return divide
