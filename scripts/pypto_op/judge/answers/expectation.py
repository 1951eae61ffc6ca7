"""What a case expects of a run, and the golden's answer that its outputs are compared with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pypto_op.backends.base import RunResult
from pypto_op.compare import Comparison, compare_leaves
from pypto_op.comparison.noise import zero_is_as_right
from pypto_op.comparison.twin_bounds import TwinBounds
from pypto_op.documents.policy import Policy
from pypto_op.judge.cases.natural import MOST, WORST
from pypto_op.judge.findings.reasons import ended_with
from pypto_op.twins.orders import ORDERS
from pypto_op.twins.reordering import GOLDEN, OTHER_FORM, TWINS
from pypto_op.twins.ties import RightAnswers, own_rounding, shifted
from pypto_op.vocabulary import Outcome

if TYPE_CHECKING:
    import torch

    from pypto_op.judge.cases.contract import Contract

    Outputs = Sequence[torch.Tensor]


@dataclass(frozen=True)
class Expectation:
    """What a case expects of a run."""

    names: Sequence[str]  # the outputs' names, in order, as the contract gives them
    input_names: Sequence[str]  # the inputs' names, for messages
    policy: Policy  # the tolerance
    precision: bool  # numbers are compared; otherwise leaf count, shapes and dtypes only
    # called with the worst output's name and its error map, where somebody wants to see it
    keep_map: Callable[[str, list[list[float]]], None] | None = None
    # a twin policy that must hold beside `policy`: the error must also be one that honest code makes
    natural: Policy | None = None
    # the tolerance that `policy` stands in the place of; where honest rounding does not need that, it holds too
    behind: Policy | None = None
    either: bool = False  # where honest rounding does not need that, `behind` holds alone
    hints: bool = True  # a FAIL says whether it looks like rounding (`near_miss`), which takes honest runs of the golden

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
        """Return the names of the honest twins that the policies need, and with them the golden's other form."""
        policies = (self.policy, *self.policies(0.0))
        return tuple(dict.fromkeys(name for policy in policies if policy.twins for name in (*policy.twins, OTHER_FORM)))


