"""Stress cases from golden to verdict: the search finds a recipe, the suite carries it, the report tells what it reached."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from pypto_op.backends.reference import ReferenceSession
from pypto_op.bundle_files import bundle_root
from pypto_op.documents import schema
from pypto_op.errors import ContractError
from pypto_op.judge.cases.request import Request
from pypto_op.judge.stressing import patterns_source, stress_case, stress_sites
from pypto_op.judge.verify import verify_operator
from pypto_op.vocabulary import Mode
from pypto_op.workspace import OpWorkspace

pytestmark = [pytest.mark.sim, pytest.mark.timeout(900), pytest.mark.usefixtures("private_key")]

BASE = {"id": "wide", "level": "L3", "shape": {"N": 12, "D": 32}, "dtype": {"default": "float32"}, "seed": 42}

VARIANCE = '''import torch


def sum_diff_golden(x, y):
    """Return (variance of each row of x, spread over it; x - y)."""
    centred = x - x.mean(-1, keepdim=True)
    return (centred * centred).mean(-1, keepdim=True) + 0.0 * y, x - y
'''


@pytest.fixture
def ws(tmp_path: Path) -> OpWorkspace:
    """sum_diff, whose test_inputs.py applies recipes."""
    root = tmp_path / "custom" / "sum_diff"
    source = bundle_root() / "tests" / "fixtures" / "ops" / "sum_diff"
    shutil.copytree(source, root, ignore=shutil.ignore_patterns("_debug", "__pycache__"))
    ws = OpWorkspace.at(root)
    text = ws.test_inputs.read_text().replace(
        'return {"x": x, "y": y}', 'return stressed({"x": x, "y": y}, (case.get("cancellation_stress") or {}).get("recipe", ()))'
    )
    ws.test_inputs.write_text(f"{text}\n\n{patterns_source()}")
    return ws


def one_pass_variance(x: torch.Tensor) -> torch.Tensor:
    """The textbook's mistake: E[x^2] - E[x]^2."""
    return (x * x).mean(-1) - x.mean(-1) ** 2


def test_a_case_reaches_its_condition_for_every_seed_and_the_report_tells_it(ws: OpWorkspace) -> None:
    with ReferenceSession(ws) as session:
        found = stress_case(ws, session, BASE, expression="x  -  y", target="diff")
        again = stress_case(ws, session, BASE, expression="x - y", target="diff")
    assert found is not None and found == again
    stress = found.case["cancellation_stress"]
    assert found.case["id"] == "L5_cancellation_stress_wide" and found.case["level"] == "L5"
    assert stress["expression"] == "x - y" and stress["target"] == "diff"
    assert found.wanted == pytest.approx(1e5)
    assert stress["reached"] == found.reached >= found.wanted > 1e3 > found.plain
    suite: dict[str, Any] = {"schema_version": 1, "op": "sum_diff", "total_modules": 1, "cases": [found.case]}
    assert schema.findings(suite, "adversarial_suite") == []
    ws.suite.write_text(json.dumps(suite))
    report = verify_operator(ws, Request(modes=[Mode.SIM]))
    told = report["checks"][0]["stress"]
    assert told["wanted"] == pytest.approx(1e5) and told["quantile"] == 0.5
    assert told["reached"] >= 0.9e5, "the fresh seed, which nobody knew, is as bad"
    assert report["status"] == "PASS", report["first_failure"]


def test_it_exposes_what_random_inputs_do_not(ws: OpWorkspace) -> None:
    ws.golden.write_text(VARIANCE)
    with ReferenceSession(ws) as session:
        sites = {site.expression: site.condition for site in stress_sites(ws, session, BASE)}
        assert sites["x - x.mean(-1, keepdim=True)"] < 10 and sites["x.mean(-1, keepdim=True)"] < 100
        found = stress_case(ws, session, BASE, expression="x - x.mean(-1, keepdim=True)", relative_gap=1e-3)
        assert found is not None and found.reached >= 1e3
        plain = session.make_inputs(dict(BASE))[0][1]
        hard = session.make_inputs(found.case)[0][1]
    assert isinstance(plain, torch.Tensor) and isinstance(hard, torch.Tensor)
    for x, exposed in ((plain, False), (hard, True)):
        exact = x.double().var(-1, correction=0)
        close = torch.allclose(one_pass_variance(x).double(), exact, rtol=1e-4, atol=0)
        assert close is not exposed
        assert torch.allclose(x.var(-1, correction=0).double(), exact, rtol=1e-4, atol=0), "two honest passes are right on both"


def test_a_narrow_dtype_is_marked_as_the_best_that_was_found(ws: OpWorkspace) -> None:
    case = {**BASE, "dtype": {"default": "float16"}}
    with ReferenceSession(ws) as session:
        found = stress_case(ws, session, case, expression="x - y")
    assert found is not None and found.case["id"].endswith("_bestfound")
    assert 100 < found.reached < 1e5


def test_what_cannot_cancel_is_none_and_what_does_not_run_is_told(ws: OpWorkspace) -> None:
    ws.golden.write_text("def sum_diff_golden(x, y):\n    return (x * x).sum(-1, keepdim=True) + y * y, x * y\n")
    with ReferenceSession(ws) as session:
        assert stress_case(ws, session, BASE, expression="(x * x).sum(-1, keepdim=True)") is None
        ws.golden.write_text("def sum_diff_golden(x, y):\n    raise RuntimeError('no')\n")
        with pytest.raises(ContractError, match="sum_diff_golden.py:2: RuntimeError"):
            stress_case(ws, session, BASE)
