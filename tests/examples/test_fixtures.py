"""The suites of the examples refuse every planted fault and accept every legal variant.

An ordinary run judges a sample of them, each by the one case that its page names; PYPTO_OP_ALL_CASES=1 judges every
fixture, and the variants by the whole suite.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests import quickly
from tests.markdown_cases.examples import Kernel

from pypto_op.judge.cases.request import Request
from pypto_op.judge.verify import verify_operator
from pypto_op.vocabulary import Mode

from .operators import OPS, copy_of, judged

quickly.skip_without("pypto")
pytestmark = [pytest.mark.sim, pytest.mark.slow, pytest.mark.timeout(3000)]


def _all(kind: str) -> list:
    return [pytest.param(op, kernel, id=f"{op}-{kernel.name}") for op in OPS for kernel in judged(kind, op)]


def _verify(op: str, kernel: Kernel, into: Path, case: str | None) -> dict:
    ws = copy_of(op, into, impl=kernel.text)
    return verify_operator(ws, Request(modes=[Mode.SIM], case=case))


@pytest.mark.parametrize(("op", "kernel"), _all("faults"))
def test_a_planted_fault_is_refused(op, kernel, tmp_path):
    report = _verify(op, kernel, tmp_path, kernel.case)
    assert report["status"] in ("FAIL", "ERROR")
    assert report["cases_total"] == 1 and report["cases_passed"] == 0
    failure = report["first_failure"]
    assert failure["case_id"] == kernel.case
    # The kernel itself is refused; a broken workspace or machine would be `infra`.
    assert failure["failure_category"] in ("precision", "structural", "runtime"), failure
    assert failure["summary"]


@pytest.mark.parametrize(("op", "kernel"), _all("variants"))
def test_a_legal_variant_is_accepted(op, kernel, tmp_path):
    case = None if quickly.EVERYTHING else kernel.case
    report = _verify(op, kernel, tmp_path, case)
    assert report["status"] == ("PARTIAL" if case else "PASS"), report["first_failure"]
    assert report["cases_passed"] == report["cases_total"] > 0
