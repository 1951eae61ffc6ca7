"""The pool on a real Ray cluster of several nodes, on this machine's loopback."""

from __future__ import annotations

import json
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests import quickly
from tests.calling import command
from tests.judge.judging import CASES, place
from tests.pool import cluster
from tests.pool.conftest import REPOSITORY
from tests.pool.works import Notes, Task, overlaps

from pypto_op.backends.base import Limits
from pypto_op.errors import ContractError, InfraError
from pypto_op.judge.cases.contract import load_contract
from pypto_op.judge.cases.subject import resolve
from pypto_op.pool.address import Address
from pypto_op.pool.pool import Need, Pool
from pypto_op.pool.work import Job
from pypto_op.tuning.clock import Clock
from pypto_op.tuning.kernel import Kernel
from pypto_op.tuning.ledger import Ledger
from pypto_op.tuning.search import Search, Wish
from pypto_op.vocabulary import Mode

quickly.skip_without("ray")
pytestmark = [pytest.mark.slow]

DEVICE = Need(npu=True)


@pytest.fixture(scope="module")
def running() -> Iterator[cluster.Running]:
    """Two nodes with a core and two devices each, which see devices 4 and 5, and 6 and 7, of the machine; the head has none."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(REPOSITORY))
        with cluster.running("1 4,5", "1 6,7") as made:
            yield made


def jobs(*tasks: Task) -> list[Job]:
    return [Job(f"job {task.number}", task) for task in tasks]


def squares(address: str, errand: Notes, todo: list[Job], **how: Any) -> dict[str, int]:
    with Pool(Address.parse(f"ray://{address}")) as pool:
        return {job.key: value["square"] for job, value in pool.run(errand, todo, **{"size": 4, "need": DEVICE, **how})}


def right(count: int) -> dict[str, int]:
    return {f"job {n}": n * n for n in range(count)}


def test_one_worker_for_each_device_and_each_sees_its_own(running: cluster.Running, tmp_path: Path) -> None:
    errand, heard = Notes(str(tmp_path)), []
    found = squares(running.address, errand, jobs(*(Task(n, 0.3) for n in range(12))), hear=lambda job, word: heard.append(word))
    assert found == right(12) and sorted(heard) == list(range(12))
    held = errand.held()
    assert set(held) <= {"4/0", "5/0", "6/0", "7/0"} and len(held) > 1, held
    assert not any(map(overlaps, held.values()))


def test_two_commands_at_once_never_hold_one_device(running: cluster.Running, tmp_path: Path) -> None:
    errand, found = Notes(str(tmp_path)), []
    todo = [jobs(*(Task(n, 0.3) for n in range(first, first + 6))) for first in (0, 6)]
    threads = [threading.Thread(target=lambda some=some: found.append(squares(running.address, errand, some))) for some in todo]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {key: value for part in found for key, value in part.items()} == right(12)
    assert not any(map(overlaps, errand.held().values()))


def test_hosts_are_chosen_by_label(running: cluster.Running, tmp_path: Path) -> None:
    errand = Notes(str(tmp_path))
    assert squares(f"{running.address}?node=1", errand, jobs(*(Task(n, 0.2) for n in range(4)))) == right(4)
    assert set(errand.held()) <= {"6/0", "7/0"}
    with pytest.raises(
        InfraError, match=r"the cluster at 127.0.0.1:\d+ has no core or device on a host with such labels; add hosts"
    ):
        squares(f"{running.address}?node=9", errand, jobs(Task(1)))


def test_an_error_of_a_job_is_the_callers(running: cluster.Running, tmp_path: Path) -> None:
    with pytest.raises(ContractError, match="works.py: job 3 is wrong; leave it out"):
        squares(running.address, Notes(str(tmp_path)), jobs(Task(3, wrong=True), *map(Task, range(4, 9))))


def test_a_device_that_hangs_is_given_up_and_its_job_goes_elsewhere(running: cluster.Running, tmp_path: Path) -> None:
    hung = tmp_path / "hung"
    errand = Notes(str(tmp_path), silence=2.0)
    todo = jobs(Task(0, hangs_once=str(hung)), *(Task(n) for n in range(1, 5)))
    assert squares(running.address, errand, todo, size=2) == right(5)
    assert hung.exists()


@pytest.mark.sim
@pytest.mark.usefixtures("numeric")
class TestVerdicts:
    def test_verify_says_the_same_case_by_case(self, running: cluster.Running, tmp_path: Path) -> None:
        """A right case, one that the kernel fails, and one on which it raises, whose failure folder comes back."""
        ws = place("sum_diff", tmp_path, cases=CASES)
        text = ws.impl.read_text()
        anchor = "    return total, diff"
        assert text.count(anchor) == 1
        ws.impl.write_text(text.replace(anchor, "    if x.shape[0] == 21:\n        raise RuntimeError('odd')\n" + anchor))
        said = []
        for pool in ("local", f"ray://{running.address}"):
            answer = command("verify", ws.root, "--modes", "sim", "--seed", 5, "--jobs", 2, "--json", "--pool", pool)
            failures = {path.name: (path / "failure.json").is_file() for path in ws.failures_dir.iterdir()}
            said.append((answer.code, failures, comparable(answer.report)))
        assert said[0] == said[1]
        assert said[0][0] == 1 and said[0][1] == {"ragged": True}
        assert {check["id"]: check["status"] for check in answer.report["checks"]}["tile"] == "PASS"

    def test_a_list_of_operators(self, running: cluster.Running, tmp_path: Path) -> None:
        """One is right, one is wrong, one has no kernel: each has its own report; the greatest exit status counts."""
        roots = [place("sum_diff", tmp_path / name, cases=CASES[:1]) for name in ("right", "wrong", "none")]
        roots[1].impl.write_text(roots[1].impl.read_text().replace("return total, diff", "return diff, total"))
        roots[2].impl.unlink()
        words = ["verify-many", *(ws.root for ws in roots), "--modes", "sim", "--json"]
        said = [command(*words, "--pool", pool) for pool in ("local", f"ray://{running.address}")]
        for answer in said:
            rows = answer.report["operators"]
            assert [(row["status"], row["exit_code"]) for row in rows] == [("PASS", 0), ("FAIL", 1), ("ERROR", 2)]
            assert answer.code == 2 and "the implementation is missing" in rows[2]["message"]
        assert [json.loads(ws.report.read_text())["status"] for ws in roots] == ["PASS", "FAIL", "ERROR"]

    def test_a_search_finds_the_same_candidates(self, running: cluster.Running, tmp_path: Path) -> None:
        """The simulator's cost model is the clock: every machine gives the same times."""
        ws = place("sum_diff", tmp_path)
        contract = load_contract(ws)
        subject = resolve(ws, contract.total_modules)
        kernel = Kernel(subject.impl.read_text(encoding="utf-8"), subject.wrapper)
        found = []
        with Clock(contract, subject, Mode.SIM, Limits()) as clock:
            for number, text in enumerate(("local", f"ray://{running.address}")):
                with Pool(Address.parse(text)) as pool:
                    ledger = Ledger(tmp_path / f"ledger{number}")
                    outcome = Search(kernel, clock, ledger, Wish(36000.0, 4, jobs=2), pool=pool).run()
                found.append([(one.digest, one.fate, one.times, one.ratio, one.reason) for one in outcome.candidates])
        assert found[0] == found[1] and len(found[0]) == 4

    def test_mutate_finds_the_same_fates_and_loses_none_with_a_node(self, running: cluster.Running, tmp_path: Path) -> None:
        """The last test of this cluster: it kills a node while mutants run on it."""
        ws = place("sum_diff", tmp_path, cases=CASES)
        words = [
            "mutate",
            ws.root,
            "--json",
            "--jobs",
            2,
            "--operators",
            "dropped_tail,operand_order,lost_statement",
            "--seconds",
            0,
        ]
        here = command(*words)
        killer = threading.Thread(target=when_unpacked, args=(2, lambda: running.do("kill 1")))
        killer.start()
        there = command(*words, "--pool", f"ray://{running.address}")
        killer.join()
        assert (here.code, there.code) == (0, 0), there.stderr
        fates = [{mutant["id"]: mutant["status"] for mutant in answer.report["mutants"]} for answer in (here, there)]
        assert fates[0] == fates[1] and len(fates[0]) > 5


