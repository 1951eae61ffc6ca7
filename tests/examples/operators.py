"""The example operators, and copies of them that a test may write into."""

from __future__ import annotations

import math
import os
import shutil
from pathlib import Path

from pypto_op.documents import suite
from pypto_op.workspace import OpWorkspace

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "ops"
FIXTURES = ROOT / "tests" / "fixtures"
OPS = ("flash_attention_bwd", "flash_attention_fwd", "gated_delta_rule_bwd", "matmul_bias_gelu", "rmsnorm", "softmax")
STAGED = ("flash_attention_bwd", "gated_delta_rule_bwd")
SAMPLED = ("flash_attention_bwd", "flash_attention_fwd", "gated_delta_rule_bwd", "matmul_bias_gelu", "softmax")
"""Operators of which an ordinary run judges a sample only; PYPTO_OP_ALL_CASES=1 judges everything."""

STRIDE = 16
"""Every sixteenth fixture of a sampled operator is in the sample, the first one included."""


def original(op: str) -> OpWorkspace:
    """Return the operator as it is committed; read only."""
    return OpWorkspace.at(EXAMPLES / op)


def copy_of(op: str, into: Path, *, impl: Path | None = None) -> OpWorkspace:
    """Return a copy in `into/custom/<op>`, with `impl` in the place of its implementation."""
    root = into / "custom" / op
    shutil.copytree(EXAMPLES / op, root, ignore=shutil.ignore_patterns("evaluation_report.json", "_debug", "__pycache__"))
    workspace = OpWorkspace.at(root)
    if impl is not None:
        shutil.copy(impl, workspace.impl)
    return workspace


def fixtures(kind: str, op: str) -> list[Path]:
    """Return the files of tests/fixtures/<kind>/<op>/, `kind` being "faults" or "variants"."""
    return sorted((FIXTURES / kind / op).glob("*.py"))


def judged(kind: str, op: str) -> list[Path]:
    """Return the fixtures that this run judges: all, or a sample of a sampled operator."""
    files = fixtures(kind, op)
    return files if everything() or op not in SAMPLED else files[::STRIDE]


def spread(op: str) -> list[str]:
    """Return the ids of the cheapest case of each level whose numbers are compared: what an ordinary run judges.

    Of one position attention makes gradients that are nothing but rounding, so such a case shows little.
    """
    cases = [case for case in suite.load(original(op).suite).cases if case["precision"] and case["shape"].get("S", 2) > 1]
    levels = dict.fromkeys(case["level"] for case in cases)
    return [min((c for c in cases if c["level"] == level), key=lambda c: math.prod(c["shape"].values()))["id"] for level in levels]


def everything() -> bool:
    """Tell whether this run leaves nothing out."""
    return bool(os.environ.get("PYPTO_OP_ALL_CASES"))
