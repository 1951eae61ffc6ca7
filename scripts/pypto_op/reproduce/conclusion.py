"""Kernel innocent or suspect: its error beside the error that other orders of summation make on the same inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pypto_op.judge.findings.near_miss import ALIKE
from pypto_op.vocabulary import Conclusion

_DEBUG_SKILL = "pypto-precision-debug"

Metrics = Mapping[str, Any]


@dataclass(frozen=True)
class OutputDrift:
    """One failing output."""

    name: str  # of the output
    kernel: Metrics  # what the judge measured: max_abs_diff, max_rel_diff, ...
    cpu: Mapping[str, float]  # the worst twin's max_abs_diff, max_rel_diff and mean_diff
    ratio: float | None  # kernel / cpu, the larger of the ratios of greatest and mean difference; None where cpu is 0

    @property
    def alike(self) -> bool:
        """Whether the kernel drifts no further than honest code does."""
        return self.ratio is not None and self.ratio <= ALIKE


@dataclass(frozen=True)
class Judgement:
    """What the comparison of both drifts says."""

    conclusion: Conclusion  # innocent or suspect
    summary: str  # one sentence, no tensor values
    outputs: tuple[OutputDrift, ...]  # each failing output
    next_step: str  # what to do now, imperative


def judge_drift(reasons: Sequence[str], failing: Sequence[Metrics], drift: Mapping[str, Sequence[Metrics]]) -> Judgement:
    """Compare a kernel's drift with the twins'.

    Args:
        reasons: the judge's words for what is wrong; anything but `mismatch` no rounding explains.
        failing: metrics of the outputs that are out of tolerance; at least one.
        drift: twin -> metrics of each output.
    """
    outputs = tuple(_compared(leaf, drift) for leaf in failing)
    other = sorted(set(reasons) - {"mismatch"})
    wrong = [leaf["name"] for leaf in failing if _beyond_rounding(leaf)]
    if other or wrong:
        what = ", ".join(other or ["all zero, constant, unwritten or not finite"])
        return _suspect(f"no order of summation explains this: {what}", outputs)
    guilty = [output for output in outputs if not output.alike]
    if guilty:
        worst = max(guilty, key=lambda output: float("inf") if output.ratio is None else output.ratio)
        times = "while they agree to the last bit" if worst.ratio is None else f"{worst.ratio:.3g} times as far as they do"
        return _suspect(f"{worst.name} is off from the golden {times}: honest code does not drift so", outputs)
    ratio = max(output.ratio or 0.0 for output in outputs)
    summary = f"other orders of summation drift as far as the kernel does (kernel / twins: {ratio:.2g})"
    return Judgement(
        Conclusion.KERNEL_INNOCENT, summary, outputs, "change the case, not the kernel: apply the suite patch, then verify"
    )


def _suspect(summary: str, outputs: tuple[OutputDrift, ...]) -> Judgement:
    return Judgement(Conclusion.KERNEL_SUSPECT, summary, outputs, f"load {_DEBUG_SKILL}; the kernel is likely at fault")


def _compared(leaf: Metrics, drift: Mapping[str, Sequence[Metrics]]) -> OutputDrift:
    own = [entry for outputs in drift.values() for entry in outputs if entry["name"] == leaf["name"]]
    cpu = {
        key: max((float(entry[key]) for entry in own if entry[key] is not None), default=0.0)
        for key in ("max_abs_diff", "max_rel_diff", "mean_diff")
    }
    ratios = []
    for key in ("max_abs_diff", "mean_diff"):
        kernel = leaf.get(key)
        if kernel is None or (cpu[key] == 0.0 and kernel > 0.0):
            return OutputDrift(str(leaf["name"]), leaf, cpu, None)
        ratios.append(kernel / cpu[key] if cpu[key] else 0.0)
    return OutputDrift(str(leaf["name"]), leaf, cpu, max(ratios))


def _beyond_rounding(leaf: Metrics) -> bool:
    counts = ("special_mismatch_count", "unwritten_elements")
    return bool(leaf.get("zero_output") or leaf.get("constant_output") or any(leaf.get(key) for key in counts))
