"""The golden as the first candidate: a case that refuses it in another honest order would refuse a right kernel.

Each generated case is judged so before anybody sees it, under its own policy and on several seeds, since the judge adds a
seed that nobody knew. The same judge says what the case can tell apart (`power`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

from pypto_op.backends.answers import Answers
from pypto_op.backends.base import RunResult
from pypto_op.backends.reference import ReferenceSession
from pypto_op.documents import interfaces as interfaces_document
from pypto_op.documents import legal
from pypto_op.documents import spec as spec_document
from pypto_op.documents.policy import Policy
from pypto_op.documents.ports import Interfaces
from pypto_op.errors import ContractError
from pypto_op.generators.rehearsing.power import Power, power
from pypto_op.judge.answers.expectation import Expectation, Reference
from pypto_op.judge.answers.measured import Measured
from pypto_op.judge.answers.references import answered
from pypto_op.judge.cases.contract import policy_of_case
from pypto_op.judge.cases.natural import MEASURED, natural_share
from pypto_op.judge.findings.records import TrialVerdict
from pypto_op.judge.findings.redaction import Redactor
from pypto_op.judge.self_test.golden_candidate import Refusal, judged, refused, verdicts
from pypto_op.twins.reordering import GOLDEN, HONEST
from pypto_op.vocabulary import Outcome, Status
from pypto_op.workspace import OpWorkspace

if TYPE_CHECKING:
    import torch

    from pypto_op.backends.base import Value

_NEAR = 0.125
"""Share of what is allowed from which on an order's error may exceed it on another seed: the greatest of many rounding errors
varies by a factor of 2 to 3 (`judge.cases.natural.MOST`)."""

_LOST = 0.5
"""An error of so much of the right number leaves no digit of it."""


class FirstCandidate:
    """Judges one operator's golden as if it were a kernel.

    Args:
        session: runs golden and inputs.
        ws: the operator.
        policy: its tolerance.
        measured: what is known of its rounding; None: what an earlier run kept, for this one alone.
    """

    def __init__(self, session: ReferenceSession, ws: OpWorkspace, policy: Policy, measured: Measured | None = None) -> None:
        self.session, self.ws, self.policy = session, ws, policy
        self.redactor = Redactor(ws.golden, ws.golden)
        self.answers = Answers(session, function=ws.golden_name(), file=ws.golden)
        self.measured = measured or Measured(ws, [session])

    def golden(self, inputs: Sequence[Value], **how: Any) -> RunResult:
        """Run the golden, or take what it has answered; see `ReferenceSession.golden`."""
        return self.answers.ask(inputs, **how)

    @cached_property
    def _spec(self) -> spec_document.Spec:
        return spec_document.load(self.ws.spec)

    def misfit(self, case: Mapping[str, Any], inputs: Mapping[str, Value]) -> str:
        """Return which input leaves SPEC.md's ranges, on which a verdict ends; "" for none."""
        return legal.misfit(self._spec.shape_constraints, self._spec.rows, case, list(inputs.items()))

    @cached_property
    def _interfaces(self) -> Interfaces:
        return interfaces_document.load(self.ws.interfaces).with_scalars(self._spec.default_params)

    def must_have_shapes(self, case: Mapping[str, Any], native: RunResult) -> None:
        """Refuse a golden whose results have other shapes than the contract says.

        Raises:
            ContractError: a result has another shape; a kernel that is written from the contract would be refused.
        """
        if wrong := self._interfaces.misshapen(case, [output.shape for output in native.outputs]):
            raise ContractError(
                wrong,
                file=self.ws.golden,
                where=f"case {case['id']}",
                remedy="mend the golden, or the shape in module_interfaces.yaml",
            )

    @cached_property
    def _names(self) -> list[str]:
        return list(dict.fromkeys(output.name for output in self._interfaces.final_outputs))

    def output_names(self, count: int) -> list[str]:
        """Return the names of the golden's outputs, in order; numbers where the contract has not as many."""
        return self._names if len(self._names) == count else [f"output {number}" for number in range(1, count + 1)]


