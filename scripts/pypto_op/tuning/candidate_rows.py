"""Candidates as rows: of a result in JSON, and of a report's table; the same for PyPTO and Triton."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pypto_op.tuning.ledger import Candidate


def row(one: Candidate) -> dict[str, Any]:
    """Return a candidate, JSON-ready."""
    return {
        "number": one.number,
        "origin": one.origin,
        "assignment": one.assignment,
        "fate": str(one.fate),
        "reason": one.reason,
        "times_us": one.times,
        "ratio": one.ratio,
        "seconds": one.seconds,
        "diff": one.diff,
    }


def table(candidates: Sequence[Candidate]) -> Iterator[str]:
    """Yield the lines of a table in Markdown, in the order of trials."""
    yield "| # | proposed by | change | ratio | fate | why |"
    yield "|---|---|---|---|---|---|"
    for one in candidates:
        ratio = "" if one.ratio is None else f"{one.ratio:.3f}"
        yield f"| {one.number} | {one.origin} | {cell(change(one))} | {ratio} | {one.fate} | {cell(one.reason[:160])} |"


def shares(importance: dict[str, float]) -> Iterator[str]:
    """Yield the lines of the section that says what mattered."""
    yield "Share of the differences between candidates that each choice explains (fANOVA on the search's own trials)."
    yield from ("", "| choice | share |", "|---|---|")
    for key, share in list(importance.items())[:12]:
        yield f"| {cell(key)} | {100 * share:.0f} % |"


def change(one: Candidate) -> str:
    """Return what a candidate sets, in words."""
    return "; ".join(f"{key} = {option}" for key, option in one.assignment.items())


def cell(text: str) -> str:
    """Return text that breaks no table."""
    return " ".join(text.split()).replace("|", "\\|")
