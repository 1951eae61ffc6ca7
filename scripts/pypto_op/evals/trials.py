"""One trial: a workspace of its own, `pypto-op run` in it, and the grade of what is there afterwards."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pypto_op import own_python, speaking
from pypto_op.errors import ContractError, InfraError
from pypto_op.evals.graders import at_work, grade
from pypto_op.evals.hidden import parsed
from pypto_op.evals.requests import Request, folder
from pypto_op.runner import journal
from pypto_op.runner.budget import check_model, parse_budget
from pypto_op.runner.clients import ENDED_BY_SIGNAL
from pypto_op.vocabulary import ExitCode
from pypto_op_lint.concerns import HIDDEN_ENV

TRANSCRIPT = "transcript.jsonl"
_SHOWN = 160


@dataclass(frozen=True)
class Plan:
    """How trials are made."""

    runner: str = "headless"  # headless, claude, opencode or replay
    arm: str = "team"  # team or bare
    model: str | None = None  # None is the runner's default
    budget: str | None = None  # of one trial, as `pypto-op run` takes it
    minutes: float | None = None  # of one trial
    mutants: int = 6  # how many faults are planted to see how strong the team's suite is; 0: none
    mutant_seconds: float = 120.0  # begin no mutant later

    def check(self, requests: list[Request]) -> None:
        """Refuse what cannot be run.

        Raises:
            ContractError: with the remedy.
        """
        parse_budget(self.budget)
        check_model(self.model)
        if self.arm == "bare" and self.runner != "headless":
            raise ContractError(f"the bare arm has no runner {self.runner}", remedy="leave --runner out")
        if self.runner == "replay" and (without := [r.id for r in requests if r.transcript is None]):
            raise ContractError(f"{without[0]} has no transcript", remedy="name requests that have one, such as rmsnorm")


def run(request: Request, plan: Plan, number: int, out: Path) -> dict[str, Any]:
    """Let the team (or the model alone) work on a request, and grade it.

    Args:
        number: of the trial, from 1.
        out: the result's folder; the workspace is `work/<id>-<number>` below it.

    Returns:
        The grade, and what the trial cost. `void` says why a trial that could not be held has none.
    """
    workspace = out / "work" / f"{request.id}-{number}"
    if workspace.exists():
        raise ContractError("a trial lies there already", file=workspace, remedy="name another --out")
    workspace.mkdir(parents=True)
    for name, text in request.data.get("files", {}).items():
        (workspace / name).write_text(text, encoding="utf-8")
    if plan.runner in ("claude", "opencode"):
        _call(["install", "--harness", plan.runner, "--target", "."], workspace, f"{request.id} ({number})")
    speaking.now(f"{request.id} ({number}): the {'team' if plan.arm == 'team' else 'model'} works")
    began = time.monotonic()
    code, stdout, stderr = _call(_words(request, plan), workspace, f"{request.id} ({number})")
    minutes = (time.monotonic() - began) / 60
    summary = parsed(stdout)
    row: dict[str, Any] = {"request": request.id, "trial": number, "exit": code, "minutes": round(minutes, 2), **_spent(summary)}
    void = _void(plan, code, stderr, summary)
    lines = _transcript(workspace, summary)
    broken = _broken(code, summary, lines)
    if void and not broken:
        return {**row, "void": void}
    finished = bool((summary or {}).get("finished")) if plan.arm == "team" else _has_kernel(workspace, request)
    speaking.now(f"{request.id} ({number}): graded against its hidden golden")
    graded = grade(
        request,
        workspace,
        lines or [],
        finished=finished and not broken,
        mutants=plan.mutants if plan.arm == "team" else 0,
        seconds=plan.mutant_seconds,
        broken=broken,
    )
    return {**row, "void": "", **graded}


@contextmanager
def termination_tidies() -> Iterator[None]:
    """Take SIGTERM for Ctrl-C: what a grader has made of a hidden golden must not outlive it."""

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def in_vain(plan: Plan, rows: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the last two trials ended before a model answered: a wrong key, or a service that is away, ends every other too."""
    return plan.runner != "replay" and len(rows) > 1 and all(row["void"] and not row["tokens"] for row in rows[-2:])


