"""Trials as jobs of a pool: a request's name travels; row, workspace and transcript come back. Keys and goldens never travel."""

from __future__ import annotations

import contextlib
import hashlib
import pickle
import socket
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from pypto_op import own_python, speaking
from pypto_op.backends.cores import usable
from pypto_op.bundle_files import bundle_root
from pypto_op.errors import InfraError
from pypto_op.evals import requests, trials
from pypto_op.evals.holder import Asked, Held
from pypto_op.pool import servant
from pypto_op.pool.line import Line
from pypto_op.pool.parcel import laid_down
from pypto_op.pool.pool import Pool
from pypto_op.pool.work import Bench, Job, Say
from pypto_op.runner.surroundings import check_access, check_keys

_GRADING_SECONDS = 3 * 3600.0
_LONGEST_MINUTES = 24 * 60.0
"""Of a trial without `--max-minutes`; it says a word every few seconds all the same."""
_MOST = 64
_TEAM = (".agents", "commands", "hooks", "lint", "schemas", "skills")
"""What a team is made of, beside the package, in a checkout."""

Row = dict[str, Any]
Wished = Sequence[tuple[requests.Request, int]]


def rows(pool: Pool, wished: Wished, plan: trials.Plan, out: Path) -> Iterator[Row]:
    """Yield the row of each trial as it ends; on a cluster several at once. None is begun once the last ended in vain.

    Args:
        pool: where; on this machine one after the other, in this thread, so that Ctrl-C tidies up.

    Raises:
        InfraError: the pool is lost, or a host of it has another team, other requests, or no key.
    """
    seen: list[Row] = []
    if not pool.away:
        for request, number in wished:
            if not trials.in_vain(plan, seen):
                seen.append(trials.run(request, plan, number, out))
                yield seen[-1]
        return
    jobs = [Job(f"{request.id} ({number})", Asked(request.id, number, plan, str(out))) for request, number in wished]
    errand = _Trials(plan, [request for request, _ in wished])
    size = _MOST if pool.address.host else usable()
    results = pool.run(
        errand,
        jobs,
        size=min(size, len(jobs)),
        wanted=lambda job: not trials.in_vain(plan, seen),
        hear=lambda job, word: speaking.now(word, len(seen), len(jobs)),
    )
    with contextlib.closing(results):
        for _, came in results:
            laid_down(came.files, out.resolve())
            seen.append(came.row)
            yield came.row


class _Trials:
    """Trials as jobs."""

    def __init__(self, plan: trials.Plan, asked: Sequence[requests.Request]) -> None:
        self._plan, self._asked = plan, asked
        self.silence = 60.0 * (plan.minutes or _LONGEST_MINUTES) + _GRADING_SECONDS

    def here(self, payload: Asked, say: Say) -> Held:
        """Hold one in this process; it leaves nothing in the result's folder but what it returns."""
        return _held(payload, say)

    def away(self) -> TrialsWork:
        """Return how they are held elsewhere."""
        return TrialsWork(self._plan, {request.id: request.digest() for request in self._asked}, team())

    def stop(self) -> None:
        """None of them runs in this process where a pool ends it."""


@dataclass(frozen=True)
class TrialsWork:
    """What another process needs to hold trials as this one would."""

    plan: trials.Plan  # how
    requests: Mapping[str, str]  # id -> `Request.digest`
    team: str  # see `team`

    @contextlib.contextmanager
    def open(self) -> Iterator[Bench]:
        """See that this host has the same team and requests, and a key of its own where one is needed."""
        host = socket.gethostname()
        there = {request.id: request.digest() for request in requests.load(self.requests)}
        if other := next((name for name, digest in self.requests.items() if there[name] != digest), ""):
            raise InfraError(f"the request {other} is another one on {host}", remedy="let every host have the same checkout")
        if team() != self.team:
            problem = f"the agents, skills, hooks or rules are others on {host}"
            raise InfraError(problem, remedy="let every host have the same checkout")
        try:
            check_keys()
            if self.plan.runner == "headless":
                check_access()
        except InfraError as error:
            remedy = f"{error.remedy}, in the environment of `ray start` there"
            raise InfraError(f"on {host}: {error.problem}", remedy=remedy) from None
        yield _TrialsBench()


class _TrialsBench:
    hello = None

    def do(self, payload: Asked, say: Say) -> Held:
        """Hold one trial."""
        return _held(payload, say)


def _held(asked: Asked, say: Say) -> Held:
    """Let a process of its own hold a trial; it ends with this one, however that ends."""
    ours, theirs = socket.socketpair()
    line, quiet = Line(ours), subprocess.DEVNULL
    with theirs:
        words = own_python.running("pypto_op.evals.holder", str(theirs.fileno()))
        with subprocess.Popen(
            words, pass_fds=(theirs.fileno(),), stdin=quiet, stdout=quiet, stderr=subprocess.PIPE, text=True, errors="replace"
        ) as first:
            stream, first.stderr = first.stderr, None  # the process that goes on holds it
    assert stream is not None
    threading.Thread(target=_listen, args=[stream, say], name="words", daemon=True).start()
    try:
        line.say(*asked)
        what, data = line.hear()
    except (EOFError, OSError):
        problem = f"the process that held {asked.request} ({asked.number}) has ended"
        raise InfraError(problem, remedy="look for what ended it, then run it again") from None
    finally:
        line.close()
    answer = pickle.loads(data)
    if what == servant.FAILED:
        raise answer
    return Held(*answer)


def _listen(stream: TextIO, say: Say) -> None:
    with stream:
        for words in stream:
            if what := speaking.what(words):
                say(what)


def team() -> str:
    """Return the sha256 of what agents read and are held by: another team's trials are no trials of this one."""
    state = hashlib.sha256()
    for name in _TEAM:
        root = bundle_root() / name
        for path in sorted(path for path in root.rglob("*") if path.is_file() and "__pycache__" not in path.parts):
            state.update(f"{path.relative_to(bundle_root())}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return state.hexdigest()
