"""A cluster that is not there, is no cluster, runs another version, or dies: one line with the remedy, exit status 3."""

from __future__ import annotations

import socket
from importlib import util
from pathlib import Path

import pytest
from tests.calling import Answer, command
from tests.judge.judging import CASES, place
from tests.pool import cluster
from tests.pool.works import Notes, Task

from pypto_op.errors import InfraError
from pypto_op.pool import fleet
from pypto_op.pool.address import Address
from pypto_op.pool.pool import Pool
from pypto_op.pool.work import Job


def one_line(answer: Answer) -> str:
    """Return the one line that a command ended with; it was the machine's fault."""
    assert answer.code == 3, (answer.stdout, answer.stderr)
    assert "Traceback" not in answer.stderr
    told = [line for line in answer.stderr.splitlines() if line.startswith("pypto-op: ") and "s so far" not in line]
    assert len(told) == 1, answer.stderr
    return told[0]


def test_without_ray(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = util.find_spec
    monkeypatch.setattr(fleet.util, "find_spec", lambda name: None if name == "ray" else real(name))
    ws = place("sum_diff", tmp_path, cases=CASES[:1])
    ws.report.write_text("kept\n")
    answer = command("verify", ws.root, "--modes", "sim", "--pool", "ray://127.0.0.1", "--json")
    said = "pypto-op: --pool ray://127.0.0.1 needs Ray, which is not installed; install the extra fleet, "
    said += "in a checkout with `pip install -e '.[fleet]'`"
    assert one_line(answer) == said
    assert ws.report.read_text() == "kept\n"


@pytest.mark.slow
class TestWithRay:
    @pytest.fixture(autouse=True)
    def installed(self) -> None:
        pytest.importorskip("ray", reason="the extra fleet is not installed")

    def test_nobody_listens(self, tmp_path: Path) -> None:
        """Each command says so before it works and writes: the last verdict stays, and no mutant's reference runs."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        ws = place("sum_diff", tmp_path, cases=CASES[:1])
        ws.report.write_text("kept\n")
        for words in (("verify", "--modes", "sim"), ("verify-many",), ("mutate",), ("tune",)):
            answer = command(words[0], ws.root, *words[1:], "--pool", f"ray://127.0.0.1:{port}")
            said = f"pypto-op: no Ray cluster answers at 127.0.0.1:{port} (Connection refused); on the head: ray start --head"
            assert one_line(answer).startswith(said)
            assert answer.stdout == ""
        assert ws.report.read_text() == "kept\n"

    def test_somebody_else_listens(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(fleet, "JOIN_SECONDS", 20.0)
        ws = place("sum_diff", tmp_path, cases=CASES[:1])
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen()
            answer = command("verify", ws.root, "--modes", "sim", "--pool", f"ray://127.0.0.1:{other.getsockname()[1]}", "--json")
        assert answer.code == 3
        assert "cannot be joined: it did not answer within 20 s; on the head: ray start" in answer.report["error"]["message"]

    def test_a_head_that_dies(self, tmp_path: Path) -> None:
        """What was done before has reached the caller; the rest ends in one line."""
        errand, done = Notes(str(tmp_path)), []
        with cluster.running("2") as running, Pool(Address.parse(f"ray://{running.address}")) as pool:
            results = pool.run(errand, [Job("short", Task(3)), Job("long", Task(4, 3600.0))], size=2)
            done.append(next(results)[1]["square"])
            running.do("head")
            with pytest.raises(InfraError) as lost:
                next(results)
        assert done == [9]
        assert "was lost: " in str(lost.value) or "no worker of the pool is left" in str(lost.value)
        assert "\n" not in str(lost.value) and "run " in str(lost.value)

    @pytest.mark.sim
    @pytest.mark.usefixtures("numeric")
    def test_another_version(self, tmp_path: Path) -> None:
        ws = place("sum_diff", tmp_path, cases=CASES[:1])
        with cluster.running("1") as running:
            running.do("version")
            words = ("--operators", "dropped_tail", "--pool", f"ray://{running.address}", "--json")
            other = one_line(command("mutate", ws.root, *words))
        assert "ersion mismatch" in other and "install the cluster's versions of Ray and Python here" in other
