"""Looks at a kernel's arguments where pypto's Python hands them to its C++, and at its results where C++ returns.

Code of a candidate may run inside a launch: in the kernel's body, in methods of what the kernel is given, when garbage is
collected, in a function of pypto that was replaced for as long as the launch takes. None of it runs between pypto's C++ and
the looks of this module. So the memory that C++ is told of must be the arguments', with what they held when the launch
began; and what a kernel left is what lies there when C++ has returned, whatever follows.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable, Iterator, Sequence
from gc import disable as _collect_nothing
from gc import enable as _collect_again
from gc import isenabled as _collects
from hashlib import blake2b
from typing import Any

import torch

from pypto_op.backends.worker.tampering import callables

_GIVES, _TAKES, _LAUNCHES = "SetVerifyData", "CostModelRunOnceDataFromHost", "LaunchKernelTorch"
"""Functions of pypto's C++: the simulator's calculator gets its values, hands its numbers over; a device is launched."""
# As they were before any candidate was loaded; none of them leads to a function of pypto, as `functools.wraps` would.
_detach, _no_functions, _no_dispatch = torch.Tensor.detach, torch._C.DisableTorchFunction, torch._C._DisableTorchDispatch
_pointer_in = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_in.restype, _pointer_in.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
_OTHER_MEMORY = "hand pypto other memory than the kernel's arguments"
_OTHER_VALUES = "change what a kernel got after its launch had begun"
_NO_VALUES = "keep from pypto what the kernel's arguments hold"


class Crossing:
    """The memory of one launch, at the border of pypto's C++.

    Args:
        numeric: kernels are computed by the calculator, so each launch must give it values.
        replaced: returns the names by which the looks work and that stand for something else now.
    """

    def __init__(self, *, numeric: bool, replaced: Callable[[], list[str]]) -> None:
        self._numeric, self._replaced = numeric, replaced
        self.fault = ""  # what the candidate did there that it may not do, "" for nothing; of all launches since it was read
        self._tensors: list[torch.Tensor] = []
        self._before: dict[int, bytes] = {}
        self._left: dict[int, bytes] | None = None
        self._given = False

    def install(self) -> None:
        """Stand around pypto's C++ functions in this process."""
        from pypto import pypto_impl
        from pypto.frontend.parser import entry

        self._launcher = entry.JitCallableWrapper
        self._ways = frozenset(callables(self._launcher))
        self._kind = pypto_impl.DeviceTensorData
        self._pointer = self._kind.GetDataPtr  # as it is before any candidate is loaded
        for name, around in ((_GIVES, self._giving), (_TAKES, self._taking), (_LAUNCHES, self._launching)):
            if hasattr(pypto_impl, name):
                setattr(pypto_impl, name, around(getattr(pypto_impl, name)))

    def begin(self, tensors: Sequence[torch.Tensor], kernel: Any) -> None:
        """A launch of pypto's wrapper of a kernel begins with these tensors, which are `plain`."""
        self._blame_replaced()
        self._blame_own_ways(kernel)
        self._tensors, self._given, self._left = list(tensors), False, None
        self._before = {address(tensor): digest(tensor) for tensor in tensors}

    def end(self) -> dict[int, bytes]:
        """The launch is over; return a hash of what C++ left in each storage, or of what lay there where it was not reached."""
        left = self._before if self._left is None else self._left
        if self._left is not None and self._numeric and not self._given:
            self._blame(_NO_VALUES)
        self._tensors, self._left = [], None
        return left

    def held(self, tensor: torch.Tensor) -> bytes:
        """Return a hash of the storage of one of the launch's tensors, as it was when the launch began."""
        return self._before[address(tensor)]

    def _giving(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def gives(datas: Any, *args: Any) -> Any:
            with alone():
                datas = self._compared(datas)
                if any(digest(tensor) != self._before[address(tensor)] for tensor in self._tensors):
                    self._blame(_OTHER_VALUES)
                self._given = True
            return function(datas, *args)

        return gives

    def _taking(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def takes(datas: Any, *args: Any) -> Any:
            with alone():
                datas = self._compared(datas)
                result = function(datas, *args)
                self._look()
            return result

        return takes

    def _launching(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def launches(kernel: Any, stream: Any, tensors: Any, *args: Any) -> Any:
            result = function(kernel, stream, tensors, *args)
            with alone():
                self._blame_replaced()
                mine = {tensor.data_ptr() for tensor in self._tensors}
                if any(type(tensor) is not torch.Tensor or tensor.data_ptr() not in mine for tensor in tensors):
                    self._blame(_OTHER_MEMORY)
                self._look()
            return result

        return launches

    def _compared(self, datas: Any) -> list[Any]:
        """Return what C++ is told in a list of ours, after a look whether it is the launch's memory, and no other.

        The order is that of the kernel's signature, so it is not compared.
        """
        mine: list[Any] = list(datas)  # one of the candidate's may answer C++ in another way
        self._blame_replaced()
        told = sorted(address_in(self._pointer(data)) if type(data) is self._kind else -1 for data in mine)
        if told != sorted(tensor.data_ptr() for tensor in self._tensors):
            self._blame(_OTHER_MEMORY)
        return mine

    def _look(self) -> None:
        self._left = {address(tensor): digest(tensor) for tensor in self._tensors}

    def _blame_replaced(self) -> None:
        """Find out whether a name was replaced for as long as a launch takes; afterwards it would be what it was."""
        for name in self._replaced():
            self._blame(f"replace {name} while a kernel is launched")

    def _blame_own_ways(self, kernel: Any) -> None:
        """Find out whether a kernel is built or launched by another way than pypto's, which a class or an object may have."""
        if type(kernel) is not self._launcher:
            self._blame("launch a kernel by a class of its own")
        else:
            for name in self._ways.intersection(vars(kernel)):
                self._blame(f"replace {name} of a kernel that is launched")

    def _blame(self, fault: str) -> None:
        self.fault = self.fault or fault


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """While this lasts no code of a candidate runs between torch and whoever asks it: no mode, no subclass, no collection."""
    collects = _collects()
    _collect_nothing()
    try:
        with without_modes():
            yield
    finally:
        if collects:
            _collect_again()


@contextlib.contextmanager
def without_modes() -> Iterator[None]:
    """While this lasts torch asks no mode and no subclass."""
    with _no_functions(), _no_dispatch():
        yield


def plain(tensor: torch.Tensor) -> torch.Tensor:
    """Return another tensor on the same memory, without class, methods or attributes of its own; call it `alone`."""
    return _detach(tensor)


def address_in(capsule: Any) -> int:
    """Return the address that pypto's C++ hands out in a capsule without a name; 0 for an empty tensor, which has none."""
    try:
        return int(_pointer_in(capsule, None) or 0)
    except ValueError:
        return 0


def address(tensor: torch.Tensor) -> int:
    """Return the address of a tensor's storage."""
    return tensor.untyped_storage().data_ptr()


def digest(tensor: torch.Tensor) -> bytes:
    """Return a hash of the whole storage behind a tensor."""
    storage = tensor.untyped_storage()
    flat = torch.tensor([], dtype=torch.uint8, device=tensor.device).set_(storage)
    return blake2b(flat.cpu().numpy().data, digest_size=16).digest()
