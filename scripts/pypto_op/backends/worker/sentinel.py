"""Marks memory that `torch.empty` and its relatives hand out, so that an unwritten output shows.

Floats get a NaN with a payload of its own, which no arithmetic yields; integers an odd byte pattern. Eight- and
16-bit integers and bools can hold the pattern by right, so for them a second run with another pattern decides:
an element is unwritten when it follows the pattern.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

PATTERNS: dict[torch.dtype, tuple[torch.dtype, tuple[int, int]]] = {
    torch.float64: (torch.int64, (0x7FF8A5A5A5A5A5A5, 0x7FFA5A5A5A5A5A5A)),
    torch.float32: (torch.int32, (0x7FC5A5A5, 0x7FDA5A5A)),
    torch.float16: (torch.int16, (0x7E5A, 0x7F3C)),
    torch.bfloat16: (torch.int16, (0x7FDA, 0x7FE5)),
    torch.float8_e4m3fn: (torch.uint8, (0x7F, 0xFF)),
    torch.float8_e5m2: (torch.uint8, (0x7E, 0xFE)),
    torch.int64: (torch.int64, (-0x5A5A5A5A5A5A5A5B, 0x5A5A5A5A5A5A5A5A)),
    torch.int32: (torch.int32, (-0x5A5A5A5B, 0x5A5A5A5A)),
    torch.int16: (torch.int16, (-0x5A5B, 0x5A5A)),
    torch.int8: (torch.uint8, (0xA5, 0x5A)),
    torch.uint8: (torch.uint8, (0xA5, 0x5A)),
    torch.bool: (torch.uint8, (0xA5, 0x5A)),
}
"""dtype: the integer dtype of the same width, and the two bit patterns."""

PLAUSIBLE = 2
"""Instead of a pattern: ordinary numbers, for a wrapper that looks at what a silent kernel left."""

AMBIGUOUS = frozenset({torch.int16, torch.int8, torch.uint8, torch.bool})
"""dtypes whose pattern is also an ordinary value."""

_FACTORIES = ("empty", "empty_like", "empty_strided", "empty_permuted")
_METHODS = ("new_empty", "new_empty_strided")


class Sentinel:
    """Fills what is handed out uninitialised with one of two patterns."""

    def __init__(self) -> None:
        self.which = 0

    def install(self) -> None:
        """Wrap the factories of torch in this process."""
        for name in _FACTORIES:
            setattr(torch, name, self._filling(getattr(torch, name)))
        for name in _METHODS:
            setattr(torch.Tensor, name, self._filling(getattr(torch.Tensor, name)))

    def mask(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return a bool tensor of the same shape: which elements hold the present pattern."""
        if tensor.dtype not in PATTERNS or self.which == PLAUSIBLE:
            return torch.zeros(tensor.shape, dtype=torch.bool)
        integer, patterns = PATTERNS[tensor.dtype]
        return tensor.detach().contiguous().view(integer) == patterns[self.which]

    def _filling(self, factory: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(factory)
        def filled(*args: Any, **kwargs: Any) -> Any:
            tensor = factory(*args, **kwargs)
            if type(tensor) is torch.Tensor and tensor.dtype in PATTERNS and tensor.numel():
                if self.which == PLAUSIBLE:
                    return _plausible(tensor)
                integer, patterns = PATTERNS[tensor.dtype]
                with torch.no_grad():
                    tensor.detach().view(integer).fill_(patterns[self.which])
            return tensor

        return filled


def _plausible(tensor: torch.Tensor) -> torch.Tensor:
    """Fill a tensor with finite values between 1/4 and 3/4, integers with 1; no random number is drawn."""
    with torch.no_grad():
        if not tensor.is_floating_point():
            return tensor.detach().fill_(1)
        steps = torch.arange(tensor.numel(), dtype=torch.float64, device=tensor.device).reshape(tensor.shape)
        return tensor.detach().copy_((steps * 0.618) % 0.5 + 0.25)
