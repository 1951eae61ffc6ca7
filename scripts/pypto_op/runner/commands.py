"""`pypto-op run`: lets the team work on a request without a terminal."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pypto_op import resident
from pypto_op.errors import ContractError, PyptoOpError
from pypto_op.options import Amount

if TYPE_CHECKING:
    from rich.console import Console

    from pypto_op.runner.session import Access, Ended, Order, Run


@click.command()
@click.argument("request", required=False, default="")
@click.option("--op", help="The operator's name; default: the team chooses one.")
@click.option("--target-us", type=Amount(), help="How long the kernel may take, in microseconds.")
@click.option("--model", help="The model; default: ANTHROPIC_MODEL, or the one named in docs/running.md.")
@click.option("--budget", metavar="TOKENS|USD", help="What may be spent: 200000, 200k, 1.5M, or 3.50USD.")
@click.option("--max-minutes", type=Amount(), help="How long the run may take.")
@click.option("--resume", is_flag=True, help="Go on with the last run in this folder, where it stopped.")
@click.option(
    "--replay", type=click.Path(path_type=Path, dir_okay=False), help="Play a transcript's words; all else is real. Needs no key."
)
@click.option(
    "--runner",
    type=click.Choice(["headless", "claude", "opencode"]),
    default="headless",
    show_default=True,
    help="Who leads: this program, or a client that `pypto-op install` has set up here.",
)
@click.option(
    "--bare", is_flag=True, help="One agent with files, a shell and a probe; no team, no skills, no hooks. To compare with."
)
@click.option("--json", "as_json", is_flag=True, help="Print how it ended as JSON, and nothing else.")
def run(
    request: str,
    op: str | None,
    target_us: float | None,
    model: str | None,
    budget: str | None,
    max_minutes: float | None,
    resume: bool,
    replay: Path | None,
    runner: str,
    bare: bool,
    as_json: bool,
) -> int:
    """Let the team work on REQUEST without a terminal, in the current folder.

    Exit status: 0 the state machine says that the operator is finished, 1 it is not (or the replay left its path), 2 the
    call or the request to the service is wrong, 3 the service or the machine cannot do it (key, overload, tools), 130
    interrupted. After 1, 3, 130 and any kill, --resume goes on.
    """
    from pypto_op.runner.budget import check_model, parse_budget

    limits = replace(parse_budget(budget), minutes=max_minutes)
    check_model(model)
    _check_call(request, op, target_us, resume)
    if replay and runner != "headless":
        raise ContractError(f"{runner} plays no transcript", remedy="leave --runner out")
    if bare and (replay or runner != "headless"):
        raise ContractError("--bare is for a model that this program leads", remedy="leave --replay and --runner out")
    if not (resume or replay or request.strip()):
        raise ContractError("there is no request", remedy="say in a sentence what the operator computes")
    workspace = Path.cwd().resolve()
    secrets = _entered(workspace, resume, leads_a_model=replay is None and runner == "headless")

    from rich.console import Console

    from pypto_op.runner import journal
    from pypto_op.runner.session import Order

    order = Order(request, op, target_us, model, limits, "bare" if bare else runner, replay)
    console = Console(highlight=False, soft_wrap=True, quiet=as_json)
    with journal.alone(workspace), _one_judge(workspace), _model(secrets, order, workspace, resume) as (order, access, check_end):
        ended = _ended(_begun(workspace, order, access, resume, secrets, console), check_end, as_json=as_json)
    _tell(ended, order, console, as_json=as_json)
    return ended.code


def _check_call(request: str, op: str | None, target_us: float | None, resume: bool) -> None:
    """Refuse what is asked of the operator where it has no such name, or where a resumed run knows it already."""
    from pypto_op.workspace import OP_NAME

    if op is not None and not OP_NAME.match(op):
        raise ContractError(f"{op[:40]!r} is no operator's name", remedy="write --op in lower case, digits and _: rms_norm")
    if resume and (given := request and "request" or op and "--op" or target_us and "--target-us"):
        raise ContractError(f"--resume takes no {given}", remedy="leave it out: the run knows its own")


def _entered(workspace: Path, resume: bool, *, leads_a_model: bool) -> Mapping[str, str]:
    """Refuse what cannot be worked on here, then enter the workspace; return the secrets that left the environment."""
    from pypto_op.runner.journal import latest_session
    from pypto_op.runner.surroundings import check_access, check_keys, enter
    from pypto_op.workspace import check_runnable, check_writable

    if resume:
        latest_session(workspace)  # without a run, a key would not help
    if leads_a_model:
        check_access()
    check_keys()
    check_runnable(workspace)
    check_writable(workspace)
    return enter()


@contextmanager
def _one_judge(workspace: Path) -> Iterator[None]:
    """Let gates and agents' commands share one resident judge, which ends with the run."""
    from pypto_op.runner.surroundings import agents_environment, end_what_is_left

    before = dict(os.environ)
    resident.want(os.getpid())
    os.environ["PATH"] = agents_environment()["PATH"]  # another environment would be another judge
    try:
        yield
    finally:
        resident.end(workspace)
        end_what_is_left()
        os.environ.clear()
        os.environ.update(before)


