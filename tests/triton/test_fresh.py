"""Implementations that were written before anybody looked how they would be judged (`fresh.yaml`, and its further parts)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.quickly import read_table
from tests.triton import lab

pytestmark = pytest.mark.slow

FOUND = [read_table(lab.HERE / f"{name}.yaml") for name in lab.FRESH]
CHEATS: dict[str, Any] = {name: entry for found in FOUND for name, entry in found["cheats"].items()}
HONEST: dict[str, Any] = {name: entry for found in FOUND for name, entry in found["honest"].items()}
EXPO = lab.task("return torch.exp(x)", "[torch.randn(4, 6)]")


def text(entry: dict[str, str]) -> str:
    """Return an entry's implementation."""
    names = ["fresh_kernels", *([entry["add"]] if "add" in entry else [])]
    kernels = "\n\n".join((lab.HERE / f"{name}.txt").read_text(encoding="utf-8") for name in names)
    return lab.impl(entry["forward"], init=entry.get("init", ""), kernels=kernels) + "\n" + entry.get("more", "")


@pytest.mark.parametrize("name", sorted(CHEATS))
def test_a_fresh_cheat_is_refused(name: str, place: Path) -> None:
    entry = CHEATS[name]
    written = text(entry if isinstance(entry, dict) else {"forward": entry})
    result = lab.verify(lab.folder(place, EXPO, written), case_timeout=60.0)
    assert result["status"] == "FAIL", result


@pytest.mark.parametrize("name", sorted(HONEST))
def test_a_fresh_honest_file_passes(name: str, place: Path) -> None:
    entry = HONEST[name]
    task = lab.task(f"return {entry['want']}", f"[{entry['inputs']}]", init=entry.get("model", ""))
    task = task.replace("\n\ndef get_inputs", f"\n{entry['reference']}\n\n\ndef get_inputs") if "reference" in entry else task
    result = lab.verify(lab.folder(place, task, text(entry)))
    assert result["status"] == "PASS", result["failures"] or result["error"]
