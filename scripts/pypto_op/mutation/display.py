"""A measurement of strength in a terminal."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.table import Table

from pypto_op.mutation.hunt import Result
from pypto_op.mutation.mutants import Mutant

_QUIET_SECONDS = 10.0
"""A log gets a line at least so often: whoever waits cannot tell a long run from a hung one."""


class Progress:
    """Prints a line per mutant in a terminal; elsewhere a line on standard error every ten seconds.

    Args:
        console: where the result goes.
    """

    def __init__(self, console: Console) -> None:
        self._terminal = console.is_terminal
        self._console = console if console.is_terminal else Console(stderr=True, highlight=False, soft_wrap=True)
        self._done, self._total, self._words = 0, 0, "reading the operator"
        self._begun, self._over = time.monotonic(), threading.Event()
        self._ticker = threading.Thread(target=self._tick, name="progress", daemon=True)

    def __enter__(self) -> Progress:
        self._ticker.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._over.set()
        self._ticker.join()

    def __call__(self, mutant: Mutant, result: Result, total: int) -> None:
        """Note one finished mutant."""
        self._done, self._total = self._done + 1, total
        if self._terminal:
            by = f" by {result.case}" if result.case else ""
            line = f"line {mutant.line} {mutant.operator}: {result.fate}{by}"
            self._console.print(f"{self._done:4}/{total} {mutant.id} {line}")

    def note(self, words: str) -> None:
        """Note what is being done before there are mutants to tell of."""
        self._words = words

    def _tick(self) -> None:
        while not self._over.wait(_QUIET_SECONDS):
            if not self._terminal or not self._done:
                what = f"{self._done} of {self._total} mutants done" if self._done else self._words
                self._console.print(f"{what}; {time.monotonic() - self._begun:.0f} s")


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
