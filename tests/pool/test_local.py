"""The pool of one machine: slots, devices, whole-device jobs, losses. The jobs are real processes; nothing stands in for them."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from tests.pool.works import Notes, Task, overlaps

from pypto_op.errors import ContractError, InfraError
from pypto_op.pool import work
from pypto_op.pool.crew import MOST_LOSSES, Crew, HandLost
from pypto_op.pool.hands import Here
from pypto_op.pool.pool import Need, Pool
from pypto_op.pool.work import Job

DEVICES = Need(npu=True, here=True, devices=(0, 3))


def jobs(*tasks: Task, alone: bool = False) -> list[Job]:
    return [Job(f"job {task.number}", task, alone) for task in tasks]


def squares(errand: Notes, todo: list[Job], **how: Any) -> dict[str, int]:
    return {job.key: value["square"] for job, value in Pool().run(errand, todo, **{"size": 2, **how})}


def test_each_job_is_done_once_in_this_process(tmp_path: Path) -> None:
    heard: list[tuple[str, int]] = []
    wanted = jobs(*map(Task, range(5)))
    found = squares(Notes(str(tmp_path)), wanted, hear=lambda job, word: heard.append((job.key, word)))
    assert found == {f"job {n}": n * n for n in range(5)}
    assert sorted(heard) == [(f"job {n}", n) for n in range(5)]
    assert len(list(tmp_path.glob(f"job-*-{os.getpid()}.json"))) == 5


def test_no_jobs_and_what_is_not_wanted_any_more(tmp_path: Path) -> None:
    assert squares(Notes(str(tmp_path)), []) == {}
    wanted = jobs(*map(Task, range(6)))
    assert squares(Notes(str(tmp_path)), wanted, wanted=lambda job: job.key in ("job 0", "job 5")) == {"job 0": 0, "job 5": 25}


def test_an_error_of_a_job_ends_the_run_and_is_the_callers(tmp_path: Path) -> None:
    for need in (Need(), DEVICES):
        with pytest.raises(ContractError, match="works.py: job 1 is wrong; leave it out"):
            squares(Notes(str(tmp_path)), jobs(Task(1, wrong=True), *map(Task, range(2, 40))), need=need)
        assert (tmp_path / "stopped").exists()


def test_a_job_that_times_has_the_machine_for_itself(tmp_path: Path) -> None:
    errand = Notes(str(tmp_path))
    wanted = jobs(Task(0, 0.2), Task(1, 0.2)) + jobs(Task(2, 0.2), alone=True) + jobs(Task(3, 0.2), Task(4, 0.2))
    assert len(squares(errand, wanted, size=4)) == 5
    (times,) = errand.held().values()
    assert overlaps(times), "the others run side by side"
    said = {path.name.split("-")[1]: path.read_text() for path in tmp_path.glob("job-*.json")}
    alone = json.loads(said["2"])
    others = [json.loads(text) for number, text in said.items() if number != "2"]
    assert all(other["to"] <= alone["from"] or other["from"] >= alone["to"] for other in others)


def test_one_worker_for_each_device_and_no_two_jobs_on_one(tmp_path: Path) -> None:
    errand = Notes(str(tmp_path))
    assert len(squares(errand, jobs(*(Task(n, 0.2) for n in range(6))), size=8, need=DEVICES)) == 6
    held = errand.held()
    assert set(held) == {"/0", "/3"}, "each worker is told its own device"
    assert not any(map(overlaps, held.values()))


@pytest.mark.slow
def test_a_worker_that_is_killed_loses_no_job(tmp_path: Path) -> None:
    errand, killed = Notes(str(tmp_path)), threading.Event()

    def kill(hello: dict[str, Any]) -> None:
        if not killed.is_set():
            killed.set()
            threading.Timer(0.1, os.kill, (hello["pid"], signal.SIGKILL)).start()

    wanted = jobs(*(Task(n, 0.5) for n in range(5)))
    found = squares(errand, wanted, need=DEVICES, greet=kill)
    assert killed.is_set() and found == {f"job {n}": n * n for n in range(5)}


def test_a_device_that_hangs_is_given_up_and_its_job_goes_elsewhere(tmp_path: Path) -> None:
    hung = tmp_path / "hung"
    errand = Notes(str(tmp_path), silence=1.0)
    found = squares(errand, jobs(Task(0, hangs_once=str(hung)), *map(Task, range(1, 4))), need=DEVICES)
    assert found == {f"job {n}": n * n for n in range(4)}
    with pytest.raises(ProcessLookupError):
        os.kill(int(hung.read_text()), 0)


@pytest.mark.slow
def test_a_job_that_always_hangs_is_told_in_one_line(tmp_path: Path) -> None:
    errand = Notes(str(tmp_path), silence=0.5)
    with pytest.raises(InfraError, match=r"job 7 has cost 3 workers \(npu:\d: no sign of life for 0.5 s.*pool.md"):
        squares(errand, jobs(Task(7, hangs=True)), need=DEVICES)


def test_another_version_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = work.about()
    monkeypatch.setattr("pypto_op.pool.hands.about", lambda: {**here, "pypto": "9.9.9"})
    with pytest.raises(
        InfraError, match=rf"npu:\d of the pool has another version: pypto {here['pypto']} \(here 9.9.9\); install"
    ):
        squares(Notes(str(tmp_path)), jobs(Task(1)), need=DEVICES)


def test_a_worker_that_waits_for_its_host_holds_no_job(tmp_path: Path) -> None:
    class Waiting(Here):
        """A hand whose host never comes."""

        up = False

        def __init__(self, number: int, errand: Notes) -> None:
            super().__init__(number, errand)
            self.over = threading.Event()

        def start(self) -> None:
            self.over.wait()
            raise HandLost("it was ended")

        def end(self) -> None:
            self.over.set()

    errand = Notes(str(tmp_path))
    crew = Crew([Waiting(1, errand), Here(2, errand)], jobs(*map(Task, range(4))))
    assert sorted(value["square"] for _, value in crew.run()) == [0, 1, 4, 9]
    crew.stop()
    crew.join()


def test_closing_the_iterator_ends_what_is_under_way(tmp_path: Path) -> None:
    errand = Notes(str(tmp_path))
    done = Pool().run(errand, jobs(Task(0), Task(1, 3000.0), Task(2, 3000.0)), size=2, need=DEVICES)
    first = next(done)[1]
    begun = time.monotonic()
    done.close()
    assert first["square"] == 0 and (tmp_path / "stopped").exists()
    assert time.monotonic() - begun < 1000
    assert MOST_LOSSES > 1
