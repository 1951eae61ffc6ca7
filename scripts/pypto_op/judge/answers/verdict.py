"""One run against one golden: status, every reason, and the metrics that may be told."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import torch

from pypto_op.backends.base import RunResult
from pypto_op.compare import Comparison, TensorComparison
from pypto_op.comparison.error_map import error_map
from pypto_op.documents.policy import Policy
from pypto_op.judge.answers import last_bits
from pypto_op.judge.answers.expectation import Expectation, Reference
from pypto_op.judge.answers.other_rounding import only_last_bits, rounds_otherwise, tells
from pypto_op.judge.cases.extent import times_allowed
from pypto_op.judge.findings.leaf_entry import leaf_entry, leaf_measures
from pypto_op.judge.findings.near_miss import is_near_miss
from pypto_op.judge.findings.reasons import (
    ANOTHER_ALGORITHM,
    CHANGED_LATER,
    RAISES_ON_OTHERS,
    Reason,
    argument_words,
    category_of,
    reason_of,
    sentence_of,
    status_of,
)
from pypto_op.judge.findings.records import TrialVerdict
from pypto_op.judge.findings.redaction import Redactor
from pypto_op.vocabulary import Status

if TYPE_CHECKING:
    Outputs = Sequence[torch.Tensor]


def refuse(reason: Reason, detail: str = "", *, seed: int = 0) -> TrialVerdict:
    """Return the verdict of a trial that was not run, or could not be judged."""
    summary = f"{sentence_of(reason)} ({detail})" if detail else sentence_of(reason)
    return TrialVerdict(seed, status_of(reason), (reason,), category_of(reason), summary)


def judge_run(
    run: RunResult,
    reference: Reference | None,
    expectation: Expectation,
    *,
    seed: int,
    redactor: Redactor,
    secrets: Sequence[torch.Tensor],
) -> TrialVerdict:
    """Judge one run of the candidate.

    Args:
        reference: what the golden answered; None when the candidate did not get far enough to need it.
        secrets: inputs and golden outputs, whose values must not be in them.
    """
    verdict = _judge(run, reference, expectation, seed, lambda text: redactor.clean(text, secrets))
    verdict.stdout, verdict.stderr = (redactor.clean(text.rstrip(), secrets) for text in (run.stdout, run.stderr))
    verdict.seconds, verdict.peak_rss_mb = run.seconds, run.peak_rss_mb
    verdict.launches, verdict.cost, verdict.host_made = run.launches, run.cost, run.host_made
    verdict.unshown = (RAISES_ON_OTHERS,) if run.unshown else ()
    return verdict


def with_earlier(verdict: TrialVerdict, earlier: Sequence[TrialVerdict]) -> TrialVerdict:
    """Return `verdict`, or a FAIL when a kernel's argument was computed from the inputs by the host.

    Args:
        verdict: of the latest trial.
        earlier: of the trials of the same case and mode, whose inputs were others of the same shape.
    """
    if verdict.status is not Status.PASS:
        return verdict
    for trial in earlier:
        moved = [key for key, value in verdict.host_made.items() if _moved(trial.host_made.get(key, value), value)]
        if moved:
            return failed_for(Reason.HOST_COMPUTED, verdict, argument_words(min(moved)))
    return verdict


def _moved(one: str, two: str) -> bool:
    """Whether two words of `RunResult.host_made` differ otherwise than by the value of an input, "=", that was handed on."""
    pairs = [(a, b) for a, b in zip_longest(one.split(), two.split(), fillvalue="") if a.lstrip("=") != b.lstrip("=")]
    return any(not (a.startswith("=") and b.startswith("=")) for a, b in pairs)


def failed_for(reason: Reason, verdict: TrialVerdict, detail: str = "") -> TrialVerdict:
    """Return a verdict that passed by its numbers, as one that fails for `reason`."""
    summary = f"{sentence_of(reason)} ({detail})" if detail else sentence_of(reason)
    return replace(verdict, status=status_of(reason), reasons=(reason,), category=category_of(reason), summary=summary)


def _judge(run: RunResult, reference: Reference | None, expectation: Expectation, seed: int, clean: Any) -> TrialVerdict:
    ended = reason_of(run.outcome)
    if reference is not None and (problem := reference.problem() or _breaks_contract(reference, expectation)):
        return refuse(Reason.GOLDEN_FAILED, problem, seed=seed)
    if ended is not None:
        detail = " ".join(clean(run.detail).split())
        summary = f"{sentence_of(ended)}: {detail}" if detail else sentence_of(ended)
        return TrialVerdict(seed, status_of(ended), (ended,), category_of(ended, run), summary)
    assert reference is not None  # Only a run that could not start goes without one.
    return _Comparison(run, reference, expectation).verdict(seed)


def _breaks_contract(reference: Reference, expectation: Expectation) -> str:
    """Say that the golden's outputs are not as many as the contract names, or ""."""
    mine, named = len(reference.native.outputs), len(expectation.names)
    return "" if mine == named else f"it returned {mine} output(s), the contract names {named}"


