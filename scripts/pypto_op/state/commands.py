"""`pypto-op state ACTION`: the state machine on the command line. Exit 0 done, 2 refused, 3 the machine."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from pypto_op.errors import PyptoOpError
from pypto_op.state.facts import Refused
from pypto_op.state.machine import action_row
from pypto_op.state.roles import OWNER, TOKEN_ENV
from pypto_op.state.workflow import workflow

_READ_ONLY = ("status", "audit", "replay")


def _epilog() -> str:
    rows = [(row.name, row.summary) for row in workflow().actions.values()]
    rows += [("status", "where the operator stands and what could come next")]
    rows += [("audit", "whether journal, state and frozen files agree")]
    rows += [("replay", "rebuild the state file from the journal")]
    rows += [("migrate", "take over a state file of version 2.0")]
    return "\b\nActions:\n" + "\n".join(f"  {name:22}{text}" for name, text in rows)


class _Command(click.Command):
    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.epilog = _epilog()
        super().format_epilog(ctx, formatter)


@click.command(cls=_Command)
@click.argument("action")
@click.option("--op-dir", required=True, type=click.Path(path_type=Path), help="The operator's directory, custom/<op>.")
@click.option("--stage", help="Stage 1 to 7.")
@click.option("--phase", help="Phase M1 to MN.")
@click.option("--target-stage", help="Stage to go back to.")
@click.option("--max-stage", help="Last stage of this operator (init); default 7.")
@click.option("--reason", help="Why, in one sentence.")
@click.option("--failure-category", help="What kind of failure it was.")
@click.option("--failed-phase", help="The phase that made the rollback necessary.")
@click.option("--failing-module-boundary", help="The module at whose boundary it failed.")
@click.option("--last-error", help="The failure in one sentence.")
@click.option("--attempt", help="The attempt that a verdict answers, or the dispatch token that names it.")
@click.option("--report", help="The verdict's file; default eval/evaluation_report.json.")
@click.option("--name", help="An artefact's name (record_artifact_hash).")
@click.option("--hash", "hash_", help="The sha256 you expect; the tool computes it anyway.")
@click.option("--role", help="The role to dispatch.")
@click.option("--modes", help="Modes that must pass (freeze_plan): sim, npu or both; default sim.")
@click.option("--token", envvar=TOKEN_ENV, show_envvar=True, help="The caller's token.")
@click.option("--as", "declared", help="The caller's role; `owner` asks you to confirm at the terminal.")
@click.option("--require-token", is_flag=True, help="With init: issue a token and ask for it from now on.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def state(action: str, op_dir: Path, as_json: bool, **options: Any) -> int:
    """Move an operator through its stages and phases, or say where it stands."""
    try:
        result = _run(action, op_dir, options)
    except PyptoOpError as error:
        if not as_json:
            raise
        click.echo(json.dumps(_error(action, error), ensure_ascii=False))
        return int(error.exit_code)
    click.echo(json.dumps(result, ensure_ascii=False) if as_json else _text(action, result))
    return 0 if result["ok"] else 2


def _run(action: str, op_dir: Path, options: dict[str, Any]) -> dict[str, Any]:
    if action in _READ_ONLY:
        return _reader(action)(op_dir)
    declared = options.pop("declared")
    options["hash"] = options.pop("hash_")
    if action not in workflow().actions and action != "migrate":
        names = ", ".join([*workflow().actions, *_READ_ONLY, "migrate"])
        raise Refused(f"unknown action {action[:40]!r}", remedy=f"use one of {names}")
    owner_only = action != "migrate" and action_row(action).owner_only
    person = owner_only or declared == OWNER
    if person:
        _confirm(action, op_dir)
        declared = None
    if action == "migrate":
        from pypto_op.state.migrate import migrate

        return migrate(op_dir, declared=declared, person=person)
    from pypto_op.state.service import transition

    return transition(op_dir, action, declared=declared, person=person, **options)


def _reader(action: str) -> Callable[[Path], dict[str, Any]]:
    if action == "status":
        from pypto_op.state.service import status

        return status
    from pypto_op.state import audit

    return audit.audit if action == "audit" else audit.replay


def _confirm(action: str, op_dir: Path) -> None:
    """Ask the person at the terminal to type the operator's name; `roles` finds out whether it is one."""
    if not (sys.stdin.isatty() and os.isatty(0)):
        raise Refused(f"{action} as the owner needs a terminal", remedy="run it by hand in a terminal")
    name = op_dir.expanduser().resolve().name
    if click.prompt(f"{action}: type the operator's name to confirm", default="", show_default=False) != name:
        raise Refused(f"{action} was not confirmed", remedy=f"type {name}")


def _error(action: str, error: PyptoOpError) -> dict[str, Any]:
    return {
        "ok": False,
        "action": action,
        "error": error.one_line(),
        "problem": error.problem,
        "file": str(error.file) if error.file else None,
        "where": error.where,
        "remedy": error.remedy,
        "exit_code": int(error.exit_code),
    }


def _text(action: str, result: dict[str, Any]) -> str:
    if action == "audit":
        head = f"{result['lines']} journal lines, {'no problem' if result['ok'] else 'PROBLEMS'}"
        return "\n".join([head, *(f"  {problem}" for problem in result["problems"])])
    if action == "replay":
        done = "written anew" if result["rewritten"] else "unchanged"
        return f"replayed {result['lines']} lines; the state is {done}, stage {result['current_stage']}"
    if action == "migrate":
        stopped = f"\n  stopped by {result['stopped_by']}" if result["stopped_by"] else ""
        token = f"\n  token: {result['token']}" if result.get("token") else ""
        return f"migrated; stages {result['completed']} hold, stage {result['current_stage']} is next{stopped}{token}"
    lines = [] if action in _READ_ONLY else [f"done: {action}"]
    lines.append(_stage_line(result))
    for name, phase in result.get("phases", {}).items():
        attempt = f", attempt {phase['attempt']}" if phase["attempt"] else ""
        category = f", {phase['failure_category']}" if "failure_category" in phase else ""
        lines.append(f"  {name}: {phase['status']}, {phase['cycles']} cycles{attempt}{category}")
    if result.get("failed_verdicts"):
        lines.append(f"  failed verdicts since init: {result['failed_verdicts']}")
    if result.get("phase_status"):
        attempt = f" (attempt {result['attempt']})" if result["attempt"] else ""
        lines.append(f"  {result['phase']}: {result['phase_status']}{attempt}")
    if result.get("warnCount") or result.get("infoCount"):
        lines.append(f"  lint: {result['warnCount']} warnings, {result['infoCount']} remarks")
    lines += [f"  problem: {problem}" for problem in result.get("problems", [])]
    if result.get("memory"):
        lines.append(f"  MEMORY.md was not brought up to date: {result['memory']}")
    if result.get("token"):
        lines.append(f"  token: {result['token']}")
    if result["next"]:
        lines.append(f"  next: {'; '.join(result['next'])}")
    return "\n".join(lines)


def _stage_line(result: dict[str, Any]) -> str:
    if result["current_stage"] is None:
        return "no state yet"
    stage = result["current_stage"]
    status = result.get("current_stage_status") or result["stage_status"][str(stage)]
    return f"stage {stage} ({workflow().stages[stage].name}): {status}"
