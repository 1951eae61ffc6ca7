"""Damaged state files, hostile names and wrong calls: each is refused in one line, and nothing changes."""

import json
import os
from contextlib import suppress

import pytest
from tests import program
from tests.telling import told_lines

from pypto_op.state import journal, store
from pypto_op.state.service import transition


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
    assert tail.seq == len(ws.journal.read_text().splitlines()) and tail.end == ws.journal.stat().st_size


@pytest.mark.parametrize("words", [("fail_stage", "--stage", 3), ("audit",)])
def test_a_journal_that_cannot_be_read_is_the_users_to_mend(planted, words):
    """Root reads every file; a link to itself nobody reads."""
    ws = planted(3)
    ws.journal.unlink()
    ws.journal.symlink_to(ws.journal.name)
    done = cli(words[0], "--op-dir", ws.root, *words[1:])
    assert done.returncode == 2 and "cannot be read" in done.stderr + done.stdout
