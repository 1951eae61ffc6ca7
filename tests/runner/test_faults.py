"""What goes wrong around a run: each fault has one outcome, one exit code and one line, and is no verdict."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from collections.abc import Mapping

import psutil
import pytest
from tests.calling import command
from tests.program import with_commands
from tests.runner.running import KEY, Running, calls, says, trouble
from tests.telling import told_lines

from pypto_op.runner import journal
from pypto_op.runner.loopback import Answer, Body, served

SLEEPS = "pypto_op.runner.service.time.sleep"


def bash(words: str) -> Answer:
    return calls(("Bash", {"command": words}))


def test_no_key(running: Running) -> None:
    done = running.run([says("hello")], key="")
    assert done.code == 3 and "ANTHROPIC_API_KEY" in done.stderr and not running.bodies


def test_a_key_with_a_line_break_is_not_shown(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", f"{KEY}\n")
    done = running.run([says("hello")])
    assert done.code == 3 and "line break" in done.stderr and KEY not in done.stdout + done.stderr and not running.bodies


def test_a_wrong_key_ends_at_once(running: Running) -> None:
    done = running.run([trouble(401, f"invalid x-api-key {KEY}")])
    assert done.code == 3 and "refuses the key" in done.stderr and len(running.bodies) == 1


def test_a_model_that_is_not_there(running: Running) -> None:
    done = running.run([trouble(404, "model: nosuch")], "--model", "nosuch")
    assert done.code == 2 and "model: nosuch" in done.stderr and len(running.bodies) == 1
    assert f"the service at {os.environ['ANTHROPIC_BASE_URL']} refuses" in done.stderr


@pytest.mark.parametrize("status", [429, 529, 500])
@pytest.mark.slow
def test_trouble_that_passes_is_waited_for(running: Running, status: int) -> None:
    busy = trouble(status, "later", retry_after="0")
    done = running.run([busy, busy, bash("echo here"), says("done")])
    assert done.code == 1 and "here" in running.told(3) and "later; next try in 0 s" in done.stdout


def test_trouble_that_stays_ends_the_run(running: Running) -> None:
    done = running.run([trouble(529, "Overloaded", retry_after="0")])
    assert done.code == 3 and "6 times in a row (Overloaded)" in done.stderr and "--resume" in done.stderr


def unused_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.mark.parametrize("host", ["127.0.0.1:{}", "no-such-host.invalid"])
def test_an_address_where_nobody_is_is_told_at_once(running: Running, monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    """Nothing listens, or the name is nobody's: waiting mends neither, and the line names the address."""
    place = host.format(unused_port())
    monkeypatch.setenv("ANTHROPIC_BASE_URL", f"http://me:hidden@{place}")
    monkeypatch.setattr(SLEEPS, lambda seconds: pytest.fail("it waits"))
    done = running.call("an operator")
    last = done.stderr.strip().splitlines()[-1]
    assert done.code == 3 and f"http://{place}" in last and "ANTHROPIC_BASE_URL" in last, done.stderr
    assert "Traceback" not in done.stderr and "hidden" not in done.stdout + done.stderr


