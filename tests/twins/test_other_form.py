"""A golden's other form makes another algorithm's rounding natural, and loosens nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from tests.calling import command
from tests.examples.operators import copy_of

from pypto_op.backends.answers import Answers
from pypto_op.backends.base import RunResult
from pypto_op.backends.reference import ReferenceSession
from pypto_op.documents.policy import get_policy
from pypto_op.judge.answers.expectation import Expectation
from pypto_op.judge.answers.references import answered
from pypto_op.judge.answers.verdict import judge_run
from pypto_op.judge.cases.natural import natural_share
from pypto_op.judge.findings.redaction import Redactor
from pypto_op.reproduce.summation import differences
from pypto_op.twins.other_form import MOST, defines_form
from pypto_op.twins.reordering import OTHER_FORM
from pypto_op.vocabulary import Outcome, Status
from pypto_op.workspace import OpWorkspace

pytestmark = [pytest.mark.sim, pytest.mark.timeout(600), pytest.mark.usefixtures("numeric")]

OP = "gated_delta_rule_bwd"

GOLDEN = """
import torch


def before_golden(x):
    \"\"\"Return the sum of what stands before each element, term by term: the first is exactly 0.\"\"\"
    total, found = torch.zeros_like(x[:, 0]), []
    for place in range(x.shape[1]):
        found.append(total)
        total = total + x[:, place]
    return torch.stack(found, dim=1)
"""

FORM = """

def before_golden_other_form(x):
    return x.sum(dim=1, keepdim=True) - x.flip(1).cumsum(1).flip(1)
"""


def from_the_end(x: torch.Tensor) -> torch.Tensor:
    """A right kernel: the sum of all, less the sums from the end in blocks of 16. No order of the golden's sums rounds so."""
    whole, rest = torch.zeros(x.shape[0]), torch.zeros(x.shape[0], 0)
    for start in range(x.shape[1] - 16, -1, -16):
        block = x[:, start : start + 16].flip(1).cumsum(1).flip(1) + whole[:, None]
        rest, whole = torch.cat([block, rest], dim=1), block[:, 0]
    return x.sum(dim=1, keepdim=True) - rest


@pytest.fixture
def ws(tmp_path: Path) -> OpWorkspace:
    root = tmp_path / "custom" / "before"
    (root / "eval").mkdir(parents=True)
    (root / "eval" / "test_inputs.py").write_text("")
    return OpWorkspace(root, "before")


X = 20.0 + torch.randn(4, 64, generator=torch.Generator().manual_seed(3))


class Golden:
    """A golden's file, asked and judged as the judge does it."""

    def __init__(self, ws: OpWorkspace, source: str) -> None:
        ws.golden.write_text(source)
        self.ws, self.session = ws, ReferenceSession(ws)
        self.answers = Answers(self.session, function="before_golden", file=ws.golden)

    def run(self, x: torch.Tensor = X, **how: object) -> RunResult:
        return self.answers.ask([x], **how)

    def status(self, output: torch.Tensor, policy: str = "twin@2") -> Status:
        expectation = Expectation(["y"], [], get_policy(policy), precision=True)
        reference = answered(self.run, expectation)
        assert reference.problem() is None
        run = RunResult(Outcome.OK, outputs=[output], launches=1, outputs_from_kernel=True)
        redactor = Redactor(self.ws.golden, self.ws.impl)
        return judge_run(run, reference, expectation, seed=0, redactor=redactor, secrets=()).status


@pytest.fixture
def golden(ws: OpWorkspace) -> Iterator[Golden]:
    made = Golden(ws, GOLDEN + FORM)
    yield made
    made.session.close()


def test_another_algorithm_is_right_with_the_form_and_refused_without(ws: OpWorkspace, golden: Golden) -> None:
    assert golden.status(from_the_end(X)) is Status.PASS
    plain = Golden(ws, GOLDEN)
    try:
        assert plain.status(from_the_end(X)) is Status.FAIL
    finally:
        plain.session.close()