def _words(request: Request, plan: Plan) -> list[str]:
    options: list[str] = ["--op", request.op, "--json"]
    for name, value in {"--model": plan.model, "--budget": plan.budget, "--max-minutes": plan.minutes}.items():
        options += [name, str(value)] if value is not None else []
    if "target_us" in request.data:
        options += ["--target-us", str(request.data["target_us"])]
    if plan.arm == "bare":
        options.append("--bare")
    elif plan.runner == "replay":
        options += ["--replay", str(request.transcript)]
    elif plan.runner != "headless":
        options += ["--runner", plan.runner]
    return ["run", request.prompt, *options]


def _call(words: list[str], workspace: Path, name: str) -> tuple[int, str, str]:
    """Run a command of ours to its end; what it says that it is at, this command says too, with the trial's name."""
    environment = {**os.environ, HIDDEN_ENV: str(folder()), "PWD": str(workspace)}
    said: list[str] = []

    def listen(lines: Iterable[str]) -> None:
        for line in lines:
            if what := speaking.what(line):
                speaking.now(f"{name}: {what}")
            else:
                said.append(line)

    with subprocess.Popen(
        own_python.running("pypto_op.cli", *words),
        cwd=workspace, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, errors="replace",
    ) as child:  # fmt: skip
        assert child.stdout is not None and child.stderr is not None
        listening = threading.Thread(target=listen, args=[child.stderr], daemon=True)
        listening.start()
        try:
            stdout = child.stdout.read()
            listening.join()
            code = child.wait()
        except BaseException:  # Ctrl-C, or its end by a signal
            child.kill()
            raise
    if words[0] == "install" and code:
        raise InfraError(f"the client cannot be set up: {''.join(said)[-300:]}", remedy="run `pypto-op doctor`")
    return code, stdout, "".join(said)


def _void(plan: Plan, code: int, stderr: str, summary: dict[str, Any] | None) -> str:
    """Return why the trial says nothing about the team: the service, the machine, or a replay off its path; else ""."""
    last = (stderr.strip().splitlines() or [f"exit code {code}"])[-1]
    if code in (int(ExitCode.CONTRACT), int(ExitCode.INFRA)) or code > 100 or code < 0:
        return last
    return last if plan.runner == "replay" and code and (summary is None or "left its path" in last) else ""


def _broken(code: int, summary: dict[str, Any] | None, lines: list[journal.Line] | None) -> str:
    """Return how an agent ended its own run, or took its transcript away or changed it, else "".

    A runner that a signal ended while an agent's command was at work was ended by that command, as far as anybody can see; so
    was a client that a signal ended however often it was begun again. One that ended by itself has written a transcript.
    """
    signalled = code > 100 or code < 0
    if lines is None:
        return "its transcript is gone" if signalled or code in (int(ExitCode.OK), int(ExitCode.FAIL)) else ""
    why = str((summary or {}).get("why"))
    if ENDED_BY_SIGNAL in why or journal.CHANGED in why:
        return why.partition(";")[0]
    command = " ".join(at_work(lines).split())[:_SHOWN] if signalled else ""
    return f"its runner was ended while a command of an agent was at work: {command}" if command else ""


def _transcript(workspace: Path, summary: dict[str, Any] | None) -> list[journal.Line] | None:
    """Read the trial's transcript, and keep a copy beside the workspace."""
    try:
        path = Path(summary["transcript"]) if summary else journal.latest_session(workspace) / journal.TRANSCRIPT
        lines = journal.read(path)
    except ContractError:
        return None
    shutil.copy(path, workspace.with_name(f"{workspace.name}.{TRANSCRIPT}"))
    return lines


def _has_kernel(workspace: Path, request: Request) -> bool:
    """Say whether the model alone left a kernel: that is its claim."""
    return (workspace / "custom" / request.op / f"{request.op}_impl.py").is_file()


def _spent(summary: dict[str, Any] | None) -> dict[str, Any]:
    tokens = (summary or {}).get("tokens") or {}
    return {
        "model": (summary or {}).get("model"),
        "requests": (summary or {}).get("requests"),
        "tokens": tokens.get("input", 0) + tokens.get("cache_write", 0) + tokens.get("output", 0) if tokens else None,
        "dollars": (summary or {}).get("dollars"),
    }
