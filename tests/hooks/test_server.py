"""The resident server: who may reach it, when it goes, and that no answer depends on it."""

from __future__ import annotations

import concurrent.futures
import contextlib
import json
import os
import shutil
import signal
import socket
import stat
import statistics
import subprocess
import time
from pathlib import Path

import pytest
from tests.hooks.conftest import BAD_IMPL, GOOD_IMPL, ROOT, Harness, make_workspace

OP = "custom/soft"


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat")
    return not state.exists() or state.read_text().rpartition(")")[2].split()[0] != "Z"


def _gone(pid: int, seconds: float = 60) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if not _alive(pid):
            return True
        time.sleep(0.05)
    return False


def test_the_first_hook_starts_one_server_and_the_next_ones_use_it(harness: Harness) -> None:
    harness.write(f"{OP}/soft_impl.py", BAD_IMPL)
    pid = harness.await_server()
    assert "OL01" in harness.write(f"{OP}/soft_impl.py", BAD_IMPL).blocked
    assert harness.server_pid == pid
    assert _alive(pid)


@pytest.mark.slow
def test_no_answer_pays_for_the_garbage_of_others(harness: Harness) -> None:
    harness.write(f"{OP}/soft_impl.py", GOOD_IMPL)
    harness.await_server()
    for count in range(24):
        harness.write(f"{OP}/soft_impl.py", GOOD_IMPL + f"\n\nEDIT = {count}\n")
    rows = (harness.run_dir / "events.jsonl").read_text().splitlines()[2:]
    costs = [json.loads(row)["cpu_milliseconds"] for row in rows]
    assert max(costs) < 2 * statistics.median(costs), costs


def test_socket_and_folder_belong_to_the_owner_alone(harness: Harness) -> None:
    harness.before("Bash", command="true")
    harness.await_server()
    assert stat.S_IMODE(harness.run_dir.stat().st_mode) == 0o700
    for name in ("server.sock", "server.log", "server.pid", "index.json", "events.jsonl", "server.lock"):
        assert stat.S_IMODE((harness.run_dir / name).stat().st_mode) & 0o077 == 0, name


def test_a_folder_that_others_can_enter_is_closed_and_a_foreign_one_not_used(harness: Harness) -> None:
    harness.before("Bash", command="true")
    harness.stop_servers()
    folder = harness.run_dir
    folder.chmod(0o777)
    harness.before("Bash", command="true")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    harness.stop_servers()
    elsewhere = folder.with_name("elsewhere")
    folder.rename(elsewhere)
    folder.symlink_to(elsewhere)
    assert "OL01" in harness.write(f"{OP}/soft_impl.py", BAD_IMPL).blocked


def test_the_server_holds_nothing_of_the_harness(harness: Harness) -> None:
    harness.before("Bash", command="true")
    pid = harness.await_server()
    targets = set()
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed while we look: the server is loading the linter
            targets.add(str(descriptor.readlink()))
    assert not any(target.startswith("pipe:") for target in targets), targets
    assert os.getsid(pid) != os.getsid(0)
    environment = Path(f"/proc/{pid}/environ").read_text()
    assert "CLAUDE" not in environment


def test_a_killed_server_costs_no_answer(harness: Harness) -> None:
    harness.before("Bash", command="true")
    pid = harness.await_server()
    os.kill(pid, signal.SIGKILL)
    assert "OL01" in harness.write(f"{OP}/soft_impl.py", BAD_IMPL).blocked
    assert harness.await_server() != pid


