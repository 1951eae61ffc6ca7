"""Records which kernels really ran inside a wrapper, on which memory, and what they were given."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Any

import torch

from pypto_op.backends.worker.compiled_once import Programs
from pypto_op.backends.worker.given import Call, Given, content, new_among
from pypto_op.backends.worker.sentinel import Sentinel
from pypto_op.backends.worker.told import Told, words_of

_READS = ("item", "tolist", "numpy", "__array__", "__float__", "__int__", "__bool__", "__index__", "__dlpack__")
_COMPARES = ("equal", "allclose", "is_nonzero")


class LaunchRecorder:
    """Stands around `JitCallableWrapper.__call__` and keeps what the judge asks about.

    It holds on to every storage that a kernel got until the end of the next call, so that no address is given out twice
    within a call, and memory that was kept from one call to the next is known.

    Attributes:
        launches: of the latest call.
        begun: likewise, those that raised included.
        call: what its kernels were given.
        other_program: what a device would have launched otherwise in it (`compiled_once`); "" for nothing.
        rehearses: nothing is launched whose program a device would have.
    """

    def __init__(self, sentinel: Sentinel) -> None:
        self._sentinel = sentinel
        self._told = Told()
        self._programs = Programs()
        self.rehearses = False
        self.other_program = ""
        self._listens = self._launching = False
        self.launches = self.begun = 0
        self.call = Call()
        self._inputs: dict[int, bytes] = {}
        self._contents: frozenset[bytes] = frozenset()
        self._storages: dict[int, tuple[Any, bytes]] = {}
        self._previous: dict[int, tuple[Any, bytes]] = {}
        self._prefilled: set[int] = set()

    def install(self) -> None:
        """Watch what pypto is told, and when float tensors are read by the host, in this process."""
        self._told.install()
        for name in _READS:
            setattr(torch.Tensor, name, self._reading(getattr(torch.Tensor, name)))
        for name in _COMPARES:
            setattr(torch, name, self._reading(getattr(torch, name)))

    def begin(self, inputs: Sequence[torch.Tensor]) -> None:
        """Forget the last call, and keep only its memory; `inputs` are the tensors that the wrapper is called with."""
        self.launches = self.begun = 0
        self.other_program = ""
        self._inputs = {address(tensor): _digest(tensor) for tensor in inputs}
        self._contents = frozenset(content(tensor) for tensor in inputs)
        self._previous, self._storages, self._prefilled = self._storages, {}, set()
        # Copies, since the wrapper may write into the inputs and put them back before it returns.
        self.call = Call(values=[_plain(tensor) for tensor in inputs])
        self._listens = True

    def end(self) -> None:
        """The wrapper has returned."""
        self._listens = False

    def never_given(self, outputs: Sequence[torch.Tensor]) -> tuple[int, ...]:
        """Return the positions of the outputs whose memory no kernel got."""
        return tuple(i for i, output in enumerate(outputs) if output.numel() and address(output) not in self._storages)

    def changed(self, outputs: Sequence[torch.Tensor]) -> tuple[int, ...]:
        """Return the positions of the outputs that the host changed after the last launch that got them."""
        known = [self._storages.get(address(output), (None, b""))[1] for output in outputs]
        return tuple(i for i, output in enumerate(outputs) if output.numel() and known[i] and known[i] != _digest(output))

    def prefilled(self, outputs: Sequence[torch.Tensor], *, kept: bool) -> tuple[int, ...]:
        """Return the positions of the outputs that held varied data when the first kernel got them.

        Args:
            outputs: what the wrapper returned.
            kept: those whose memory was a kernel's in an earlier call; otherwise the others.
        """
        places = [address(output) for output in outputs]
        return tuple(i for i, place in enumerate(places) if place in self._prefilled and (place in self._previous) is kept)

    def around(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Return `call` (a kernel's launch) with recording around it."""

        @functools.wraps(call)
        def recorded(kernel: Any, *args: Any, **kwargs: Any) -> Any:
            arguments = (*args, *kwargs.values())
            tensors = [arg for arg in arguments if isinstance(arg, torch.Tensor)]
            fresh = [t for t in tensors if self._by_host(t)]
            self._prefilled.update(address(t) for t in fresh if self._holds_data(t))
            for position, tensor in enumerate(tensors):
                if any(tensor is other for other in fresh):
                    self._note(f"{self.launches}.{position}", tensor)
            numbers = self.call.numbers
            numbers[f"{self.launches}.arguments"] = tuple(words_of([a for a in arguments if not isinstance(a, torch.Tensor)]))
            numbers[f"{self.launches}.shapes"] = tuple(words_of([list(tensor.shape) for tensor in tensors]))
            self.begun += 1
            known = self._programs.known(kernel, args, kwargs) if self.rehearses else ()
            numbers[f"{self.launches}.kernel"] = known
            result = None if known else self._heard(call, kernel, args, kwargs)
            self.launches += 1
            self.call.values += [_plain(tensor) for tensor in fresh]
            for tensor in tensors:
                digest = b"" if address(tensor) in self._inputs else _digest(tensor)
                self._storages[address(tensor)] = (tensor.untyped_storage(), digest)
            return result

        return recorded

    def _heard(self, call: Callable[..., Any], kernel: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Launch, and note what pypto is told and whether a device would launch another program."""
        self._told.begin()
        self._launching = True
        try:
            result = call(kernel, *args, **kwargs)
        finally:
            self._launching = False
            told = self.call.numbers[f"{self.launches}.kernel"] = self._told.end()
        self.other_program = self.other_program or self._programs.other(kernel, args, kwargs, told)
        return result

    def _reading(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def reads(tensor: Any, *args: Any, **kwargs: Any) -> Any:
            if self._listens and not self._launching and isinstance(tensor, torch.Tensor) and tensor.is_floating_point():
                self.call.reads += 1
            return function(tensor, *args, **kwargs)

        return reads

    def _by_host(self, tensor: torch.Tensor) -> bool:
        """Whether the host wrote what a buffer holds: it is no untouched input, and the last launch did not leave it."""
        place = address(tensor)
        known = self._inputs.get(place) or self._storages.get(place, (None, b""))[1]
        return not known or known != _digest(tensor)

    def _note(self, key: str, tensor: torch.Tensor) -> None:
        plain = _plain(tensor)
        mask = self._sentinel.mask(plain)
        new = new_among(plain, self.call.values) & ~mask
        given = Given(plain, new, address(tensor) in self._previous)
        self.call.handed[key] = given
        if bool((plain[~mask] != 0).any()) and content(plain) not in self._contents:
            self.call.tensors[key] = given

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
        return bool((values != values[0]).any()) and content(plain) not in self._contents


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    """Return a copy on the host."""
    return tensor.detach().cpu().clone()


def address(tensor: torch.Tensor) -> int:
    """Return the address of a tensor's storage."""
    return tensor.untyped_storage().data_ptr()


def _digest(tensor: torch.Tensor) -> bytes:
    """Return a hash of the whole storage behind a tensor."""
    storage = tensor.untyped_storage()
    flat = torch.tensor([], dtype=torch.uint8, device=tensor.device).set_(storage)
    return blake2b(flat.cpu().numpy().data, digest_size=16).digest()
