"""The example operators, and copies of them that a test may write into."""

from __future__ import annotations

import math
import shutil
from collections.abc import Sequence
from pathlib import Path

from tests import quickly
from tests.markdown_cases.examples import Kernel, kernels

from pypto_op.documents import suite
from pypto_op.workspace import OpWorkspace

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "ops"
OPS = ("flash_attention_bwd", "flash_attention_fwd", "gated_delta_rule_bwd", "matmul_bias_gelu", "rmsnorm", "softmax")
STAGED = ("flash_attention_bwd", "gated_delta_rule_bwd")
SAMPLED = ("flash_attention_bwd", "flash_attention_fwd", "gated_delta_rule_bwd", "matmul_bias_gelu", "softmax")
"""Operators of whose suite an ordinary run judges a sample only; rmsnorm's shows that a size that is fixed per build is drawn."""

STRIDE = 16
"""Every sixteenth fixture of an operator is in the sample, the first one included."""


def original(op: str) -> OpWorkspace:
    """Return the operator as it is committed; read only."""
    return OpWorkspace.at(EXAMPLES / op)


def copy_of(op: str, into: Path, *, impl: bytes | None = None) -> OpWorkspace:
    """Return a copy in `into/custom/<op>`, with `impl` as the text of its implementation."""
    root = into / "custom" / op
    shutil.copytree(EXAMPLES / op, root, ignore=shutil.ignore_patterns("evaluation_report.json", "_debug", "__pycache__"))
    workspace = OpWorkspace.at(root)
    if impl is not None:
        workspace.impl.write_bytes(impl)
    return workspace


def judged(kind: str, op: str) -> Sequence[Kernel]:
    """Return the faults or variants that this run judges: all, or a sample."""
    found = kernels(kind, op)
    return found if quickly.EVERYTHING else found[::STRIDE]


def spread(op: str) -> list[str]:
    """Return the ids of the cheapest case of each level whose numbers are compared: what an ordinary run judges.

    Of one position attention makes gradients that are nothing but rounding, so such a case shows little.
    """
    cases = [case for case in suite.load(original(op).suite).cases if case["precision"] and case["shape"].get("S", 2) > 1]
    levels = dict.fromkeys(case["level"] for case in cases)
    by_level = [[case for case in cases if case["level"] == level] for level in levels]
    return [min(found, key=lambda case: math.prod(case["shape"].values()))["id"] for found in by_level]
