"""What the host side of a kernel asks of CUDA and of Triton's driver, answered where there is only the interpreter.

Tasks of public suites make their inputs with `.cuda()`, implementations say `device="cuda"`, assert `x.is_cuda` and size
their grids by the number of cores. None of that is wrong, so it must run here; the NPU's counterpart is `backends.hostshim`.
`x.device` is `cuda:0` to them, as `x.is_cuda` is True: a wrapper that refuses other kinds of devices is right on a GPU.
`torch.cuda.is_available()` stays False.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

_CORES = 4
"""Few, so that a kernel whose programs loop over tiles really loops."""

_PROPERTIES = {"multiprocessor_count": _CORES, "num_aicore": _CORES, "num_vectorcore": 2 * _CORES, "max_shared_mem": 192 * 1024,
               "max_num_regs": 65536, "warpSize": 32, "sm_clock_rate": 1, "mem_clock_rate": 1, "mem_bus_width": 1}  # fmt: skip
_SHARED = ("synchronize", "device", "current_device", "set_device", "current_stream", "default_stream", "stream", "empty_cache",
           "get_device_name", "memory_allocated", "max_memory_allocated", "reset_peak_memory_stats", "device_count")  # fmt: skip


def install() -> None:
    """Answer for this process; `hostshim` is in place."""
    import torch
    from triton.runtime import driver

    from pypto_op.backends.hostshim import devices, draws

    devices.AWAY.add("cuda")
    tensor: Any = torch.Tensor
    tensor.cuda = torch.nn.Module.cuda = tensor.npu  # type: ignore[method-assign]
    tensor.is_cuda = property(lambda self: True)
    tensor.is_cpu = property(lambda self: False)
    devices.SAYS[:] = [devices.CUDA]
    for name in (*_SHARED, *draws.functions()):
        setattr(torch.cuda, name, getattr(torch.npu, name))  # type: ignore[attr-defined]
    torch.cuda._DeviceGuard = torch.cuda.device_of = torch.npu.device  # type: ignore[attr-defined, misc]
    properties = SimpleNamespace(multi_processor_count=_CORES, name="CPU", major=0, minor=0, total_memory=1 << 36)
    torch.cuda.get_device_properties = lambda device=None: properties  # type: ignore[assignment, return-value]
    torch.cuda.get_device_capability = lambda device=None: (0, 0)
    driver.set_active(_Driver())


class _Driver:
    """Triton's driver without a device: what its `active.utils` tells."""

    def __init__(self) -> None:
        self.utils = SimpleNamespace(get_device_properties=lambda device=0: dict(_PROPERTIES))

    def get_current_device(self) -> int:
        """Return the only one."""
        return 0

    def set_current_device(self, device: int) -> None:
        """Stay there."""

    def get_current_stream(self, device: int = 0) -> int:
        """Return the default one."""
        return 0

    def get_active_torch_device(self) -> Any:
        """Return where tensors are."""
        import torch

        return torch.device("cpu")

    def get_current_target(self) -> Any:
        """Return a target that no code is made for."""
        from triton.backends.compiler import GPUTarget

        return GPUTarget("cpu", 0, 32)
