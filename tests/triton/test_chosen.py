"""The host may choose what is copied, launched on, filled in and returned, as long as it does not choose by values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.quickly import read_table
from tests.triton import lab

pytestmark = pytest.mark.slow

TABLE: dict[str, dict[str, dict[str, Any]]] = read_table(lab.HERE / "chosen.yaml")
KERNELS = """
import math


@triton.jit
def halves_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    value = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + offsets, tl.where(offsets % 8 < 4, value, -value), mask=offsets < n)


def look(x):
    space = bytearray(4 * x.numel())
    torch.frombuffer(space, dtype=torch.float32).copy_(x)
    return memoryview(space).cast("f")


def order(x):
    values = look(x)
    return sorted(range(len(values)), key=lambda i: values[i])
"""


def verified(kind: str, name: str, place: Path) -> dict[str, Any]:
    entry = TABLE[kind][name]
    task = lab.task(entry["reference"], entry["inputs"], init=entry.get("task_init", ""))
    task = task.replace("import torch.nn as nn", "import torch.nn as nn\nimport torch.nn.functional as F", 1)
    return lab.verify(lab.folder(place, task, lab.impl(entry["forward"], init=entry.get("init", ""), kernels=KERNELS)))


@pytest.mark.parametrize("name", sorted(TABLE["cheats"]))
def test_what_the_host_chose_by_values_is_refused(name: str, place: Path) -> None:
    result = verified("cheats", name, place)
    assert lab.first_error(result) == "HostComputed", result["failures"]


@pytest.mark.parametrize("name", sorted(TABLE["honest"]))
def test_what_it_chose_by_shapes_and_turns_passes(name: str, place: Path) -> None:
    result = verified("honest", name, place)
    assert result["status"] == "PASS", result["failures"]
