"""Float scalars of which SPEC.md names no range: that is said, and with a range both signs are tried."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from benchmarks import fresh, fresh_kernels

RANGE = '"0 <= counts < 100"'


@pytest.mark.sim
@pytest.mark.slow
def test_penalties_below_0_are_tried_once_spec_says_that_they_may_be(tmp_path: Path, call: Any) -> None:
    """A kernel that took a reward for no penalty passed, and nobody was told that no case has one."""
    root = fresh.workspace("penalty_softmax", tmp_path)
    told = call("harness", "new", "--no-rehearsal", root)
    assert [line.split()[0] for line in told.stdout.splitlines() if "with its sign" in line] == ["frequency", "presence"]
    spec = root / "SPEC.md"
    spec.write_text(spec.read_text().replace(RANGE, f'{RANGE}, "-2 <= frequency <= 2", "-2 <= presence <= 2"'))
    assert json.loads(call("harness", "new", "--no-rehearsal", root, "--json").stdout)["unranged"] == []
    [right] = [one.text for one in fresh_kernels.kernels("penalty_softmax") if one.kind == "right"]
    for old, new, code in (("", "", 0), ("float(frequency)", "max(float(frequency), 0.0)", 1)):
        (root / "penalty_softmax_impl.py").write_text(right.replace(old, new) if old else right, encoding="utf-8")
        assert call("verify", "--modes", "sim", "--case", "L3_end_of_frequency_float32", root).code == code
