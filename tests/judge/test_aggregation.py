"""From trials to a verdict: aggregation over seeds, cases and modes, fingerprints, and who has to act. No kernel runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from pypto_op.backends.base import Availability, Limits, RunResult
from pypto_op.documents.policy import get_policy
from pypto_op.judge.answers.expectation import Expectation, Reference
from pypto_op.judge.answers.plan import Plan
from pypto_op.judge.answers.verdict import judge_run, refuse
from pypto_op.judge.cases.contract import policy_of_case
from pypto_op.judge.cases.subject import Subject
from pypto_op.judge.findings import summary
from pypto_op.judge.findings.reasons import Reason
from pypto_op.judge.findings.records import CaseRecord, ModeRecord, TrialVerdict
from pypto_op.judge.findings.redaction import Redactor
from pypto_op.judge.reporting import report as reports
from pypto_op.judge.running.runner import run_cases
from pypto_op.judge.running.sabotage import right_outputs
from pypto_op.judge.running.staleness import agree
from pypto_op.judge.self_test.golden_candidate import judged
from pypto_op.vocabulary import FailureCategory, Fingerprint, Mode, Outcome, Status

from .judging import place, sim_problem

PASS, FAIL, ERROR, SKIPPED = Status.PASS, Status.FAIL, Status.ERROR, Status.SKIPPED

TRIALS = {
    PASS: lambda: TrialVerdict(42, PASS, precision_checked=True),
    FAIL: lambda: TrialVerdict(42, FAIL, (Reason.MISMATCH,), FailureCategory.PRECISION, "total: far off"),
    ERROR: lambda: TrialVerdict(42, ERROR, (Reason.EXCEPTION,), FailureCategory.RUNTIME, "it raised"),
    SKIPPED: lambda: refuse(Reason.UNAVAILABLE, "no device"),
}


def record(sim: Status | Sequence[Status], npu: Status | None = None, name: str = "case") -> CaseRecord:
    modes = {Mode.SIM: sim} if npu is None else {Mode.SIM: sim, Mode.NPU: npu}
    made = {
        mode: ModeRecord(mode, [TRIALS[s]() for s in ([status] if isinstance(status, Status) else status)])
        for mode, status in modes.items()
    }
    return CaseRecord({"id": name, "level": "L2"}, (42,), made)


def per_mode(records: Sequence[CaseRecord]) -> dict[Mode, Status]:
    return {mode: summary.mode_status(records, mode) for mode in records[0].modes}


@pytest.mark.parametrize(
    ("sim", "npu", "expected"),
    [
        (PASS, FAIL, Fingerprint.KERNEL_OK_NPU_ONLY),
        (PASS, ERROR, Fingerprint.KERNEL_OK_NPU_ONLY),
        (FAIL, PASS, Fingerprint.IR_DIVERGENCE),
        (ERROR, PASS, Fingerprint.IR_DIVERGENCE),
        (FAIL, FAIL, Fingerprint.ALL_FAIL),
        (ERROR, FAIL, Fingerprint.ALL_FAIL),
        (FAIL, SKIPPED, None),
        (PASS, PASS, None),
    ],
)
def test_fingerprint(sim: Status, npu: Status, expected: Fingerprint | None) -> None:
    assert summary.fingerprint(record(sim, npu)) is expected


def test_a_file_that_loads_nowhere_fails_everywhere() -> None:
    one = record(SKIPPED)
    one.modes[Mode.SIM].trials = [refuse(Reason.SYNTAX_ERROR)]
    assert summary.fingerprint(one) is Fingerprint.ALL_FAIL
    assert summary.overall_status([one], per_mode([one])) is ERROR


@pytest.mark.parametrize(
    ("cases", "expected"),
    [
        ([PASS, PASS], PASS),
        ([PASS, FAIL], FAIL),
        ([FAIL, ERROR, PASS], ERROR),
        ([SKIPPED, SKIPPED], SKIPPED),
        ([PASS, SKIPPED], SKIPPED),
        ([SKIPPED, FAIL], FAIL),
    ],
)
def test_mode_is_its_worst_case(cases: list[Status], expected: Status) -> None:
    assert summary.mode_status([record(status) for status in cases], Mode.SIM) is expected


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ([(PASS, PASS)], PASS),
        ([(PASS, SKIPPED)], PASS),
        ([(SKIPPED, SKIPPED)], ERROR),
        ([(PASS, FAIL)], FAIL),
        ([(FAIL, PASS)], FAIL),
        ([(ERROR, PASS)], FAIL),
        ([(PASS, SKIPPED), (SKIPPED, SKIPPED)], ERROR),
    ],
)
def test_overall(cells: list[tuple[Status, Status]], expected: Status) -> None:
    records = [record(*cell, name=f"case{i}") for i, cell in enumerate(cells)]
    assert summary.overall_status(records, per_mode(records)) is expected


@pytest.mark.parametrize(("seeds", "expected"), [((PASS, FAIL), FAIL), ((PASS, SKIPPED), SKIPPED), ((PASS, PASS), PASS)])
def test_a_case_passes_on_every_seed_or_not_at_all(seeds: tuple[Status, ...], expected: Status) -> None:
    assert record(seeds).status is expected


def test_first_failure_names_the_earliest_case_and_reason(tmp_path: Path) -> None:
    subject = subject_of(tmp_path)
    found = summary.first_failure([record(PASS, PASS, "a"), record(PASS, FAIL, "b"), record(ERROR, ERROR, "c")], subject, {})
    assert found is not None
    assert (found["case_id"], found["mode"], found["reason"]) == ("b", "npu", "mismatch")
    assert (found["divergence_fingerprint"], found["failing_module_boundary"]) == ("kernel_ok_npu_only", 1)
    assert summary.first_failure([record(PASS, PASS)], subject, {}) is None


@pytest.mark.parametrize(
    ("status", "kind", "code"),
    [("PASS", None, 0), ("FAIL", None, 1), ("ERROR", "candidate", 1), ("ERROR", "contract", 2), ("ERROR", "infra", 3)],
)
def test_exit_code(status: str, kind: str | None, code: int) -> None:
    assert reports.exit_code({"status": status, "error": kind and {"kind": kind, "message": "m"}}) == code


@pytest.mark.parametrize(
    ("categories", "code"), [(["infra"], 3), (["infra", "infra"], 3), (["infra", "precision"], 1), (["oom"], 1)]
)
def test_what_the_machine_alone_failed_is_no_fail(categories: list[str], code: int) -> None:
    checks = [{"modes": {"npu": {"status": "ERROR", "failure_category": category}}} for category in categories]
    checks.append({"modes": {"npu": {"status": "PASS", "failure_category": None}}})
    assert reports.exit_code({"status": "FAIL", "error": None, "checks": checks}) == code


# -- modes never short-circuit one another ---------------------------------------------------------------------------


class Scripted:
    """A mode whose runs end as scripted; it remembers which cases it was given."""

    def __init__(self, mode: Mode, outcome: Outcome, off: float = 0.0) -> None:
        self.mode, self.outcome, self.off, self.asked = mode, outcome, off, []
        self.loaded = {}

    def availability(self) -> Availability:
        return Availability(True, True, "", {}, ())

    def open(self, *_: Any, **__: Any) -> Scripted:
        return self

    def run(self, case_id: str, inputs: Sequence[Any], *, again: bool = False, trial: bool = False) -> RunResult:
        self.asked.append(case_id)
        x, y = inputs
        right = self.outcome is Outcome.OK
        total = 2.0 * x + y
        total.view(-1)[0] *= 1.0 + self.off
        return RunResult(self.outcome, outputs=[total, x - y] if right else [], launches=1, outputs_from_kernel=True)

    def __enter__(self) -> Scripted:
        return self

    def __exit__(self, *_: object) -> None:
        return None


def subject_of(folder: Path) -> Subject:
    ws = place("sum_diff", folder)
    return Subject(ws, ws.impl, "sum_diff_wrapper", ws.golden, "sum_diff_golden", None, 1)


def plan_of(folder: Path, modes: dict[Mode, Scripted], *, count: int, **rules: Any) -> Plan:
    case = {"level": "L2", "shape": {"N": 3, "D": 4}, "dtype": {"default": "float32"}, "seed": 1}
    return Plan(
        subject=subject_of(folder),
        cases=[{**case, "id": f"case{i}"} for i in range(count)],
        backends=modes,
        available={mode: backend.availability() for mode, backend in modes.items()},
        leaf_names=["total", "diff"],
        input_names=["x", "y"],
        extra_seed=9,
        limits=Limits(),
        further=False,
        **rules,
    )


@pytest.mark.sim
@pytest.mark.skipif(bool(sim_problem()), reason="no simulator")
@pytest.mark.parametrize("outcome", [Outcome.EXCEPTION, Outcome.TIMED_OUT, Outcome.CRASHED])
def test_a_mode_that_fails_does_not_spare_the_other(tmp_path: Path, outcome: Outcome) -> None:
    modes = {Mode.SIM: Scripted(Mode.SIM, outcome), Mode.NPU: Scripted(Mode.NPU, Outcome.OK)}
    records = run_cases(plan_of(tmp_path, modes, count=5, policy_for=lambda _: get_policy("allclose@1")))
    assert per_mode(records) == {Mode.SIM: ERROR, Mode.NPU: PASS}
    assert modes[Mode.NPU].asked == [f"case{i}" for i in range(5) for _ in range(2)], "two seeds each, all cases"
    given_up = outcome is not Outcome.EXCEPTION
    assert len(modes[Mode.SIM].asked) == (3 if given_up else 5)
    assert all(summary.fingerprint(one) is Fingerprint.IR_DIVERGENCE for one in records)


@pytest.mark.sim
@pytest.mark.skipif(bool(sim_problem()), reason="no simulator")
def test_a_policy_that_a_case_does_not_need_loosens_nothing(tmp_path: Path) -> None:
    tolerance = get_policy({"name": "allclose", "atol": 1e-12, "rtol": 5e-7})
    verdicts = []
    for number, behind in enumerate((None, tolerance)):
        modes = {Mode.SIM: Scripted(Mode.SIM, Outcome.OK, off=1.2e-6)}
        (tmp_path / str(number)).mkdir()
        rules = {"policy_for": lambda _: get_policy("twin@2"), "tolerance_behind": lambda _, behind=behind: behind}
        verdicts += run_cases(plan_of(tmp_path / str(number), modes, count=1, **rules))
    assert [verdict.status for verdict in verdicts] == [PASS, FAIL], "natural by twin@2, outside the tolerance"
    assert "honest rounding takes 0 of it" in verdicts[1].modes[Mode.SIM].trials[0].summary


def test_a_policy_that_a_case_needs_stands_in_the_place_of_its_tolerance() -> None:
    twin, tolerance = get_policy("twin@2"), get_policy("allclose@1")
    expectation = Expectation([], [], twin, True, behind=tolerance)
    assert expectation.policies(0.3) == [twin] and expectation.policies(0.2) == [twin, tolerance]


@pytest.mark.parametrize(
    ("dtype", "float32", "float16"),
    [
        ({"dtype": {"default": "fp16"}}, 1e-5, 9.0),  # an output in float32 keeps the operator's
        ({"dtype": "float16"}, 1e-5, 9.0),
        ({"dtype": {"x": "float32", "y": "half"}}, 9.0, 9.0),
        ({"dtype_mode": "mixed"}, 9.0, 9.0),
    ],
)
def test_a_case_s_own_tolerance_is_about_its_own_dtype(dtype: dict[str, Any], float32: float, float16: float) -> None:
    policy = policy_of_case(get_policy("allclose@1"), {**dtype, "atol": 9.0, "rtol": 0.0})
    assert [policy.for_dtype(word)["atol"] for word in ("float32", "float16")] == [float32, float16]


@pytest.mark.parametrize("size", [1.0, 2.0**-72])
def test_zeros_are_not_right_where_all_numbers_are_small(size: float) -> None:
    """A wrapper that allocates zeros was said to be right without its kernel, since all was below the usual atol."""
    case = Expectation(["out"], ["x"], get_policy("twin@2"), precision=True)
    right = torch.randn(4, 8, generator=torch.Generator().manual_seed(1)).to(torch.bfloat16) * size
    assert agree([right * 1.001], [right], case)
    assert not agree([torch.zeros_like(right)], [right], case) and not agree([right * 1.1], [right], case)
    silent = RunResult(Outcome.OK, outputs=[torch.zeros_like(right)])
    reference = Reference(RunResult(Outcome.OK, outputs=[right]))
    assert right_outputs(silent, reference, case, []) == []
    assert right_outputs(replace(silent, outputs=[right.clone()]), reference, case, []) == ["out"]


def test_nobody_asks_whether_a_fault_planted_in_the_golden_looks_like_rounding(tmp_path: Path) -> None:
    """Honest runs of the golden were a third of what `harness new` computed, for a hint that nobody reads."""
    asked: list[str] = []

    def honest(name: str) -> RunResult:
        asked.append(name)
        return RunResult(Outcome.TIMED_OUT)

    right = torch.linspace(1.0, 2.0, 64)
    reference = Reference(RunResult(Outcome.OK, outputs=[right]), reordered=honest)
    case, redactor = Expectation(["out"], [], get_policy("allclose@1"), precision=True), Redactor(tmp_path, tmp_path)
    off = [right * 1.05]
    assert judged(off, reference, case, redactor).status is FAIL and not asked
    run = RunResult(Outcome.OK, outputs=off, launches=1, outputs_from_kernel=True)
    assert judge_run(run, reference, case, seed=0, redactor=redactor, secrets=()).status is FAIL and asked
