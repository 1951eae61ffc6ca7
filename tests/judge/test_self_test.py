"""`verify --self-test`: each check of the harness fires on the fault that it is there for; no kernel runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from pypto_op.judge import adversarial
from pypto_op.judge.adversarial import runner_text
from pypto_op.workspace import OpWorkspace

from .judging import place, verify

pytestmark = pytest.mark.sim

LEVELS = ("L1", "L2", "L3", "L4", "L5")
SUITE = [
    {"id": f"{level}_{n}", "level": level, "shape": {"N": n, "D": 32}, "precision": level != "L1", "atol": 1e-6, "rtol": 1e-5}
    for level in LEVELS
    for n in (3, 17)
]


@pytest.fixture
def ws(clean_workspace: Path) -> OpWorkspace:
    made = place("chain", clean_workspace, cases=SUITE)
    made.runner.write_text(runner_text())
    return made


def checks(ws: OpWorkspace, *more: str) -> tuple[int, dict[str, dict[str, str]]]:
    told = verify(ws.root, "--self-test", *more)
    result = json.loads(told.stdout)
    assert (told.code == 0) == (result["status"] == "PASS")
    return told.code, {row["name"]: row for row in result["checks"]}


def test_a_sound_harness_passes_and_composition_waits_for_its_golden(ws: OpWorkspace) -> None:
    ws.module_golden(2).unlink()
    code, rows = checks(ws)
    assert code == 0, rows
    assert {name for name, row in rows.items() if row["status"] == "SKIPPED"} == {"composition"}
    assert {row["status"] for row in rows.values()} == {"PASS", "SKIPPED"}


def _edit(path: str, old: str, new: str) -> Callable[[OpWorkspace], None]:
    def spoil(ws: OpWorkspace) -> None:
        file = ws.root / path
        text = file.read_text()
        assert old in text
        file.write_text(text.replace(old, new))

    return spoil


def _suite(change: Callable[[list[dict[str, object]]], object]) -> Callable[[OpWorkspace], None]:
    def spoil(ws: OpWorkspace) -> None:
        data = json.loads(ws.suite.read_text())
        change(data["cases"])
        ws.suite.write_text(json.dumps(data))

    return spoil


STRESS = {"target": "out", "expression": "x * x + y", "relative_gap": 1e-5, "seed": 42, "reached": 1e5}

ON_DEVICE = "torch.randn((rows, width), dtype=torch.float32, device=DEVICE)"
MOVED = (ON_DEVICE, "torch.randn((rows, width), dtype=torch.float32).to(DEVICE)")
HIDDEN = (f"y = {ON_DEVICE}", "y = getattr(torch, 'ran' + 'dn')(rows, width)")

FAULTS: dict[str, tuple[str, Callable[[OpWorkspace], None], str]] = {
    "runner-edited": ("runner", _edit("eval/adversarial_runner.py", "_compare = ", "_compare = print or "), "was changed"),
    "runner-missing": ("runner", lambda ws: ws.runner.unlink(), "cannot be read"),
    "level-missing": ("documents", _suite(lambda cases: cases.pop()), "level L5 has 1 case(s)"),
    "suite-missing": ("documents", lambda ws: ws.suite.unlink(), "no such file"),
    "suite-of-another-n": ("documents", _edit("eval/adversarial_suite.json", '"total_modules": 2', '"total_modules": 3'), "is 3"),
    "signature": ("documents", _edit("chain_golden.py", "(x, y)", "(y, x)"), "the golden takes y, x"),
    "inputs-unordered": ("inputs", _edit("eval/test_inputs.py", '["x", "y"]', '["y", "x"]'), "PRIMARY_INPUT_ORDER is y, x"),
    "inputs-unseeded": ("inputs", _edit("eval/test_inputs.py", 'torch.manual_seed(case.get("seed", 42))', "pass"), "same seed"),
    "inputs-fixed": ("inputs", _edit("eval/test_inputs.py", 'case.get("seed", 42)', "42"), "no case depends on its seed"),
    "inputs-shape": ("inputs", _edit("eval/test_inputs.py", "torch.randn((rows, width)", "torch.randn((width, rows)"), "shape"),
    "inputs-on-host": ("inputs", _edit("eval/test_inputs.py", *MOVED), "torch.randn makes a tensor on the host: give device="),
    "inputs-on-host-hidden": ("inputs", _edit("eval/test_inputs.py", *HIDDEN), "test_inputs.py:"),
    "golden-raises": ("golden", _edit("chain_golden.py", "return x * x + y", "raise ValueError(x)"), "ended with: exception"),
    "golden-arity": ("golden", _edit("chain_golden.py", "return x * x + y", "return x * x, y"), "returns 2 output(s)"),
    "golden-shape": ("golden", _edit("chain_golden.py", "return x * x + y", "return (x * x + y).t()"), "the contract says"),
    "golden-mutates": ("golden", _edit("chain_golden.py", "return x * x + y", "return x.mul_(x) + y"), "its own inputs"),
    "tolerance-blind": (
        "planted_faults",
        _suite(lambda cases: [case.update(atol=0.9, rtol=0.9) for case in cases]),
        "no case could tell out from one that is wrong like this: all zero",
    ),
    "outputs-too-small": ("planted_faults", _edit("chain_golden.py", "x * x + y", "(x * x + y) * 1e-9"), "all zero"),
    "no-cancellation": ("cancellation", _edit("chain_golden.py", "x * x + y", "x * x - y"), "no L5 case has cancellation_stress"),
    "cancels-no-more": ("cancellation", _suite(lambda cases: cases[-1].update(cancellation_stress=STRESS)), "times as it says"),
    "composition": ("composition", _edit("modules/chain_module12_golden.py", "square + y", "square - y"), "FAILED"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_each_check_fires(ws: OpWorkspace, fault: str) -> None:
    name, spoil, words = FAULTS[fault]
    spoil(ws)
    code, rows = checks(ws)
    assert code == 2
    assert rows[name]["status"] == "FAIL" and words in rows[name]["detail"], rows


def test_a_tolerance_that_refuses_the_golden_in_another_order_fails_with_its_remedy(ws: OpWorkspace) -> None:
    plain, cancelling = "return x * x + y", "return (x * x).sum(-1, keepdim=True) - 32 + y"
    _edit("chain_golden.py", plain, cancelling)(ws)
    _suite(lambda cases: [case.update(atol=1e-9, rtol=1e-9) for case in cases])(ws)
    code, rows = checks(ws)
    detail = rows["honest_orders"]["detail"]
    assert code == 2 and "the golden itself, adding up as" in detail and "case L2_" in detail and '"twin@2"' in detail, rows
    assert rows["natural_error"]["detail"].startswith("warning")
    _suite(lambda cases: [case.update(policy="twin@2") for case in cases])(ws)
    rows = checks(ws)[1]  # the composition still fails: its module goldens are those of another formula
    assert rows["honest_orders"]["status"] == "PASS", rows["honest_orders"]
    assert "warning" not in rows["natural_error"]["detail"]


def test_a_golden_that_never_ends_is_found_in_bounded_time(ws: OpWorkspace) -> None:
    ws.golden.write_text("def chain_golden(x, y):\n    while True:\n        pass\n")
    code, rows = checks(ws, "--timeout", "2")
    assert code == 2 and "timed_out" in rows["golden"]["detail"]


def test_no_value_of_a_golden_gets_out(ws: OpWorkspace) -> None:
    ws.golden.write_text("def chain_golden(x, y):\n    raise RuntimeError(f'secret {x}')\n")
    told = verify(ws.root, "--self-test")
    assert "secret" not in told.stdout + told.stderr


def test_the_sanitiser_takes_a_key_away_at_any_depth() -> None:
    result = {"status": "FAIL", "values": 2}
    report = {"status": "FAIL", "truth": 1, "checks": [{"id": "a", "inputs": [1.0], "modes": {"sim": result}}]}
    assert adversarial.sanitize(report) == {"status": "FAIL", "checks": [{"id": "a", "modes": {"sim": {"status": "FAIL"}}}]}


def test_compare_is_strict() -> None:
    import torch

    one = torch.ones(3)
    assert adversarial.compare((one,), (one,), 0.0, 0.0)["all_close"]
    assert not adversarial.compare((one, one), (one,), 1.0, 1.0)["all_close"]
    assert not adversarial.compare((one.to(torch.float16),), (one,), 1.0, 1.0)["all_close"]
    assert not adversarial.compare((one.reshape(3, 1),), (one,), 1.0, 1.0)["all_close"]
    row = adversarial.compare((one + 0.5,), (one,), 1e-3, 1e-3)["per_tensor"][0]
    assert row == {"name": "out0", "max_abs_diff": 0.5, "max_rel_diff": 0.5, "all_close": False}
