"""By which rule the judge compares a case's outputs, for tests that run beside a kernel (`pypto-op tests new` writes them).

A test has its own wrapper call and its own golden call; which policies must hold, what the outputs are compared with
and which twins set the bounds is the judge's business, so it comes from here and from SPEC.md, not from the test's text.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pypto_op.backends.base import RunResult
from pypto_op.backends.reference import ReferenceSession
from pypto_op.documents.policy import Policy
from pypto_op.errors import ContractError
from pypto_op.judge.answers.expectation import expectation_of
from pypto_op.judge.answers.references import answered
from pypto_op.judge.cases.contract import Contract, load_contract
from pypto_op.vocabulary import Outcome
from pypto_op.workspace import OpWorkspace, to_run

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Rule:
    """One policy that every output must satisfy."""

    policy: Policy  # the policy, for `detailed_tensor_compare(policy=...)`
    expected: Sequence[torch.Tensor]  # per output, what it is compared with: the golden's answer, or the float64 truth
    twins: Sequence[Sequence[torch.Tensor] | None]  # per output, what each honest twin answers; None where the policy needs none


def rules(
    op_dir: Path | str,
    case: Mapping[str, Any],
    inputs: Sequence[Any],
    expected: Sequence[torch.Tensor],
    outputs: Sequence[torch.Tensor],
    *,
    phase: int | None = None,
) -> list[Rule]:
    """Return every rule that the judge applies to the outputs of a case.

    Args:
        op_dir: the operator's directory; SPEC.md there gives the tolerance.
        case: the case, with its own atol and rtol, policy or twin where it has them.
        inputs: what the golden is called with; untouched by candidate and golden.
        expected: what the golden answered, any device.
        outputs: of the wrapper; where right answers part at a tie, each element is held to the nearest of them.
        phase: k of the golden of M_1..M_k; None for the operator's own.

    Raises:
        ContractError: a document is missing or malformed, or the golden does not answer as a twin.
        InfraError: a twin is needed, and its process cannot run here.
    """
    ws, contract = _contract(str(Path(op_dir).resolve()))
    expectation = expectation_of(contract, case, phase)
    native = RunResult(Outcome.OK, outputs=[leaf.detach().cpu() for leaf in expected])
    file = ws.golden if phase is None else ws.module_golden(phase)
    with ReferenceSession(ws) as session:  # starts its process when it is first asked

        def golden(**how: Any) -> RunResult:
            return session.golden(_on_cpu(inputs), function=ws.golden_name(phase), file=file, **how)

        reference = answered(golden, expectation, native)
        problem = reference.problem()
        if problem is not None:
            raise ContractError(f"{problem} (case {case.get('id', '?')})", file=file, remedy=to_run("verify", ws.root))
        found, actual = [], [leaf.detach().cpu() for leaf in outputs]
        for policy in expectation.policies(reference.natural_share):
            _, truth, twins = reference.compared(policy, actual, expectation.names)
            peers = [None if twins is None else [twin[i] for twin in twins] for i in range(len(truth))]
            found.append(Rule(policy, truth, peers))
    return found


@functools.cache
def _contract(op_dir: str) -> tuple[OpWorkspace, Contract]:
    ws = OpWorkspace.at(op_dir)
    return ws, load_contract(ws)


def _on_cpu(inputs: Sequence[Any]) -> list[Any]:
    return [value.detach().cpu() if hasattr(value, "detach") else value for value in inputs]
