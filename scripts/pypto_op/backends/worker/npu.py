"""A worker's NPU: torch_npu and pypto on an Ascend device."""

from __future__ import annotations

import csv
import os
import statistics
from collections.abc import Callable
from importlib import util
from pathlib import Path
from typing import Any

import torch

from pypto_op.backends.worker import kernel_lines
from pypto_op.backends.worker.loading import Failure
from pypto_op.hardware import MACHINE
from pypto_op.vocabulary import Outcome

_TIMED_RUNS, _COLD_RUNS = 10, 5
_PROFILE_DIR = "profile"
_KERNEL_TABLE = "kernel_details.csv"
_KERNEL_TIME = "Duration(us)"


class Npu:
    """One device.

    Args:
        document: `index`: which device; `profile`: whether runs are timed.

    Attributes:
        scrub_bytes: what is written before a run from a cold cache: more than the device's L2 holds.
    """

    scrub_bytes = 2 * MACHINE.cache_bytes

    def __init__(self, document: dict[str, Any]) -> None:
        self._index = int(document["index"])
        self._profile = bool(document["profile"])

    def prepare(self) -> None:
        """Load torch_npu and select the device; raise Failure (UNAVAILABLE) where that does not work."""
        try:
            import torch_npu  # noqa: F401

            npu: Any = torch.npu  # type: ignore[attr-defined]
            if not npu.is_available():
                raise Failure(Outcome.UNAVAILABLE, "torch_npu sees no device")
            npu.set_device(self._index)
            _tell_kernel_lines()
        except (ImportError, RuntimeError, OSError) as error:
            words = str(error).strip().splitlines() or [type(error).__name__]
            raise Failure(Outcome.UNAVAILABLE, f"npu:{self._index} cannot be used: {words[0][:300]}") from None

    def place(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return a copy on the device."""
        return tensor.to(f"npu:{self._index}")

    def expect(self, *, compiled: bool) -> None:
        """Nothing: a device launches the program that it has."""

    def synchronize(self) -> None:
        """Wait for the device."""
        torch.npu.synchronize()  # type: ignore[attr-defined]

    def figures(self, call: Callable[[], Any]) -> dict[str, float | int] | None:
        """Time `call` by device events, and its kernels by torch_npu's profiler; None when nobody asked.

        Keys: `device_time_us` (median of ten runs, one after another: what they read may lie in the cache),
        `device_time_min_us`, `device_time_max_us`, `runs`, `device_time_cold_us` (median of five runs, each after other data
        went through the cache), and from the profiler, where it left a table, `kernel_time_us` (sum) and `kernels` of one run.
        """
        if not self._profile:
            return None
        times = [self._timed(call) for _ in range(_TIMED_RUNS)]
        cold = [self._timed(call) for _ in range(_COLD_RUNS) if self._scrub()]
        return {
            "device_time_us": statistics.median(times),
            "device_time_min_us": min(times),
            "device_time_max_us": max(times),
            "runs": len(times),
            "device_time_cold_us": statistics.median(cold),
            **self._profiled(call),
        }

    def _scrub(self) -> bool:
        """Write more bytes than the cache holds, so that nothing of the operator is left in it."""
        other = torch.empty(self.scrub_bytes, dtype=torch.int8, device=f"npu:{self._index}")
        other.fill_(1)
        self.synchronize()
        return True

    def _timed(self, call: Callable[[], Any]) -> float:
        npu: Any = torch.npu  # type: ignore[attr-defined]
        begin, end = npu.Event(enable_timing=True), npu.Event(enable_timing=True)
        self.synchronize()
        begin.record()
        call()
        end.record()
        self.synchronize()
        return float(begin.elapsed_time(end)) * 1000.0

    def _profiled(self, call: Callable[[], Any]) -> dict[str, float | int]:
        import torch_npu

        folder = Path(os.environ["HOME"]) / _PROFILE_DIR  # the session's scratch folder
        profiler = torch_npu.profiler
        with profiler.profile(
            activities=[profiler.ProfilerActivity.NPU],
            on_trace_ready=profiler.tensorboard_trace_handler(str(folder)),
        ):
            call()
            self.synchronize()
        return read_kernel_table(folder)


def _tell_kernel_lines() -> None:
    """Let failures name the kernel's line, as in sim; without pypto there is no kernel to follow."""
    if util.find_spec("pypto") is not None:
        kernel_lines.follow()


def read_kernel_table(folder: Path) -> dict[str, float | int]:
    """Return number and summed time of the kernels in the newest table that the profiler left in `folder`.

    The table is `*_ascend_pt/ASCEND_PROFILER_OUTPUT/kernel_details.csv`, one row a kernel; empty when there is none.
    """
    tables = sorted(folder.rglob(_KERNEL_TABLE), key=lambda path: path.stat().st_mtime)
    if not tables:
        return {}
    with tables[-1].open(encoding="utf-8", newline="") as file:
        times = [float(row[_KERNEL_TIME]) for row in csv.DictReader(file) if row.get(_KERNEL_TIME)]
    return {"kernel_time_us": sum(times), "kernels": len(times)} if times else {}
