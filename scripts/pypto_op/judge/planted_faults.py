"""Faults that a comparison must see and secrets that a report must lose, planted into what a golden really returned."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pypto_op.compare import compare_leaves
from pypto_op.judge import adversarial
from pypto_op.judge.barrier import Barrier
from pypto_op.policy import Policy, get_policy

if TYPE_CHECKING:
    import torch

    Leaves = Sequence[torch.Tensor]


def missed(outputs: Leaves, policy: Policy) -> list[str]:
    """Return the planted faults that the comparison takes for right; "the golden itself" if it refuses that.

    Args:
        outputs: the golden's, of one case.
        policy: the tolerance of the case; in the place of a twin policy, whose truth is not at hand, the fixed one.
    """
    rule = get_policy("allclose@1") if policy.needs_twins else policy
    names = [f"out{i}" for i in range(len(outputs))]
    escaped = [] if compare_leaves(list(outputs), outputs, names=names, policy=rule).all_close else ["the golden itself"]
    for fault, wrong in _faults(outputs):
        if compare_leaves(wrong, outputs, names=names, policy=rule).all_close:
            escaped.append(fault)
    return escaped


def _faults(outputs: Leaves) -> Iterator[tuple[str, list[torch.Tensor]]]:
    """Yield faults that really change something: a transposed constant, say, is no fault."""
    if len(outputs) > 1:
        yield "a dropped output", list(outputs[:-1])
    yield "one output too many", [*outputs, outputs[0]]
    for i, output in enumerate(outputs):
        for name, make in _OF_ONE.items():
            wrong = make(output)
            if wrong is not None and not _same(wrong, output):
                yield f"{name} (output {i})", [*outputs[:i], wrong, *outputs[i + 1 :]]
        for j in range(i):
            if outputs[j].shape == output.shape and not _alike(outputs[j], output):
                swapped = list(outputs)
                swapped[i], swapped[j] = swapped[j], swapped[i]
                yield f"outputs {j} and {i} swapped", swapped


def _other_dtype(output: torch.Tensor) -> torch.Tensor:
    import torch

    return output.to(torch.float64 if output.dtype is not torch.float64 else torch.float32)


def _other_shape(output: torch.Tensor) -> torch.Tensor | None:
    return output.unsqueeze(0)


def _zero(output: torch.Tensor) -> torch.Tensor | None:
    import torch

    return torch.zeros_like(output) if _tells(output) else None


def _nan(output: torch.Tensor) -> torch.Tensor | None:
    if not output.is_floating_point() or not output.numel():
        return None
    wrong = output.clone()
    flat = wrong.reshape(-1)
    at = flat.numel() - 1
    flat[at] = float("inf") if flat[at].isnan() else float("nan")
    return flat.reshape(wrong.shape)


def _reversed(output: torch.Tensor) -> torch.Tensor | None:
    if not output.dim() or not _tells(output):
        return None
    flipped = output.flip(0)
    return None if _alike(flipped, output) else flipped


def _doubled(output: torch.Tensor) -> torch.Tensor | None:
    return output * 2 if output.is_floating_point() and _tells(output) else None


def _lost_tail(output: torch.Tensor) -> torch.Tensor | None:
    """The last row is never written: it holds zeros."""
    if not output.dim() or output.shape[0] < 2 or not _tells(output[-1]):
        return None
    wrong = output.clone()
    wrong[-1] = 0
    return wrong


_OF_ONE: dict[str, Callable[[torch.Tensor], torch.Tensor | None]] = {
    "another dtype": _other_dtype,
    "another shape": _other_shape,
    "all zero": _zero,
    "a NaN or Inf in the wrong place": _nan,
    "reversed rows": _reversed,
    "twice as large": _doubled,
    "a lost last row": _lost_tail,
}


def _tells(output: torch.Tensor) -> bool:
    """Whether an output is large enough that a wrong one can be told from it at all."""
    if not output.numel():
        return False
    if not output.is_floating_point():
        return bool(output.any())
    finite = output[output.isfinite()]
    return bool(finite.numel()) and float(finite.abs().max()) > _VISIBLE


_VISIBLE = 1e-2
"""An output below this may lie within an absolute tolerance altogether; a suite's other cases then have to see it."""


def _alike(one: torch.Tensor, other: torch.Tensor) -> bool:
    import torch

    if one.dtype != other.dtype:
        return False
    return bool(torch.allclose(one.double(), other.double(), rtol=5e-2, atol=_VISIBLE, equal_nan=True))


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    import torch

    return one.dtype == other.dtype and one.shape == other.shape and bool(torch.equal(one, other))


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