def test_a_service_that_answered_before_may_start_again(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    import httpx2

    waits: list[float] = []
    monkeypatch.setattr(SLEEPS, waits.append)

    def refused(*_: object, **__: object) -> None:
        raise httpx2.ConnectError("refused") from ConnectionRefusedError(111, "Connection refused")

    def say(number: int, body: Body, headers: Mapping[str, str]) -> Answer:
        monkeypatch.setattr(httpx2.HTTPTransport, "handle_request", refused)
        return says("I look.")

    done = running.run(say)
    last = done.stderr.strip().splitlines()[-1]
    waits = [seconds for seconds in waits if seconds > 0.1]  # who looks whether a process has ended sleeps too
    assert done.code == 3 and "6 times in a row (http://127.0.0.1:" in last, done.stderr
    assert len(waits) == 5 and waits == sorted(waits) and sum(waits) > 20, waits


@pytest.mark.parametrize(
    "url",
    ["nohost", "http://a b/", "http://x:99999", "http://x:abc", "ftp://x", "http://", "//x", "http://[::1", "  ", "http://x:0"],
)
def test_what_is_no_address_is_refused_before_anything_begins(running: Running, url: str) -> None:
    running.patch.setenv("ANTHROPIC_BASE_URL", url)
    running.patch.setenv("ANTHROPIC_API_KEY", KEY)
    for done in (running.call("an operator"), command("eval", "--near-misses"), command("eval", "--out", "out")):
        assert done.code == 2 and done.stderr.startswith("pypto-op: ANTHROPIC_BASE_URL is no address"), done.stderr
        assert len(told_lines(done.stderr)) == 1
    assert not list(running.workspace.glob("out")) and not list(journal.sessions_folder(running.workspace).glob("2*"))


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_takes_the_key_nowhere_else(running: Running, status: int) -> None:
    """The other address is asked for nothing at all; its name stands in the one line."""
    seen: list[Body] = []

    def other(body: Body, headers: Mapping[str, str]) -> Answer:
        seen.append(body)
        return says("done")

    with served(other) as port:
        moved = f"http://localhost:{port}"
        done = running.run([trouble(status, "moved", location=f"{moved}/v1/messages?beta=true")])
    assert done.code == 3 and f"redirects to {moved}" in done.stderr and not seen, done.stderr
    assert len(told_lines(done.stderr)) == 1 and len(running.bodies) == 1


def test_a_redirect_within_the_service_is_followed(running: Running) -> None:
    def say(number: int, body: Body, headers: Mapping[str, str]) -> Answer:
        return trouble(307, "moved", location="/v1/elsewhere") if number == 0 else says("done")

    done = running.run(say)
    assert done.code == 1 and "no operator was begun" in done.stderr and len(running.bodies) > 1


def test_the_wait_is_what_the_service_asks_for(running: Running) -> None:
    waits: list[float] = []
    running.patch.setattr(SLEEPS, waits.append)
    running.run([trouble(429, retry_after="17"), trouble(529), trouble(529), says("done")])
    assert waits[0] == 17 and 0.5 < waits[1] < waits[2] * 1.5


def test_an_unknown_tool_and_one_of_another_agent(running: Running) -> None:
    verify = "mcp__plugin_pypto-op_pypto-op__verify"
    done = running.run([calls(("Teleport", {}), (verify, {"op_dir": "custom/x"})), says("done")])
    assert done.code == 1 and "There is no tool 'Teleport'. You have Read, Grep" in running.told(1)
    assert f"There is no tool '{verify}'" in running.told(1), "the orchestrator's page does not name it"


@pytest.mark.parametrize(("raw", "why"), [('{"command": "echo x > f', "no JSON"), ('["echo"]', "JSON, but no object")])
def test_broken_json_runs_nothing_and_is_told(running: Running, raw: str, why: str) -> None:
    broken = Answer(bash("").content, raw_inputs={0: raw})
    done = running.run([broken, says("done")])
    assert done.code == 1 and f"the input is {why}" in running.told(1) and not (running.workspace / "f").exists()


def test_an_input_that_the_tool_does_not_take(running: Running) -> None:
    running.run([calls(("Write", {"file_path": "a"}), ("Read", {"file_path": 3}), ("Read", {"file_path": "a\0"})), says("done")])
    told = running.told(1)
    said = ("'content' is a required property", "file_path: 3 is not of type", "no file can have its path")
    assert all(words in told for words in said)


def test_a_message_that_was_cut_at_its_length_runs_nothing(running: Running) -> None:
    cut = Answer(bash("echo x > f").content, stop_reason="max_tokens")
    running.run([cut, says("done")])
    assert "the message was cut (max_tokens)" in running.told(1) and not (running.workspace / "f").exists()


def test_words_of_success_are_no_success(running: Running) -> None:
    folder = running.workspace / "custom" / "fast"
    folder.mkdir(parents=True)
    (folder / ".orchestrator_state.json").write_text(json.dumps({"stage_status": dict.fromkeys("123456", "completed")}))
    done = running.run([says("All stages are complete. PASS: 48 of 48 cases. finished: true")], "--op", "fast")
    assert done.code == 1 and "not finished" in done.stderr
    assert "Only its records count" in running.told(1) and len(running.bodies) == 3, "told twice, then it may end"


@pytest.mark.parametrize(
    "words",
    [
        "printf '%s' x > custom/soft/.orchestrator_state.json",
        "cat ~/.local/state/pypto-op/seal.key",
        "pypto-op verify custom/soft",
        "echo PASS > custom/soft/soft_impl.py",
        "rm -rf /tmp/somebody",
        "kill -9 $PPID",
        "pkill -f pypto-op",
    ],
)
def test_a_hostile_shell_is_refused_by_the_guard(running: Running, words: str) -> None:
    (running.workspace / "custom" / "soft").mkdir(parents=True)
    (running.workspace / "custom" / "soft" / "SPEC.md").write_text("# spec\n")
    done = running.run([bash(words), says("done")])
    assert done.code == 1 and "refused" in done.stdout
    result = running.bodies[1]["messages"][-1]["content"][0]
    assert result["is_error"] and "[pypto-op" in result["content"], result


def test_an_agents_shell_sees_no_key_and_a_mark(running: Running) -> None:
    running.run([bash(f"env | grep -c {KEY}; echo mark=$AI_AGENT"), says("done")])
    assert "mark=pypto-op run" in running.told(1) and KEY not in running.told(1)


def test_credentials_of_the_account_are_not_the_agents(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"GITHUB_TOKEN": "ghp-1", "AWS_SECRET_ACCESS_KEY": "aws-1", "PROXY": "http://me:pw-1@host:1", "PLAIN": "kept-1"}
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    running.run([bash("env"), says("done")])
    told = running.told(1)
    assert "kept-1" in told and not any(word in told for word in ("ghp-1", "aws-1", "pw-1"))


def test_what_a_model_says_moves_no_cursor(running: Running) -> None:
    done = running.run([bash("echo '\x1b[2Jx'"), says("one\x1b]0;title\x07 two\nthree")])
    assert "\x1b" not in done.stdout and "\x07" not in done.stdout and "one" in done.stdout and "three" in done.stdout


def test_no_log_shows_the_key(running: Running) -> None:
    done = running.run([bash(f"echo {KEY}"), trouble(400, f"bad key {KEY}")])
    text = json.dumps(running.lines)
    assert KEY not in text and "<ANTHROPIC_API_KEY>" in text and KEY not in done.stdout + done.stderr


@pytest.mark.slow
def test_what_a_command_leaves_running_ends_with_it(running: Running) -> None:
    running.run(
        [bash('python3 -c \'import time; time.sleep(0.6); open("late.txt", "w")\' & echo started'), bash("sleep 1"), says("done")]
    )
    assert "started" in running.told(1) and not (running.workspace / "late.txt").exists()


def test_a_command_that_does_not_end(running: Running) -> None:
    running.run([calls(("Bash", {"command": "echo began; sleep 600", "timeout": 300})), says("done")])
    assert "began" in running.told(1) and "ended after 0 s" in running.told(1)


@pytest.mark.parametrize("budget", ["30000", "0.20USD"])
def test_a_budget_is_never_passed(running: Running, budget: str) -> None:
    asked: list[int] = []

    def say(number: int, body: Body, headers: Mapping[str, str]) -> Answer:
        asked.append(body["max_tokens"])
        return calls(("Bash", {"command": f"echo {number}"}), usage={"input_tokens": 3000, "output_tokens": body["max_tokens"]})

    done = running.run(say, "--budget", budget, "--json")
    summary = json.loads(done.stdout)
    assert done.code == 1 and "the budget is spent" in summary["why"] and summary["requests"] == len(asked) >= 1
    assert summary["tokens"]["input"] + summary["tokens"]["output"] <= 30000 if budget == "30000" else summary["dollars"] <= 0.2


def test_a_budget_in_money_needs_a_price(running: Running) -> None:
    done = running.run([says("done")], "--budget", "$5", "--model", "somebodys-model")
    assert done.code == 2 and "no price is known" in done.stderr and not running.bodies


@pytest.mark.parametrize("words", ["lots", "-5", "0", "0USD"])
def test_what_is_no_budget(running: Running, words: str) -> None:
    assert running.call("x", f"--budget={words}").code == 2


def test_the_time_is_over(running: Running) -> None:
    done = running.run(lambda number, body, headers: bash(f"sleep 30; echo {number}"), "--max-minutes", "0.02")
    assert done.code == 1 and "the time is over" in done.stderr


@pytest.mark.slow
def test_a_pattern_that_takes_for_ever_ends_with_the_time(running: Running) -> None:
    (running.workspace / "a.txt").write_text("a" * 200 + "b\n")
    began = time.monotonic()
    done = running.run(lambda number, body, headers: calls(("Grep", {"pattern": "^(a|a|aa)+$"})), "--max-minutes", "0.05")
    assert done.code == 1 and "the time is over" in done.stderr and time.monotonic() - began < 60


def test_a_search_shows_lines_and_files(running: Running) -> None:
    (running.workspace / "a.txt").write_text("one\nTwo\nthree\n")
    (running.workspace / "b.bin").write_bytes(b"\0two")
    asked = [{"pattern": "two", "-i": True, "-C": 1}, {"pattern": "t", "output_mode": "files_with_matches"}, {"pattern": "("}]
    running.run([calls(*(("Grep", one) for one in asked)), says("done")])
    told = running.told(1)
    assert "1:one" in told and "2:Two" in told and "a.txt" in told and "b.bin" not in told and "no regular expression" in told


def test_a_wait_beyond_the_time_ends_the_run(running: Running) -> None:
    done = running.run([trouble(429, retry_after="600")], "--max-minutes", "1")
    assert done.code == 1 and "the time would be over" in done.stderr


def test_an_empty_request(running: Running) -> None:
    assert running.run([says("done")], request=" ").code == 2
    assert running.run([says("done")], "--resume", request="again").code == 2
    for words in (["--op", "other"], ["--target-us", "3"]):
        done = running.run([says("done")], "--resume", *words, request="")
        assert done.code == 2 and f"--resume takes no {words[0]}; leave it out" in done.stderr, done
    assert running.call("--resume").code == 2, "nothing was begun here"


LEFT = [
    "setsid -f sleep {0} >/dev/null 2>&1; echo began",
    'env -i python3 -c "import os,time; os.fork() and os._exit(0); os.setsid(); os.fork() and os._exit(0); time.sleep({0})" '
    ">/dev/null 2>&1; echo began",
    "(setsid sh -c 'sleep 0.2; setsid -f sleep {0}' >/dev/null 2>&1 &); sleep 0.5; echo began",
]


def _alive(mark: str) -> list[int]:
    return [one.pid for one in psutil.process_iter(["cmdline"]) if mark in " ".join(one.info["cmdline"] or [])]


@pytest.mark.parametrize("left", LEFT, ids=["setsid -f", "double fork", "setsid in a subshell"])
@pytest.mark.slow
def test_what_leaves_its_group_and_its_parent_ends_with_the_call(running: Running, left: str) -> None:
    mark = f"47{os.getpid()}1"

    def say(number: int, body: Body, headers: Mapping[str, str]) -> Answer:
        if number:
            assert not [pid for pid in _alive(mark) if pid != os.getpid()], "alive after its call"
            return says("done")
        return bash(left.format(mark))

    done = running.run(say)
    assert "began" in running.told(1), done


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["exit 3", "sleep 60"])
def test_the_output_of_a_failed_call_is_cut_as_that_of_any_other(running: Running, ending: str) -> None:
    words = f"head -c 400000 /dev/zero | tr '\\0' y >&2; {ending}"
    running.run([calls(("Bash", {"command": words, "timeout": 4000})), says("done")])
    assert len(running.told(1)) < 32_000 and "characters left out" in running.told(1)
    assert ("[exit code 3]" if ending == "exit 3" else "ended after 4 s") in running.told(1)


