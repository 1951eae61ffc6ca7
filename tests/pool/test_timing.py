"""`benchmark` as one job of a real Ray cluster on this machine's loopback."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests import quickly
from tests.calling import command
from tests.judge.judging import CASES, place, verify
from tests.pool import cluster
from tests.pool.conftest import REPOSITORY
from tests.pool.test_cluster import comparable, unpacked, when_unpacked

from pypto_op.perf import history
from pypto_op.workspace import OpWorkspace

quickly.skip_without("ray")
pytestmark = [pytest.mark.slow, pytest.mark.sim, pytest.mark.usefixtures("numeric")]


@pytest.fixture(scope="module")
def running() -> Iterator[cluster.Running]:
    """Two nodes with a core each; the head has none."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(REPOSITORY))
        with cluster.running("1", "1") as made:
            yield made


@pytest.fixture
def verified(tmp_path: Path) -> OpWorkspace:
    """sum_diff with a PASS, and an earlier kernel with one where `tune` keeps it."""
    ws = place("sum_diff", tmp_path, cases=CASES[:2])
    before = ws.debug_dir / "tuning" / "before.py"
    before.parent.mkdir(parents=True)
    before.write_text(ws.impl.read_text(encoding="utf-8") + "# before\n", encoding="utf-8")
    report = ws.debug_dir / "evidence" / "base.json"
    report.parent.mkdir()
    assert verify(ws.root, "--impl", before, "--report", report).code == 0
    assert verify(ws.root).code == 0
    return ws


def test_the_figures_are_the_same(running: cluster.Running, verified: OpWorkspace) -> None:
    """The cost model gives every machine the same times; the other kernel travels from where no parcel looks."""
    words = ["benchmark", verified.root, "--modes", "sim", "--repeats", 2, "--json"]
    words += ["--compare", verified.debug_dir / "tuning" / "before.py"]
    said = [command(*words, "--pool", pool) for pool in ("local", f"ray://{running.address}")]
    assert [answer.code for answer in said] == [0, 0], said[1].stderr
    here, there = (comparable(answer.report) for answer in said)
    assert here | {"host": None} == there | {"host": None}
    assert there["compared"]["geometric_mean"] == pytest.approx(1.0) and there["compared"]["rows"][0]["ratio"] == 1.0
    assert json.loads(verified.perf_report.read_text()) == said[1].report
    assert len(history.read(verified)) == 2


def test_proof_is_asked_for_here_and_before_anything_travels(running: cluster.Running, verified: OpWorkspace) -> None:
    verified.impl.write_text(verified.impl.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    before = set(unpacked())
    answer = command("benchmark", verified.root, "--modes", "sim", "--pool", f"ray://{running.address}")
    assert (answer.code, answer.stdout) == (2, "") and "no sealed PASS for exactly these bytes" in answer.stderr
    assert set(unpacked()) == before and not verified.perf_report.exists()


def test_a_mode_that_no_host_has(running: cluster.Running, verified: OpWorkspace) -> None:
    answer = command("benchmark", verified.root, "--modes", "npu", "--pool", f"ray://{running.address}")
    assert (answer.code, answer.stdout) == (3, "") and "no requested mode is available (npu: " in answer.stderr


def test_a_wrong_address_leaves_the_last_result(verified: OpWorkspace) -> None:
    verified.perf_report.write_text("kept\n")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        answer = command("benchmark", verified.root, "--modes", "sim", "--pool", f"ray://127.0.0.1:{free.getsockname()[1]}")
    assert answer.code == 3 and "no Ray cluster answers at 127.0.0.1" in answer.stderr
    assert verified.perf_report.read_text() == "kept\n"


def test_a_node_that_is_killed_loses_nothing(running: cluster.Running, verified: OpWorkspace) -> None:
    """The last test of this cluster: the only node that could have begun is gone before the end."""

    def move() -> None:
        running.do("add 1")
        running.do("kill 0")

    running.do("kill 1")
    killer = threading.Thread(target=when_unpacked, args=(1, move))
    killer.start()
    words = ("--modes", "sim", "--repeats", 4, "--json", "--pool", f"ray://{running.address}")
    answer = command("benchmark", verified.root, *words)
    killer.join()
    assert answer.code == 0, answer.stderr
    rows = answer.report["per_shape_results"]
    assert rows and all(row["status"] == "ok" and len(row["samples"]) == 8 for row in rows)
