"""`verify --self-test`: each check of the harness fires on the fault that it is there for; no kernel runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from twins.honest_forms import Judge

from pypto_op.harness.evaluation import runner_text
from pypto_op.judge import adversarial, planted_faults
from pypto_op.judge.planted_faults import Planted
from pypto_op.policy import Policy, get_policy
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
    "suite-missing": ("documents", lambda ws: ws.suite.unlink(), "is missing"),
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
    code, rows = checks(ws)
    assert code == 0 and "warning" not in rows["natural_error"]["detail"], rows


def test_a_golden_that_never_ends_is_found_in_bounded_time(ws: OpWorkspace) -> None:
    ws.golden.write_text("def chain_golden(x, y):\n    while True:\n        pass\n")
    code, rows = checks(ws, "--timeout", "3")
    assert code == 2 and "timed_out" in rows["golden"]["detail"]


def test_no_value_of_a_golden_gets_out(ws: OpWorkspace) -> None:
    ws.golden.write_text("def chain_golden(x, y):\n    raise RuntimeError(f'secret {x}')\n")
    told = verify(ws.root, "--self-test")
    assert "secret" not in told.stdout + told.stderr


def plant(golden: Callable[..., Any], policy: Policy, *values: Any, judge: Callable[..., bool] | None = None) -> Planted:
    """Plant faults into a golden's answer under the real rule, or under another judge."""
    real = Judge(golden, values, policy)
    far = planted_faults.far_of(real.reference, [policy])
    return planted_faults.plant(real.reference.native.outputs, judge or (lambda wrong: not real.takes(wrong)), far)


def golden_of_three(x: Any, y: Any, n: Any) -> Any:
    return (x.unsqueeze(-1) * 3).sum(-1), x + y, n + 1


@pytest.mark.parametrize("policy", ["allclose@1", "twin@2"])
def test_planted_faults_are_seen_under_the_policy_itself(policy: str) -> None:
    import torch

    torch.manual_seed(1)
    planted = plant(golden_of_three, get_policy(policy), torch.randn(5, 4), torch.randn(5, 4), torch.randint(0, 9, (5,)))
    assert planted.missed == ()
    kinds = {fault for fault, _ in planted.seen}
    assert kinds >= {*planted_faults.NEEDED, "a dropped output", "swapped with output 0", "another dtype", "reversed rows"}


def test_a_fault_that_a_tolerance_hides_is_not_called_one_and_a_judge_that_errs_is_told() -> None:
    import torch

    values = [torch.linspace(1.0, 2.0, 6).reshape(3, 2)]
    blind = get_policy({"name": "allclose", "version": 1, "atol": 1e3, "rtol": 0.0})
    planted = plant(lambda x: x * 1, blind, *values)
    assert not {fault for fault, _ in planted.seen} & set(planted_faults.NEEDED)
    for policy in ("allclose@1", "twin@2"):
        missed = plant(lambda x: x * 1, get_policy(policy), *values, judge=lambda wrong: False).missed
        assert "twice as large (output 0)" in missed and "another dtype (output 0)" in missed


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
