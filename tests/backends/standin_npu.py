"""A device layer for tests: the NPU backend's own code, driven by the host shim and pypto's simulator.

Nothing here can be reached from the product: a layer is a constructor argument, never an environment variable.
"""

from __future__ import annotations

import csv
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pypto_op.backends import calculator, native
from pypto_op.backends.hostshim import interface
from pypto_op.backends.npu import Devices
from pypto_op.backends.worker import npu
from pypto_op.backends.worker.loading import Failure
from pypto_op.backends.worker.npu import Npu
from pypto_op.vocabulary import Outcome


class Layer:
    """Two devices, 0 and 3."""

    worker_class = "standin_npu:Device"

    def __init__(self, reason: str = "", worker_class: str = worker_class) -> None:
        self._reason = reason
        self.worker_class = worker_class
        self.variables = {
            "PYTHONPATH": str(Path(__file__).parent),
            "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
            "ASCEND_SLOG_PRINT_TO_STDOUT": "1",
            "ASCEND_GLOBAL_LOG_LEVEL": "3",
            **_simulator(),
        }

    def state(self, index: int) -> dict[str, str]:
        return {"Aicore Freq(MHZ)": "1800", "Temperature(C)": str(40 + index)}

    def find(self) -> Devices:
        return Devices(self._reason, () if self._reason else (0, 3), {"torch_npu": "stand-in"})


class Device(Npu):
    """The worker's side: `Npu` itself, on a torch_npu that is the host shim with a profiler."""

    scrub_bytes = 1 << 20

    def prepare(self) -> None:
        from pypto_op.backends import hostshim
        from pypto_op.backends.worker import pypto_hooks

        switch = Path(os.environ["STANDIN_SWITCH"])
        pypto_hooks.load_before_pypto(switch)
        hostshim.install()
        pypto_hooks.load_calculator(Path(os.environ["STANDIN_CALCULATOR"]))
        pypto_hooks.simulate(numeric=True)
        pypto_hooks.switch_cost_model(switch, False)
        sys.modules["torch_npu"].profiler = profiler()  # type: ignore[attr-defined]
        super().prepare()


class Quiet(Device):
    """A stand-in whose simulator does not follow kernels, so that only `Npu` itself can tell their lines."""

    def prepare(self) -> None:
        from pypto_op.backends.worker import pypto_hooks

        pypto_hooks.kernel_lines = SimpleNamespace(follow=lambda: None)  # type: ignore[assignment]
        super().prepare()


class Vanishing(Device):
    """A stand-in that is gone once the file that STANDIN_HERE names is. It times little: a median is not what is asked of it."""

    def prepare(self) -> None:
        if not Path(os.environ["STANDIN_HERE"]).is_file():  # before pypto is loaded, for nothing
            raise Failure(Outcome.UNAVAILABLE, "npu:0 cannot be used: rtSetDevice error, the device is lost")
        npu._TIMED_RUNS = npu._COLD_RUNS = 1
        super().prepare()


class Broken(Npu):
    """A worker whose driver does not come up."""

    def prepare(self) -> None:
        from pypto_op.backends import hostshim

        hostshim.install()

        def refuse(device: Any) -> None:
            raise RuntimeError("Initialize:build/torch_npu: rtSetDevice error\nsecond line")

        sys.modules["torch.npu"].set_device = refuse  # type: ignore[attr-defined]
        super().prepare()


def _simulator() -> dict[str, str]:
    """Return what the worker needs of the simulator, where there is one."""
    ingredients = calculator.find_ingredients()
    if ingredients is None or not ingredients.toolchain.complete:
        return {}
    tools = native.ensure(ingredients.toolchain)
    return {
        "PATH": f"{tools.bin_dir}:{os.environ['PATH']}",
        "PYPTO_OP_CXX": ingredients.toolchain.paths["g++"],
        "STANDIN_SWITCH": str(tools.cost_model_switch),
        "STANDIN_CALCULATOR": str(calculator.ensure(ingredients)),
    }


def profiler() -> Any:
    """Return what `torch_npu.profiler` offers and `Npu` uses; it leaves the table that the real one leaves.

    A call that the real one would refuse is refused.
    """

    class Profile:
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            _check("profile", args, kwargs)
            assert kwargs["activities"] == ["NPU"]
            self._folder = Path(kwargs["on_trace_ready"])

        def __enter__(self) -> None: ...

        def __exit__(self, *error: object) -> None:
            table = self._folder / "host_1_ascend_pt" / "ASCEND_PROFILER_OUTPUT" / "kernel_details.csv"
            table.parent.mkdir(parents=True, exist_ok=True)
            with table.open("w", newline="") as file:
                rows = csv.writer(file)
                rows.writerow(["Step Id", "Name", "Type", "Duration(us)"])
                rows.writerows([["0", "double_kernel", "MIX", "7.25"], ["0", "copy", "AIV", "0.75"], ["", "", "", ""]])

    def handler(*args: Any, **kwargs: Any) -> str:
        _check("tensorboard_trace_handler", args, kwargs)
        return str(args[0])

    return SimpleNamespace(
        profile=Profile,
        ProfilerActivity=SimpleNamespace(NPU="NPU"),
        tensorboard_trace_handler=handler,
    )


def _check(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    interface.check_call(name, interface.forms("torch_npu.profiler", name) or [], args, kwargs)
