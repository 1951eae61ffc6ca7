"""Records which kernels really ran inside a wrapper, and on which memory."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Any

import torch

from pypto_op.backends.worker.sentinel import Sentinel


class LaunchRecorder:
    """Stands around `JitCallableWrapper.__call__` and keeps what the judge asks about.

    It holds on to every storage that a kernel got, so that no address is given out twice within a case.
    """

    def __init__(self, sentinel: Sentinel) -> None:
        self._sentinel = sentinel
        self.launches = 0
        self._inputs: frozenset[int] = frozenset()
        self._contents: frozenset[bytes] = frozenset()
        self._storages: dict[int, tuple[Any, bytes]] = {}
        self._prefilled: set[int] = set()
        self._values: list[torch.Tensor] = []
        self._host_made: dict[str, str] = {}

    def begin(self, inputs: Sequence[torch.Tensor]) -> None:
        """Forget the last case; `inputs` are the tensors that the wrapper is called with."""
        self.launches = 0
        self._inputs = frozenset(address(tensor) for tensor in inputs)
        self._contents = frozenset(_content(tensor) for tensor in inputs)
        self._storages, self._prefilled = {}, set()
        self._values, self._host_made = list(inputs), {}

    def from_kernel(self, outputs: Sequence[torch.Tensor]) -> bool:
        """Whether each output lies in memory that a kernel got, unchanged since the last launch that got it."""
        for output in outputs:
            if output.numel() == 0:
                continue
            known = self._storages.get(address(output))
            if known is None or (known[1] and known[1] != _digest(output)):
                return False
        return True

    def prefilled(self, outputs: Sequence[torch.Tensor]) -> tuple[int, ...]:
        """Return the positions of the outputs that held varied data when the first kernel got them."""
        return tuple(i for i, output in enumerate(outputs) if address(output) in self._prefilled)

    def host_made(self) -> dict[str, str]:
        """Return "launch.argument" -> hash of each float argument whose values stand in no input and no kernel's output.

        A table of constants has the same hash whatever the inputs are; what torch computed from them does not.
        """
        return dict(self._host_made)

    def around(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Return `call` (a kernel's launch) with recording around it."""

        @functools.wraps(call)
        def recorded(kernel: Any, *args: Any, **kwargs: Any) -> Any:
            tensors = [arg for arg in (*args, *kwargs.values()) if isinstance(arg, torch.Tensor)]
            fresh = [t for t in tensors if address(t) not in self._storages and address(t) not in self._inputs]
            self._prefilled.update(address(t) for t in fresh if self._holds_data(t))
            for position, tensor in enumerate(tensors):
                if any(tensor is other for other in fresh) and self._is_new(tensor):
                    self._host_made[f"{self.launches}.{position}"] = _content(tensor).hex()
            result = call(kernel, *args, **kwargs)
            self.launches += 1
            self._values += fresh
            for tensor in tensors:
                digest = b"" if address(tensor) in self._inputs else _digest(tensor)
                self._storages[address(tensor)] = (tensor.untyped_storage(), digest)
            return result

        return recorded

    def _holds_data(self, tensor: torch.Tensor) -> bool:
        """Whether a buffer holds anything but the sentinel, one repeated value, or a copy of an input.

        A copy is what a kernel starts from that updates in place (a cache), since it may not change the input.
        """
        plain = tensor.detach().cpu()
        mask = self._sentinel.mask(plain)
        if bool(mask.all()):
            return False
        rest = plain[~mask].reshape(-1)
        if rest.numel() < 2:
            return False
        values = rest.contiguous().view(torch.uint8).reshape(rest.numel(), -1)
        return bool((values != values[0]).any()) and _content(plain) not in self._contents

    def _is_new(self, tensor: torch.Tensor) -> bool:
        """Whether a float tensor holds a finite value, not 0, that no input and no earlier kernel argument holds."""
        if not tensor.is_floating_point():
            return False
        plain = tensor.detach().cpu()
        mine = plain[~self._sentinel.mask(plain)].to(torch.float64)
        mine = mine[torch.isfinite(mine) & (mine != 0)]
        for other in self._values:
            if not mine.numel():
                return False
            known = other.detach().cpu().to(tensor.dtype).to(torch.float64).reshape(-1)
            mine = mine[~torch.isin(mine, known)]
        return bool(mine.numel())


def address(tensor: torch.Tensor) -> int:
    """Return the address of a tensor's storage."""
    return tensor.untyped_storage().data_ptr()


def _content(tensor: torch.Tensor) -> bytes:
    """Return a hash of a tensor's elements in order, whatever its shape and strides."""
    flat = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
    return blake2b(flat.numpy().data, digest_size=16).digest()


def _digest(tensor: torch.Tensor) -> bytes:
    """Return a hash of the whole storage behind a tensor."""
    storage = tensor.untyped_storage()
    flat = torch.tensor([], dtype=torch.uint8, device=tensor.device).set_(storage)
    return blake2b(flat.cpu().numpy().data, digest_size=16).digest()