class _Comparison:
    """Everything that can be wrong with outputs that came back."""

    def __init__(self, run: RunResult, reference: Reference, expectation: Expectation) -> None:
        self.run, self.reference, self.expectation = run, reference, expectation
        self.problems: dict[Reason, str] = {}
        self.leaves: list[dict[str, Any]] = []
        self.bad: dict[str, None] = {}
        self.near_misses: list[bool] = []
        self._behind: Comparison | None = None  # under the tolerance that a twin policy stands in the place of, once it is asked

    def verdict(self, seed: int) -> TrialVerdict:
        precise = self.expectation.precision and self.run.numeric
        self._check_protocol()
        if self._check_structure() and self.run.numeric:
            self._check_written()
            if precise:
                self._check_numbers()
        if not self.problems and self.expectation.precision and not precise:
            return refuse(Reason.NO_NUMBERS, seed=seed)
        reasons = tuple(sorted(self.problems, key=lambda reason: reason.rank))
        if not reasons:
            return TrialVerdict(seed, Status.PASS, per_tensor=self.leaves, precision_checked=precise and bool(self.leaves))
        return TrialVerdict(
            seed,
            status_of(reasons[0]),
            reasons,
            category_of(reasons[0]),
            "; ".join(self.problems[reason] for reason in reasons),
            self.leaves,
            precision_checked=bool(self.leaves),
            bad_outputs=tuple(self.bad),
            near_miss=reasons == (Reason.MISMATCH,) and all(self.near_misses) and bool(self.near_misses),
        )

    # -- what the wrapper did ---------------------------------------------------------------------------------

    def _check_protocol(self) -> None:
        run, golden = self.run, self.reference.native
        if run.launches == 0:
            self._add(Reason.NO_LAUNCH)
        elif run.changed_outputs:
            self.problems[Reason.NOT_FROM_KERNEL] = f"{CHANGED_LATER} ({self._outputs(run.changed_outputs)})"
        elif not run.outputs_from_kernel:
            self._add(Reason.NOT_FROM_KERNEL)
        if run.prefilled_outputs:
            # A kernel that writes only some of it, or nothing, would pass on what torch computed.
            self._add(Reason.PREFILLED, self._outputs(run.prefilled_outputs))
        if run.host_computed:
            self._add(Reason.HOST_COMPUTED, "; ".join(argument_words(key) for key in run.host_computed))
        if run.kept_outputs or run.kept_arguments:
            kept = [self._outputs(run.kept_outputs)] if run.kept_outputs else []
            self._add(Reason.KEPT_BUFFER, "; ".join([*kept, *map(argument_words, run.kept_arguments)]))
        if run.mutated_inputs:
            self._add(Reason.MUTATED_INPUT, self._inputs(run.mutated_inputs))
        aliased = sorted(set(run.aliased_inputs) - set(golden.aliased_inputs))
        if aliased:
            self._add(Reason.ALIASED_INPUT, self._inputs(aliased))
        if run.shared_outputs:
            self._add(Reason.SHARED_OUTPUT, self._outputs(run.shared_outputs))
        if run.changed_results:
            self._add(Reason.CHANGED_LATER, self._outputs(run.changed_results))

    def _inputs(self, positions: Sequence[int]) -> str:
        names = self.expectation.input_names
        return ", ".join(names[i] if i < len(names) else f"#{i}" for i in positions)

    def _outputs(self, positions: Sequence[int]) -> str:
        names = self._names()
        return ", ".join(names[i] if i < len(names) else f"#{i}" for i in positions)

    # -- the outputs' form ------------------------------------------------------------------------------------

    def _check_structure(self) -> bool:
        actual, expected = self.run.outputs, self.reference.native.outputs
        if len(actual) != len(expected):
            self._add(Reason.LEAF_COUNT, f"{len(actual)} returned ({self.run.structure}), {len(expected)} expected")
            return False
        sound = True
        for name, mine, golden in zip(self._names(), actual, expected, strict=True):
            if mine.shape != golden.shape:
                self._add_leaf(Reason.SHAPE, name, f"{list(mine.shape)}, expected {list(golden.shape)}")
                sound = False
            elif mine.dtype != golden.dtype:
                self._add_leaf(Reason.DTYPE, name, f"{_word(mine.dtype)}, expected {_word(golden.dtype)}")
                sound = False
        return sound

    def _names(self) -> list[str]:
        """Return the contract's names; the golden has as many outputs (`_breaks_contract`)."""
        return list(self.expectation.names)

    # -- the outputs' values ----------------------------------------------------------------------------------

    def _check_written(self) -> None:
        """Flag elements that still hold the sentinel.

        A float that equals the sentinel bit for bit was not computed. Integers and bools have no spare patterns,
        so there the count only explains a mismatch (see `_check_numbers`).
        """
        for i, name in enumerate(self._names()):
            if self._left(i) and self.run.outputs[i].is_floating_point():
                self._unwritten(i, name)

    def _left(self, i: int) -> int:
        left = self.run.sentinel_left
        return left[i] if i < len(left) else 0

    def _unwritten(self, i: int, name: str) -> None:
        total = self.run.outputs[i].numel()
        self._add_leaf(Reason.UNWRITTEN, name, f"{self._left(i)} of {total} elements")

    def _check_numbers(self) -> None:
        policies = self.expectation.policies(self.reference.natural_share)
        found = [(policy, *self._compared(policy)) for policy in policies]
        for i in range(len(self._names())):
            # The policy that fails speaks for the output; the first one when all agree.
            verdicts = [(policy, result.per_tensor[i], expected) for policy, result, expected in found if result.per_tensor]
            if verdicts:
                off = next((v for v in verdicts if not self._close(i, *v)), None)
                policy, leaf, expected = off or verdicts[0]
                self._note_leaf(i, leaf, expected[i], policy, close=off is None)
                if off is not None and not self.problems:
                    self._add(Reason.MISMATCH, leaf.message)
                for _, other, _ in verdicts:
                    self.leaves[-1]["measures"] |= leaf_measures(other)
        for _, result, _ in found:
            if not result.per_tensor and not self.problems:
                self._add(Reason.MISMATCH, result.message)
        self._keep_map(found[0][1])

    def _compared(self, policy: Policy) -> tuple[Comparison, Sequence[torch.Tensor]]:
        """Return the comparison under one policy, and what it was made with: the golden, or the float64 truth."""
        result, expected, _ = self.reference.compared(policy, self.run.outputs, self._names())
        return result, expected

    def _close(self, i: int, policy: Policy, leaf: TensorComparison, expected: Sequence[torch.Tensor]) -> bool:
        """Whether an output is close under a policy, or off as another algorithm's rounding is."""
        if leaf.all_close or (policy.needs_twins and only_last_bits(leaf, self.reference.condition)):
            return True
        kept = self._under_tolerance(i, expected[i]) if policy.needs_twins else None
        if kept is not None and rounds_otherwise(leaf, kept, self.run.outputs[i], expected[i], policy):
            return True
        return self._is_explained(i, policy, leaf, expected[i])

    def _is_explained(self, i: int, policy: Policy, leaf: TensorComparison, expected: torch.Tensor) -> bool:
        """Whether an output is close but for few elements that last bits of the inputs explain (`last_bits`)."""
        actual = self.run.outputs[i]
        off = last_bits.few_off(actual, expected, policy)
        if off is None or leaf.special_mismatch_count or leaf.zero_output or leaf.constant_output:
            return False
        if not self._close_with(i, torch.where(off, expected.to(actual.dtype), actual), policy):
            return False  # more is wrong than these
        moved = [leaves[i] for leaves in self.reference.moved()]
        return self._close_with(i, last_bits.without_explained(actual, expected, off, moved), policy)

    def _close_with(self, i: int, output: torch.Tensor, policy: Policy) -> bool:
        """Whether output `i` would be close under a policy with these numbers."""
        outputs = [output if place == i else own for place, own in enumerate(self.run.outputs)]
        return self.reference.compared(policy, outputs, self._names())[0].per_tensor[i].all_close

    def _note_leaf(self, i: int, leaf: TensorComparison, expected: torch.Tensor, policy: Policy, *, close: bool) -> None:
        lucky = close and leaf.constant_output
        self.leaves.append(leaf_entry(leaf, self._left(i), close=close and not lucky))
        if close and not lucky:
            return
        if self._left(i):
            self._unwritten(i, leaf.name)
        if leaf.special_mismatch_count:
            self._add_leaf(Reason.NON_FINITE, leaf.name, f"{leaf.special_mismatch_count} elements")
        if lucky or _finite_failure(leaf):
            how = "constant, where the reference varies" if lucky else _how(leaf)
            if policy is self.expectation.behind:
                share = self.reference.natural_share
                how += f"; the tolerance holds beside the named policy, since honest rounding takes {share:.2g} of it here"
            elif policy.needs_twins and not lucky and (kept := self._under_tolerance(i, expected)) and kept.all_close:
                how += f"; {ANOTHER_ALGORITHM}"
            self._add_leaf(Reason.MISMATCH, leaf.name, how)
            if self.expectation.hints:
                own, condition = self.run.outputs[i], self.reference.condition
                near = is_near_miss(leaf, own, expected, policy, condition, lambda: self.reference.honest(i))
                self.near_misses.append(near)

    def _under_tolerance(self, i: int, expected: torch.Tensor) -> TensorComparison | None:
        """Return an output beside the tolerance that a twin policy stands in the place of; None where that cannot refuse it."""
        behind = self.expectation.behind
        if behind is None or not tells(behind, expected, str(self.run.outputs[i].dtype)):
            return None
        if self._behind is None:
            self._behind = self._compared(behind)[0]
        return self._behind.per_tensor[i]

    def _keep_map(self, result: Comparison) -> None:
        if self.expectation.keep_map is None or not result.per_tensor:
            return
        worst = max(range(len(result.per_tensor)), key=lambda i: result.per_tensor[i].max_violation or 0.0)
        policy = self.expectation.policy
        expected, twins = self.reference.expected(policy, self.run.outputs)
        cells = error_map(self.run.outputs[worst], expected[worst], policy, [twin[worst] for twin in twins or ()])
        self.expectation.keep_map(result.per_tensor[worst].name, cells)

    # -- bookkeeping ------------------------------------------------------------------------------------------

    def _add_leaf(self, reason: Reason, name: str, detail: str) -> None:
        self.bad[name] = None
        self._add(reason, f"{name}: {detail}")

    def _add(self, reason: Reason, detail: str = "") -> None:
        if reason not in self.problems:
            self.problems[reason] = f"{sentence_of(reason)} ({detail})" if detail else sentence_of(reason)


def _finite_failure(leaf: TensorComparison) -> bool:
    """Whether anything but the places of NaN and Inf is wrong."""
    conditions = any(not condition.ok for condition in leaf.conditions)
    return conditions or leaf.out_of_tolerance_count > leaf.special_mismatch_count


def _how(leaf: TensorComparison) -> str:
    if leaf.zero_output:
        return "all zero at the reference's scale"
    share = f"{leaf.out_of_tolerance_count} of {leaf.total_elements} elements"
    if leaf.out_of_tolerance_count == 0:
        failed = [c.name for c in leaf.conditions if not c.ok]
        return f"{', '.join(failed)} above the limit"
    worst = "" if leaf.worst_index is None else f", worst at index {list(leaf.worst_index)}"
    allowed = leaf.max_violation is not None and leaf.max_violation != sys.float_info.max
    times = f", up to {times_allowed(leaf.max_violation or 0.0)} times what is allowed" if allowed else ""
    return f"{share}{times}{worst}"


def _word(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
