"""`--runner`: the pinned clients lead, the state decides. What they may do themselves is shown in `tests/clients`."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from typing import Any

import psutil
import pytest
from tests.calling import command
from tests.clients.installed import claude_environment, needs
from tests.clients.test_bundle import run_install
from tests.hooks.scripted_model import scripted_model
from tests.runner.running import KEY, Running
from tests.runner.test_view import needs_name_spaces

from pypto_op.proof.key import KEY_ENV
from pypto_op.runner import journal
from pypto_op_lint.concerns import HIDDEN_ENV

BASH = {"command": "pypto-op state status --op-dir custom/none || echo looked", "description": "x"}


@pytest.mark.slow
def test_a_client_that_is_not_set_up_is_told_so(running: Running) -> None:
    running.patch.setenv("PATH", "/usr/bin:/bin")
    done = running.call("x", "--runner", "claude")
    assert done.code == 3 and "Claude Code is not installed" in done.stderr
    assert running.call("--runner", "claude", "--replay", "t.yaml").code == 2


CLIENT = """#!/bin/sh
echo $* >> "$CALLS"
echo '{"type": "text", "sessionID": "s1", "part": {"text": "I work."}}'
[ "$(wc -l < "$CALLS")" -gt "$ENDS" ] || kill -9 $$
"""


@pytest.mark.parametrize("ends", [1, 99])
@pytest.mark.slow
def test_a_client_that_something_ends_is_begun_again(running: Running, ends: int) -> None:
    """It goes on with its session; one that is ended again and again ends the run, which can be gone on with."""
    programs, calls = running.workspace.parent / "bin", running.workspace.parent / "calls"
    programs.mkdir()
    (programs / "opencode").write_text(CLIENT)
    (programs / "opencode").chmod(0o755)
    for name, value in {"CALLS": str(calls), "ENDS": str(ends), "PATH": f"{programs}:/usr/bin:/bin"}.items():
        running.patch.setenv(name, value)
    assert command("install", "--harness", "opencode", "--target", running.workspace).code == 0
    done = running.call("an operator", "--runner", "opencode", "--json")
    summary = json.loads(done.stdout)
    begun = [line for line in calls.read_text().splitlines() if line.startswith("run ")]
    assert done.code == 1 and summary["goes_on"] == "pypto-op run --resume --runner opencode", done
    assert "an operator" in begun[0] and "Something ended the client" in begun[1] and "--session s1" in begun[1], begun
    ended = [line["signal"] for line in running.lines if line["kind"] == "client_ended"]
    if ends == 1:
        assert ended == [9] and len(begun) == 4 and "the orchestrator ended" in summary["why"], (begun, summary)
        return
    assert ended == [9, 9, 9] and len(begun) == 3 and "opencode was ended by a signal 3 times" in summary["why"], (begun, summary)
    evaluated = command("eval", "--runner", "opencode", "--requests", "swiglu", "--mutants", 0, "--out", programs.parent / "out")
    (row,) = json.loads((programs.parent / "out" / "result.json").read_text())["trials"]
    assert evaluated.code == 0 and not row["void"] and not row["solved"] and row["breaches"]["broken"] == 1, (evaluated, row)
    assert "ended by a signal 3 times" in row["why"]


TROUBLED = """#!/bin/sh
[ "$1" = --version ] && exit 0
echo "$EVENT"
[ -z "$WAITS" ] || sleep 60
exit 1
"""
_OPENCODE = {"type": "error", "sessionID": "s1", "error": {"name": "APIError", "data": {"message": "no such", "statusCode": 404}}}
_CLAUDE = {"type": "result", "is_error": True, "api_error_status": 404, "result": "no such"}
_RETRY = {"type": "system", "subtype": "api_retry", "error_status": 401, "error": "no such", "retry_delay_ms": 30000.0}
_OTHER = {"type": "error", "sessionID": "s1", "error": {"name": "UnknownError", "data": {"message": "no such"}}}


@pytest.mark.parametrize(
    ("client", "event", "code", "said"),
    [
        ("opencode", _OPENCODE, 2, "the service refuses the request (404: no such)"),
        ("claude", _CLAUDE, 2, "the service refuses the request (404: no such)"),
        ("claude", _RETRY, 3, "the service refuses the key (no such)"),
        ("opencode", _OTHER, 3, "opencode ended with exit code 1: no such"),
    ],
)
def test_what_the_service_tells_a_client_ends_the_run_as_without_it(
    running: Running, client: str, event: dict[str, Any], code: int, said: str
) -> None:
    """A client asks again for minutes where the key is wrong, and says why in an event: the run says it, and at once."""
    programs = running.workspace.parent / "bin"
    programs.mkdir()
    (programs / client).write_text(TROUBLED)
    (programs / client).chmod(0o755)
    waits = "1" if event is _RETRY else ""
    for name, value in {"EVENT": json.dumps(event), "WAITS": waits, "PATH": f"{programs}:/usr/bin:/bin"}.items():
        running.patch.setenv(name, value)
    assert command("install", "--harness", client, "--target", running.workspace, "--files-only").code == 0
    began = time.monotonic()
    done = running.call("an operator", "--runner", client)
    assert done.code == code and said in done.stderr.splitlines()[-1], done
    assert time.monotonic() - began < 45


@needs_name_spaces
def test_a_client_does_not_see_the_runs_nor_what_an_evaluation_hides(running: Running) -> None:
    """What its agents start reads no transcript and no hidden golden, as it is with this program's own."""
    programs, saw = running.workspace.parent / "bin", running.workspace / "saw"
    hidden, runs = running.workspace.parent / "hidden", journal.sessions_folder(running.workspace).parent
    for folder in (programs, hidden):
        folder.mkdir()
    (hidden / "golden.py").write_text("Hidden golden")
    (programs / "opencode").write_text(f"#!/bin/sh\n{{ echo begun; ls {hidden} {runs}; }} >> {saw} 2>&1\n")
    (programs / "opencode").chmod(0o755)
    running.patch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    running.patch.setenv(HIDDEN_ENV, str(hidden))
    assert command("install", "--harness", "opencode", "--target", running.workspace).code == 0
    saw.unlink(missing_ok=True)  # the installation asks for the version
    assert running.call("an operator", "--runner", "opencode").code == 1
    assert any(runs.iterdir()), "it is there"
    assert {*saw.read_text().split()} == {"begun", f"{hidden}:", f"{runs}:"}


