"""`pypto-op eval`: lets the team work on requests with hidden goldens, and grades what it leaves."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pypto_op.errors import ContractError, InfraError
from pypto_op.options import Amount
from pypto_op.pool.address import Address, pool_option
from pypto_op.vocabulary import ExitCode
from pypto_op.workspace import check_writable

if TYPE_CHECKING:
    from pypto_op.evals.requests import Request
    from pypto_op.evals.trials import Plan


@click.command("eval")
@click.option("--requests", "names", metavar="A,B", help="Only these requests; default: all, with --runner replay all that can.")
@click.option(
    "--runner",
    type=click.Choice(["headless", "claude", "opencode", "replay"]),
    default="headless",
    show_default=True,
    help="Who leads the team; replay plays transcripts and needs no key.",
)
@click.option(
    "--arm", type=click.Choice(["team", "bare"]), default="team", show_default=True, help="The team, or the model alone."
)
@click.option("--repeat", type=click.IntRange(1, 100), default=1, show_default=True, help="Trials of each request.")
@click.option("--model", help="The model; default: that of `pypto-op run`.")
@click.option("--budget", metavar="TOKENS|USD", help="What one trial may spend.")
@click.option("--max-minutes", type=Amount(), help="How long one trial may take.")
@click.option("--mutants", type=click.IntRange(0, 200), default=6, show_default=True, help="Faults to plant; 0: none.")
@click.option(
    "--check",
    "checked",
    multiple=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="Check the request of a folder and its golden, such as evals/requests/rmsnorm; nobody is asked.",
)
@pool_option
@click.option("--near-misses", is_flag=True, help="Ask which requests reach the team at all; nothing is run.")
@click.option("--compare", type=click.Path(path_type=Path, dir_okay=False), help="An earlier result.json to compare with.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="A new folder; default: eval-<time>.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON, and nothing else.")
def evaluate(
    names: str | None,
    repeat: int,
    max_minutes: float | None,
    compare: Path | None,
    out: Path | None,
    as_json: bool,
    near_misses: bool,
    checked: tuple[Path, ...],
    pool: Address,
    **wanted: Any,
) -> int:
    """Let the team work on requests whose goldens it cannot see, and grade what it leaves behind.

    Exit status: 0 every trial was held and graded, whatever the grades (--check: each request fits its golden); 1 one was void;
    2 the call is wrong (--check: one does not fit); 3 none could be held.
    """
    if pool.ray and (checked or near_misses):
        raise ContractError("only trials are held elsewhere: --check and --near-misses take no --pool", remedy="leave it out")
    if checked:
        return _checked(checked, as_json=as_json)
    if near_misses:
        return _near_misses(wanted["model"], wanted["budget"], repeat, as_json=as_json)
    from pypto_op.evals import page, requests, result, trials

    base = result.read(compare) if compare else None
    plan = trials.Plan(minutes=max_minutes, **wanted)
    chosen = requests.load(word.strip() for word in (names or "").split(",") if word.strip())
    if plan.runner == "replay" and not names:
        chosen = [request for request in chosen if request.transcript]
    plan.check(chosen)
    if not pool.ray:
        _check_surroundings(plan)
    if base:
        result.compared(result.summed(plan, chosen, []), base)  # two that share no request are told before hours of work
    found, folder = _held(plan, chosen, repeat, pool, out, as_json=as_json)
    found["compared"] = result.compared(found, base) if base else None
    (folder / "result.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    (folder / "index.html").write_text(page.render(found), encoding="utf-8")
    click.echo(json.dumps(found, indent=1) if as_json else _told(found, folder))
    void = found["totals"]["void"]
    return int(ExitCode.INFRA if void == len(found["trials"]) else ExitCode.FAIL if void else ExitCode.OK)


def _check_surroundings(plan: Plan) -> None:
    """Refuse to begin without a way to the model; on a cluster each host says so of itself."""
    from pypto_op.runner.surroundings import check_access, check_keys

    if plan.runner == "headless":
        check_access()
    check_keys()


def _held(
    plan: Plan, chosen: Sequence[Request], repeat: int, pool: Address, out: Path | None, *, as_json: bool
) -> tuple[dict[str, Any], Path]:
    """Hold and grade all trials; return the result, which is written after each of them, and its folder."""
    from pypto_op.evals import away, requests, result, trials
    from pypto_op.pool.pool import Pool

    with Pool(pool) as there:
        folder = _made(out or Path(f"eval-{time.strftime('%Y%m%d-%H%M%S')}"), requests.folder().parent)
        wished = list(itertools.product(chosen, range(1, repeat + 1)))
        order = {(request.id, number): place for place, (request, number) in enumerate(wished)}
        rows: list[dict[str, Any]] = []
        found = result.summed(plan, chosen, rows)
        with trials.termination_tidies(), _removed_if_empty(folder):
            for row in away.rows(there, wished, plan, folder):
                if not as_json:
                    click.echo(_line(row))
                rows = sorted([*rows, row], key=lambda one: order[one["request"], one["trial"]])
                found = result.summed(plan, chosen, rows)  # written after each trial: a long evaluation may be interrupted
                (folder / "result.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        if len(rows) < len(wished):
            click.echo(f"{len(wished) - len(rows)} trials were not begun: no model answered the last two", err=True)
    return found, folder


@contextmanager
def _removed_if_empty(folder: Path) -> Iterator[None]:
    """Leave no folder behind that an evaluation made and wrote nothing into."""
    try:
        yield
    finally:
        with suppress(OSError):
            folder.rmdir()


def _made(out: Path, bundle: Path) -> Path:
    """Make and return the result's folder, in which something can be written.

    Raises:
        ContractError: it lies within the bundle, or holds something.
        InfraError: the machine lets nobody write there.
    """
    folder = out.absolute()
    if bundle in (folder, *folder.parents):
        raise ContractError("a workspace within the bundle is no fair place", file=folder, remedy="name an --out elsewhere")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise ContractError("the folder is not empty", file=folder, remedy="name another --out")
    except OSError as error:
        raise InfraError(f"nothing can be written there ({error.strerror})", file=folder, remedy="name another --out") from None
    check_writable(folder, remedy="name another --out")
    return folder


def _checked(folders: tuple[Path, ...], *, as_json: bool) -> int:
    from pypto_op.evals import checking, requests

    told = {}
    for folder in folders:
        request = requests.at(folder)
        told[request.id] = checking.check(request)
        if not as_json:
            click.echo(f"{request.id}: {told[request.id]}")
    if as_json:
        click.echo(json.dumps({"checked": told}, indent=1))
    return int(ExitCode.OK)


def _near_misses(model: str | None, budget: str | None, repeat: int, *, as_json: bool) -> int:
    from pypto_op.evals import triggers
    from pypto_op.runner.budget import LimitReached, check_model, parse_budget
    from pypto_op.runner.surroundings import check_access, check_keys

    limits = parse_budget(budget)
    check_model(model)
    check_access()
    check_keys()
    try:
        found = triggers.run(
            triggers.load(), model=model, limits=limits, repeat=repeat, tell=lambda line: None if as_json else click.echo(line)
        )
    except LimitReached as limit:
        raise ContractError(str(limit), remedy="give a larger --budget") from None
    if as_json:
        click.echo(json.dumps(found, indent=1))
    else:
        shares = (found["triggers"], found["leaves_alone"])
        called, left = (f"{share['hits']} of {share['total']} ({share['low']:.2f} to {share['high']:.2f})" for share in shares)
        click.echo(f"reaches the team {called}; keeps out of {left}")
    return int(ExitCode.OK)


def _line(row: dict[str, Any]) -> str:
    end = f"void: {row['void']}" if row["void"] else "solved" if row["solved"] else f"not solved: {row['why']}"
    return f"{row['request']} ({row['trial']}): {end}; {row['minutes']} minutes"


def _told(found: dict[str, Any], folder: Path) -> str:
    share = found["totals"]["solved"]
    lines = [f"solved {share['hits']} of {share['total']} (95 %: {share['low']:.2f} to {share['high']:.2f}); {folder}/index.html"]
    other = found["compared"]
    if other and other["altered"]:
        lines.append(f"not compared, since the request itself is another now: {', '.join(other['altered'])}")
    if other and other["solved"]:
        gap, low, high = other["solved"]
        lines.append(
            f"against {other['base']}: {gap:+.2f} ({low:+.2f} to {high:+.2f}){'' if other['sure'] else ', which may be chance'}"
        )
        shown = {name: [f"{value:g}" if value is not None else "-" for value in pair] for name, pair in other["medians"].items()}
        lines.append("a trial's median, here and there: " + ", ".join(f"{name} {a} and {b}" for name, (a, b) in shown.items()))
    return "\n".join(lines)