class Draw:
    """One case on its own inputs, ready to judge whatever is taken for a kernel's outputs.

    Args:
        first: the golden.
        case: of the suite.
        inputs: of its seed, by name, in order.
        native: what the golden answers on them.
        orders: the honest orders that are judged.
    """

    def __init__(
        self,
        first: FirstCandidate,
        case: Mapping[str, Any],
        inputs: Mapping[str, Value],
        native: RunResult,
        orders: Sequence[str] = HONEST,
    ) -> None:
        self._first, self._inputs, self._native, self._orders = first, inputs, native, orders
        self._values = list(inputs.values())
        self._policy = policy_of_case(first.policy, case)
        self._names = first.output_names(len(native.outputs))
        self._expectation = Expectation(self._names, [], self._policy, precision=True)

    def under(self, case: Mapping[str, Any]) -> Draw:
        """Return the same inputs judged by the policy of another case, in every honest order."""
        return Draw(self._first, case, self._inputs, self._native)

    def is_lost(self) -> bool:
        """Whether no digit is right in most of an output of the golden, as where numbers on its way leave float32.

        Right kernels answer there by where they overflow, and the truth is what none of them answers.
        """
        exact = self._run(float64=True)
        if exact.outcome is not Outcome.OK or len(exact.outputs) != len(self._native.outputs):
            return False
        pairs = zip(self._native.outputs, exact.outputs, strict=True)
        return any(own.is_floating_point() and own.numel() and _is_lost(own, true) for own, true in pairs)

    def refusal(self) -> Refusal | None:
        """Return which honest order of the golden the case refuses on these inputs; None where it takes each."""
        if self._kept is not None:
            return None
        return refused(self._verdicts, self._reference, self._expectation)

    def share(self) -> float:
        """Return how much of the case's tolerance honest rounding takes on these inputs."""
        return self._first.measured.share(self._values, self._policy, self._measured_share)

    def _measured_share(self) -> float:
        asked = dict.fromkeys((*MEASURED, *self._orders))
        ways: list[dict[str, Any]] = [{"float64": True}, *({"twin": name} for name in asked if name != GOLDEN)]
        self._first.answers.prepare(self._values, ways)
        return natural_share(self._run, self._native, self._policy)

    def near(self) -> tuple[str, ...]:
        """Return the honest orders that another seed may refuse: what lies far below the tolerance here lies below it there.

        Every one where whole numbers come out, which differ or do not, and where the policy measures in honest orders.
        """
        if self._policy.needs_twins or not all(output.is_floating_point() for output in self._native.outputs):
            return tuple(HONEST)
        worst = self._kept
        if worst is None:
            worst = {name: max(leaf["max_violation"] or 0.0 for leaf in told.per_tensor) for name, told in self._verdicts}
        return tuple(name for name, share in worst.items() if share > _NEAR)

    @cached_property
    def _verdicts(self) -> list[tuple[str, TrialVerdict]]:
        ask = self._reference, self._expectation, self._first.redactor
        told = list(verdicts(lambda name: self._run(twin=name), *ask, orders=self._orders))
        self._first.measured.note_orders(self._values, self._expectation, self._orders, told)
        return told

    @cached_property
    def _kept(self) -> dict[str, float] | None:
        """What is known of the orders already."""
        return self._first.measured.orders(self._values, self._expectation, self._orders)

    def takes(self, outputs: Sequence[torch.Tensor]) -> bool:
        """Whether the case takes some outputs for right."""
        return self._judged(outputs).status is Status.PASS

    def power(self) -> Power:
        """Return what the case can tell apart."""

        def golden(values: Sequence[Value]) -> Sequence[torch.Tensor] | None:
            answer = self._first.golden(values)
            return answer.outputs if answer.outcome is Outcome.OK else None

        def times(outputs: Sequence[torch.Tensor]) -> float:
            verdict = self._judged(outputs)
            if verdict.status is Status.PASS:
                return 0.0
            return max((float(leaf["max_violation"] or 1.0) for leaf in verdict.per_tensor if not leaf["all_close"]), default=1.0)

        return power(self._inputs, dict(zip(self._names, self._native.outputs, strict=True)), golden, times)

    @cached_property
    def _reference(self) -> Reference:
        return answered(cache(lambda **how: self._run(**how)), self._expectation, self._native)

    def _run(self, **how: Any) -> RunResult:
        return self._first.golden(self._values, **how)

    def _judged(self, outputs: Sequence[torch.Tensor]) -> TrialVerdict:
        return judged(outputs, self._reference, self._expectation, self._first.redactor)


def _is_lost(own: torch.Tensor, true: torch.Tensor) -> bool:
    wanted = true.to(own.dtype).double()
    return float(((own.double() - wanted).abs() > _LOST * wanted.abs()).double().mean()) > 0.5
