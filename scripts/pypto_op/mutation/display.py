"""A measurement of strength in a terminal."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table

from pypto_op.mutation.hunt import Result
from pypto_op.mutation.mutants import Mutant


class Progress:
    """Prints a line per mutant in a terminal, and now and then one into a log."""

    def __init__(self, console: Console) -> None:
        self._console, self._done = console, 0

    def __call__(self, mutant: Mutant, result: Result, total: int) -> None:
        """Note one finished mutant."""
        self._done += 1
        if self._console.is_terminal:
            by = f" by {result.case}" if result.case else ""
            line = f"line {mutant.line} {mutant.operator}: {result.fate}{by}"
            self._console.print(f"{self._done:4}/{total} {mutant.id} {line}")
        elif self._done % 25 == 0 and self._console.stderr:
            self._console.print(f"{self._done} of {total} mutants done")


def show(console: Console, report: dict[str, Any]) -> None:
    """Print the score, what survived and why, and the sabotage runs."""
    table = Table("operator", "killed", "survived", "equivalent", "invalid", title=f"mutants of {report['op_name']}")
    for operator in dict.fromkeys(mutant["operator"] for mutant in report["mutants"]):
        own = [mutant["status"] for mutant in report["mutants"] if mutant["operator"] == operator]
        table.add_row(operator, *(str(own.count(fate) or "") for fate in ("killed", "survived", "equivalent", "invalid")))
    console.print(table)
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
        return f"{report['op_name']}: no mutant ran, so the suite's strength is unknown ({report['invalid']} invalid)"
    return (
        f"{report['op_name']}: {report['killed']} of {report['killed'] + report['survived']} mutants killed "
        f"({report['score']:.1%}; at least {report['lower_bound']:.1%} with {report['confidence']:.0%} confidence), "
        f"{report['equivalent']} equivalent, {report['invalid']} invalid, {report['seconds']:.0f} s" + _sampled(report)
    )


def _sampled(report: dict[str, Any]) -> str:
    tried = len(report["mutants"])
    return "" if report["limit"] is None else f"; a sample: {tried} of {report['made']} mutants, `--seconds 0` tries all"
