"""A cluster that is not there, is no cluster, runs another version, or dies: one line with the remedy, exit status 3."""

from __future__ import annotations

import json
import socket
import threading
from importlib import util
from pathlib import Path
from typing import Any

import pytest
from tests.calling import Answer, command
from tests.judge.judging import CASES, place
from tests.pool import cluster, test_cluster

from pypto_op.pool import fleet

PASSES = {"dropped_tail", "operand_order"}


def one_line(answer: Answer) -> str:
    """Return the one line that a command ended with; it was the machine's fault."""
    assert answer.code == 3, (answer.stdout, answer.stderr)
    assert "Traceback" not in answer.stderr
    told = [line for line in answer.stderr.splitlines() if line.startswith("pypto-op: ") and "s so far" not in line]
    assert len(told) == 1, answer.stderr
    return told[0]


def mutate(root: Path, pool: str, *words: Any) -> Answer:
    return command("mutate", root, "--operators", ",".join(sorted(PASSES)), "--jobs", 2, "--pool", pool, "--json", *words)


def test_without_ray(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = util.find_spec
    monkeypatch.setattr(fleet.util, "find_spec", lambda name: None if name == "ray" else real(name))
    ws = place("sum_diff", tmp_path, cases=CASES[:1])
    answer = command("verify", ws.root, "--modes", "sim", "--pool", "ray://127.0.0.1", "--json")
    assert answer.code == 3
    assert answer.report["status"] == "ERROR" and answer.report["error"]["kind"] == "infra"
    said = "--pool ray://127.0.0.1 needs Ray, which is not installed; pip install 'pypto-op[fleet]'"
    assert answer.report["error"]["message"] == said


def test_nobody_listens(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ws = place("sum_diff", tmp_path, cases=CASES[:1])
    answer = command("verify", ws.root, "--modes", "sim", "--pool", f"ray://127.0.0.1:{port}", "--json")
    said = answer.report["error"]["message"]
    assert answer.code == 3
    assert said.startswith(f"no Ray cluster answers at 127.0.0.1:{port} (Connection refused); on the head: ray start --head")


@pytest.mark.slow
class TestWithRay:
    @pytest.fixture(autouse=True)
    def installed(self) -> None:
        pytest.importorskip("ray", reason="the extra fleet is not installed")

    def test_somebody_else_listens(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(fleet, "JOIN_SECONDS", 20.0)
        ws = place("sum_diff", tmp_path, cases=CASES[:1])
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen()
            answer = command("verify", ws.root, "--modes", "sim", "--pool", f"ray://127.0.0.1:{other.getsockname()[1]}", "--json")
        assert answer.code == 3
        assert "cannot be joined: it did not answer within 20 s; on the head: ray start" in answer.report["error"]["message"]

    @pytest.mark.sim
    @pytest.mark.usefixtures("numeric")
    def test_a_head_that_dies_and_another_version(self, tmp_path: Path) -> None:
        """What was found before is kept: `--resume` has it."""
        ws = place("sum_diff", tmp_path, cases=CASES)
        with cluster.running("2") as running:
            killer = threading.Thread(target=test_cluster.when_unpacked, args=(1, lambda: running.do("head")))
            killer.start()
            lost = one_line(mutate(ws.root, f"ray://{running.address}"))
            killer.join()
        assert "was lost: " in lost or "no worker of the pool is left" in lost
        after = json.loads(mutate(ws.root, "local", "--resume", "--seconds", 0).stdout)
        assert after["sittings"] == 2
        with cluster.running("1") as running:
            running.do("version")
            other = one_line(mutate(ws.root, f"ray://{running.address}"))
        assert "ersion mismatch" in other and "install the cluster's versions of Ray and Python here" in other
