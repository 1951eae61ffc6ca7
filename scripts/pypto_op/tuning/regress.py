"""`pypto-op regress`: the four steps that a change of speed must survive, in one command."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pypto_op.documents.reading import read_text
from pypto_op.options import op_dir_argument
from pypto_op.vocabulary import ExitCode, LintEvent, Mode, Status
from pypto_op.workspace import OpWorkspace

if TYPE_CHECKING:
    from pypto_op_lint.findings import Finding

_DEBUGGER, _ROLL_BACK = "send it to the debugger", "take the change back"
_TUNING_STAGE = 7
Note = Callable[[str], None]


@dataclass
class Step:
    """One of the four steps."""

    name: str  # "precision", "suite", "layout" or "performance"
    passed: bool  # nothing got worse
    told: str  # what was found, in words
    then: str = ""  # what to do about it; "" where it passed
    figures: Mapping[str, Any] = field(default_factory=dict)  # what was measured


def regress_operator(ws: OpWorkspace, base: Path, mode: Mode, note: Note = lambda words: None) -> list[Step]:
    """Return the four steps; all are taken, also after one that failed.

    Args:
        ws: the operator, with the changed kernel in its place.
        base: the kernel before the change.
        note: told, in words, what is being done.

    Raises:
        ContractError: a document is broken, or the earlier kernel is not right itself.
        InfraError: the mode is not available.
    """
    from pypto_op.backends.base import Limits
    from pypto_op.errors import ContractError
    from pypto_op.judge.cases.contract import load_contract
    from pypto_op.judge.cases.subject import resolve
    from pypto_op.tuning import shapes
    from pypto_op.tuning.clock import Clock

    contract = load_contract(ws)
    subject = resolve(ws, contract.total_modules)
    text, earlier = read_text(subject.impl), read_text(base)
    with Clock(contract, subject, mode, Limits(), few=False) as clock:
        trials = clock.more(shapes.p0_cases(contract, every_dtype=True))
        note("the earlier kernel runs every P0 shape in every dtype, twice")
        before, again = (clock.time(earlier, trials=trials) for _ in range(2))
        if before.fault:
            raise ContractError(f"is not right on {before.failed}: {before.fault}", file=base, remedy="name a right kernel")
        note("the kernel does")
        after = clock.time(text, trials=trials)
    precision = Step("precision", not after.fault, f"{len(after.times)} of {len(trials)} P0 shapes are right")
    if after.fault:
        precision.told, precision.then = f"{after.failed}: {after.fault}", _DEBUGGER
    note("the whole suite is judged")
    return [precision, _suite(ws, mode), _layout(ws, base), _performance(before.times, again.times, after.times)]


def _suite(ws: OpWorkspace, mode: Mode) -> Step:
    """Judge every case of L1 to L5, with fresh seeds and drawn shapes; the verdict is the operator's."""
    from pypto_op.judge.cases.request import Request
    from pypto_op.judge.verify import verify_operator

    report = verify_operator(ws, Request(modes=(mode,), jobs=None))
    told = f"{report['status']}, {report['cases_passed']} of {report['cases_total']} cases"
    failure = report.get("first_failure") or {}
    passed = report["status"] == Status.PASS
    if not passed:
        told += f": {failure.get('summary') or (report.get('error') or {}).get('message') or ''}"
    return Step("suite", passed, told[:600], "" if passed else _DEBUGGER, {"cases": report["cases_total"]})


def _layout(ws: OpWorkspace, base: Path) -> Step:
    """Hold the file against the rules of its stage; what the earlier kernel breaks as often did not get worse."""
    from pypto_op_lint.api import lint_path

    def broken(text: str) -> list[Finding]:
        return list(lint_path(ws.impl, text=text, event=LintEvent.ON_WRITE, stage=_TUNING_STAGE).blocking)

    before = Counter(one.rule_id for one in broken(read_text(base)))
    found = broken(read_text(ws.impl))
    now = Counter(one.rule_id for one in found)
    worse = [one for one in found if now[one.rule_id] > before[one.rule_id]]
    told = "; ".join(f"{one.rule_id}: {one.message}" for one in worse) or "no rule is broken"
    if found and not worse:
        told = f"no more is broken than in the earlier kernel: {', '.join(sorted(now))}"
    return Step("layout", not worse, told[:600], _ROLL_BACK if worse else "")


def _performance(before: Mapping[str, float], again: Mapping[str, float], after: Mapping[str, float]) -> Step:
    """Compare each P0 shape's time with the earlier kernel's; more than the noise is a loss."""
    from pypto_op.tuning.clock import ratio

    noise = max((abs(again[case] - took) / took for case, took in before.items() if case in again), default=0.0)
    lost = [case for case, took in after.items() if took > before[case] * (1 + noise) + 1e-9]
    figures = {"before_us": dict(before), "after_us": dict(after), "noise": noise}
    if not after:
        return Step("performance", False, "nothing was timed, since the numbers are wrong", _DEBUGGER, figures)
    overall = f"{ratio(after, before):.3f} of the earlier time over {len(after)} shapes"
    shown = ", ".join(f"{case} {before[case]:.2f} -> {after[case]:.2f} us" for case in lost)
    return Step("performance", not lost, f"{shown} lose; {overall}" if lost else overall, _ROLL_BACK if lost else "", figures)


@click.command()
@op_dir_argument()
@click.option(
    "--base", type=click.Path(path_type=Path, dir_okay=False), help="The kernel before; default: the one before tuning."
)
@click.option("--mode", type=click.Choice([str(mode) for mode in Mode]), default=str(Mode.SIM), show_default=True, help="Where.")
@click.option("--json", "as_json", is_flag=True, help="Print the steps as JSON.")
def regress(op_dir: Path, base: Path | None, mode: str, as_json: bool) -> int:
    """Check the kernel of OP_DIR after a change of speed: precision on P0 shapes, the whole suite, layout, performance.

    Exit status: 0 nothing got worse, 1 something did, 2 there is no earlier kernel or a document is wrong, 3 the mode is not
    available.
    """
    from pypto_op import speaking
    from pypto_op.documents.way import need
    from pypto_op.errors import ContractError

    ws = OpWorkspace.at(op_dir)
    need(ws, ws.spec, ws.interfaces, ws.golden, ws.test_inputs, ws.impl)
    from pypto_op.tuning.ledger import BEFORE, ROOM

    earlier = base or ws.debug_dir / ROOM / BEFORE
    if not earlier.is_file():
        raise ContractError("there is no earlier kernel to compare with", file=earlier, remedy="name it with --base FILE")
    from pypto_op.perf.admission import numeric_mode

    steps = regress_operator(ws, earlier, numeric_mode(Mode(mode)), speaking.now)
    passed = all(step.passed for step in steps)
    if as_json:
        told = {"schema_version": 1, "op_name": ws.name, "passed": passed, "steps": [asdict(step) for step in steps]}
        click.echo(json.dumps(told, indent=1))
    for step in [] if as_json else steps:
        click.echo(f"{'ok  ' if step.passed else 'FAIL'} {step.name}: {step.told}{f'; {step.then}' if step.then else ''}")
    return int(ExitCode.OK if passed else ExitCode.FAIL)
