"""Faults that a comparison must see and secrets that a report must lose, planted into what a golden really returned."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pypto_op.compare import compare_leaves
from pypto_op.judge import adversarial
from pypto_op.judge.barrier import Barrier
from pypto_op.policy import Policy, get_policy

if TYPE_CHECKING:
    import torch

    Leaves = Sequence[torch.Tensor]


NEEDED = ("all zero", "twice as large", "a lost last row")
"""Faults that some case of a suite must be able to tell for each floating output, where it has two rows."""


@dataclass(frozen=True)
class Planted:
    """What became of the faults that were planted into the outputs of one case.

    Attributes:
        seen: (fault, output) pairs that the comparison refused.
        missed: those that it took for right, in words; "the golden itself" where it refuses that.
    """

    seen: frozenset[tuple[str, int]]
    missed: tuple[str, ...]


def plant(outputs: Leaves, policy: Policy) -> Planted:
    """Plant faults into a golden's outputs and compare.

    Args:
        outputs: the golden's, of one case.
        policy: the tolerance of the case; in the place of a twin policy, whose truth is not at hand, the fixed one.
    """
    rule = get_policy("allclose@1") if policy.needs_twins else policy
    names = [f"out{i}" for i in range(len(outputs))]
    escaped = [] if compare_leaves(list(outputs), outputs, names=names, policy=rule).all_close else ["the golden itself"]
    seen = set()
    for fault, place, wrong in _faults(outputs, rule):
        if compare_leaves(wrong, outputs, names=names, policy=rule).all_close:
            escaped.append(f"{fault} (output {place})")
        else:
            seen.add((fault, place))
    return Planted(frozenset(seen), tuple(escaped))


def _faults(outputs: Leaves, rule: Policy) -> Iterator[tuple[str, int, list[torch.Tensor]]]:
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
            if wrong is not None and _is_far(wrong, output, rule):
                yield name, i, [*outputs[:i], wrong, *outputs[i + 1 :]]
        for j in range(i):
            other = outputs[j]
            if other.shape == output.shape and other.dtype == output.dtype and _is_far(other, output, rule):
                swapped = list(outputs)
                swapped[i], swapped[j] = swapped[j], swapped[i]
                yield f"swapped with output {j}", i, swapped


def _is_far(wrong: torch.Tensor, output: torch.Tensor, rule: Policy) -> bool:
    """Whether some element is off by more than twice what the tolerance allows, told by the textbook formula."""
    import torch

    if not output.is_floating_point():
        return not torch.equal(wrong, output)
    numbers = rule.for_dtype(str(output.dtype).removeprefix("torch."))
    atol, rtol = float(numbers.get("atol", 0.0)), float(numbers.get("rtol", numbers.get("mare", 0.0)))
    off, size = (wrong.double() - output.double()).abs(), output.double().abs()
    return bool((off > _CLEARLY * (atol + rtol * size)).any())


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
    words = Barrier(golden, golden.with_name("no_such_impl.py")).clean(
        f"row {number}\n{line}\n{torch.tensor([1.25, 2.5])}\n", list(told[:1])
    )
    if line and line in words:
        found.append("a line of the golden")
    if told and number in words and sum(c.isdigit() for c in number) >= 3:
        found.append("a value of the golden")
    return found + (["a printed tensor"] if "1.25" in words else [])
