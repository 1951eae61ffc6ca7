"""The suites of the examples refuse every planted fault and accept every legal variant.

An ordinary run judges a fault by the one case that `killed_by.yaml` names, and a variant by the case of
`judged_by.yaml`; of some operators it judges a sample. PYPTO_OP_ALL_CASES=1 judges every fixture, and the variants by
the whole suite.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from pypto_op.judge.verify import verify_operator
from pypto_op.vocabulary import Mode

from .operators import FIXTURES, OPS, copy_of, everything, judged

pytest.importorskip("pypto")
pytestmark = [pytest.mark.sim, pytest.mark.slow, pytest.mark.timeout(3000)]

KILLED_BY = yaml.safe_load((FIXTURES / "faults" / "killed_by.yaml").read_text())
JUDGED_BY = yaml.safe_load((FIXTURES / "variants" / "judged_by.yaml").read_text())


def _all(kind: str) -> list:
    return [pytest.param(op, path, id=f"{op}-{path.stem}") for op in OPS for path in judged(kind, op)]


def _verify(op: str, path: Path, into: Path, case: str | None) -> dict:
    ws = copy_of(op, into, impl=path)
    return verify_operator(ws, modes=[Mode.SIM], case=case)


@pytest.mark.parametrize(("op", "path"), _all("faults"))
def test_a_planted_fault_is_refused(op, path, tmp_path):
    report = _verify(op, path, tmp_path, KILLED_BY[op][path.stem])
    assert report["status"] in ("FAIL", "ERROR")
    assert report["cases_total"] == 1 and report["cases_passed"] == 0
    failure = report["first_failure"]
    assert failure["case_id"] == KILLED_BY[op][path.stem]
    # The kernel itself is refused; a broken workspace or machine would be `infra`.
    assert failure["failure_category"] in ("precision", "structural", "runtime"), failure
    assert failure["summary"]


@pytest.mark.parametrize(("op", "path"), _all("variants"))
def test_a_legal_variant_is_accepted(op, path, tmp_path):
    case = None if everything() else JUDGED_BY[op]
    report = _verify(op, path, tmp_path, case)
    assert report["status"] == ("PARTIAL" if case else "PASS"), report["first_failure"]
    assert report["cases_passed"] == report["cases_total"] > 0