@dataclass(frozen=True)
class Reference:
    """The golden's answer on the inputs of a trial."""

    native: RunResult  # the golden in the dtype of the inputs; it fixes number, shapes and dtypes of the outputs
    exact: RunResult | None = None  # the golden on float64 inputs, where a policy wants a truth apart from honest rounding
    # the golden as each honest twin (`pypto_op.twins`), by name, where a policy wants them
    twins: Mapping[str, RunResult] = field(default_factory=dict)
    condition: float | None = None  # how badly the golden's sums cancel on these inputs, where the case wants them to
    natural_share: float = 0.0  # how much of the tolerance behind a named policy honest rounding takes (`judge.cases.natural`)
    # gives the golden in float64, then the answers that are as right where values lie near ties (`ways_of`); asked only when an
    # output is not close, () where the golden does not run so
    ways: Callable[[], Sequence[Sequence[torch.Tensor]]] = tuple
    # gives an honest twin by name, where somebody asks how far honest code drifts (`near_miss`)
    reordered: Callable[[str], RunResult] | None = None
    # gives the golden in float64, then on inputs moved by their last bits (`last_bits`); asked only when an output is not close
    moved: Callable[[], Sequence[Sequence[torch.Tensor]]] = tuple
    unfit: str = ""  # why nothing can be compared with this answer, though it is one; "" where it can
    _known_bounds: dict[tuple[Policy, int], TwinBounds] = field(default_factory=dict, init=False, compare=False, repr=False)
    _known_right: dict[Any, RightAnswers] = field(default_factory=dict, init=False, compare=False, repr=False)
    _known_rounding: dict[tuple[str, int], torch.Tensor | None] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )

    def runs(self) -> list[RunResult]:
        """Return every run of the golden."""
        return list(self._named().values())

    def _named(self) -> dict[str, RunResult]:
        exact = {"in float64, ": self.exact} if self.exact is not None else {}
        return {"": self.native, **exact, **{f"as the twin {name}, ": run for name, run in self.twins.items()}}

    def expected(self, policy: Policy, outputs: Outputs) -> tuple[Outputs, list[Outputs] | None]:
        """Return what outputs are compared with under a policy, and the twins that set its bounds, None without.

        Where right answers part at a tie, a twin policy takes for each element the nearest of them.
        """
        native = self.native.outputs
        if len(outputs) != len(native) or not policy.needs_twins or self.exact is None:
            return native, None
        ways = [self.exact.outputs, *self.exact.others]
        named = [*policy.twins, *(name for name in (OTHER_FORM,) if name in self.twins)]
        expected, twins = [], [list(self.twins[name].outputs) for name in named]
        for i, (mine, own) in enumerate(zip(outputs, native, strict=True)):
            right = [way[i] for way in ways]
            # A whole number is what the golden says, or what it says beyond a tie.
            answers = right if own.is_floating_point() else [own, *right, *(peers[i] for peers in twins)]
            expected.append(self._nearest((policy, i), mine, right[0], answers))
            for name, peers in zip(named, twins, strict=True) if self.exact.others else ():
                if (name, i) not in self._known_rounding:
                    self._known_rounding[name, i] = own_rounding(peers[i], right)
                peers[i] = shifted(peers[i], self._known_rounding[name, i], expected[i])
        return expected, [tuple(peers) for peers in twins]

    def _near(self, outputs: Outputs, close: Sequence[bool]) -> Outputs:
        """Return, per output, the nearest of the right answers in the golden's own dtypes; its own where that is close enough."""
        ways, expected = self.ways(), []
        for i, (mine, own) in enumerate(zip(outputs, self.native.outputs, strict=True)):
            if close[i]:
                expected.append(own)
                continue
            # Without a tie the golden in float64 is no second answer: that would double the tolerance.
            answers = [own, *(way[i] for way in ways if len(ways) > 1 or not own.is_floating_point())]
            found = self._nearest(("near", i), mine, ways[0][i] if ways else None, answers)
            if not own.is_floating_point() and bool((found != mine).any()):
                found = self._nearest(("orders", i), mine, None, [*answers, *(run.outputs[i] for run in self._orders())])
            expected.append(found)
        return expected

    def _orders(self) -> list[RunResult]:
        """Return the golden in other orders of addition; a whole number that one of them crosses a tie to is right."""
        runs = [self.reordered(name) for name in ORDERS] if self.reordered else list(self.twins.values())
        return [run for run in runs if run.outcome is Outcome.OK and len(run.outputs) == len(self.native.outputs)]

    def _nearest(
        self, key: tuple[Any, int], mine: torch.Tensor, exact: torch.Tensor | None, answers: Sequence[torch.Tensor]
    ) -> torch.Tensor:
        """Return the nearest of the right answers of an output, the same for each candidate; zeros, where they are as right."""
        zero = exact is not None and zero_is_as_right(mine, self.native.outputs[key[1]], exact)
        if (key, zero) not in self._known_right:
            zeros = [exact.new_zeros(exact.shape)] if zero and exact is not None else []
            self._known_right[key, zero] = RightAnswers([*answers, *zeros])
        return self._known_right[key, zero].nearest(mine)

    def compared(
        self, policy: Policy, outputs: Outputs, names: Sequence[str]
    ) -> tuple[Comparison, Outputs, list[Outputs] | None]:
        """Compare outputs under a policy; return the comparison, and what it was made with (`expected`)."""
        expected, twins = self.expected(policy, outputs)
        bounds = self._bounds(policy, expected, twins)
        result = compare_leaves(outputs, expected, names=names, policy=policy, twins=twins, bounds=bounds)
        if not result.all_close and twins is None and _of_form(outputs, expected) and self.ways():
            nearer = self._near(outputs, [leaf.all_close for leaf in result.per_tensor])
            if any(now is not before for now, before in zip(nearer, expected, strict=True)):
                expected, result = nearer, compare_leaves(outputs, nearer, names=names, policy=policy)
        return result, expected, twins

    def _bounds(self, policy: Policy, expected: Outputs, twins: list[Outputs] | None) -> list[TwinBounds | None]:
        """Return what honest twins allow, by output; nothing where right answers part: the outputs choose their truth there."""
        if twins is None or self.exact is None or self.exact.others:
            return []
        found: list[TwinBounds | None] = []
        for i, (truth, own) in enumerate(zip(self.exact.outputs, self.native.outputs, strict=True)):
            if expected[i] is not truth or not own.is_floating_point():
                found.append(None)
                continue
            if (policy, i) not in self._known_bounds:
                word = str(own.dtype).removeprefix("torch.")
                self._known_bounds[policy, i] = TwinBounds(policy, word, truth, [twin[i] for twin in twins])
            found.append(self._known_bounds[policy, i])
        return found

    def honest(self, place: int) -> Iterator[torch.Tensor]:
        """Yield one output of honest runs of the golden: in other orders of addition, the worst first, and in float64."""
        names = (WORST, OTHER_FORM, *(name for name in TWINS if name not in (WORST, GOLDEN)))
        for run in map(self.reordered, names) if self.reordered else self.twins.values():
            if run.outcome is Outcome.OK and len(run.outputs) == len(self.native.outputs):
                yield run.outputs[place]
        yield from (way[place] for way in self.ways()[:1])

    def problem(self) -> str | None:
        """Say what is wrong with the golden, in words that hold no value of it; None when it answered."""
        for how, run in self._named().items():
            if run.outcome is not Outcome.OK:
                return f"{how}it {ended_with(run)}"
            if run.mutated_inputs:
                return "it changes its own inputs; let it copy them first"
        if self.unfit:
            return self.unfit
        return None if self.native.outputs else "it returned no tensor"


def ways_of(exact: RunResult) -> list[list[torch.Tensor]]:
    """Return a golden's answer in float64 and those that are as right where values lie near ties, [] where it has none."""
    return [exact.outputs, *exact.others] if exact.outcome is Outcome.OK else []


def _of_form(outputs: Outputs, expected: Outputs) -> bool:
    """Whether outputs have the number, shapes and dtypes that are expected, so that a nearer answer could mend them."""
    return len(outputs) == len(expected) and all(
        mine.shape == other.shape and mine.dtype == other.dtype for mine, other in zip(outputs, expected, strict=True)
    )


def expectation_of(contract: Contract, case: Mapping[str, Any], phase: int | None = None) -> Expectation:
    """Return what a precision case expects of a run of the operator, or of its first `phase` modules."""
    return Expectation(
        contract.leaf_names(phase),
        contract.input_names,
        contract.policy_for(case),
        precision=True,
        natural=contract.natural_policy_for(case),
        behind=contract.tolerance_behind(case),
    )
