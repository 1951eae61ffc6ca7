"""The example operators, and copies of them that a test may write into."""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from tests.markdown_cases.examples import Kernel, kernels

from pypto_op.documents import suite
from pypto_op.workspace import OpWorkspace

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "ops"
OPS = ("flash_attention_bwd", "flash_attention_fwd", "gated_delta_rule_bwd", "matmul_bias_gelu", "rmsnorm", "softmax")
STAGED = ("flash_attention_bwd", "gated_delta_rule_bwd")
SAMPLED = ("flash_attention_bwd", "flash_attention_fwd", "gated_delta_rule_bwd", "matmul_bias_gelu", "softmax")
"""Operators of which an ordinary run judges a sample only; PYPTO_OP_ALL_CASES=1 judges everything."""

STRIDE = 16
"""Every sixteenth fixture of a sampled operator is in the sample, the first one included."""


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
    """Return the faults or variants that this run judges: all, or a sample of a sampled operator."""
    found = kernels(kind, op)
    return found if everything() or op not in SAMPLED else found[::STRIDE]


def spread(op: str) -> list[str]:
    """Return the ids of the cheapest case of each level whose numbers are compared: what an ordinary run judges.

    Of one position attention makes gradients that are nothing but rounding, so such a case shows little.
    """
    cases = [case for case in suite.load(original(op).suite).cases if case["precision"] and case["shape"].get("S", 2) > 1]
    levels = dict.fromkeys(case["level"] for case in cases)
    by_level = [[case for case in cases if case["level"] == level] for level in levels]
    return [min(found, key=lambda case: math.prod(case["shape"].values()))["id"] for found in by_level]


def everything() -> bool:
    """Tell whether this run leaves nothing out."""
    return bool(os.environ.get("PYPTO_OP_ALL_CASES"))
