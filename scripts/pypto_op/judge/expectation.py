"""What a case expects of a run, and the golden's answer that its outputs are compared with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pypto_op.backends.base import RunResult
from pypto_op.compare import Comparison, compare_leaves
from pypto_op.judge.reasons import place_in
from pypto_op.policy import Policy
from pypto_op.twins.natural import MOST
from pypto_op.twins.ties import nearest, shifted
from pypto_op.vocabulary import Outcome

if TYPE_CHECKING:
    import torch

    Outputs = Sequence[torch.Tensor]


@dataclass(frozen=True)
class Expectation:
    """What a case expects of a run.

    Attributes:
        names: the outputs' names, in order, as the contract gives them.
        input_names: the inputs' names, for messages.
        policy: the tolerance.
        precision: numbers are compared; otherwise leaf count, shapes and dtypes only.
        keep_map: called with the worst output's name and its error map, where somebody wants to see it.
        natural: a twin policy that must hold beside `policy`: the error must also be one that honest code makes.
        behind: the tolerance that `policy` stands in the place of; where honest rounding does not need that, it holds too.
        either: where honest rounding does not need that, `behind` holds alone.
    """

    names: Sequence[str]
    input_names: Sequence[str]
    policy: Policy
    precision: bool
    keep_map: Callable[[str, list[list[float]]], None] | None = None
    natural: Policy | None = None
    behind: Policy | None = None
    either: bool = False

    def policies(self, natural_share: float) -> list[Policy]:
        """Return every policy that must hold, the case's own first.

        Args:
            natural_share: of the tolerance `behind` (`Reference.natural_share`).
        """
        behind = self.behind if natural_share <= MOST else None
        if self.either and behind is not None:
            return [policy for policy in (behind, self.natural) if policy is not None]
        return [policy for policy in (self.policy, self.natural, behind) if policy is not None]

    def twins(self) -> tuple[str, ...]:
        """Return the names of the honest twins that the policies need."""
        policies = (self.policy, *self.policies(0.0))
        return tuple(dict.fromkeys(name for policy in policies for name in policy.twins))


@dataclass(frozen=True)
class Reference:
    """The golden's answer on the inputs of a trial.

    Attributes:
        native: the golden in the dtype of the inputs; it fixes number, shapes and dtypes of the outputs.
        exact: the golden on float64 inputs, where a policy wants a truth apart from honest rounding.
        twins: the golden as each honest twin (`pypto_op.twins`), by name, where a policy wants them.
        condition: how badly the golden's sums cancel on these inputs, where the case wants them to.
        natural_share: how much of the tolerance behind a named policy honest rounding takes (`twins.natural`).
        others: gives the answers that are as right as `native`, where values lie near ties (`RunResult.others`); asked only
            when an output is not close.
        unfit: why nothing can be compared with this answer, though it is one; "" where it can.
    """

    native: RunResult
    exact: RunResult | None = None
    twins: Mapping[str, RunResult] = field(default_factory=dict)
    condition: float | None = None
    natural_share: float = 0.0
    others: Callable[[], Sequence[Sequence[torch.Tensor]]] = tuple
    unfit: str = ""

    def runs(self) -> list[RunResult]:
        """Return every run of the golden."""
        return list(self._named().values())

    def _named(self) -> dict[str, RunResult]:
        exact = {"in float64, ": self.exact} if self.exact is not None else {}
        return {"": self.native, **exact, **{f"as the twin {name}, ": run for name, run in self.twins.items()}}

    def expected(self, policy: Policy, outputs: Outputs, *, near: bool = False) -> tuple[Outputs, list[Outputs] | None]:
        """Return what outputs are compared with under a policy, and the twins that set its bounds, None without.

        Args:
            policy: the tolerance.
            outputs: of the candidate.
            near: where right answers part at a tie, take for each element the nearest of them; a twin policy always does.
        """
        native = self.native.outputs
        if len(outputs) != len(native):
            return native, None
        if not policy.needs_twins or self.exact is None:
            ways = self.others() if near else ()
            answers = [(own, *(way[i] for way in ways)) for i, own in enumerate(native)]
            return [nearest(mine, own) for mine, own in zip(outputs, answers, strict=True)], None
        ways = [self.exact.outputs, *self.exact.others]
        expected, twins = [], [list(self.twins[name].outputs) for name in policy.twins]
        for i, (mine, own) in enumerate(zip(outputs, native, strict=True)):
            right = [way[i] for way in ways]
            # A whole number is what the golden says, or what it says beyond a tie.
            expected.append(nearest(mine, right if own.is_floating_point() else [own, *right]))
            for peers in twins if self.exact.others else ():
                peers[i] = shifted(peers[i], right, expected[i])
        return expected, [tuple(peers) for peers in twins]

    def compared(
        self, policy: Policy, outputs: Outputs, names: Sequence[str]
    ) -> tuple[Comparison, Outputs, list[Outputs] | None]:
        """Compare outputs under a policy; return the comparison, and what it was made with (`expected`)."""
        expected, twins = self.expected(policy, outputs)
        result = compare_leaves(outputs, expected, names=names, policy=policy, twins=twins)
        if not result.all_close and twins is None and self.others():
            expected, _ = self.expected(policy, outputs, near=True)
            result = compare_leaves(outputs, expected, names=names, policy=policy)
        return result, expected, twins

    def problem(self) -> str | None:
        """Say what is wrong with the golden, in words that hold no value of it; None when it answered."""
        for how, run in self._named().items():
            if run.outcome is not Outcome.OK:
                return f"{how}it ended with: {run.outcome}" + (f", {place}" if (place := place_in(run.detail)) else "")
            if run.mutated_inputs:
                return "it changes its own inputs"
        if self.unfit:
            return self.unfit
        return None if self.native.outputs else "it returned no tensor"
