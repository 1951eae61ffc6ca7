"""`pypto-op harness new`, `pypto-op tests new`, `pypto-op cleanup`."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pypto_op import speaking
from pypto_op.options import op_dir_argument
from pypto_op.vocabulary import ExitCode
from pypto_op.workspace import OpWorkspace

if TYPE_CHECKING:
    from pypto_op.generators.evaluation import Made
    from pypto_op.generators.writing.generated import Outcome

_OP_DIR = op_dir_argument()
_FORCE = click.option("--force", is_flag=True, help="Replace files that somebody edited, too.")
_AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")


_FEW = 3
"""Cases that one line names."""
_OF_THE_DOMAIN = re.compile("the golden is not finite|the golden ended with")
_OF_SHAPES = re.compile(
    "the golden ended with.*"
    "(?:must match the size of tensor|shapes cannot be multiplied|not broadcastable|invalid for input of size)"
)
_NUMBER = re.compile(r"(?<![\w.:])\d+(?![\w.])")


@click.group()
def harness() -> None:
    """Make the files that a kernel is judged with."""


@harness.command(name="new")
@_OP_DIR
@_FORCE
@click.option("--no-rehearsal", is_flag=True, help="Do not try the generated cases on the golden.")
@_AS_JSON
def harness_new(op_dir: Path, force: bool, no_rehearsal: bool, as_json: bool) -> int:
    """Write eval/test_inputs.py, a first eval/adversarial_suite.json and eval/adversarial_runner.py of OP_DIR.

    From SPEC.md, module_interfaces.yaml, the tile sizes of DESIGN.md, and what the golden subtracts and reduces. A
    file that somebody edited is kept unless --force. Exit 2: a level is short of cases, or the golden fails on all.
    """
    from pypto_op.documents.way import need

    ws = OpWorkspace.at(op_dir)
    need(ws, ws.spec, ws.interfaces, ws.golden)
    from pypto_op.generators.evaluation import new_harness

    try:
        made = new_harness(ws, force=force, try_cases=not no_rehearsal, progress=_tell_rehearsal)
    except KeyboardInterrupt:
        kept = "what was measured of the golden is kept, and the next run is shorter by that"
        click.echo(f"pypto-op: stopped before the files in {ws.eval_dir.name}/ were written; {kept}", err=True)
        raise
    lines = [f"the suite has {made.cases} case(s)"]
    lines += _judged_otherwise_or_left_out(made)
    lines += [
        f"{name} is drawn from 0 to 15: where a size limits it, say so in SPEC.md's shape_constraints (`0 <= {name} < SIZE`)"
        for name in made.unlimited
    ]
    lines += [
        f"{name} is tried near its default, and with its sign: where it may be more, say so in SPEC.md's "
        f"shape_constraints (`-2 <= {name} <= 2`)"
        for name in made.unranged
    ]
    if made.worded:
        said = "; ".join(made.worded.values())
        lines.append(f"limits read from words of SPEC.md: {said}; where one means something else, say it in its input_ranges")
    lines += [
        f"SPEC.md may limit {words}, which is not understood and limits no input: say it in its input_ranges or shape_constraints"
        for words in made.unread
    ]
    lines += [
        f"no draw is made to obey `{text}` of SPEC.md's shape_constraints: where one breaks it, let {ws.test_inputs.name} draw so"
        for text in made.unheeded
    ]
    lines += [
        f"no call tries that the wrapper refuses `{clause}`: write it in a form of docs/adding-inputs.md, or try it by hand"
        for clause in made.untried
    ]
    lines += [f"the suite still lacks something: {finding}" for finding in made.findings]
    if made.findings and any(_OF_THE_DOMAIN.search(why) for name, why in made.dropped.items() if name[:2] != "L5"):
        lines.append(_what_the_golden_asks(made))
    details = {"cases": made.cases, "dropped": made.dropped, "natural": made.natural, "blind": made.blind}
    details |= {"findings": made.findings, "unlimited": made.unlimited, "untried": made.untried, "unranged": made.unranged}
    details |= {"worded": made.worded, "unread": made.unread, "unheeded": made.unheeded}
    code = _tell(ws, made.files, lines, details, as_json)
    return ExitCode.CONTRACT if made.findings else code


def _what_the_golden_asks(made: Made) -> str:
    """Return what to do where the golden fails on ordinary numbers: about shapes where it says that they do not fit."""
    if any(_OF_SHAPES.search(why) for why in made.dropped.values()):
        return (
            "the golden cannot use tensors of these shapes together: mend the golden's line, or the shapes in section 5 of "
            "SPEC.md and in eval/module_interfaces.yaml, then run this again"
        )
    return (
        "the golden is not finite, or raises, on ordinary numbers: say in SPEC.md's input_ranges which values and rows are "
        'legal (`decay: "[-4, 0]"`, `k: {row_length: 1}`), then run this again'
    )


def _judged_otherwise_or_left_out(made: Made) -> list[str]:
    """Return a line for each reason why cases are left out, or have a policy in the place of their tolerance."""
    reasons: dict[str, list[tuple[str, str]]] = {}
    for name, why in made.dropped.items():  # one reason whatever the sizes: the first case tells its own
        reasons.setdefault(_NUMBER.sub("N", why), []).append((name, why))
    lines = [f"left out {_few([name for name, _ in cases])}: {cases[0][1]}" for cases in reasons.values()]
    if made.natural:
        from pypto_op.judge.cases.natural import percent

        by_share = sorted(made.natural.items(), key=lambda item: -item[1])
        shares = _few([f"{name} ({percent(share)})" for name, share in by_share])
        lines.append(f"policy twin in the place of the tolerance, of which honest rounding takes too much: {shares}")
    if made.blind:
        faults = _few([f"{name} ({', '.join(found[:2])})" for name, found in made.blind.items()])
        lines.append(f"policy twin in the place of the tolerance, which would pass a wrong kernel: {faults}")
    return lines


def _few(items: Sequence[str]) -> str:
    """Return the first items and how many more there are: of hundreds nobody reads the first."""
    more = len(items) - _FEW
    return ", ".join(items[:_FEW]) + (f" and {more} more (--json has all)" if more > 0 else "")


def _tell_rehearsal(case: str, done: int, total: int) -> None:
    speaking.now(f"trying the cases on the golden, now {case}", done, total)


def _tell(ws: OpWorkspace, files: Sequence[Outcome], lines: list[str], details: dict[str, Any], as_json: bool) -> int:
    if as_json:
        fates = {str(outcome.path.relative_to(ws.root)): str(outcome.fate) for outcome in files}
        click.echo(json.dumps({"op_dir": str(ws.root), "files": fates, **details}, indent=2, ensure_ascii=False))
        return ExitCode.OK
    for outcome in files:
        remark = " (edited; --force replaces it)" if outcome.fate == "kept" else ""
        click.echo(f"{outcome.fate}  {outcome.path.relative_to(ws.root)}{remark}")
    for line in lines:
        click.echo(line)
    return ExitCode.OK


@click.group()
def tests() -> None:
    """Make the tests of modules and operator."""


@tests.command(name="new")
@_OP_DIR
@click.option("--up-to-module", "phase", metavar="K", help="Only the test of M_1..M_K.")
@click.option("--e2e", is_flag=True, help="Only the end-to-end test.")
@_FORCE
@_AS_JSON
def tests_new(op_dir: Path, phase: str | None, e2e: bool, force: bool, as_json: bool) -> int:
    """Write modules/test_<op>_module<suffix>.py and test_<op>.py of OP_DIR, for each impl that has its golden.

    They run as scripts and under pytest. A file that somebody edited is kept unless --force.
    """
    from pypto_op.documents.way import need
    from pypto_op.errors import ContractError
    from pypto_op.generators.writing.tests import new_tests
    from pypto_op.workspace import parse_phase

    if phase is not None and e2e:
        raise ContractError("--up-to-module and --e2e exclude each other", remedy="give one of them")
    ws = OpWorkspace.at(op_dir)
    need(ws, ws.spec, ws.interfaces)
    files = new_tests(ws, phase=None if phase is None else parse_phase(phase), e2e=e2e, force=force)
    return _tell(ws, files, [], {}, as_json)


@click.command()
@_OP_DIR
@_FORCE
@_AS_JSON
def cleanup(op_dir: Path, force: bool, as_json: bool) -> int:
    """Write <op>_impl.py and README.md of OP_DIR from its last staged impl; of one module the README.

    Names lose the module suffix, imports of staged files are resolved, comments stay. Exit 1: the linter refuses the
    result. A file that somebody edited is kept unless --force.
    """
    from pypto_op.documents.way import need
    from pypto_op.generators.writing.integration import cleanup as clean

    ws = OpWorkspace.at(op_dir)
    need(ws, ws.spec, ws.interfaces)
    made = clean(ws, force=force)
    source = str(made.source.relative_to(ws.root))
    _tell(ws, made.files, [f"from {source}", *made.findings], {"source": source, "findings": made.findings}, as_json)
    return ExitCode.FAIL if made.findings else ExitCode.OK