@contextmanager
def _model(
    secrets: Mapping[str, str], order: Order, workspace: Path, resume: bool
) -> Iterator[tuple[Order, Access, Callable[[], None]]]:
    """Give the way to the model: the service, or the loopback server that plays a transcript, whose end is to be checked."""
    from pypto_op.runner.session import Access

    if order.replay is None:
        key, bearer = (secrets.get(name) for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"))
        yield order, Access(key, bearer, os.environ.get("ANTHROPIC_BASE_URL") or None), lambda: None
        return
    from pypto_op.runner import journal
    from pypto_op.runner.loopback import served
    from pypto_op.runner.replay import Replay
    from pypto_op.runner.transcript import load

    script = load(order.replay)
    past = journal.read(journal.latest_session(workspace) / journal.TRANSCRIPT) if resume else []
    model = Replay(script, workspace, past)
    with served(model) as port:
        own = replace(order, request=order.request or script.prompt, op=order.op or script.op)
        yield own, Access("replay", None, f"http://127.0.0.1:{port}"), model.check_end


def _begun(workspace: Path, order: Order, access: Access, resume: bool, secrets: Mapping[str, str], console: Console) -> Run:
    from pypto_op.runner import journal
    from pypto_op.runner.session import Session

    folder = journal.latest_session(workspace) if resume else journal.new_session(workspace)
    vault = journal.Vault(folder / journal.SECRETS, secrets)
    work: Run
    if order.leads in ("headless", "bare"):
        work = Session(workspace, order, access, folder, console, vault)
        leads = f"model {work.model}"
    else:
        from pypto_op.runner.clients import ClientRun

        work = ClientRun(order.leads, secrets, workspace, order, folder, console, vault)
        leads = f"{order.leads} leads"
    console.print(f"{leads}; transcript {folder / journal.TRANSCRIPT}")
    return work


def _ended(work: Run, check_end: Callable[[], None], *, as_json: bool) -> Ended:
    """Work to the end; an error that ends the run earlier is told as JSON too, before its line."""
    try:
        try:
            ended = work.run(_print_at_once if as_json else lambda summary: None)
        except ContractError:
            check_end()  # what the service refused may be a replay that left its path
            raise
        check_end()
    except PyptoOpError as error:
        if as_json:
            click.echo(json.dumps(work.broken_off(error.one_line()), indent=2))
        raise
    return ended


def _print_at_once(summary: dict[str, Any]) -> None:
    """Print a summary past `sys.stdout`, which the interrupted thread may hold."""
    left = memoryview((json.dumps(summary, indent=2) + "\n").encode())
    while left:
        left = left[os.write(1, left) :]


def _tell(ended: Ended, order: Order, console: Console, *, as_json: bool) -> None:
    from pypto_op.runner.screen import shown

    if as_json:
        click.echo(json.dumps(ended.summary, indent=2))
        return
    summary = ended.summary
    if ended.text.strip():
        console.print(f"\n{shown(ended.text.strip())}", markup=False)
    money = "" if summary["dollars"] is None else f", ${summary['dollars']:.2f}"
    counted = "{input} tokens in, {cache_write} into and {cache_read} from the cache, {output} out".format(**summary["tokens"])
    console.print(f"\n{summary['requests']} requests, {counted}{money}")
    if ended.code:
        click.echo(f"pypto-op: not finished: {ended.why}; `{order.goes_on}` goes on", err=True)
    else:
        console.print(f"finished: {ended.standing.said}")
