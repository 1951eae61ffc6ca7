"""Judges outputs of a golden's rewrites by the real rule, in this process: for forms of integers, orders and roundings."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import torch

from pypto_op.backends.base import RunResult
from pypto_op.backends.worker.outputs import leaves_of
from pypto_op.backends.worker.reference import truths
from pypto_op.documents.policy import Policy
from pypto_op.judge.answers.expectation import Expectation
from pypto_op.judge.answers.references import answered
from pypto_op.judge.answers.verdict import judge_run
from pypto_op.judge.findings.records import TrialVerdict
from pypto_op.judge.findings.redaction import Redactor
from pypto_op.twins.reordering import Reordered, storage_of
from pypto_op.vocabulary import Outcome, Status

Function = Callable[..., Any]


def leaves(returned: Any) -> list[torch.Tensor]:
    return [leaf.detach().contiguous() for leaf in leaves_of(returned)]


def runner(golden: Function, values: Sequence[Any]) -> Callable[..., RunResult]:
    """Return what answers as `ReferenceSession.golden` does."""

    def run(*, float64: bool = False, twin: str | None = None) -> RunResult:
        given = copy.deepcopy(list(values))
        if float64:
            found, facts = truths(golden, given, Path("op_golden.py"))
            each = len(found) // facts["ways"]
            first, *others = [found[n * each : (n + 1) * each] for n in range(facts["ways"])]
            return RunResult(Outcome.OK, outputs=first, others=others)
        with Reordered(twin or "golden", storage_of(given)), torch.no_grad():
            return RunResult(Outcome.OK, outputs=leaves(golden(*given)))

    return cache(run)


class Judge:
    """One golden on one draw of inputs, under one policy; `behind`: the tolerance that it stands in the place of."""

    def __init__(self, golden: Function, values: Sequence[Any], policy: Policy, behind: Policy | None = None) -> None:
        self.run, self.values = runner(golden, values), values
        names = [f"out{i}" for i in range(len(self.run().outputs))]
        self.expectation = Expectation(names, [], policy, precision=True, behind=behind)
        self.reference = answered(self.run, self.expectation)

    def __call__(self, candidate: Function | Sequence[torch.Tensor]) -> TrialVerdict:
        """Return the verdict on a function of the inputs, or on outputs."""
        outputs = leaves(candidate(*self.values)) if callable(candidate) else list(candidate)
        run = RunResult(Outcome.OK, outputs=outputs, launches=1, outputs_from_kernel=True)
        redactor = Redactor(Path("op_golden.py"), Path("op_impl.py"))
        return judge_run(run, self.reference, self.expectation, seed=0, redactor=redactor, secrets=())

    def takes(self, candidate: Function | Sequence[torch.Tensor]) -> bool:
        return self(candidate).status is Status.PASS
