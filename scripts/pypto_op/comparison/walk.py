"""Go through tensors of any size and stride in flat pieces, so that memory stays bounded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

CHUNK = 1 << 18
"""Elements of a piece: its float64 temporaries (2 MB each) stay in the processor's cache."""
_CHUNK_ON_DEVICE = 1 << 24
"""A device is asked for few, large pieces: each costs dozens of launches."""


def pieces(tensors: Sequence[torch.Tensor]) -> Iterator[tuple[int, list[torch.Tensor]]]:
    """Yield (flat offset, the same flat piece of each tensor) in row-major order.

    Args:
        tensors: tensors of one shape, on any device, with any strides.

    Yields:
        The offset of the piece's first element, and contiguous 1-d tensors: on the device where all lie on one, else on the
        CPU. Nothing for empty tensors.
    """
    if not tensors[0].numel():
        return
    together = len({tensor.device for tensor in tensors}) == 1 and tensors[0].device.type == "cuda"
    for offset, parts in _pieces(list(tensors), 0, _CHUNK_ON_DEVICE if together else CHUNK):
        yield offset, parts if together else [part.cpu() for part in parts]


def _pieces(tensors: list[torch.Tensor], offset: int, chunk: int) -> Iterator[tuple[int, list[torch.Tensor]]]:
    first = tensors[0]
    if first.numel() <= chunk or first.dim() == 0:
        yield offset, [_flat(tensor) for tensor in tensors]
        return
    inner = first.numel() // first.shape[0]
    if inner > chunk:
        for row in range(first.shape[0]):
            yield from _pieces([tensor[row] for tensor in tensors], offset + row * inner, chunk)
        return
    rows = max(1, chunk // inner)
    for row in range(0, first.shape[0], rows):
        part = [_flat(tensor[row : row + rows]) for tensor in tensors]
        yield offset + row * inner, part


def _flat(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.resolve_conj().resolve_neg().reshape(-1).contiguous()


def unravel(flat: int, shape: Sequence[int]) -> list[int]:
    """Return the index of flat element `flat` in a row-major array of `shape`; [] for a 0-d one."""
    index: list[int] = []
    for size in reversed(shape):
        index.append(flat % size)
        flat //= size
    return index[::-1]