@pytest.mark.client
@pytest.mark.slow
def test_a_client_leads_and_the_state_decides(running: Running) -> None:
    """OpenCode leads in `tests/evals/test_replay.py`, where its run is graded too."""
    needs("claude")
    steps = [{"text": "I look.", "tools": [{"name": "Bash", "input": BASH}]}, {"text": "All is done."}]
    home = running.workspace.parent / "home"
    with scripted_model({"main": steps}) as model:
        environment = claude_environment({"PATH": "/usr/bin:/bin", "HOME": str(home), "LANG": "C.UTF-8"}, model.port)
        for name, value in environment.items():
            running.patch.setenv(name, value)
        run_install(running.workspace, "claude", env=environment)
        done = running.call("an operator", "--runner", "claude", "--json")
    assert done.stdout, done
    summary: dict[str, Any] = json.loads(done.stdout)
    assert done.code == 1 and "no operator was begun" in summary["why"], (done, summary)
    assert summary["requests"] >= 2 and KEY not in json.dumps(running.lines)
    calls = json.dumps([line["event"] for line in running.lines if line["kind"] == "client"])
    assert "looked" in calls, "the call and its result are in the transcript"
    told = json.dumps([body["messages"] for body in model.requests])
    assert "Only its records count" in told, "words of success did not end the run"


@pytest.mark.client
@pytest.mark.slow
def test_a_client_dies_with_a_run_that_is_killed(running: Running) -> None:
    """Else it would go on spending, and nobody would look."""
    needs("claude")
    home = running.workspace.parent / "home"
    steps = [{"text": "I wait.", "tools": [{"name": "Bash", "input": {"command": "sleep 619", "description": "x"}}]}]
    with scripted_model({"main": steps}) as model:
        base = {"PATH": "/usr/bin:/bin", "HOME": str(home), "LANG": "C.UTF-8", KEY_ENV: os.environ[KEY_ENV]}
        environment = claude_environment(base, model.port)
        run_install(running.workspace, "claude", env=environment)
        words = [sys.executable, "-m", "pypto_op.cli", "run", "an operator", "--runner", "claude"]
        child = subprocess.Popen(words, cwd=running.workspace, env=environment, stdout=subprocess.DEVNULL, start_new_session=True)
        below: list[psutil.Process] = []
        while not any("sleep" in _words_of(process) for process in below):
            time.sleep(0.1)
            assert child.poll() is None
            below = psutil.Process(child.pid).children(recursive=True)
        client = [process for process in below if "-p" in _words_of(process)]
        assert client
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        gone, alive = psutil.wait_procs(client, timeout=120)
    for process in below:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    assert gone and not alive


def _words_of(process: psutil.Process) -> list[str]:
    try:
        return list(process.cmdline())
    except psutil.Error:
        return []
