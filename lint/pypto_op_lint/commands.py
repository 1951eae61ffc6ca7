"""`pypto-op lint`: check an operator's files against the rules."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import click

from pypto_op.errors import ContractError, PyptoOpError, unreadable
from pypto_op.vocabulary import ExitCode, LintEvent
from pypto_op.workspace import OpWorkspace, parse_phase
from pypto_op_lint.findings import Finding, LintResult

_INTERNAL_ERROR = 1
FORMATS = ("text", "json", "sarif", "github")
FOR_CODE_HOSTS = ("sarif", "github")


@click.command()
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option("--op-dir", type=click.Path(path_type=Path), help="Lint an operator's directory as a gate does.")
@click.option(
    "--event",
    type=click.Choice([str(e) for e in LintEvent]),
    help="The moment to lint for. Default: on-write for files, complete-stage for an operator.",
)
@click.option("--stage", type=click.IntRange(1, 7), help="Stage of the operator; default: from its state file.")
@click.option("--phase", metavar="M_k", help="Phase that is handed over, such as M2.")
@click.option("--rules", metavar="OL01,...", help="Run only these rules.")
@click.option("--json", "as_json", is_flag=True, help="Same as --format json.")
@click.option("--format", "form", type=click.Choice(FORMATS), help="Default: text. github: annotations of a pull request.")
@click.option("--fix", is_flag=True, help="Apply the repairs that cannot change what the code means.")
@click.option("--explain", metavar="OL48|all", help="Print what a rule checks, or the list of all rules, and stop.")
@click.option("--pypto", "release", metavar="VERSION", help="Check against the names of this pypto instead of the installed one.")
def lint(
    paths: tuple[Path, ...],
    op_dir: Path | None,
    event: str | None,
    stage: int | None,
    phase: str | None,
    rules: str | None,
    as_json: bool,
    form: str | None,
    fix: bool,
    explain: str | None,
    release: str | None,
) -> int:
    """Check files, or a whole operator, against the OL and PX rules.

    Exit status: 0 nothing blocks, 2 a FAIL of severity S0 or S1, 1 the linter itself failed, 3 a package is not installed.
    """
    try:
        if explain is not None:
            told, code = _explained(explain), int(ExitCode.OK)
        else:
            targets = [*paths, *([op_dir] if op_dir is not None else [])]
            chosen = rules.split(",") if rules is not None else None
            wanted = form or ("json" if as_json else "text")
            told, code = _told(targets, event, stage, phase, chosen, fix, wanted, release)
    except (PyptoOpError, ModuleNotFoundError):
        raise
    except Exception as error:  # the contract: an error of the linter is exit 1 and one line, never a verdict
        if os.environ.get("PYPTO_OP_TRACEBACK"):
            raise
        what = " ".join(str(error).split())[:200]
        click.echo(f"pypto-op lint: internal error: {type(error).__name__}: {what}", err=True)
        sys.exit(_INTERNAL_ERROR)
    click.echo(told)  # a standard output that takes nothing is no error of the linter
    return code


def _told(
    targets: list[Path],
    event: str | None,
    stage: int | None,
    phase: str | None,
    rules: list[str] | None,
    fix: bool,
    form: str,
    release: str | None,
) -> tuple[str, int]:
    """Return what is to be printed of the targets, and the exit code."""
    if not targets:
        raise ContractError("nothing to lint", remedy="name a file, or an operator with --op-dir")
    k = parse_phase(phase) if phase is not None else None
    # A code host knows files by their place in the repository, which CI commands are started from.
    root = Path.cwd() if form in FOR_CODE_HOSTS else None
    from pypto_op_lint.pypto_names import asked_for
    from pypto_op_lint.reporters import render

    with asked_for(release):
        result = _run(targets, event, stage, k, rules, fix, root)
        return render(result, form), int(result.exit_code)


def _run(
    targets: list[Path],
    event: str | None,
    stage: int | None,
    phase: int | None,
    rules: list[str] | None,
    fix: bool,
    root: Path | None,
) -> LintResult:
    total: LintResult | None = None
    for target in targets:
        result = _lint_one(target, event, stage, phase, rules)
        if fix and _fix(target, result):
            result = _lint_one(target, event, stage, phase, rules)
        if root is not None:
            result = result.relative_to(root)
        if total is None:
            total = result
        else:
            total.add(result.findings)
            total.files = sorted({*total.files, *result.files})
            total.rules = sorted({*total.rules, *result.rules})
            total.notes = list(dict.fromkeys([*total.notes, *result.notes]))
    assert total is not None
    return total


def _lint_one(target: Path, event: str | None, stage: int | None, phase: int | None, rules: list[str] | None) -> LintResult:
    try:
        target.stat()
    except OSError as error:
        raise unreadable(error, target) from None
    from pypto_op_lint import api

    if target.is_dir():
        if OpWorkspace.at(target).is_nobodys():
            remedy = "name an operator's folder, or make one with `pypto-op new OP`"
            raise ContractError("is no operator: none of an operator's files lies in it", file=target, remedy=remedy)
        at = LintEvent(event) if event is not None else LintEvent.COMPLETE_STAGE
        return api.lint_operator(target, event=at, stage=stage, phase=phase, rules=rules)
    at = LintEvent(event) if event is not None else LintEvent.ON_WRITE
    return api.lint_path(target, event=at, stage=stage, phase=phase, rules=rules, loose=True)


def _fix(target: Path, result: LintResult) -> int:
    """Apply the result's safe edits; return how many files changed."""
    from pypto_op.workspace import OPERATORS_DIR

    root = target.absolute() if target.is_dir() else target.absolute().parent
    if not target.is_dir():
        repairs = {target.absolute(): [f for f in result.findings if f.fix is not None]}
    else:
        base = root.parent.parent if root.parent.name == OPERATORS_DIR else root.parent
        repairs = {base / f.file: [] for f in result.findings if f.fix is not None}
        for finding in result.findings:
            if finding.fix is not None:
                repairs[base / finding.file].append(finding)
    return sum(_fix_file(path, found) for path, found in repairs.items() if found)


def _fix_file(path: Path, findings: list[Finding]) -> bool:
    import ast

    from pypto_op_lint.api import apply_fixes
    from pypto_op_lint.source import read_source

    source = read_source(path)
    text, count = apply_fixes(source.text, findings)
    if not count or text == source.text:
        return False
    if path.suffix == ".py":
        ast.parse(text)  # an edit that breaks the file is a fault of the linter, not a repair
    handle, partial = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(source.encode(text))
        Path(partial).chmod(path.stat().st_mode)
        Path(partial).replace(path)
    except BaseException:
        Path(partial).unlink(missing_ok=True)
        raise
    click.echo(f"{path}: {count} repaired", err=True)
    return True


def _explained(rule_id: str) -> str:
    from pypto_op_lint import registry
    from pypto_op_lint.reference import explain, first_line

    if rule_id.strip().lower() != "all":
        (rule,) = registry.select([rule_id]).values()
        return explain(rule).rstrip()
    rules = registry.all_rules().values()
    return "\n".join(f"{rule.id} {rule.severity} {rule.name}: {first_line(rule)}" for rule in rules)
