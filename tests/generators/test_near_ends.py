"""Shares next to 0 and 1: the end that keeps what is carried makes cases, the end at which it dies out makes none."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from benchmarks.fresh_kernels import FIXTURES, kernels
from tests.calling import command

from pypto_op.documents import golden_scan
from pypto_op.documents import spec as spec_document
from pypto_op.generators.rehearsing.rehearsal import Rehearsed, rehearse
from pypto_op.workspace import OpWorkspace

pytestmark = [pytest.mark.sim, pytest.mark.slow]


def tried(root: Path, word: str) -> Rehearsed:
    """Write the suite of a fresh operator, and try on the golden those cases alone whose names have the word."""
    shutil.copytree(FIXTURES / root.name, root)
    answer = command("harness", "new", "--no-rehearsal", root)
    assert answer.code == 0, answer.stderr
    ws = OpWorkspace.at(root)
    return rehearse(ws, [case for case in cases(root) if word in case["id"]], spec_document.load(ws.spec).policy())


def cases(root: Path) -> list[dict[str, object]]:
    return list(json.loads((root / "eval" / "adversarial_suite.json").read_text())["cases"])


def test_a_prefix_of_decisions_becomes_as_long_as_an_axis_may_be(tmp_path: Path) -> None:
    """Tokens from the seventeenth on were not looked at, and that passed: of 32 in a row that many never stayed."""
    root = tmp_path / "custom" / "accept_drafts"
    assert [case["shape"]["K"] for case in tried(root, "u_near_0_K_greatest").cases] == [32]
    [text] = [kernel.text for kernel in kernels("accept_drafts") if kernel.id == "sixteen_tokens"]
    (root / "accept_drafts_impl.py").write_text(text, encoding="utf-8")
    assert command("verify", root, "--case", "L4_u_near_0_K_greatest").code == 1


def test_shares_at_which_everything_dies_out_make_no_case(tmp_path: Path) -> None:
    """Survival is a product of 1 - hazard: next to 1 it leaves float32 below, where honest kernels differ by any factor."""
    names = [case["id"] for case in tried(tmp_path / "custom" / "annuity_value", "hazard_near").cases]
    assert any("hazard_near_0" in name for name in names)
    assert not [name for name in names if "hazard_near_1" in name]


def test_next_to_an_end_of_a_mix_nothing_is_judged_by_what_is_natural(tmp_path: Path) -> None:
    """`y + (1 - k) * (x - y)` keeps what y has of rounding, where x is far smaller; it is as right, and was refused there."""
    root = tmp_path / "custom" / "ema_scan"
    found = tried(root, "decay_near")
    assert "decay" in golden_scan.shares(root / "ema_scan_golden.py", "ema_scan_golden")
    left_out = [why for name, why in found.dropped.items() if name.startswith("L4_decay_near_0")]
    assert any("where decay is next to an end" in why for why in left_out), found.dropped
    assert found.cases and not [case["id"] for case in found.cases if case.get("policy")]
    [small] = [case for case in cases(root) if case["id"] == "L5_tiny_float32"]
    assert small["draw_zone"] == {"x": "tiny", "state": "tiny"}, "a share that is next to nothing keeps nothing, too"
    [kernel] = [one for one in kernels("ema_scan") if one.id == "difference"]
    (root / "ema_scan_impl.py").write_text(kernel.text, encoding="utf-8")
    answer = command("verify", "--modes", "sim", "--case", small["id"], "--seed", "20260131", root)
    assert answer.code == 0, answer.stdout
