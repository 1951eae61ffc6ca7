"""The inspection probe of a reverse scan says at which iteration a kernel begins to drift, and that a right one does not."""

from __future__ import annotations

import pytest
from tests import quickly
from tests.markdown_cases.examples import kernel

from pypto_op.judge.cases.request import Request
from pypto_op.judge.verify import verify_operator
from pypto_op.vocabulary import Mode

from .operators import copy_of

quickly.skip_without("pypto")
pytestmark = [pytest.mark.sim, pytest.mark.slow, pytest.mark.timeout(600)]

OP = "gated_delta_rule_bwd"


def _inspect(name: str, into) -> dict:
    ws = copy_of(OP, into)
    probe = kernel("probes", OP, name)
    impl = into / f"{name}.py"
    impl.write_bytes(probe.text)
    return verify_operator(ws, Request(modes=[Mode.SIM], impl=impl, up_to_module=2, case=probe.case, inspect="dstate"))


def test_the_carried_gradient_of_the_right_kernel_does_not_drift(tmp_path):
    report = _inspect("right", tmp_path)
    assert report["status"] == "PARTIAL", report["first_failure"]
    rows = report["checks"][0]["inspection"]["per_iter"]
    assert [row["iter"] for row in rows] == [0, 1, 2]
    assert all(row["all_close"] for row in rows)


def test_a_state_that_is_not_decayed_drifts_from_the_third_chunk_on(tmp_path):
    report = _inspect("state_not_decayed", tmp_path)
    assert report["status"] == "FAIL"
    assert [row["all_close"] for row in report["checks"][0]["inspection"]["per_iter"]] == [True, True, False]
    assert report["first_failure"]["drift_onset_iter"] == 2
