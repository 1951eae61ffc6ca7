"""Which memory kernels got, what was in it, and whether an output is what a kernel left there."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import torch

from pypto_op.backends.worker.sentinel import _PATTERNS, Sentinel


class Memory:
    """The memory of one call of forward.

    It holds on to every storage that a kernel got, so that no address is given out twice within the call.
    """

    def __init__(self, sentinel: Sentinel) -> None:
        self._sentinel = sentinel
        self._launches = 0
        self._known: dict[int, tuple[Any, bytes]] = {}
        self._written: set[int] = set()
        self._values: list[torch.Tensor] = []
        self._host_made: dict[str, str] = {}
        self._watch_scalars = False

    def begin(self, inputs: Sequence[torch.Tensor], *, watch_scalars: bool = False) -> None:
        """Forget the last call.

        Args:
            inputs: the arguments and the weights.
            watch_scalars: note the launches' floats too; only where the inputs have none that they may stem from.
        """
        self._launches, self._written, self._host_made = 0, set(), {}
        self._watch_scalars = watch_scalars
        self._known = {address(tensor): (tensor.untyped_storage(), _digest(tensor)) for tensor in inputs}
        self._values = list(inputs)

    def before(self, tensors: Sequence[torch.Tensor]) -> None:
        """Note what a launch is given; again when code of the candidate ran since (the grid's function)."""
        for position, tensor in enumerate(tensors):
            known = self._known.get(address(tensor))
            if known is None or known[1] != _digest(tensor):
                new = self._new_values(tensor)
                if new is not None:
                    self._host_made[f"{self._launches}.{position}"] = content(new)
        self._values += [tensor for tensor in tensors if address(tensor) not in self._known]

    def scalars(self, values: Sequence[float]) -> None:
        """Note the floats that a launch is given."""
        if self._watch_scalars:
            self._host_made |= {f"{self._launches}.float {i}": value.hex() for i, value in enumerate(values)}

    def after(self, tensors: Sequence[torch.Tensor]) -> None:
        """Note what a launch left."""
        self._launches += 1
        for tensor in tensors:
            self._known[address(tensor)] = (tensor.untyped_storage(), _digest(tensor))
            self._written.add(address(tensor))

    def copied(self, source: torch.Tensor, target: torch.Tensor) -> None:
        """Note that PyTorch copied a tensor, perhaps to another dtype."""
        if self.from_kernel(source):
            self._known[address(target)] = (target.untyped_storage(), _digest(target))
            self._written.add(address(target))
            self._values.append(target)

    def from_kernel(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor lies in memory that a kernel got, or a copy of it, unchanged since."""
        if tensor.numel() == 0:
            return True
        place = address(tensor)
        return place in self._written and self._known[place][1] == _digest(tensor)

    def host_made(self) -> dict[str, str]:
        """Return "launch.argument" -> hash of the values of each argument that stand in no input and no kernel's output.

        A table of constants has the same hash whatever the inputs are; what the host computed from them does not.
        """
        return dict(self._host_made)

    def _new_values(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """Return what the storage behind a tensor holds that is finite, not 0, and stands in no input and no other argument."""
        if tensor.dtype is torch.bool or tensor.dtype not in _PATTERNS:
            return None  # fresh memory of this dtype is not marked, so what is left in it looks like data
        raw = _bytes(tensor)
        plain = raw[: raw.numel() // tensor.element_size() * tensor.element_size()].view(tensor.dtype)
        wide = torch.float64 if plain.is_floating_point() else torch.int64
        mine = plain[~self._sentinel.mask(plain)].to(wide)
        mine = mine[torch.isfinite(mine) & (mine != 0)]
        for other in self._values:
            if not mine.numel():
                return None
            if address(other) == address(tensor):
                continue
            if other.is_complex():
                other = torch.view_as_real(other)
            mine = mine[~torch.isin(mine, other.detach().cpu().to(plain.dtype).to(wide).reshape(-1))]
        return mine if mine.numel() else None


def address(tensor: torch.Tensor) -> int:
    """Return the address of a tensor's storage."""
    return tensor.untyped_storage().data_ptr()


def content(tensor: torch.Tensor) -> str:
    """Return a hash of a tensor's elements in order, whatever its shape and strides."""
    flat = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
    return blake2b(flat.numpy().data, digest_size=16).hexdigest()


def _digest(tensor: torch.Tensor) -> bytes:
    """Return a hash of the whole storage behind a tensor."""
    return blake2b(_bytes(tensor).numpy().data, digest_size=16).digest()


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    """Return the whole storage behind a tensor, on the host, as bytes."""
    return torch.tensor([], dtype=torch.uint8, device=tensor.device).set_(tensor.untyped_storage()).cpu()
