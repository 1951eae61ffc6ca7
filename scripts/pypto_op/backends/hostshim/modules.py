"""The stand-in modules `torch.npu` and `torch_npu`, built from one table of functions."""

from __future__ import annotations

import contextlib
import difflib
import functools
import time
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from pypto_op.backends.hostshim import draws, formats, interface

_ASCEND_910B2 = 221
"""What `get_soc_version` says on the chip that pypto simulates."""
_NAME_OF_IT = "Ascend910B2"
_TELLS = "is_host_shim"


class Stream:
    """A stream that is always empty: work on the host is done when the call returns."""

    npu_stream = 0

    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

    def synchronize(self) -> None:
        """Return at once."""

    def wait_stream(self, stream: Any) -> None:
        """Return at once."""

    def wait_event(self, event: Any) -> None:
        """Return at once."""

    def record_event(self, event: Event | None = None) -> Event:
        """Record `event`, or a new one."""
        event = event or Event()
        event.record(self)
        return event

    def query(self) -> bool:
        """Say that everything is done."""
        return True


class Event:
    """An event that remembers the host's clock."""

    def __init__(self, enable_timing: bool = False, **kwargs: Any) -> None:
        self._seconds: float | None = None

    def record(self, stream: Any = None) -> None:
        """Remember the present."""
        self._seconds = time.perf_counter()

    def synchronize(self) -> None:
        """Return at once."""

    def wait(self, stream: Any = None) -> None:
        """Return at once."""

    def query(self) -> bool:
        """Say that the event has passed."""
        return True

    def elapsed_time(self, end: Event) -> float:
        """Return the milliseconds between two recorded events.

        Raises:
            RuntimeError: one of them was never recorded.
        """
        if self._seconds is None or end._seconds is None:
            raise RuntimeError("both events must be recorded before elapsed_time")
        return (end._seconds - self._seconds) * 1000.0


class _Config:
    """`torch.npu.config`: switches that code sets and the host ignores."""

    allow_internal_format = False


def _nothing(*args: Any, **kwargs: Any) -> None:
    """Accept anything and do nothing."""


def _zero(*args: Any, **kwargs: Any) -> int:
    return 0


@contextlib.contextmanager
def _inside(*args: Any, **kwargs: Any) -> Iterator[None]:
    yield


def _set_device(device: Any) -> None:
    """Accept device 0 to 15 in any spelling; complain like the device about nonsense."""
    word = str(device).rpartition(":")[2]
    if not word.isdigit() and word not in ("npu", "cpu"):  # a device object of the NPU is the CPU's here
        raise RuntimeError(f"Invalid device: {device!r}")


def _as_real(name: str, stand_in: Callable[..., Any]) -> Callable[..., Any]:
    """Return a stand-in that refuses a call which the real function would refuse."""

    @functools.wraps(stand_in)
    def called(*args: Any, **kwargs: Any) -> Any:
        interface.check_call(f"torch.npu.{name}", interface.forms("torch.npu", name) or [], args, kwargs)
        return stand_in(*args, **kwargs)

    return called


def _no_attribute(module: str) -> Any:
    def getattr_(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"{module} has no {name}")
        if interface.forms(module, name) is not None or f"{module}.{name}" in interface.table()["modules"]:
            raise AttributeError(f"{module}.{name} needs an NPU: the pypto-op host shim has nothing that stands in for it")
        real = interface.table()
        near = difflib.get_close_matches(name, real["modules"][module], 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise AttributeError(f"{module}.{name} does not exist: torch_npu {real['version']} has no such name{hint}")

    return getattr_


def build() -> tuple[ModuleType, ModuleType]:
    """Return the modules `torch.npu` and `torch_npu`."""
    npu = ModuleType("torch.npu", "torch.npu on a machine without NPU: everything lands on the CPU.")
    stream = Stream()
    functions: dict[str, Any] = {
        _TELLS: True,
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "_is_in_bad_fork": lambda: False,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "set_device": _set_device,
        "get_device_name": lambda device=None: "CPU (pypto-op host shim)",
        "Stream": Stream,
        "Event": Event,
        "current_stream": lambda device=None: stream,
        "default_stream": lambda device=None: stream,
        "stream": _inside,
        "device": _inside,
        "config": _Config(),
        "get_soc_version": lambda: _ASCEND_910B2,
    }
    functions |= dict.fromkeys(
        ("init", "synchronize", "set_stream", "empty_cache", "set_compile_mode", "set_option", "ipc_collect")
        + ("set_device_limit", "set_stream_limit")
        + ("reset_peak_memory_stats", "reset_max_memory_allocated"),
        _nothing,
    )
    functions |= draws.functions()
    functions |= dict.fromkeys(("memory_allocated", "memory_reserved", "max_memory_allocated", "max_memory_reserved"), _zero)
    for name, value in functions.items():
        held = callable(value) and not isinstance(value, type)
        setattr(npu, name, _as_real(name, value) if held else value)
    npu.__getattr__ = _no_attribute("torch.npu")  # type: ignore[method-assign]

    torch_npu = ModuleType("torch_npu", "torch_npu on a machine without NPU: everything lands on the CPU.")
    contents = {"npu": npu, _TELLS: True, "__version__": "0+host.shim", "__path__": []}
    contents |= {name: getattr(formats, name) for name in ("Format", "get_npu_format", "npu_format_cast", "npu_format_cast_")}
    for name, value in contents.items():
        setattr(torch_npu, name, value)
    torch_npu.__getattr__ = _no_attribute("torch_npu")  # type: ignore[method-assign]
    return npu, torch_npu


def conceal(npu: ModuleType, torch_npu: ModuleType) -> None:
    """Take away by what name the two modules tell that they stand in; version and device are those of a real torch_npu."""
    for module in (npu, torch_npu):
        vars(module).pop(_TELLS, None)
    torch_npu.__dict__["__version__"] = interface.table()["version"]
    npu.__dict__["get_device_name"] = _as_real("get_device_name", lambda device=None: _NAME_OF_IT)
