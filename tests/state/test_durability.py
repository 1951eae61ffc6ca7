"""Killed at any instant, raced by eight processes, moved, truncated or forged: the state loses and doubles nothing."""

import json
import os
import shutil
import signal
import time

import pytest
from tests import program, quickly
from tests.state.conftest import needs_a_person

from pypto_op.errors import ContractError, InfraError, Refused
from pypto_op.proof.key import KEY_ENV
from pypto_op.state import audit, service, store
from pypto_op.state.service import transition

KILLS = 1000 if quickly.EVERYTHING else 100
"""At random instants; that each system call may be the last one is tried beside, one by one."""


def lines(ws):
    return [json.loads(line) for line in ws.journal.read_text().splitlines()]


def child(work):
    """Run `work` in a forked process; it never returns here in the child."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        work()
        code = 0
    except (ContractError, InfraError):
        code = 2
    finally:
        os._exit(code)


# -- kill -9 ----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_kills_at_random_instants_lose_nothing_and_double_nothing(planted):
    ws = planted(4, n=2)
    done = program.with_commands("-m", "tests.state.killing", ws.root, KILLS, cwd=program.ROOT)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > KILLS / 10, "the kills met working processes"
    with store.locked(ws):
        store.load(ws)
    transition(ws.root, "dispatch", role="verifier")
    assert audit.audit(ws.root)["ok"]
    assert sorted(p.name for p in ws.root.glob(".orchestrator*tmp*")) in ([], [".orchestrator_state.json.tmp"])


CALLS = ["os.write", "os.fsync", "os.ftruncate", "pathlib.Path.replace", "pathlib.Path.unlink"]


def at_every_call(action, path_type, reset):
    """Yield after killing a process that carries out `action` before its 1st, 2nd, ... system call of a kind."""
    for name in CALLS:
        module, attribute = name.rsplit(".", 1)
        owner = {"os": os, "pathlib.Path": path_type}[module]
        real = getattr(owner, attribute)
        for countdown in range(1, 20):
            seen = 0

            def fatal(*args, _real=real, _stop=countdown, _name=name, **kwargs):
                nonlocal seen
                seen += 1
                if seen == _stop:
                    if _name == "os.write":  # half of it reaches the disk
                        _real(args[0], args[1][: len(args[1]) // 2])
                    os.kill(os.getpid(), signal.SIGKILL)
                return _real(*args, **kwargs)

            def work(_owner=owner, _attribute=attribute, _fatal=fatal):
                setattr(_owner, _attribute, _fatal)
                action()

            reset()
            _, status = os.waitpid(child(work), 0)
            if os.WIFEXITED(status):
                break  # the action makes fewer calls of this kind
            yield name, countdown


@pytest.mark.slow
def test_killed_before_and_within_every_system_call_the_step_is_whole_or_absent(planted, tmp_path):
    fresh = planted(4, n=2)
    copy = tmp_path / "copy"
    shutil.copytree(fresh.root, copy)
    before = store.load(fresh).state
    kinds = set()

    def act():
        transition(fresh.root, "fail_stage", stage=4, reason="x")

    for kind, _ in at_every_call(act, type(fresh.root), lambda: start_again(fresh, copy)):
        kinds.add(kind)
        state = store.load(fresh).state
        assert state["stage_retry_count"]["4"] in (0, 1)
        assert (state["stage_status"]["4"], state["stage_retry_count"]["4"]) in (("in_progress", 0), ("failed", 1))
        if state["stage_retry_count"]["4"] == 0:
            assert state == before
            act()
        with pytest.raises(Refused):
            act()
        assert audit.audit(fresh.root)["ok"]
        assert store.load(fresh).state["stage_retry_count"]["4"] == 1
    assert kinds == set(CALLS)


def start_again(ws, copy):
    """Put the operator back to the copy, as a person would who knows that the account remembers the run."""
    for path in (ws.state, ws.journal):
        shutil.copyfile(copy / path.name, path)
    for anchor in store.key_file().parent.glob("runs/*"):
        anchor.unlink()


def test_a_torn_last_line_is_dropped_by_the_next_step(planted):
    ws = planted(2)
    count = len(lines(ws))
    with ws.journal.open("ab") as file:
        file.write(b'{"mac":"0123')
    transition(ws.root, "fail_stage", stage=2)
    assert [line["seq"] for line in lines(ws)] == list(range(1, count + 2))


def test_a_state_file_that_is_behind_or_gone_is_rolled_forward(planted):
    ws = planted(3)
    old = ws.state.read_bytes()
    transition(ws.root, "fail_stage", stage=3, reason="x")
    new = store.load(ws).state
    ws.state.write_bytes(old)
    assert service.status(ws.root)["stage_status"]["3"] == "failed"
    assert ws.state.read_bytes() == old, "looking writes nothing"
    ws.state.unlink()
    assert store.load(ws).state == new
    transition(ws.root, "start_stage", stage=3)
    assert json.loads(ws.state.read_text())["stage_status"]["3"] == "in_progress"


# -- races ------------------------------------------------------------------------------------------------


def race(count, work):
    """Start `count` processes at the same instant; return how many succeeded, were refused, and failed."""
    start = time.monotonic() + 0.2

    def wait_and_work(number):
        time.sleep(max(0.0, start - time.monotonic()))
        work(number)

    pids = [child(lambda number=number: wait_and_work(number)) for number in range(count)]
    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
    return codes.count(0), codes.count(2), count - codes.count(0) - codes.count(2)


@pytest.mark.slow
def test_of_eight_that_take_the_same_step_one_succeeds(planted):
    ws = planted(5, n=2)
    for _ in range(5):
        before = len(lines(ws))
        assert race(8, lambda _: transition(ws.root, "start_phase", phase="M1")) == (1, 7, 0)
        assert len(lines(ws)) == before + 1
        transition(ws.root, "reopen_phase", phase="M1", reason="again")


def test_eight_at_once_count_a_failure_once(planted):
    ws = planted(3)
    assert race(8, lambda _: transition(ws.root, "fail_stage", stage=3, reason="x")) == (1, 7, 0)
    assert store.load(ws).state["stage_retry_count"]["3"] == 1


@pytest.mark.slow
def test_eight_that_take_different_steps_all_succeed_and_none_is_lost(planted):
    ws = planted(3)
    before = len(lines(ws))

    def work(number):
        for _ in range(10):
            transition(ws.root, "dispatch", role="architect")

    assert race(8, work) == (8, 0, 0)
    assert len(lines(ws)) == before + 80
    assert audit.audit(ws.root)["ok"]


@pytest.mark.slow
def test_readers_never_see_a_half_written_state(planted):
    ws = planted(3)
    writer = child(lambda: [transition(ws.root, "dispatch", role="architect") for _ in range(150)])
    seen = set()
    done = 0
    while not done:
        seen.add(service.status(ws.root)["sequence"])
        done, status = os.waitpid(writer, os.WNOHANG)
    assert status == 0 and len(seen) > 1


def test_eight_first_steps_make_one_state(tmp_path):
    root = tmp_path / "custom" / "relu"
    root.mkdir(parents=True)
    assert race(8, lambda _: transition(root, "init")) == (1, 7, 0)


def test_a_lock_that_is_kept_ends_in_one_line(planted):
    ws = planted(1)
    with store.locked(ws), pytest.raises(InfraError, match="another process holds the lock"), store.locked(ws, seconds=0.05):
        pass


# -- forged, moved, set back ------------------------------------------------------------------------------


def test_a_state_file_changed_by_hand_is_refused_and_replay_repairs_it(planted):
    ws = planted(3)
    good = ws.state.read_bytes()
    document = json.loads(good)
    document["stage_status"]["3"] = "completed"
    document["current_stage"] = 4
    ws.state.write_text(json.dumps(document))
    changed = ws.state.read_bytes()
    with pytest.raises(ContractError, match="changed by hand") as caught:
        transition(ws.root, "fail_stage", stage=4)
    assert "replay" in str(caught.value) and ws.state.read_bytes() == changed
    assert audit.replay(ws.root)["rewritten"]
    assert ws.state.read_bytes() == good
    assert not audit.replay(ws.root)["rewritten"]


@pytest.mark.parametrize("how", ["change", "drop", "swap", "add", "truncate", "empty", "reseal"])
def test_a_journal_changed_by_hand_is_refused(planted, how):
    ws = planted(5, n=2)
    transition(ws.root, "start_phase", phase="M1")
    rows = ws.journal.read_bytes().splitlines(keepends=True)
    if how == "change":
        rows[2] = rows[2].replace(b'"stage":2', b'"stage":3')
    elif how == "drop":
        del rows[2]
    elif how == "swap":
        rows[2], rows[3] = rows[3], rows[2]
    elif how == "add":
        rows.append(rows[-1])
    elif how == "truncate":
        del rows[-1]
    elif how == "empty":
        rows = []
    elif how == "reseal":
        rows[-1] = rows[-1].replace(b'"mac":"', b'"mac":"' + b"0" * 64, 1)[: len(rows[-1]) - 1] + b"\n"
    ws.journal.write_bytes(b"".join(rows))
    kept = ws.state.read_bytes()
    report = audit.audit(ws.root)
    assert not report["ok"] and report["problems"][0].count("\n") == 0
    ws.state.unlink()
    with pytest.raises(ContractError):
        audit.replay(ws.root)
        transition(ws.root, "submit_for_verify", phase="M1")
        raise AssertionError("neither refused")
    ws.state.write_bytes(kept)


def test_a_state_that_was_set_back_is_noticed(planted):
    ws = planted(3)
    old = {path: path.read_bytes() for path in (ws.state, ws.journal)}
    transition(ws.root, "fail_stage", stage=3, reason="x")
    for path, data in old.items():
        path.write_bytes(data)
    with pytest.raises(ContractError, match="set back"):
        transition(ws.root, "fail_stage", stage=3, reason="x")
    assert ws.state.read_bytes() == old[ws.state]


def test_a_state_copied_from_another_operator_is_refused(planted, tmp_path):
    done, other = planted(7, name="done"), tmp_path / "custom" / "fresh"
    other.mkdir()
    for path in (done.state, done.journal, done.plan):
        shutil.copyfile(path, other / path.name)
    with pytest.raises(ContractError, match="belongs to the operator 'done'; name the folder done again"):
        service.status(other)
    (other / done.state.name).unlink()
    with pytest.raises(ContractError, match="belongs to the operator 'done'"):
        service.status(other)


@needs_a_person
def test_another_key_does_not_open_the_state_and_a_person_can_adopt_it(planted, monkeypatch, tmp_path):
    ws = planted(5, n=2)
    monkeypatch.setenv(KEY_ENV, str(tmp_path / "other.key"))
    with pytest.raises(ContractError, match="adopt"):
        transition(ws.root, "start_phase", phase="M1")
    with pytest.raises(Refused, match="only a person"):
        transition(ws.root, "adopt", reason="moved to the device host")
    transition(ws.root, "adopt", reason="moved to the device host", person=True)
    transition(ws.root, "start_phase", phase="M1")
    report = audit.audit(ws.root)
    assert report["ok"] and 0 < report["foreign_lines"] < report["lines"]


def test_the_plan_file_is_a_copy_that_nobody_else_writes(planted):
    ws = planted(5, n=2)
    plan = json.loads(ws.plan.read_text())
    plan["module_count"] = 1
    ws.plan.write_text(json.dumps(plan))
    with pytest.raises(Refused, match="since freeze_plan"):
        transition(ws.root, "start_phase", phase="M1")
    audit.replay(ws.root)
    assert json.loads(ws.plan.read_text())["module_count"] == 2
    transition(ws.root, "start_phase", phase="M1")
