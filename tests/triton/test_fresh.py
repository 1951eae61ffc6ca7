"""Implementations that were written before anybody looked how they would be judged (`fresh.yaml`)."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest
from tests.quickly import read_table
from tests.triton import lab

pytestmark = pytest.mark.slow

TABLE: dict[str, dict[str, Any]] = read_table(lab.HERE / "fresh.yaml")
KERNELS = (lab.HERE / "fresh_kernels.txt").read_text(encoding="utf-8")
EXPO = lab.task("return torch.exp(x)", "[torch.randn(4, 6)]")


@pytest.mark.parametrize("name", sorted(TABLE["cheats"]))
def test_a_fresh_cheat_is_refused(name: str, place: Path) -> None:
    forward = TABLE["cheats"][name]
    result = lab.verify(lab.folder(place, EXPO, lab.impl(forward, kernels=KERNELS)), case_timeout=60.0)
    assert result["status"] == "FAIL", result


@pytest.mark.parametrize("name", sorted(TABLE["honest"]))
def test_a_fresh_honest_file_passes(name: str, place: Path) -> None:
    entry = TABLE["honest"][name]
    task = lab.task(f"return {entry['want']}", f"[{entry['inputs']}]", init=entry.get("model", ""))
    task = task.replace("\n\ndef get_inputs", f"\n{entry['reference']}\n\n\ndef get_inputs") if "reference" in entry else task
    text = (
        lab.impl(entry["forward"], init=entry.get("init", ""), kernels=KERNELS)
        + "\n"
        + textwrap.indent(entry.get("more", ""), "")
    )
    result = lab.verify(lab.folder(place, task, text))
    assert result["status"] == "PASS", result["failures"] or result["error"]
