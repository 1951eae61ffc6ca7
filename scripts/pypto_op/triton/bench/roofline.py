"""The least time that a shape can take on a known device: reading its inputs and writing its outputs once."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

from pypto_op.triton.run.inputs.packing import tensors_of


def bandwidth(device: str) -> float | None:
    """Return the peak memory bandwidth of a device in GB/s; None for one that `devices.yaml` does not name."""
    return next((float(row["bandwidth"]) for row in _devices() if row["name"] in device), None)


def floor_ms(inputs: Any, outputs: Any, device: str) -> float | None:
    """Return bytes of inputs and outputs over the device's peak bandwidth, in milliseconds; None on unknown devices.

    An operator that reads only part of its input (a gather) can be faster than this; it is a hint, not a verdict.
    """
    rate = bandwidth(device)
    if rate is None:
        return None
    total = sum(tensor.nbytes for tensor in tensors_of([inputs, outputs]))
    return total / (rate * 1e9) * 1e3


@lru_cache(maxsize=1)
def _devices() -> list[dict[str, Any]]:
    from pypto_op.documents.reading import read_yaml

    rows: list[dict[str, Any]] = read_yaml(Path(__file__).with_name("devices.yaml"))
    return rows
