"""Killed at any instant, raced by eight processes, moved, truncated or forged: the state loses and doubles nothing."""

import json
import os
import shutil
import signal
import time
from contextlib import suppress

import pytest
from tests import program
from tests.state.conftest import needs_a_person
from tests.telling import told_lines

from pypto_op.errors import ContractError, InfraError, Refused
from pypto_op.proof.key import KEY_ENV
from pypto_op.state import audit, journal, service, store
from pypto_op.state.service import transition

KILLS = 1000


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
def test_a_thousand_kills_lose_nothing_and_double_nothing(planted):
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


# -- bad input --------------------------------------------------------------------------------------------


def cli(*words):
    done = program.with_commands("-c", "from pypto_op.cli import main; main()", "state", *words)
    assert "Traceback" not in done.stderr + done.stdout
    assert len(told_lines(done.stderr)) <= 1
    return done


def hostile_states(good):
    document = json.loads(good)
    yield "truncated", good[: len(good) // 2], "not valid JSON"
    yield "empty", b"", "not valid JSON"
    yield "not JSON", b"\x00\xff" * 50, "not valid JSON"
    yield "a list", b"[]", "not valid JSON"
    yield "huge", b" " * (9 << 20), "larger than"
    yield "deep", b'{"a":' * 100000, "not valid JSON"
    yield "duplicate keys", good.replace(b"{", b'{"run_id":"x",', 1), "occurs twice"
    yield "version 1", json.dumps({**document, "schema_version": "1.0"}).encode(), "'1.0' is not known"
    yield "version 9", json.dumps({**document, "schema_version": 9}).encode(), "9 is not known"
    yield "no version", b"{}", "None is not known"
    yield "predecessor", json.dumps({**document, "schema_version": "2.0"}).encode(), None


def test_hostile_state_files_are_refused_in_one_line_and_stay_as_they_are(planted):
    ws = planted(3)
    good = ws.state.read_bytes()
    for name, data, words in hostile_states(good):
        if words is None:
            continue
        ws.state.write_bytes(data)
        done = cli("fail_stage", "--op-dir", ws.root, "--stage", 3)
        assert done.returncode == 2, name
        assert words in done.stderr and str(ws.state) in done.stderr and ";" in done.stderr, (name, done.stderr)
        assert ws.state.read_bytes() == data, name


@pytest.mark.parametrize("name", ["../x", "a b", "x" * 300, ";rm -rf .", "Relu", "1relu", "relu\nx", "$(id)", "-h"])
def test_hostile_operator_names_are_refused(tmp_path, name):
    before = sorted(tmp_path.rglob("*"))
    done = cli("init", "--op-dir", f"{tmp_path}/custom/{name}")
    assert done.returncode == 2, done.stderr
    with suppress(OSError):
        (tmp_path / "custom" / name).mkdir(parents=True)
        done = cli("init", f"--op-dir={tmp_path}/custom/{name}")
        assert done.returncode == 2 or name == "../x", done.stderr
    if name != "../x":
        assert not list(tmp_path.rglob(".orchestrator_*")) and before == []


@pytest.mark.parametrize(
    "words",
    [
        ("bogus",),
        ("start_phase", "--phase", "M0"),
        ("start_phase", "--phase", "M3"),
        ("start_stage", "--stage", "1.9"),
        ("complete_stage",),
        ("start_phase", "--phase", "M1", "--stage", "5"),
        ("rollback_to_stage", "--target-stage", "2"),
        ("record_artifact_hash", "--name", "../../etc/passwd"),
        ("record_artifact_hash", "--name", "spec_md", "--hash", "0" * 64),
        ("dispatch", "--role", "root"),
        ("record_verdict", "--attempt", "M1.1", "--report", "/etc/passwd"),
    ],
)
def test_wrong_calls_are_refused_in_one_line_and_change_nothing(planted, words):
    ws = planted(5, n=3)
    before = {path: path.read_bytes() for path in ws.root.iterdir() if path.is_file()}
    done = cli(words[0], "--op-dir", ws.root, *words[1:])
    assert done.returncode == 2 and done.stdout == "", done
    line = "".join(told_lines(done.stderr))
    assert line.startswith("pypto-op: ") and ";" in line
    with_json = cli(words[0], "--op-dir", ws.root, "--json", *words[1:])
    answer = json.loads(with_json.stdout)
    assert with_json.returncode == 2 and answer["ok"] is False and answer["remedy"]
    after = {path: path.read_bytes() for path in ws.root.iterdir() if path.is_file()}
    assert {p: b for p, b in after.items() if p.name != store.LOCK_FILE} == {
        p: b for p, b in before.items() if p.name != store.LOCK_FILE
    }


def test_a_state_folder_that_cannot_be_written_is_the_machines_fault(planted):
    ws = planted(3)
    if os.geteuid() == 0:  # root writes everywhere: a directory in the place of the temporary file stops it too
        (ws.root / f"{ws.state.name}.tmp").mkdir()
    else:
        ws.root.chmod(0o500)
    done = cli("fail_stage", "--op-dir", ws.root, "--stage", 3)
    assert done.returncode == 3 and "cannot be" in done.stderr
    ws.root.chmod(0o700)


def test_the_journal_reads_a_tail_longer_than_its_window(planted):
    ws = planted(3)
    for _ in range(4):
        transition(ws.root, "fail_stage", stage=3, reason="y" * 1999)
        transition(ws.root, "start_stage", stage=3)
    tail = journal.read_tail(ws.journal)
    assert tail.seq == len(lines(ws)) and tail.end == ws.journal.stat().st_size


@pytest.mark.parametrize("words", [("fail_stage", "--stage", 3), ("audit",)])
def test_a_journal_that_cannot_be_read_is_the_users_to_mend(planted, words):
    """Root reads every file; a link to itself nobody reads."""
    ws = planted(3)
    ws.journal.unlink()
    ws.journal.symlink_to(ws.journal.name)
    done = cli(words[0], "--op-dir", ws.root, *words[1:])
    assert done.returncode == 2 and "cannot be read" in done.stderr + done.stdout
