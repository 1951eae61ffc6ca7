"""The verdict for people: a line per case while it runs, then a table, the failure, and what the modes cannot see."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from pypto_op.documents.verdict import from_report, sentence
from pypto_op.hashing import sha256_file
from pypto_op.judge.cases.extent import counted, covers, left_out, times_allowed
from pypto_op.judge.findings.records import CaseRecord
from pypto_op.judge.reporting.next_step import after_failure
from pypto_op.vocabulary import Status
from pypto_op.workflow import workflow
from pypto_op.workspace import OpWorkspace

_STYLE = {
    Status.PASS: "green",
    Status.PARTIAL: "yellow",
    Status.FAIL: "bold red",
    Status.ERROR: "bold magenta",
    Status.SKIPPED: "yellow",
}
_SHOWN_OUTPUT = 30
_NAMED_CASES = 4


_PIPE_WIDTH = 160


def verdict_console(**options: Any) -> Console:
    """Return a console for verdicts; where no terminal says how wide it is, a table may be wider than 80 columns."""
    console = Console(highlight=False, **options)
    return console if console.is_terminal or "COLUMNS" in os.environ else Console(highlight=False, width=_PIPE_WIDTH, **options)


def show_progress(console: Console, record: CaseRecord, done: int, total: int) -> None:
    """Print one line about a case that has just been judged."""
    modes = "  ".join(f"{mode} {styled(r.status)}" for mode, r in record.modes.items())
    console.print(f"[dim]{done:>4}/{total}[/dim]  {escape(record.id)}  {modes}  [dim]{record.seconds:.1f} s[/dim]")


def show_report(
    console: Console,
    report: Mapping[str, Any],
    *,
    verdict_only: bool = False,
    file: Path | None = None,
    phase: int | None = None,
    ws: OpWorkspace | None = None,
) -> None:
    """Print a report: table of cases, first failure, limits, the verifier's answer, and the verdict as the last line.

    Args:
        verdict_only: leave out what is about single cases.
        file: where it lies; the verifier's answer, which names it, is printed only then.
        phase: k of the phase that was judged; None for the integrated implementation.
        ws: the operator; the next command, which names it, is printed only then.
    """
    if report["checks"] and not verdict_only:
        console.print(_table(report))
        _show_reasons(console, report)
        _show_not_shown(console, report)
        _show_fresh(console, report)
    answer = "" if file is None or verdict_only else _answer(report, file, phase)
    _show_failure(console, report, words=not verdict_only, answer=answer)
    for mode, entry in report["modes"].items():
        status = report["per_mode_status"].get(mode, Status.SKIPPED)
        if status == Status.SKIPPED and entry["reason"]:
            console.print(f"{mode} {styled(status)}: {escape(entry['reason'])}")
        for caveat in entry["caveats"] if status != Status.SKIPPED or not entry["reason"] else ():
            console.print(f"[dim]{escape(caveat)}[/dim]", soft_wrap=True)
    if answer and file is not None:
        console.print(escape(answer), soft_wrap=True)
        if ws is not None and (step := after_failure(report, file, ws)):
            console.print(f"[bold]next:[/bold] {escape(step)}", soft_wrap=True)
    ran = [mode for mode in report["per_mode_status"] if _ran(report, mode)]
    modes = ", ".join(
        f"{mode} {'compared no number' if status == Status.SKIPPED and mode in ran else status}"
        for mode, status in report["per_mode_status"].items()
    )
    console.print(
        f"{styled(report['status'])}  {escape(report['op_name'])}: {escape(counted(report))} "
        f"({modes or 'nothing ran'}), {report['seconds']:.1f} s",
        soft_wrap=True,
    )


def _answer(report: Mapping[str, Any], file: Path, phase: int | None) -> str:
    """Return the sentences that the verifier hands back (its page, Return), so that no agent words a verdict."""
    told = from_report(
        report,
        report_file=os.path.relpath(file) if file.is_relative_to(Path.cwd()) else str(file),
        report_sha256=sha256_file(file),
        phase=phase,
        left_out=left_out(report),
        covers_phase=covers(report, workflow().phase_levels),
    )
    return sentence(told)


def _table(report: Mapping[str, Any]) -> Table:
    modes = _judged_modes(report)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("case", "level", "dtype", "shape", *modes):
        table.add_column(heading, no_wrap=True)
    table.add_column("max abs\ndiff", justify="right", no_wrap=True)
    table.add_column("of allowed,\nor reason", justify="right", no_wrap=True)
    for check in report["checks"]:
        shape = " ".join(f"{symbol}={size}" for symbol, size in check.get("shape", {}).items())
        results = [check["modes"].get(mode, {}) for mode in modes]
        table.add_row(
            escape(check["id"]),
            check["level"],
            escape(_dtypes(check.get("dtype", ""))),
            escape(shape),
            *(styled(r.get("status", Status.SKIPPED)) for r in results),
            _number(check["max_abs_diff"]),
            _of_allowed(results),
        )
    return table


def _show_reasons(console: Console, report: Mapping[str, Any]) -> None:
    """Say why cases but the first failure do not pass; in a column the sentences would push the numbers out.

    What a file that does not load says of every case is told once.
    """
    first = (report["first_failure"] or {}).get("case_id")
    alike: dict[str, list[str]] = {}
    for check in report["checks"]:
        results = [check["modes"].get(mode, {}) for mode in _judged_modes(report)]
        reasons = dict.fromkeys(r["reason"] for r in results if r and r["status"] != Status.PASS and r["reason"])
        if reasons and check["id"] != first:
            alike.setdefault("; ".join(reasons), []).append(check["id"])
    for reason, cases in alike.items():
        named = cases if len(cases) <= _NAMED_CASES else [*cases[:_NAMED_CASES], f"{len(cases) - _NAMED_CASES} more"]
        console.print(escape(f"{', '.join(named)}: {reason}"))


def _show_not_shown(console: Console, report: Mapping[str, Any]) -> None:
    """Say what the further calls could not try."""
    for check in report["checks"]:
        for words in check.get("further_calls", {}).get("not_shown", []):
            console.print(f"[dim]{escape(check['id'])}, called again: not shown, since {escape(words)}.[/dim]")


def _show_fresh(console: Console, report: Mapping[str, Any]) -> None:
    """Say which shapes only this verdict knew, and how to draw them again."""
    for check in report["checks"]:
        if seeds := ", ".join(map(str, check.get("left_draws", []))):
            words = f"was judged on another draw: with seed {seeds} honest rounding takes too much of the tolerance"
            console.print(f"[dim]{escape(check['id'])} {words}.[/dim]")
        if seeds := ", ".join(map(str, check.get("alike_draws", []))):
            words = f"was judged on another draw: seed {seeds} repeats an input of the case's own seed by chance"
            console.print(f"[dim]{escape(check['id'])} {words}.[/dim]")
    told = report.get("fresh_shapes")
    if told is None:
        return
    shapes = {check["id"]: check["shape"] for check in report["checks"]}
    drawn = "; ".join(" ".join(f"{axis}={size}" for axis, size in shapes[name].items()) for name in told["cases"])
    if drawn:
        console.print(f"[dim]Shapes drawn for this verdict alone (again with --seed {told['seed']}): {escape(drawn)}[/dim]")
        console.print(
            "[dim]Not shown: larger shapes than these, or such in other dtypes, several axes that are longer than in the suite "
            "at once, and further sizes of axes that are not dynamic.[/dim]",
            soft_wrap=True,
        )
    for name, why in told["left_out"].items():
        console.print(f"[dim]{escape(name)} was left out: {escape(why)}[/dim]")


def _judged_modes(report: Mapping[str, Any]) -> list[str]:
    """Return the modes that judged something, or all when none did: why a mode could not is said once, below the table."""
    modes = list(report["per_mode_status"])
    return [mode for mode in modes if _ran(report, mode)] or modes


def _ran(report: Mapping[str, Any], mode: str) -> bool:
    """Whether a case ran in `mode`. Reports call a mode SKIPPED, too, whose cases all ran and compared no number."""
    return any(check["modes"].get(mode, {}).get("status", Status.SKIPPED) != Status.SKIPPED for check in report["checks"])


def _show_failure(console: Console, report: Mapping[str, Any], *, words: bool, answer: str) -> None:
    """Say what is wrong; what the verifier's `answer` says in the same words is left to it."""
    failure, error = report["first_failure"], report["error"]
    if error is not None and error["message"] not in answer:
        console.print(f"[bold]{error['kind']}:[/bold] {escape(error['message'])}")
    if failure is None:
        return
    if error is None:
        case = failure["case_id"] or "-"
        console.print(f"[bold]first failure:[/bold] case {escape(case)}, {escape(failure['summary'])}")
    facts = {
        "category": failure["failure_category"],
        "fingerprint": failure["divergence_fingerprint"] if failure["case_id"] else None,  # else nothing ran in any mode
        "boundary": failure["failing_module_boundary"] and f"M{failure['failing_module_boundary']}",
        "first bad output": failure.get("first_bad_output"),
        "cpu_reproducer_candidate": "yes" if failure.get("cpu_reproducer_candidate") else None,
    }
    console.print("  " + ", ".join(f"{k}: {escape(str(v))}" for k, v in facts.items() if v))
    if report["stdout"] and words:
        lines = report["stdout"].splitlines()
        for line in lines[:_SHOWN_OUTPUT]:
            # The bar tells the candidate's words from the judge's, whatever they claim.
            console.print(f"[dim]candidate | {escape(line)}[/dim]", soft_wrap=True)
        if len(lines) > _SHOWN_OUTPUT:
            console.print(f"[dim]candidate | ... {len(lines) - _SHOWN_OUTPUT} more lines in the report[/dim]")


