"""Whether an operator has evidence: what a gate would find for the bytes that lie there now."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pypto_op.proof import evidence
from pypto_op.workspace import OpWorkspace


def pass_for_bytes(ws: OpWorkspace, impl: Path | None = None, k: int | None = None) -> dict[str, Any] | None:
    """Return the first sealed PASS of the whole suite for these bytes; None where there is none."""
    return next(evidence.sealed_passes(ws, impl, k), None)
