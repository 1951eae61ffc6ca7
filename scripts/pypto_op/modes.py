"""The registry of modes: what is known of each place where a kernel can run, beside its word (`vocabulary.Mode`).

Whatever else depends on a mode (the commands' options, fingerprints, times, the doctor's lines) is derived from here, and
`schemas/common.schema.json` repeats the words, which a test compares. docs/adding-a-backend.md shows how to add one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pypto_op.vocabulary import Mode

COST_MODEL = "cost_model"
"""The method of times that a model computes; they rank variants of a kernel and measure nothing."""


@dataclass(frozen=True)
class Timing:
    """How a mode's times are got."""

    method: str  # a word of `schemas/perf_result.schema.json`; times compare only when it is the same
    unit: str  # in words, for people
    figure: str  # which of the figures in `RunResult.cost` is the time, in microseconds
    warmup: int = 0  # runs that are made before one is timed
    caveats: tuple[str, ...] = ()  # what such a time cannot say


@dataclass(frozen=True)
class Place:
    """What is known of a mode without asking its back end."""

    backend: str  # `module:Class` of the back end (`backends.base.Backend`); imported when it is first asked for
    on_device: bool  # kernels run on hardware: one process at a time, and with the device's own rounding and races
    timing: Timing  # how its times are got
    mend: str = "see the lines above"  # how to get it, for `pypto-op doctor`


REGISTRY: Mapping[Mode, Place] = {
    Mode.SIM: Place(
        backend="pypto_op.backends.sim:SimBackend",
        on_device=False,
        timing=Timing(
            method=COST_MODEL,
            unit="us of the cost model (1.8 GHz)",
            figure="end_to_end_us",
            caveats=("the cost model's figures rank variants; they are no measurement",),
        ),
    ),
    Mode.NPU: Place(
        backend="pypto_op.backends.npu:NpuBackend",
        on_device=True,
        timing=Timing("device_profile", "us on the device", "device_time_us", warmup=3),
        mend="run on a machine with an Ascend NPU and CANN",
    ),
}
"""One row for each mode."""

WORDS = ",".join(Mode)
"""Every mode, as `--modes` reads them."""


def devices_first(modes: Iterable[Mode] = tuple(Mode)) -> list[Mode]:
    """Return `modes` with those on hardware first: what they say weighs more."""
    return sorted(modes, key=lambda mode: not REGISTRY[mode].on_device)
