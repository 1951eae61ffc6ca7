"""Takes a kernel's numbers from its tensor graph, and leaves out the passes and the code behind them.

The calculator computes a kernel while its tensor graph is compiled; three quarters of a call of a large kernel go into the
passes that follow, which have no part in the numbers. pypto hands the numbers over only after all of them, so they are taken
from where the calculator left them: `ProgramData` holds a list of shared pointers to buffers, one for each tensor of the
launch, in order. The layout is that of pypto 0.2.0. Each launch with passes compares what lies there with what pypto hands
over; after a difference every launch of the process runs whole.
"""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

from pypto_op.backends.worker import pypto_hooks
from pypto_op.backends.worker.crossing import address_in

_INSTANCE = "_ZN3npu8tile_fwk11ProgramData11GetInstanceEv"
_POINTER = ctypes.sizeof(ctypes.c_void_p)


class TensorGraph:
    """Where launches of this process end: with the tensor graph, or after all passes.

    Args:
        always: each one ends with the tensor graph; who uses this compares it with whole runs.
    """

    def __init__(self, *, always: bool) -> None:
        self._always = self._ends = always
        self._holds: bool | None = None  # whether the numbers lie where they are looked for; None: no launch told yet

    def install(self) -> None:
        """Stand in the place of pypto's function that hands numbers over."""
        import pypto
        from pypto import pypto_impl

        library = ctypes.CDLL(str(Path(pypto.__file__).parent / "lib" / "libtile_fwk_interface.so"))
        instance = getattr(library, _INSTANCE)
        instance.restype = ctypes.c_void_p
        whole = pypto_impl.CostModelRunOnceDataFromHost

        def hand_over(data: Any, other: Any) -> None:
            if self._ends:
                for tensor, (begin, size) in zip(data, _buffers(instance(), data), strict=True):
                    ctypes.memmove(address_in(tensor.GetDataPtr()), begin, size)
                return
            found = _contents(instance(), data) if self._holds is not False else None
            whole(data, other)
            if self._holds is not False:
                self._holds = found == [_handed_over(tensor) for tensor in data]

        pypto_impl.CostModelRunOnceDataFromHost = hand_over

    def expect(self, *, compiled: bool) -> None:
        """A launch is to come; `compiled`: its program went through the passes in this process.

        A device has one program for all sizes of the axes that a kernel declares as dynamic, since pypto knows these sizes by
        name only; another size of another axis makes another program.
        """
        self._ends = self._always or (compiled and self._holds is True)

    def options(self) -> None:
        """Set pypto's options of the launch that is to come."""
        if self._ends:
            pypto_hooks.leave_passes_out()


def _contents(instance: int, data: Any) -> list[bytes] | None:
    """Return what lies where a launch without passes takes the numbers from; None where pypto keeps them otherwise."""
    try:
        return [ctypes.string_at(begin, size) if size else b"" for begin, size in _buffers(instance, data)]
    except RuntimeError:
        return None


def _handed_over(tensor: Any) -> bytes:
    size = _bytes_of(tensor)
    return ctypes.string_at(address_in(tensor.GetDataPtr()), size) if size else b""


def _buffers(instance: int, data: Any) -> list[tuple[int, int]]:
    """Return address and size of the calculator's buffer of each tensor of a launch.

    Raises:
        RuntimeError: pypto keeps them otherwise than version 0.2.0.
    """
    begin, end = _ends(instance)
    if end - begin != 2 * _POINTER * len(data):
        raise RuntimeError("pypto keeps the tensors of a launch otherwise than version 0.2.0")
    found = []
    for place, tensor in enumerate(data):
        first, last = _ends(_pointer(begin + 2 * _POINTER * place))
        if last - first != _bytes_of(tensor):
            raise RuntimeError("pypto keeps a tensor in another size than version 0.2.0")
        found.append((first, last - first))
    return found


def _pointer(address: int) -> int:
    return int(ctypes.c_size_t.from_address(address).value)


def _ends(vector: int) -> tuple[int, int]:
    """Return begin and end of the elements of a `std::vector` at an address."""
    return _pointer(vector), _pointer(vector + _POINTER)


def _bytes_of(tensor: Any) -> int:
    from pypto import pypto_impl

    size = int(pypto_impl.BytesOf(tensor.GetDataType()))
    for length in tensor.GetShape():
        size *= int(length)
    return size