def test_a_server_killed_in_mid_request_costs_no_answer(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in takes the question and dies without an answer, as a crashed server does."""
    harness.before("Bash", command="true")
    harness.await_server()
    harness.stop_servers()
    (harness.run_dir / "server.sock").unlink()
    listener = socket.socket(socket.AF_UNIX)
    monkeypatch.chdir(harness.run_dir)  # a socket's path may not be long
    listener.bind("server.sock")
    listener.listen(1)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        answer = pool.submit(harness.write, f"{OP}/soft_impl.py", BAD_IMPL)
        connection, _ = listener.accept()
        assert connection.recv(100)
        connection.close()
        assert "OL01" in answer.result().blocked
    listener.close()


def test_a_server_that_hangs_ends_in_a_clear_answer(harness: Harness) -> None:
    harness.before("Bash", command="true")
    pid = harness.await_server()
    os.kill(pid, signal.SIGSTOP)
    event = {"hook_event_name": "PostToolUse", "tool_name": "Write", "tool_input": {"file_path": f"{OP}/soft_impl.py"}}
    answer = harness.raw("post", json.dumps(event).encode(), PYPTO_OP_HOOK_SECONDS="1")
    assert "did not end in time" in answer.blocked
    os.kill(pid, signal.SIGKILL)


@pytest.mark.slow
def test_many_clients_at_once_share_one_server(harness: Harness) -> None:
    (harness.workspace / OP / "soft_impl.py").write_text(BAD_IMPL)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: harness.after("Write", file_path=f"{OP}/soft_impl.py").blocked, range(16)))
    assert all("OL01" in answer for answer in answers)
    pid = harness.await_server()
    listing = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True).stdout
    running = [line for line in listing.splitlines() if "pypto_op_lint.server" in line and str(harness.workspace) in line]
    assert len(running) <= 1 or _gone(int(next(r.split()[0] for r in running if int(r.split()[0]) != pid)))


def test_an_idle_server_goes(harness: Harness) -> None:
    harness.env["PYPTO_OP_SERVER_IDLE"] = "0.3"
    harness.before("Bash", command="true")
    time.sleep(0.1)
    pid_file = harness.run_dir / "server.pid"
    assert _gone(int(pid_file.read_text()))
    assert not (harness.run_dir / "server.sock").exists()


def test_a_server_whose_socket_is_gone_goes_too(harness: Harness) -> None:
    harness.env["PYPTO_OP_SERVER_IDLE"] = "2"
    harness.before("Bash", command="true")
    pid = harness.await_server()
    (harness.run_dir / "server.sock").unlink()
    assert _gone(pid)


def test_a_server_whose_workspace_is_gone_goes_too(harness: Harness) -> None:
    """Such as that of an evaluation's trial, on whose machine the next trial begins at once."""
    harness.env["PYPTO_OP_SERVER_IDLE"] = "3600"
    harness.before("Bash", command="true")
    pid = harness.await_server()
    harness.workspace.rename(harness.workspace.with_name("elsewhere"))
    assert _gone(pid)


def test_no_resident_server_where_none_is_wanted(harness: Harness) -> None:
    harness.env["PYPTO_OP_NO_SERVER"] = "1"
    assert "OL01" in harness.write(f"{OP}/soft_impl.py", BAD_IMPL).blocked
    assert not (harness.run_dir / "server.sock").exists()


def test_an_unwritable_home_costs_no_answer(harness: Harness, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    harness.env["XDG_CACHE_HOME"] = str(blocked)
    assert "OL01" in harness.write(f"{OP}/soft_impl.py", BAD_IMPL).blocked


def test_a_workspace_with_a_long_name_has_a_server_too(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 100) / ("e" * 100)
    deep.mkdir(parents=True)
    harness = Harness(make_workspace(deep, None), deep / "cache")
    harness.cache.mkdir()
    harness.before("Bash", command="true")
    harness.await_server()
    harness.stop_servers()


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """A copy of the bundle's code that a test may change."""
    made = tmp_path / "bundle"
    for room in ("hooks", "lint", "scripts"):
        shutil.copytree(ROOT / room, made / room, ignore=shutil.ignore_patterns("__pycache__"))
    (made / ".venv").symlink_to(ROOT / ".venv")
    return made


def _post(bundle: Path, harness: Harness) -> str:
    event = {
        "hook_event_name": "PostToolUse",
        "tool_name": "Write",
        "tool_input": {"file_path": str(harness.workspace / OP / "soft_impl.py")},
    }
    done = subprocess.run(
        ["sh", str(bundle / "hooks/hook.sh"), "post"], input=json.dumps(event).encode(), capture_output=True,
        env=harness.environment(), check=True,
    )  # fmt: skip
    return done.stdout.decode()


def test_changed_code_restarts_the_server(harness: Harness, bundle: Path) -> None:
    (harness.workspace / OP / "soft_impl.py").write_text(BAD_IMPL)
    assert "Repair the same file" in _post(bundle, harness)
    pid = harness.await_server()
    api = bundle / "lint/pypto_op_lint/api.py"
    api.write_text(api.read_text().replace("Repair the same file", "Mend this very file"))
    assert "Mend this very file" in _post(bundle, harness)
    assert _gone(pid)
    (bundle / "lint/pypto_op_lint/zz_new.py").write_text('"""A file that was added."""\n')
    pid = harness.await_server()
    assert "Mend" in _post(bundle, harness)
    assert _gone(pid)


def test_a_fault_inside_the_linter_is_told_without_a_traceback(harness: Harness, bundle: Path) -> None:
    api = bundle / "lint/pypto_op_lint/api.py"
    api.write_text(api.read_text().replace("def lint_path(", "def lint_path(*a, **k):\n    1 / 0\n\n\ndef _old(", 1))
    answer = json.loads(_post(bundle, harness))
    assert "ZeroDivisionError" in answer["reason"]
    assert "Traceback" not in answer["reason"]
    assert "Traceback" in (harness.run_dir / "server.log").read_text(), "the person who mends it finds the trace"
