"""Records which kernels really ran inside a wrapper, and on which memory."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
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
        self._inputs: dict[int, bytes] = {}
        self._contents: frozenset[bytes] = frozenset()
        self._storages: dict[int, tuple[Any, bytes]] = {}
        self._prefilled: set[int] = set()
        self._values: list[torch.Tensor] = []
        self._given: dict[str, Given] = {}

    def begin(self, inputs: Sequence[torch.Tensor]) -> None:
        """Forget the last case; `inputs` are the tensors that the wrapper is called with."""
        self.launches = 0
        self._inputs = {address(tensor): _digest(tensor) for tensor in inputs}
        self._contents = frozenset(_content(tensor) for tensor in inputs)
        self._storages, self._prefilled = {}, set()
        # Copies, since the wrapper may write into the inputs and put them back before it returns.
        self._values, self._given = [_plain(tensor) for tensor in inputs], {}

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
        return {key: given.digest for key, given in self._given.items() if given.new and given.value.is_floating_point()}

    def given(self) -> dict[str, Given]:
        """Return "launch.argument" -> what the host handed to a kernel there, beyond inputs, empty memory and constants."""
        return dict(self._given)

    def around(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Return `call` (a kernel's launch) with recording around it."""

        @functools.wraps(call)
        def recorded(kernel: Any, *args: Any, **kwargs: Any) -> Any:
            tensors = [arg for arg in (*args, *kwargs.values()) if isinstance(arg, torch.Tensor)]
            fresh = [t for t in tensors if self._by_host(t)]
            self._prefilled.update(address(t) for t in fresh if self._holds_data(t))
            for position, tensor in enumerate(tensors):
                if any(tensor is other for other in fresh):
                    self._note(f"{self.launches}.{position}", tensor)
            for position, number in enumerate(arg for arg in (*args, *kwargs.values()) if isinstance(arg, float)):
                value = torch.tensor([number], dtype=torch.float64)
                self._given[f"{self.launches}.float{position}"] = Given(value, False, _content(value).hex())
            result = call(kernel, *args, **kwargs)
            self.launches += 1
            self._values += [_plain(tensor) for tensor in fresh]
            for tensor in tensors:
                digest = b"" if address(tensor) in self._inputs else _digest(tensor)
                self._storages[address(tensor)] = (tensor.untyped_storage(), digest)
            return result

        return recorded

    def _by_host(self, tensor: torch.Tensor) -> bool:
        """Whether what a buffer holds is the host's: neither an untouched input nor what the last launch left."""
        place = address(tensor)
        known = self._inputs.get(place) or self._storages.get(place, (None, b""))[1]
        return not known or known != _digest(tensor)

    def _note(self, key: str, tensor: torch.Tensor) -> None:
        plain = _plain(tensor)
        rest = plain[~self._sentinel.mask(plain)]
        if bool((rest != 0).any()) and _content(plain) not in self._contents:
            self._given[key] = Given(plain, self._is_new(plain), _content(plain).hex())

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

    def _is_new(self, plain: torch.Tensor) -> bool:
        """Whether a tensor holds a finite value, not 0, that no input and no earlier kernel argument holds."""
        floating = plain.is_floating_point()
        wide = torch.float64 if floating else torch.int64
        mine = plain[~self._sentinel.mask(plain)].to(wide)
        mine = mine[torch.isfinite(mine) & (mine != 0)]
        for other in self._values:
            if not mine.numel():
                return False
            if other.is_floating_point() and not floating:
                continue  # a float's integer part is no input's value
            mine = mine[~torch.isin(mine, other.to(plain.dtype).to(wide).reshape(-1))]
        return bool(mine.numel())


@dataclass(frozen=True)
class Given:
    """A kernel's argument as the host handed it over.

    Attributes:
        value: a copy of it; a number is a tensor of one element.
        new: it holds values that no input and no earlier kernel argument holds.
        digest: of its elements.
    """

    value: torch.Tensor
    new: bool
    digest: str

    def computed(self, other: Given | None, change: Callable[[torch.Tensor], torch.Tensor]) -> bool:
        """Whether the host computed this from the inputs' values.

        Args:
            other: the same argument in a run where every float input was changed by `change`, element by element.
            change: what was done to each element.

        A table stays as it is. A copy, a transposition, a padding by zeros changes as its source does. Everything else
        (a sum, a sort, a maximum, a scale) does neither.
        """
        if other is None or other.value.shape != self.value.shape:
            return other is not None
        if _alike(self.value, other.value):
            return False
        moved = not self.new and self.value.is_floating_point() and _alike(change(self.value), other.value)
        return not moved


def _alike(one: torch.Tensor, two: torch.Tensor) -> bool:
    if one.dtype != two.dtype:
        return False
    same = one == two
    return bool((same | (torch.isnan(one) & torch.isnan(two))).all()) if one.is_floating_point() else bool(same.all())


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    """Return a copy on the host."""
    return tensor.detach().cpu().clone()


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
