"""A judge of one output, by the policy `twin@2` and the golden's own process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from pypto_op.backends.answers import Answers
from pypto_op.backends.base import RunResult
from pypto_op.backends.reference import ReferenceSession
from pypto_op.documents.policy import get_policy
from pypto_op.judge.answers.expectation import Expectation
from pypto_op.judge.answers.references import answered
from pypto_op.judge.answers.verdict import judge_run
from pypto_op.judge.findings.redaction import Redactor
from pypto_op.vocabulary import Outcome, Status
from pypto_op.workspace import OpWorkspace

Judge = Callable[..., Status]


@contextmanager
def judge_of(folder: Path, golden: str, usual: str) -> Iterator[Judge]:
    """Give a function (output, *inputs, function=usual) -> status; `golden` is the source of the golden's file."""
    root = folder / "custom" / "op"
    (root / "eval").mkdir(parents=True)
    ws = OpWorkspace(root, "op")
    ws.test_inputs.write_text("")
    ws.golden.write_text(golden)
    expectation = Expectation(["y"], [], get_policy("twin@2"), precision=True)
    with ReferenceSession(ws) as session:

        def status(output: torch.Tensor, *inputs: torch.Tensor, function: str = usual) -> Status:
            told = Answers(session, function=function, file=ws.golden)
            reference = answered(lambda **how: told.ask(inputs, **how), expectation)
            assert reference.problem() is None
            run = RunResult(Outcome.OK, outputs=[output], launches=1, outputs_from_kernel=True)
            return judge_run(run, reference, expectation, seed=0, redactor=Redactor(ws.golden, ws.impl), secrets=()).status

        yield status