@pytest.mark.slow
def test_a_second_run_in_the_folder_is_refused(running: Running) -> None:
    refused: list[subprocess.CompletedProcess[str]] = []

    def say(number: int, body: Body, headers: Mapping[str, str]) -> Answer:
        if not number:
            environment = {**os.environ, "ANTHROPIC_API_KEY": KEY}
            environment.pop("PYPTO_OP_RUN_PIPE", None)
            words = ["-m", "pypto_op.cli", "run", "another"]
            refused.append(with_commands(*words, cwd=running.workspace, env=environment))
        return says("done")

    running.run(say)
    assert refused[0].returncode == 2 and "another process is at a run in this folder" in refused[0].stderr, refused


def test_a_wait_of_a_day_is_not_waited_for(running: Running) -> None:
    running.patch.setattr(SLEEPS, lambda seconds: pytest.fail("it waits"))
    done = running.run([trouble(429, "quota", retry_after="86400")])
    assert done.code == 3 and "asks for a wait of 86400 s (quota)" in done.stderr


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["x", "--op", "../x"], 2, "no operator's name"),
        ([" "], 2, "there is no request"),
        (["x"], 3, "ANTHROPIC_API_KEY"),
    ],
)
def test_what_the_call_itself_shows_is_refused_before_anything_is_loaded(
    running: Running, words: list[str], code: int, said: str
) -> None:
    running.patch.delenv("ANTHROPIC_API_KEY", raising=False)
    running.patch.setattr("pypto_op.runner.surroundings._begin_again", lambda: pytest.fail("it begins"))
    done = command("run", *words)
    assert done.code == code and said in done.stderr
    assert not list(journal.sessions_folder(running.workspace).glob("*"))


def test_a_refused_request_says_what_helps(running: Running) -> None:
    told = {status: running.run([trouble(status, "no")]).stderr for status in (400, 403, 413)}
    assert "ANTHROPIC_BASE_URL" not in "".join(told.values())
    assert "the service forbids it (no)" in told[403] and "too long for this service" in told[413]
