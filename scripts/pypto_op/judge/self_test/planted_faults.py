"""Faults that a comparison must see and secrets that a report must lose, planted into what a golden really returned."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pypto_op.documents.policy import Policy
from pypto_op.judge import adversarial
from pypto_op.judge.findings.redaction import Redactor

if TYPE_CHECKING:
    import torch

    from pypto_op.judge.answers.expectation import Reference

    Leaves = Sequence[torch.Tensor]
    Refuses = Callable[[Sequence[torch.Tensor]], bool]
    Far = Callable[[torch.Tensor, int], bool]


NEEDED = ("all zero", "twice as large", "a lost last row")
"""Faults that some case of a suite must be able to tell for each floating output, where it has two rows."""


@dataclass(frozen=True)
class Planted:
    """What became of the faults that were planted into the outputs of one case."""

    seen: frozenset[tuple[str, int]]  # (fault, output) pairs that the comparison refused
    missed: tuple[str, ...]  # those that it took for right, in words


def plant(outputs: Leaves, refuses: Refuses, far: Far) -> Planted:
    """Plant faults into a golden's outputs and judge them.

    Args:
        refuses: whether the judge, under the case's own policies, refuses some outputs.
        far: whether an output (by its place) is so wrong that it must be refused, told by other means than the judge's.
    """
    escaped, seen = [], set()
    for fault, place, wrong in _faults(outputs, far):
        if refuses(wrong):
            seen.add((fault, place))
        else:
            escaped.append(f"{fault} (output {place})")
    return Planted(frozenset(seen), tuple(escaped))


def _faults(outputs: Leaves, far: Far) -> Iterator[tuple[str, int, list[torch.Tensor]]]:
    """Yield faults that are worth the name: the reverse of a constant, say, is none."""
    if len(outputs) > 1:
        yield "a dropped output", len(outputs) - 1, list(outputs[:-1])
    yield "one output too many", 0, [*outputs, outputs[0]]
    for i, output in enumerate(outputs):
        for name, make in _OF_FORM.items():
            wrong = make(output)
            if wrong is not None:
                yield name, i, [*outputs[:i], wrong, *outputs[i + 1 :]]
        for name, make in _OF_VALUE.items():
            wrong = make(output)
            if wrong is not None and far(wrong, i):
                yield name, i, [*outputs[:i], wrong, *outputs[i + 1 :]]
        for j in range(i):
            other = outputs[j]
            if other.shape == output.shape and other.dtype == output.dtype and far(other, i):
                swapped = list(outputs)
                swapped[i], swapped[j] = swapped[j], swapped[i]
                yield f"swapped with output {j}", i, swapped


def far_of(reference: Reference, policies: Sequence[Policy]) -> Far:
    """Return what tells by textbook formulas that an element is off by more than twice what every policy allows.

    Args:
        reference: the golden's answer, with its twins where a policy wants them.
        policies: those that must hold; an output that one of them must refuse is far.
    """

    def far(wrong: torch.Tensor, place: int) -> bool:
        import torch

        output = reference.native.outputs[place]
        if not output.is_floating_point():
            return not torch.equal(wrong, output)
        return any(bool((_off(wrong, output) > _CLEARLY * _room(reference, policy, place)).any()) for policy in policies)

    return far


def _off(one: torch.Tensor, two: torch.Tensor) -> torch.Tensor:
    return (one.double() - two.double()).abs()


def _room(reference: Reference, policy: Policy, place: int) -> torch.Tensor:
    """Return how much a policy allows at each element; a twin policy a factor of the worst honest error, beside a floor."""
    output = reference.native.outputs[place]
    numbers = policy.for_dtype(str(output.dtype).removeprefix("torch."))
    if not policy.needs_twins or reference.exact is None:
        atol, rtol = float(numbers.get("atol", 0.0)), float(numbers.get("rtol", numbers.get("mare", 0.0)))
        return atol + rtol * output.double().abs()
    truth = reference.exact.outputs[place].double()
    size = truth.abs().clamp(min=float(numbers["clamp"]) * float(truth[truth.isfinite()].abs().max() if truth.numel() else 0.0))
    worst = max((_off(run.outputs[place], truth) / size).nan_to_num(0.0).max() for run in reference.twins.values())
    limit = max(float(policy.as_dict()["factor"]["mare"]) * float(worst), float(numbers["floor"]["mare"]))
    return limit * size + _off(output, truth)


_CLEARLY = 2.0


def _other_dtype(output: torch.Tensor) -> torch.Tensor:
    import torch

    return output.to(torch.float64 if output.dtype is not torch.float64 else torch.float32)


def _other_shape(output: torch.Tensor) -> torch.Tensor:
    return output.unsqueeze(0)


def _nan(output: torch.Tensor) -> torch.Tensor | None:
    if not output.is_floating_point() or not output.numel():
        return None
    flat = output.clone().reshape(-1)
    flat[-1] = float("inf") if flat[-1].isnan() else float("nan")
    return flat.reshape(output.shape)


def _zero(output: torch.Tensor) -> torch.Tensor:
    import torch

    return torch.zeros_like(output)


def _reversed(output: torch.Tensor) -> torch.Tensor | None:
    return output.flip(0) if output.dim() else None


def _doubled(output: torch.Tensor) -> torch.Tensor | None:
    return output * 2 if output.is_floating_point() else None


def _lost_tail(output: torch.Tensor) -> torch.Tensor | None:
    """The last row is never written: it holds zeros."""
    if not output.dim() or output.shape[0] < 2:
        return None
    wrong = output.clone()
    wrong[-1] = 0
    return wrong


_Maker = Callable[["torch.Tensor"], "torch.Tensor | None"]

_OF_FORM: dict[str, _Maker] = {
    "another dtype": _other_dtype,
    "another shape": _other_shape,
    "a NaN or Inf in the wrong place": _nan,
}
_OF_VALUE: dict[str, _Maker] = {
    "all zero": _zero,
    "reversed rows": _reversed,
    "twice as large": _doubled,
    "a lost last row": _lost_tail,
}


def leaks(outputs: Leaves, golden: Path) -> list[str]:
    """Plant what no report may hold into a report and into a candidate's words; return what was not removed."""
    import torch

    told = [output for output in outputs if output.numel()]
    number = f"{float(told[0].reshape(-1)[0].double()):.6f}" if told else "0.123456"
    secret = "SECRET"
    report = {
        "status": "FAIL",
        "golden_source": secret,
        "checks": [{"id": "a", "level": "L2", "truth": secret, "modes": {"sim": {"golden_output": secret}}}],
        "first_failure": {"case_id": "a", "expected": secret},
    }
    report |= dict.fromkeys(adversarial.FORBIDDEN_REPORT_KEYS, secret)
    found = ["a forbidden key of the report"] if secret in json.dumps(adversarial.sanitize(report)) else []
    line = next((text.strip() for text in golden.read_text(encoding="utf-8").splitlines() if len(text.strip()) > 20), "")
    words = Redactor(golden, golden.with_name("no_such_impl.py")).clean(
        f"row {number}\n{line}\n{torch.tensor([1.25, 2.5])}\n", list(told[:1])
    )
    if line and line in words:
        found.append("a line of the golden")
    if told and number in words and sum(c.isdigit() for c in number) >= 3:
        found.append("a value of the golden")
    return found + (["a printed tensor"] if "1.25" in words else [])
