"""A measurement of strength in a terminal."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table

from pypto_op import speaking
from pypto_op.mutation.hunt import Result
from pypto_op.mutation.mutants import Mutant


class Progress:
    """Prints a line per mutant in a terminal; elsewhere `speaking` says how far the campaign is."""

    def __init__(self, console: Console) -> None:
        self._console, self._done = console, 0

    def __call__(self, mutant: Mutant, result: Result, total: int) -> None:
        """Note one finished mutant."""
        self._done += 1
        speaking.now("mutate", self._done, total)
        if self._console.is_terminal:
            by = f" by {result.case}" if result.case else ""
            line = f"line {mutant.line} {mutant.operator}: {result.fate}{by}"
            self._console.print(f"{self._done:4}/{total} {mutant.id} {line}")
            speaking.heard()

    def note(self, words: str) -> None:
        """Note what is being done before there are mutants to tell of."""
        speaking.now(words)


def show(console: Console, report: dict[str, Any]) -> None:
    """Print the score, what survived and why, and the sabotage runs."""
    table = Table("operator", "killed", "survived", "equivalent", "invalid", title=f"mutants of {report['op_name']}")
    for operator in dict.fromkeys(mutant["operator"] for mutant in report["mutants"]):
        own = [mutant["status"] for mutant in report["mutants"] if mutant["operator"] == operator]
        table.add_row(operator, *(str(own.count(fate) or "") for fate in ("killed", "survived", "equivalent", "invalid")))
    console.print(table)
    console.print(_cases(report))
    for mutant in report["mutants"]:
        if mutant["status"] in ("survived", "equivalent"):
            console.print(f"{mutant['status']} {mutant['id']} line {mutant['line']} ({mutant['operator']}): {mutant['detail']}")
            console.print(mutant["diff"], markup=False)
    for run in report["sabotage"]:
        verdict = "refused" if run["refused"] else "PASSED" if run["ran"] else "not possible"
        console.print(f"sabotage ({run['kind']} kernel): {verdict}: {run['detail']}")
    console.print(sentence(report))


def sentence(report: dict[str, Any]) -> str:
    """Return the result in one line."""
    if report["score"] is None:
        return f"{report['op_name']}: {_unscored(report)}, {report['seconds']:.0f} s" + _sampled(report)
    return (
        f"{report['op_name']}: {report['killed']} of {report['killed'] + report['survived']} mutants killed "
        f"({report['score']:.1%}; at least {report['lower_bound']:.1%} with {report['confidence']:.0%} confidence), "
        f"{report['equivalent']} equivalent, {report['invalid']} invalid, {report['seconds']:.0f} s" + _sampled(report)
    )


def _unscored(report: dict[str, Any]) -> str:
    """Say why there is no score although the measurement ended."""
    equivalent, invalid = report["equivalent"], report["invalid"]
    if equivalent:
        others = f" ({invalid} more cannot run)" if invalid else ""
        return f"{equivalent} of {equivalent} mutants that ran gave the kernel's own bits{others}, so there was nothing to kill"
    return f"{invalid} of {invalid} mutants are no kernels, in no case did one run, so the suite's strength is unknown"


def _cases(report: dict[str, Any]) -> Table:
    """Return what each case did, those that kill most first."""
    asked = any(row["kills"] is not None for row in report["by_case"])
    table = Table("case", "power", "first to kill", *(["kills"] if asked else []), title="cases")
    for row in sorted(report["by_case"], key=lambda row: (-(row["kills"] or 0), -row["first"])):
        power = "" if row["power"] is None else f"{row['power']:g}"
        table.add_row(row["id"], power, str(row["first"] or ""), *([str(row["kills"])] if asked else []))
    table.caption = "power: by how many times what is allowed the least planted fault of the golden is refused"
    return table


def _sampled(report: dict[str, Any]) -> str:
    tried = len(report["mutants"])
    return "" if report["limit"] is None else f"; a sample: {tried} of {report['made']} mutants, `--seconds 0` tries all"
