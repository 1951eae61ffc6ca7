"""`eval` on a real Ray cluster of this machine's loopback: a job for each trial, whose workspace comes back."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.calling import command
from tests.evals.test_replay import evaluate
from tests.pool import cluster
from tests.pool.conftest import REPOSITORY

from pypto_op.errors import InfraError
from pypto_op.evals import away, holder, requests, trials
from pypto_op.runner.loopback import Answer, Body, served

REQUEST = "mismatched_heads"


class Model:
    """A service whose model writes a file and says that all is done; the first question may do something else before."""

    def __init__(self, first: Any = lambda: None) -> None:
        self.asked, self._first, self._lock = 0, first, threading.Lock()

    def __call__(self, body: Body, headers: Mapping[str, str]) -> Answer:
        with self._lock:
            self.asked += 1
            number = self.asked
        if number == 1:
            self._first()
        if len(body["messages"]) == 1:
            written = {"file_path": "QUESTION.md", "content": "seen\n"}
            return Answer([{"type": "tool_use", "id": "toolu_1", "name": "Write", "input": written}])
        return Answer([{"type": "text", "text": "All is done."}])


@pytest.fixture(autouse=True)
def surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What workers make lies where the test sees it; they have a key, the caller has none."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("RAY_TMPDIR", tempfile.gettempdir())  # its sockets bear no longer path
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setenv("PYPTO_OP_KEY_FILE", str(tmp_path / "keys" / "seal.key"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.delenv(name, raising=False)


def with_key(monkeypatch: pytest.MonkeyPatch, port: int) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test-1234567")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", f"http://127.0.0.1:{port}")


def rooms(folder: Path) -> list[Path]:
    """Return what a worker of a trial or a grader has made, and not removed."""
    return [*folder.glob("tmp/**/pypto-op-trial-*"), *folder.glob("tmp/**/pypto-op-hidden-*")]


def wait_for(what: Any) -> None:
    deadline = time.monotonic() + 300
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.1)


# -- one trial in a process of its own, without Ray ----------------------------------------------------------------------


@pytest.mark.slow
def test_a_trial_ends_with_its_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker is killed without a word: what it had begun asks no model any more, and leaves no file."""
    release = threading.Event()
    model = Model(lambda: release.wait(300))
    code = f"""
from pypto_op.evals import away, holder, trials
away._held(holder.Asked({REQUEST!r}, 1, trials.Plan(mutants=0), "out"), lambda word: None)
"""
    with served(model) as port:
        with_key(monkeypatch, port)
        worker = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path)
        wait_for(lambda: model.asked)
        (room,) = rooms(tmp_path)
        below = [one for one in psutil.process_iter(["cwd"]) if str(one.info["cwd"]).startswith(str(room))]
        assert below, "the run works in the room"
        worker.send_signal(signal.SIGKILL)
        worker.wait()
        wait_for(lambda: not rooms(tmp_path) and not any(one.is_running() and one.status() != "zombie" for one in below))
        release.set()
        time.sleep(1)
        assert model.asked == 1


def test_large_files_and_links_stay_and_are_named(tmp_path: Path) -> None:
    place = tmp_path / "work" / "x-1"
    place.mkdir(parents=True)
    (place / "small").write_text("1")
    (place / "link").symlink_to("/etc/hostname")
    with (place / "large").open("wb") as stream:
        stream.truncate(holder._MOST_OF_ONE + 1)
    files = holder._files(tmp_path, "work/x-1")
    assert set(files) == {"work/x-1/small", "work/x-1.left_behind.txt"}
    assert files["work/x-1.left_behind.txt"].startswith(b"work/x-1/large: ")


def test_a_host_with_another_request_or_team_or_without_a_key_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    (request,) = requests.load([REQUEST])
    same = {request.id: request.digest()}
    for work, said in (
        (away.TrialsWork(trials.Plan(), {request.id: "0" * 64}, away.team()), f"the request {REQUEST} is another one on"),
        (away.TrialsWork(trials.Plan(), same, "0" * 64), "the agents, skills, hooks or rules are others on"),
    ):
        with pytest.raises(InfraError, match=f"{said}.*let every host have the same checkout"), work.open():
            pass
    said = r"on \S+: there is no key for the model; .* in the environment of `ray start` there"
    with pytest.raises(InfraError, match=said), away.TrialsWork(trials.Plan(), same, away.team()).open():
        pass
    with away.TrialsWork(trials.Plan(runner="replay"), same, away.team()).open() as bench:
        assert bench.hello is None


