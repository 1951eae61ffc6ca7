"""A tensor's elements as bytes, for hashes and comparisons of bits."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


def bytes_in(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor's elements in order as bytes: uint8 [elements * size of one], on its device.

    torch calls a tensor of one element contiguous whatever its stride (a slice of a row is such a one), and then refuses to
    view it as bytes.
    """
    import torch  # callers must start without it

    flat = tensor.detach().contiguous().reshape(-1)
    return flat.as_strided((flat.numel(),), (1,)).view(torch.uint8)