WRONG = {
    "times 1.001": lambda y: y * 1.001,
    "one element less": lambda y: torch.cat([y[:, :1], y[:, :-1]], dim=1),
    "a row of zeros": lambda y: torch.cat([y[:-1], y[-1:] * 0], dim=0),
    "the first is off": lambda y: torch.cat([y[:, :1] + 0.05, y[:, 1:]], dim=1),
    "rounded to 16 bits": lambda y: y.to(torch.float16).to(torch.float32),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_stays_wrong(golden: Golden, name: str) -> None:
    assert golden.status(WRONG[name](from_the_end(X))) is Status.FAIL


def test_a_share_of_the_tolerance_counts_the_form(ws: OpWorkspace, golden: Golden) -> None:
    tolerance = get_policy({"name": "allclose", "version": 1, "atol": 1e-6, "rtol": 1e-5})
    with_form = natural_share(golden.run, golden.run(), tolerance)
    plain = Golden(ws, GOLDEN)
    try:
        assert with_form > 10 * natural_share(plain.run, plain.run(), tolerance)
        own = plain.run()
        assert torch.equal(plain.run(twin=OTHER_FORM).outputs[0], own.outputs[0])
    finally:
        plain.session.close()


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("return x.cumsum(1)", "in float64 its output 1 is another than the golden's"),
        ("return (x.sum(1, keepdim=True) - x.flip(1).cumsum(1).flip(1)) * 1.0000001", "in float64 its output 1 is another"),
        ("return x.to(torch.float16)", "other shapes or dtypes"),
        ("return x[:, 1:]", "other shapes or dtypes"),
        ("raise ValueError('no chunk')", "ValueError: no chunk"),
    ],
)
def test_a_form_that_says_something_else_is_told(ws: OpWorkspace, body: str, words: str) -> None:
    golden = Golden(ws, f"{GOLDEN}\n\ndef before_golden_other_form(x):\n    {body}\n")
    try:
        answer = golden.run(twin=OTHER_FORM)
        assert answer.outcome is not Outcome.OK
        assert words in answer.detail
        assert "before_golden" in answer.detail
        expectation = Expectation(["y"], [], get_policy("twin@2"), precision=True)
        assert "as the twin other_form" in (answered(golden.run, expectation).problem() or "")
    finally:
        golden.session.close()


def test_what_a_form_rounds_counts_so_far_and_no_further(ws: OpWorkspace) -> None:
    """One that is right in float64 and throws bits away in float32 would make any kernel right."""
    body = "y = x.sum(1, keepdim=True) - x.flip(1).cumsum(1).flip(1)\n    return y + (0.5 if x.dtype == torch.float32 else 0.0)"
    golden = Golden(ws, f"{GOLDEN}\n\ndef before_golden_other_form(x):\n    {body}\n")
    try:
        own, exact = golden.run().outputs[0], golden.run(float64=True).outputs[0]
        counts = golden.run(twin=OTHER_FORM).outputs[0]
        unit = max(float((own - exact).abs().max()), torch.finfo(torch.float32).eps * float(exact.abs().max()))
        assert 0.0 < float((counts - exact).abs().max()) <= 1.01 * MOST * unit < 0.1
        assert golden.status(from_the_end(X) + 0.5) is Status.FAIL
    finally:
        golden.session.close()


def test_whole_numbers_and_what_is_not_finite_stay_the_goldens(ws: OpWorkspace) -> None:
    source = """
import torch


def before_golden(x):
    return torch.log(x), x.argmax(dim=-1)


def before_golden_other_form(x):
    return torch.where(x > 0, torch.log2(x) * 0.6931471805599453, 7.0), x.argmax(dim=-1) + 1
"""
    golden = Golden(ws, source)
    try:
        x = X.clone()
        x[0, 0], x[1, 1] = 0.0, torch.nan
        own, form = golden.run(x), golden.run(x, twin=OTHER_FORM)
        assert torch.equal(own.outputs[1], form.outputs[1])
        assert torch.isneginf(form.outputs[0][0, 0])
        assert torch.isnan(form.outputs[0][1, 1])
    finally:
        golden.session.close()


def test_the_reproducer_measures_the_form(ws: OpWorkspace) -> None:
    scope: dict[str, object] = {"__name__": "before"}
    exec(GOLDEN + FORM, scope)  # noqa: S102  (a golden's own text)
    policy = get_policy("allclose@1").as_dict()
    found = differences(scope["before_golden"], [X], ["y"], policy)  # type: ignore[arg-type]
    assert found[OTHER_FORM][0]["max_violation"] > found["reversed"][0]["max_violation"]


def test_which_files_define_a_form() -> None:
    assert defines_form(GOLDEN + FORM, "before_golden")
    assert not defines_form(GOLDEN, "before_golden")
    assert not defines_form("# def before_golden_other_form(x):\n", "before_golden")
    assert not defines_form(GOLDEN + FORM, "after_golden")


@pytest.mark.slow
@pytest.mark.parametrize("with_form", [True, False])
def test_the_example_in_chunks_needs_the_form_of_its_golden(tmp_path: Path, with_form: bool) -> None:
    ws = copy_of(OP, tmp_path)
    for made in (ws.suite, ws.test_inputs):
        made.unlink()
    if not with_form:
        ws.golden.write_text(ws.golden.read_text().replace(f"{OP}_golden_other_form", "in_chunks"))
    assert command("harness", "new", "--no-rehearsal", "--force", ws.root).code == 0
    document = json.loads(ws.suite.read_text())
    (case,) = (case for case in document["cases"] if case["id"] == "L2_base_again_float16")
    del case["atol"], case["rtol"]
    case["policy"] = "twin@2"
    ws.suite.write_text(json.dumps(document))
    # On other seeds the error is as small and as even as another algorithm's rounding may be without a form.
    told = command("verify", ws.root, "--modes", "sim", "--json", "--case", case["id"], "--seed", "7").report
    assert [check["status"] for check in told["checks"]] == ["PASS" if with_form else "FAIL"]