def _dtypes(text: str) -> str:
    """`{"default": "float32"}` -> "float32"; `{"q": "int8", "x": "float32"}` -> "q=int8 x=float32"."""
    try:
        words = json.loads(text)
    except ValueError:
        return text
    if not isinstance(words, dict):
        return text
    return str(words["default"]) if set(words) == {"default"} else " ".join(f"{k}={v}" for k, v in words.items())


def _violation(results: list[Mapping[str, Any]]) -> float | None:
    values = [leaf.get("max_violation") for r in results for leaf in r.get("per_tensor", [])]
    known = [value for value in values if value is not None]
    return max(known, default=None)


def _of_allowed(results: list[Mapping[str, Any]]) -> str:
    """Return the largest share of the tolerance that an error took; where that is not what failed, the reason."""
    share = _violation(results)
    failed = [r for r in results if r.get("status") in (Status.FAIL, Status.ERROR)]
    if failed and (share is None or share <= 1):
        return ", ".join(dict.fromkeys(reason for r in failed for reason in r.get("reasons", []))) or "-"
    return _number(share)


def _number(value: float | None) -> str:
    return "-" if value is None else times_allowed(value)


def styled(status: Any) -> str:
    """Return a status in its colour."""
    word = Status(status)
    return f"[{_STYLE[word]}]{word}[/{_STYLE[word]}]"
