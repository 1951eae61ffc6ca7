"""Records which kernels really ran inside a wrapper, on which memory, and what they were given."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch

from pypto_op.backends.worker.compiled_once import Programs
from pypto_op.backends.worker.crossing import Crossing, address, alone, digest, plain, without_modes
from pypto_op.backends.worker.given import MEMORY, RETURNED, Call, Given, content, new_among
from pypto_op.backends.worker.sentinel import Sentinel
from pypto_op.backends.worker.told import Told, words_of

_READS = ("item", "tolist", "numpy", "__array__", "__float__", "__int__", "__bool__", "__index__", "__dlpack__")
_COMPARES = ("equal", "allclose", "is_nonzero")


class LaunchRecorder:
    """Stands around `JitCallableWrapper.__call__` and keeps what the judge asks about.

    It holds on to every storage that a kernel got until the end of the next call, so that no address is given out twice
    within a call, and memory that was kept from one call to the next is known.

    Args:
        sentinel: what memory holds that nobody wrote.
        numeric: kernels are computed by pypto's calculator.
        replaced: returns which of the names that it works by stand for something else now.
        expect: told before each launch whether a device would have its program.

    Attributes:
        launches: of the latest call.
        begun: likewise, those that raised included.
        call: what its kernels were given.
        other_program: what a device would have launched otherwise in it (`compiled_once`); "" for nothing.
        rehearses: nothing is launched whose program a device would have.
    """

    def __init__(
        self, sentinel: Sentinel, *, numeric: bool, replaced: Callable[[], list[str]], expect: Callable[..., None]
    ) -> None:
        self._sentinel = sentinel
        self._crossing = Crossing(numeric=numeric, replaced=replaced)
        self._expect = expect
        self._told = Told()
        self._programs = Programs()
        self.rehearses = False
        self.other_program = ""
        self._listens = self._launching = False
        self.launches = self.begun = 0
        self.call = Call()
        self._inputs: dict[int, bytes] = {}
        self._places: dict[int, tuple[int, int]] = {}
        self._contents: dict[bytes, int] = {}
        self._storages: dict[int, tuple[Any, bytes]] = {}
        self._previous: dict[int, tuple[Any, bytes]] = {}
        self._prefilled: set[int] = set()

    def install(self) -> None:
        """Watch what pypto is told, and when float tensors are read by the host, in this process."""
        self._told.install()
        self._crossing.install()
        for name in _READS:
            setattr(torch.Tensor, name, self._reading(getattr(torch.Tensor, name)))
        for name in _COMPARES:
            setattr(torch, name, self._reading(getattr(torch, name)))

    def begin(self, inputs: Sequence[torch.Tensor]) -> None:
        """Forget the last call, and keep only its memory; `inputs` are the tensors that the wrapper is called with."""
        self.launches = self.begun = 0
        self.other_program = ""
        self._inputs = {address(tensor): digest(tensor) for tensor in inputs}
        # The judge may hand in a part of a larger tensor: its offset is no choice of the wrapper's.
        self._places = {}
        for tensor in inputs:
            self._places.setdefault(address(tensor), (len(self._places), int(tensor.storage_offset())))
        self._contents = {}
        for position, tensor in enumerate(inputs):
            self._contents.setdefault(content(tensor), position)
        self._previous, self._storages, self._prefilled = self._storages, {}, set()
        # Copies, since the wrapper may write into the inputs and put them back before it returns.
        self.call = Call(values=[_copy(tensor) for tensor in inputs])
        self._listens = True

    def end(self) -> None:
        """The wrapper has returned."""
        self._listens = False

    def returned(self, outputs: Sequence[torch.Tensor]) -> None:
        """Note which part of which kernel's memory the wrapper returned: which one it is, values must not decide."""
        if not self.launches:
            return
        places = list(self._storages)
        parts = [
            [places.index(address(o)) if address(o) in self._storages else -1, o.storage_offset(), [*o.shape], [*o.stride()]]
            for o in outputs
        ]
        self.call.numbers[f"{self.launches - 1}.{RETURNED}"] = tuple(words_of(parts))

    def never_given(self, outputs: Sequence[torch.Tensor]) -> tuple[int, ...]:
        """Return the positions of the outputs whose memory no kernel got."""
        return tuple(i for i, output in enumerate(outputs) if output.numel() and address(output) not in self._storages)

    def changed(self, outputs: Sequence[torch.Tensor]) -> tuple[int, ...]:
        """Return the positions of the outputs that the host changed after the last launch that got them."""
        known = [self._storages.get(address(output), (None, b""))[1] for output in outputs]
        return tuple(i for i, output in enumerate(outputs) if output.numel() and known[i] and known[i] != digest(output))

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
            with alone():  # pypto gets the memory, and no object of the candidate's that could answer for it
                args = tuple(_bare(argument) for argument in args)
                kwargs = {name: _bare(argument) for name, argument in kwargs.items()}
                arguments = (*args, *kwargs.values())
                tensors = [argument for argument in arguments if isinstance(argument, torch.Tensor)]
                self._crossing.begin(tensors, kernel)
                fresh = self._noted(arguments, tensors)
            self.begun += 1
            known = self._programs.known(self._programs.place(kernel, args, kwargs)) if self.rehearses else ()
            self.call.numbers[f"{self.launches}.kernel"] = known
            with without_modes():
                result = None if known else self._heard(call, kernel, args, kwargs)
            self.launches += 1
            with alone():
                self.call.values += [_copy(tensor) for tensor in fresh]
                left = self._crossing.end()
                for tensor in tensors:
                    place = address(tensor)
                    self._storages[place] = (tensor.untyped_storage(), b"" if place in self._inputs else left[place])
            return result

        return recorded

    def take_fault(self) -> str:
        """Return what was done inside a launch that may not be, as one line, "" for nothing; and forget it."""
        fault, self._crossing.fault = self._crossing.fault, ""
        return fault

    def _noted(self, arguments: Sequence[Any], tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Note what the launch that begins is given; return the tensors that the host wrote."""
        fresh = [tensor for tensor in tensors if self._by_host(tensor)]
        self._prefilled.update(address(tensor) for tensor in fresh if self._holds_data(tensor))
        for position, tensor in enumerate(tensors):
            if any(tensor is other for other in fresh):
                self._note(f"{self.launches}.{position}", tensor)
        numbers = self.call.numbers
        numbers[f"{self.launches}.arguments"] = tuple(words_of([a for a in arguments if not isinstance(a, torch.Tensor)]))
        numbers[f"{self.launches}.shapes"] = tuple(words_of([list(tensor.shape) for tensor in tensors]))
        numbers[f"{self.launches}.{MEMORY}"] = tuple(words_of([self._place(tensor) for tensor in tensors]))
        return fresh

    def _place(self, tensor: torch.Tensor) -> list[Any]:
        """Return which memory of this call a tensor lies in, by its first appearance, and where: values must not decide it."""
        number, begin = self._places.setdefault(address(tensor), (len(self._places), 0))
        return [number, tensor.storage_offset() - begin, list(tensor.stride())]

    def _heard(self, call: Callable[..., Any], kernel: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Launch, and note what pypto is told and whether a device would launch another program."""
        place, name = self._programs.place(kernel, args, kwargs), getattr(kernel, "__name__", "the kernel")
        self._expect(compiled=bool(self._programs.known(place)))
        self._told.begin()
        self._launching = True
        try:
            result = call(kernel, *args, **kwargs)
        finally:
            self._launching = False
            told = self.call.numbers[f"{self.launches}.kernel"] = self._told.end()
        self.other_program = self.other_program or self._programs.other(place, told, name)
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
        return not known or known != self._crossing.held(tensor)

    def _note(self, key: str, tensor: torch.Tensor) -> None:
        plain = _copy(tensor)
        mask = self._sentinel.mask(plain)
        new = new_among(plain, self.call.values) & ~mask
        given = Given(plain, new, address(tensor) in self._previous)
        self.call.handed[key] = given
        copied = self._contents.get(content(plain))
        if copied is None and bool((plain[~mask] != 0).any()):
            self.call.tensors[key] = given
        else:
            self.call.trivial[key] = f"input {copied}" if copied is not None else content(mask).hex()

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


def _bare(argument: Any) -> Any:
    """Return an argument of a kernel as pypto gets it; a tensor without anything of its own."""
    return plain(argument) if issubclass(type(argument), torch.Tensor) else argument


def _copy(tensor: torch.Tensor) -> torch.Tensor:
    """Return a copy on the host."""
    return tensor.detach().cpu().clone()
