"""`pypto-op state ACTION`: the state machine on the command line. Exit 0 done, 2 refused, 3 the machine."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import click

from pypto_op.errors import PyptoOpError, Refused
from pypto_op.modes import WORDS
from pypto_op.state.machine import action_row
from pypto_op.state.roles import OWNER, TOKEN_ENV
from pypto_op.vocabulary import Mode
from pypto_op.workflow import workflow

_OPTIONS: Mapping[str, str] = {
    "stage": "Stage 1 to 7.",
    "phase": "Phase M1 to MN.",
    "target_stage": "Stage to go back to.",
    "max_stage": "Last stage of this operator; default 7.",
    "reason": "Why, in one sentence.",
    "failure_category": "What kind of failure it was.",
    "failed_phase": "The phase that made the rollback necessary.",
    "failing_module_boundary": "The module at whose boundary it failed.",
    "last_error": "The failure in one sentence.",
    "attempt": "The attempt that a verdict answers, or the dispatch token that names it.",
    "report": "The verdict's file; default eval/evaluation_report.json.",
    "name": "An artefact's name.",
    "hash": "The sha256 you expect; the tool computes it anyway.",
    "role": "The role to dispatch.",
    "modes": f"Modes that must pass, of {WORDS}; default {Mode.SIM}.",
}
"""What each argument of an action is, for its help; which action takes which, workflow.json says."""

_READERS = {
    "status": "where the operator stands and what could come next",
    "audit": "whether journal, state and frozen files agree",
    "replay": "rebuild the state file from the journal",
}
_ADVANCE = {"advance": "take every step that is due and needs nobody's work, and say who is due"}
_MIGRATE = {"migrate": "take over a state file of version 2.0"}


class _Action(click.Command):
    """An action of which a wrong option is told in one line, or as JSON, like everything else that is refused."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        given = list(args)
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            _misspelt(ctx, str(self.name), error, given)


def _misspelt(ctx: click.Context, action: str, error: click.UsageError, given: Sequence[str]) -> NoReturn:
    refused = Refused(error.format_message().rstrip("."), remedy=f"see `{ctx.command_path} --help`")
    if "--json" not in given:
        raise refused
    click.echo(json.dumps(_error(action, refused), ensure_ascii=False))
    ctx.exit(int(refused.exit_code))


class _Actions(click.Group):
    """One sub-command per action; each takes that action's own arguments, as workflow.json lists them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*_ADVANCE, *workflow().actions, *_READERS, *_MIGRATE]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        row = workflow().actions.get(cmd_name)
        summary = row.summary if row else (_READERS | _MIGRATE | _ADVANCE)[cmd_name]
        parameters: list[click.Parameter] = [
            click.Option(
                ["--op-dir"], required=True, type=click.Path(path_type=Path), help="The operator's directory, custom/<op>."
            )
        ]
        taken = row.args if row else {"modes": "optional"} if cmd_name in _ADVANCE else {}
        for name, need in taken.items():
            flag = f"--{name.replace('_', '-')}"
            parameters.append(click.Option([flag, name], help=_OPTIONS[name] + (" Required." if need == "required" else "")))
        if cmd_name not in _READERS:
            parameters += [
                click.Option(["--token"], envvar=TOKEN_ENV, show_envvar=True, help="The caller's token."),
                click.Option(["--as", "declared"], help="The caller's role; `owner` asks you to confirm at the terminal."),
            ]
        if cmd_name in ("init", "adopt"):
            parameters.append(click.Option(["--require-token"], is_flag=True, help="Issue a token and ask for it from now on."))
        parameters.append(click.Option(["--json", "as_json"], is_flag=True, help="Print the result as JSON."))
        return _Action(cmd_name, params=parameters, callback=partial(_command, cmd_name), help=summary, short_help=summary)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.exceptions.NoSuchCommand:  # click looks for near names among commands that were made before
            near = click.exceptions.NoSuchCommand(args[0], possibilities=self.list_commands(ctx), ctx=ctx)
            _misspelt(ctx, args[0], near, args)
        except click.UsageError as error:
            _misspelt(ctx, args[0], error, args)


@click.group(cls=_Actions)
def state() -> None:
    """Move an operator through its stages and phases, or say where it stands."""


def _command(action: str, op_dir: Path, as_json: bool, **options: Any) -> int:
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
    if action in _READERS:
        return _reader(action)(op_dir)
    declared = options.pop("declared")
    owner_only = action not in _MIGRATE | _ADVANCE and action_row(action).owner_only
    person = owner_only or declared == OWNER
    if person:
        _confirm(action, op_dir)
        declared = None
    if action == "migrate":
        from pypto_op.state.migrate import migrate

        return migrate(op_dir, declared=declared, person=person)
    if action in _ADVANCE:
        from pypto_op.state.advancing import advance

        return advance(op_dir, declared=declared, person=person, **options)
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
    lines = [] if action in _READERS else [f"done: {', '.join(result.get('done', [action]))}"]
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
    if result.get("due"):
        lines.append(f"  due: {result['due']['subagent_type']}, {result['due']['prompt'].splitlines()[0]}")
    if result["next"]:
        lines.append(f"  next: {'; '.join(result['next'])}")
    return "\n".join(lines)


def _stage_line(result: dict[str, Any]) -> str:
    if result["current_stage"] is None:
        return "no state yet"
    stage = result["current_stage"]
    status = result.get("current_stage_status") or result["stage_status"][str(stage)]
    return f"stage {stage} ({workflow().stages[stage].name}): {status}"
