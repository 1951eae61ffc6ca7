"""`torch_npu` and `torch.npu` on a machine that has no NPU: every device call lands on the CPU.

Kernels, goldens, input files and tests are written for the device (`import torch_npu`, `device="npu:0"`,
`torch.npu.synchronize()`) and must run here unchanged. `install()` provides just that, inside a process that the
runner started for them. It never touches a file and refuses to stand in for a `torch_npu` that is installed.

What answers as on a device: `torch.npu.is_available()` is True and there is one device, so that code takes the
same path as on a device. What tells the truth: `tensor.device` is the CPU, and `torch.npu.is_host_shim` is True, for a
script; a candidate finds no such name, and the version and the device that a real torch_npu names (`conceal`).

`python -m pypto_op.backends.hostshim FILE [ARGS...]` runs a script under the shim.
"""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

from pypto_op.errors import InfraError

_placed: list[ModuleType] = []


def installed() -> bool:
    """Whether the shim is in place in this process."""
    return any(sys.modules.get("torch_npu") is module for module in _placed)


def install() -> None:
    """Put the shim in place; harmless when called twice.

    Raises:
        InfraError: a real torch_npu is installed, which the shim must not hide.
    """
    if installed():
        return
    if importlib.util.find_spec("torch_npu") is not None:
        raise InfraError("the host shim would hide the installed torch_npu", remedy="uninstall it on a machine without NPU")
    import torch
    from torch.utils.backend_registration import rename_privateuse1_backend

    from pypto_op.backends.hostshim import devices, modules

    rename_privateuse1_backend("npu")
    npu, torch_npu = modules.build()
    torch._register_device_module("npu", npu)  # type: ignore[no-untyped-call]
    sys.modules.update({"torch.npu": npu, "torch_npu": torch_npu, "torch_npu.npu": npu})
    _placed.append(torch_npu)
    devices.install()


def conceal() -> None:
    """Let the shim in this process name nothing that a real torch_npu does not: a kernel must not ask where it is judged."""
    from pypto_op.backends.hostshim import modules

    modules.conceal(sys.modules["torch.npu"], sys.modules["torch_npu"])
