"""Shares next to 0 and 1: the end that keeps what is carried makes cases, the end at which it dies out makes none."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from benchmarks.fresh_kernels import FIXTURES, kernels
from tests.calling import command

from pypto_op.documents import golden_scan

pytestmark = [pytest.mark.sim, pytest.mark.slow]


def test_shares_at_which_everything_dies_out_make_no_case(tmp_path: Path) -> None:
    """Survival is a product of 1 - hazard: next to 1 it leaves float32 below, where honest kernels differ by any factor."""
    root = tmp_path / "custom" / "annuity_value"
    shutil.copytree(FIXTURES / "annuity_value", root)
    answer = command("harness", "new", str(root), "--json")
    assert answer.code == 0, answer.stderr
    names = [case["id"] for case in json.loads((root / "eval" / "adversarial_suite.json").read_text())["cases"]]
    assert any("hazard_near_0" in name for name in names)
    assert not [name for name in names if "hazard_near_1" in name]


def test_next_to_an_end_of_a_mix_nothing_is_judged_by_what_is_natural(tmp_path: Path) -> None:
    """`y + (1 - k) * (x - y)` keeps what y has of rounding, where x is far smaller; it is as right, and was refused there."""
    root = tmp_path / "custom" / "ema_scan"
    shutil.copytree(FIXTURES / "ema_scan", root)
    assert "decay" in golden_scan.shares(root / "ema_scan_golden.py", "ema_scan_golden")
    answer = command("harness", "new", root)
    assert "left out L4_decay_near_0" in answer.stdout and "where decay is next to an end" in answer.stdout, answer.stdout
    cases = json.loads((root / "eval" / "adversarial_suite.json").read_text())["cases"]
    near = [case for case in cases if "decay_near" in case["id"]]
    assert near and not [case["id"] for case in near if case.get("policy")]
    [small] = [case for case in cases if case["id"] == "L5_tiny_float32"]
    assert small["draw_zone"] == {"x": "tiny", "state": "tiny"}, "a share that is next to nothing keeps nothing, too"
    [kernel] = [one for one in kernels("ema_scan") if one.id == "difference"]
    (root / "ema_scan_impl.py").write_text(kernel.text, encoding="utf-8")
    answer = command("verify", "--modes", "sim", "--case", small["id"], "--seed", "20260131", root)
    assert answer.code == 0, answer.stdout