@pytest.mark.parametrize("words", [["--near-misses"], ["--check", str(REPOSITORY / "evals/requests/rmsnorm")]])
def test_what_holds_no_trial_takes_no_pool(words: list[str]) -> None:
    answer = command("eval", *words, "--pool", "ray://local")
    assert (answer.code, answer.stdout) == (2, "") and "--check and --near-misses take no --pool; leave it out" in answer.stderr


# -- on a cluster --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
class TestOnACluster:
    @pytest.fixture(autouse=True)
    def with_ray(self, monkeypatch: pytest.MonkeyPatch) -> None:
        pytest.importorskip("ray", reason="the extra fleet is not installed")
        pytest.importorskip("anthropic")
        monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))

    def test_nobody_listens(self, tmp_path: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            answer = evaluate(tmp_path, "--out", "out", "--pool", f"ray://127.0.0.1:{free.getsockname()[1]}")
        assert answer.returncode == 3 and "no Ray cluster answers at 127.0.0.1" in answer.stderr
        assert not (tmp_path / "out").exists()

    def test_no_host_has_a_key(self, tmp_path: Path) -> None:
        with cluster.running("1") as running:
            answer = evaluate(tmp_path, "--out", "out", "--pool", f"ray://{running.address}")
        told = [line for line in answer.stderr.splitlines() if " s so far" not in line]
        assert answer.returncode == 3 and len(told) == 1 and "there is no key for the model" in told[0], answer.stderr
        assert not (tmp_path / "out").exists()

    def test_trials_come_back_and_a_node_that_is_killed_loses_none(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """The first node dies while the model is asked for the first time; then two others hold all three trials."""
        started: list[cluster.Running] = []

        def move() -> None:
            for line in ("kill 0", "add 1", "add 1"):
                started[0].do(line)

        model = Model(move)
        with served(model) as port, monkeypatch.context() as nodes:
            with_key(nodes, port)
            with cluster.running("1") as running:
                started.append(running)
                nodes.undo()
                assert "ANTHROPIC_API_KEY" not in os.environ, "the caller has no key, and none travels"
                words = ("--requests", REQUEST, "--mutants", "0", "--repeat", 3, "--out", "out")
                done = evaluate(tmp_path, *words, "--pool", f"ray://{running.address}")
                assert done.returncode == 0, done.stdout + done.stderr
                wait_for(lambda: not rooms(tmp_path))
        found = json.loads((tmp_path / "out" / "result.json").read_text())
        assert [(row["request"], row["trial"], row["void"]) for row in found["trials"]] == [(REQUEST, n, "") for n in (1, 2, 3)]
        for number in (1, 2, 3):
            workspace = tmp_path / "out" / "work" / f"{REQUEST}-{number}"
            assert (workspace / "QUESTION.md").read_text() == "seen\n"
            assert "All is done." in workspace.with_name(f"{workspace.name}.{trials.TRANSCRIPT}").read_text()
        assert (tmp_path / "out" / "index.html").is_file()
        assert model.asked > 6, "the lost trial was begun anew"

    @pytest.mark.sim
    def test_a_transcript_is_solved_there(self, tmp_path: Path) -> None:
        done = evaluate(tmp_path, "--runner", "replay", "--mutants", "0", "--out", "out", "--pool", "ray://local")
        assert done.returncode == 0, done.stderr[-2000:]
        (row,) = json.loads((tmp_path / "out" / "result.json").read_text())["trials"]
        assert row["solved"] and row["verdict"]["status"] == "PASS" and row["finished"], row
        assert (tmp_path / "out" / "work" / "rmsnorm-1" / "custom" / "rmsnorm" / "eval" / "report.html").is_file()
        assert not rooms(tmp_path)