def when_unpacked(copies: int, act: Callable[[], None]) -> None:
    """Do something once so many workers of the pool have unpacked an operator: they are about to work, or do."""
    before = set(unpacked())
    deadline = time.monotonic() + 600
    while len(set(unpacked()) - before) < copies and time.monotonic() < deadline:
        time.sleep(0.1)
    act()


def unpacked() -> Iterator[Path]:
    return Path(tempfile.gettempdir()).glob("pypto-op-pool-*")


def comparable(value: Any) -> Any:
    """Return a report without what two runs of one machine differ in: times, and pypto's log, which is full of them."""
    if isinstance(value, dict):
        return {
            key: comparable(item)
            for key, item in value.items()
            if key not in ("seconds", "created", "seal", "peak_rss_mb", "stdout")
        }
    return [comparable(item) for item in value] if isinstance(value, list) else value


def test_workers_of_this_machines_own_ray_are_as_eager_as_the_command(tmp_path: Path) -> None:
    """Ray's own habit is to let them yield to everything else: a verdict waited for whatever the machine did beside it."""
    with Pool(Address.parse("ray://local")) as pool:
        ((_, value),) = pool.run(Notes(str(tmp_path)), jobs(Task(3)), size=1)
    assert value["square"] == 9 and value["niceness"] == os.getpriority(os.PRIO_PROCESS, 0)


def test_the_environment_is_left_as_it_was() -> None:
    assert "RAY_ADDRESS" not in os.environ


def test_a_cluster_that_asks_for_a_token_is_joined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`ray start` asks for the token as soon as there is one, and `ray://local` makes one."""
    token = tmp_path / "auth_token"
    token.write_text("5a" * 32)
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(token))
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    with cluster.running("1") as own:
        monkeypatch.delenv("RAY_AUTH_MODE")
        ws = place("sum_diff", tmp_path, cases=CASES[:1])
        words = ("verify", ws.root, "--modes", "sim", "--json", "--pool", f"ray://{own.address}")
        answer = command(*words)
        assert answer.code == 0 and answer.report["status"] == "PASS", answer
        token.write_text("6b" * 32)
        refused = command(*words)
    assert refused.code == 3 and "it asks for Ray's token" in refused.report["error"]["message"], refused
