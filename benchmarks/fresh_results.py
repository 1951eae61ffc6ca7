"""What is kept of the operators that nobody tuned a suite for, and the part of docs/strength.md that it makes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import keeping

RESULTS = Path(__file__).with_name("results") / "fresh.json"
FIRST_LEVEL = "L3"
"""A wrong kernel meets the edge sizes first, and the whole suite only when it passes these."""


def load() -> dict[str, Any]:
    """Return the results of every operator that was measured."""
    return keeping.load(RESULTS)


def store(results: dict[str, Any]) -> None:
    """Keep the results."""
    keeping.store(RESULTS, dict(sorted(results.items())))


def counts(found: dict[str, Any]) -> dict[str, int]:
    """Return how many kernels must pass, how many of them do, how many must not, and how many of those are refused."""
    right = [row for row in found["kernels"] if row["kind"] != "wrong"]
    wrong = [row for row in found["kernels"] if row["kind"] == "wrong"]
    return {
        "right": len(right),
        "accepted": sum(row["status"] == "PASS" for row in right),
        "wrong": len(wrong),
        "refused": sum(row["status"] == "FAIL" for row in wrong),
    }


def section(results: dict[str, Any]) -> list[str]:
    """Return the part of docs/strength.md that these results make."""
    if not results:
        return []
    lines = [*_HEAD.splitlines(), "", *_overview(results), ""]
    wanted: list[tuple[str, Callable[[dict[str, Any]], bool]]] = [
        ("Right kernels that were not accepted", lambda row: row["kind"] != "wrong" and row["status"] != "PASS"),
        ("Wrong kernels that were not refused", lambda row: row["kind"] == "wrong" and row["status"] != "FAIL"),
    ]
    for title, fits in wanted:
        named = [(op, row) for op, found in sorted(results.items()) for row in found["kernels"] if fits(row)]
        lines += [f"### {title}", "", *(_line(op, row) for op, row in named), *([] if named else ["None."]), ""]
    return [*lines, *_refusals(results), ""]


_HEAD = f"""## Operators that nobody tuned the suite for

Written from their requests alone, before any suite of theirs existed (tests/fixtures/fresh): a right kernel, honest rewrites
of it (another tile, another order of summation, a product with 1 / scale, other loops) and wrong variants, each a fault that a
person or a model makes. The suite is what `pypto-op harness new` wrote, untouched. A right kernel counts as accepted when the
whole suite passes; a wrong one as refused when a case fails, at level {FIRST_LEVEL} or, if that passes, in the whole suite.
`python -m benchmarks fresh` measures; each verdict draws fresh seeds, so figures near a limit can move. "Suite of" names the
commit whose `harness new` wrote the suite, and how many verdicts are of it where some are of others; "earlier" stands for
verdicts from before commits were kept.
"""


def _overview(results: dict[str, Any]) -> list[str]:
    lines = [
        "| operator | cases | right kernels accepted | wrong ones refused | suite of | "
        "`harness new`, s | one verdict, s | all, s |",
        "|---|---:|---:|---:|---|---:|---:|---:|",
    ]
    for op, found in sorted(results.items()):
        count, made = counts(found), found["harness"]
        spent = sum(row["cpu_seconds"] for row in found["kernels"]) + made["cpu_seconds"]
        first = next((f"{row['cpu_seconds']:.0f}" for row in found["kernels"] if row["kind"] == "right"), "")
        share = " | ".join(_share(found, count, kind, good) for kind, good in (("right", "accepted"), ("wrong", "refused")))
        figures = f"{made['cpu_seconds']:.0f} | {first} | {spent:.0f}"
        lines.append(f"| {op} | {made.get('cases', 0)} | {share} | {_commits(found)} | {figures} |")
    short = [op for op, found in sorted(results.items()) if found["harness"]["exit"]]
    ends = [f"`harness new` ended with an error for {', '.join(short)}."] if short else []
    told = (
        "Seconds are of processor time; one verdict is that of the right kernel. They were measured beside other work, which\n"
        'makes them larger. Rows of "earlier" may leave out the time of workers.'
    )
    return [*lines, "", told, *ends]


def _share(found: dict[str, Any], count: dict[str, int], kind: str, good: str) -> str:
    missing = found.get("of", count)[kind] - count[kind]
    return f"{count[good]} of {count[kind]}" + (f" ({missing} not judged)" if missing else "")


def _commits(found: dict[str, Any]) -> str:
    """Return the commits that an operator's verdicts are of; with the number of verdicts, where they are of several."""
    told = Counter(f"`{row['commit']}`" if "commit" in row else "earlier" for row in found["kernels"])
    return next(iter(told)) if len(told) == 1 else ", ".join(f"{name}: {number}" for name, number in told.items())


def _line(op: str, row: dict[str, Any]) -> str:
    said = f" `{row['refused_by']}`" if row["refused_by"] else ""
    text = f": {row['said']}" if row["said"] else ""
    return f"- **{op}**, {row['kind']} `{row['id']}` ({row['why']}): {row['status']}{said}{text}"


def _refusals(results: dict[str, Any]) -> list[str]:
    lines = ["### What refused the wrong kernels first", "", "| operator | fault | case | failing cases |", "|---|---|---|---:|"]
    for op, found in sorted(results.items()):
        for row in found["kernels"]:
            if row["kind"] == "wrong" and row["status"] == "FAIL":
                share = f"{len(row['failed'])} of {row['cases']}"
                lines.append(f"| {op} | {row['why']} | `{row['refused_by']}` ({row['category']}) | {share} |")
    return lines
