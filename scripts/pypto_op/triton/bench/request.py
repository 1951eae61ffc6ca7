"""What may be asked of a benchmark."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pypto_op.backends.base import Limits


@dataclass(frozen=True)
class Request:
    """How to time.

    Attributes:
        target: interpret, cuda, npu, or None for the device that is there.
        warmup: calls before each round that are not counted.
        repeats: counted calls of the implementation per shape; the reference gets twice as many (the A/A run).
        output: where the result goes; None: perf_result*.json in the folder.
        skip_framework, framework_latency_ms: take the caller's number for the reference's time.
        verify_not_required: time what was not verified; the result says so.
        do_bench: also ask Triton's own do_bench, in the same process right after.
        operators: also ask torch's profiler which kernels a call runs (CUDA).
        case_timeout: seconds for each message to a process.
        memory_mb: resident memory of each process.
        checked: how many timed calls of a shape, drawn at random, have their outputs compared with the reference's.
        policy: tolerance of that comparison; None: the default of the verification.
    """

    target: str | None = None
    warmup: int = 5
    repeats: int = 50
    output: Path | None = None
    skip_framework: bool = False
    framework_latency_ms: float | None = None
    verify_not_required: bool = False
    do_bench: bool = False
    operators: bool = False
    case_timeout: float = 300.0
    memory_mb: int = 65536
    checked: int = 4
    policy: str | None = None

    def limits(self) -> Limits:
        """Return what a process may use."""
        return Limits(self.memory_mb, self.case_timeout, min(300.0, self.case_timeout))
