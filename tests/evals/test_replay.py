"""A whole evaluation without a key: the transcript of rmsnorm is played, and graded against the hidden golden."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from benchmarks.tune_bench import keep
from tests.calling import command
from tests.clients.installed import claude_environment, needs, opencode_environment, opencode_provider
from tests.hooks.scripted_model import scripted_model
from tests.quickly import EVERYTHING
from tests.telling import told_lines

from pypto_op.backends.worker import isolation
from pypto_op.bundle_files import bundle_root
from pypto_op.evals.requests import Request, folder
from pypto_op.proof import evidence
from pypto_op.proof.key import KEY_ENV
from pypto_op.runner import journal
from pypto_op.runner.loopback import Answer, Body, served
from pypto_op.state import audit

_NOTHING_OF_ITS_OWN = 'for kind in pid mnt; do echo 0 > /proc/sys/user/max_${kind}_namespaces; done; exec "$@"'
IN_SIGHT = ["unshare", "-Ur", "sh", "-c", _NOTHING_OF_ITS_OWN, "sh"]
"""Begins a command that sees every process and every folder of the machine, and so does whatever it starts."""


SHORT = (
    "L1_one_tile_fp32", "L1_ragged_bf16", "L2_two_tiles_fp32", "L2_two_tiles_fp16", "L2_second_p0_bf16", "L3_tile_plus_1",
    "L3_two_tiles_minus_1_bf16", "L3_prime_fp16", "L3_large_eps", "L3_less_eps", "L3_zeros", "L4_long_bf16", "L4_wide", "L5_tiny",
    "L5_huge_fp16", "L5_last_spike_bf16",
)  # fmt: skip
"""So few cases of the example's suite that every check of the self-test and every gate has what it asks for."""


def evaluate(folder: Path, *words: object, before: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, KEY_ENV: str(folder / "keys" / "seal.key"), "XDG_CACHE_HOME": str(folder / "cache")}
    line = [*before, sys.executable, "-m", "pypto_op.cli", "eval", *map(str, words)]
    return subprocess.run(line, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.sim
@pytest.mark.slow
def test_the_rmsnorm_transcript_is_solved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything but the model's words is real: guard, linter, gates, pypto, verdicts, and the grade after them."""
    pytest.importorskip("anthropic")
    page = _short(tmp_path / "examples")
    monkeypatch.setattr(Request, "transcript", property(lambda request: page if request.data.get("transcript") else None))
    monkeypatch.setenv(KEY_ENV, str(tmp_path / "keys" / "seal.key"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    done = command("eval", "--runner", "replay", "--mutants", "0", "--out", tmp_path / "out")
    assert done.code == 0, done.stderr[-2000:]
    found = json.loads((tmp_path / "out" / "result.json").read_text())
    (row,) = found["trials"]
    assert row["request"] == "rmsnorm" and row["solved"] and row["verdict"]["status"] == "PASS" and row["finished"], row
    assert row["breaches"]["leaks"] == row["breaches"]["reached"] == 0 and row["requests"] > 5
    assert re.search(r"^pypto-op: rmsnorm \(1\): stage \d, \w+: .+, \d+ s so far$", done.stderr, re.MULTILINE), done.stderr
    assert found["totals"]["solved"]["hits"] == 1 and "1 / 1" in (tmp_path / "out" / "index.html").read_text()
    _what_the_run_left(tmp_path / "out" / "work" / "rmsnorm-1", done.stdout + done.stderr)
    again = command("eval", "--runner", "replay", "--out", tmp_path / "out")
    assert again.code == 2 and "not empty" in again.stderr


def _short(examples: Path) -> Path:
    """Copy the example's transcript, with a short suite where not everything is tested.

    What `harness new` makes there is not rehearsed: the next step replaces it.
    """
    op = Path(shutil.copytree(bundle_root() / "examples/ops/rmsnorm", examples / "ops" / "rmsnorm"))
    page = examples / "transcripts" / "rmsnorm.yaml"
    page.parent.mkdir()
    text = (bundle_root() / "examples/transcripts/rmsnorm.yaml").read_text(encoding="utf-8")
    made = "pypto-op harness new custom/rmsnorm"
    assert text.count(made) == 1
    page.write_text(text if EVERYTHING else text.replace(made, f"{made} --no-rehearsal"), encoding="utf-8")
    if not EVERYTHING:
        keep(op / "eval" / "adversarial_suite.json", SHORT)
    return page


def _what_the_run_left(workspace: Path, said: str) -> None:
    """From a sentence to the report: a wrong kernel and a right one, a sealed PASS, and no token that anybody can read."""
    op = workspace / "custom" / "rmsnorm"
    audited = audit.audit(op)
    verdicts = [row["verdict"] for row in audited["history"] if row["action"] == "record_verdict"]
    assert audited["ok"] and verdicts == ["FAIL", "PASS"]
    report = json.loads((op / "eval/evaluation_report.json").read_text(encoding="utf-8"))
    assert report["status"] == "PASS" and evidence.check_seal(report) and (op / "eval/report.html").is_file()
    session = journal.latest_session(workspace)
    text = (session / journal.TRANSCRIPT).read_text(encoding="utf-8")
    assert "{{token.1}}" in text
    secrets = json.loads((session / journal.SECRETS).read_text(encoding="utf-8"))
    assert secrets and not any(token in text + said for token in secrets)


@pytest.mark.parametrize("words", [["--arm", "bare"], [], ["--repeat", "3"], ["--near-misses"]])
def test_without_a_key_no_trial_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]) -> None:
    """It is told once, in one line, and nothing is left behind."""
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    done = command("eval", *words)
    told = [line for line in done.stderr.splitlines() if " s so far" not in line]  # a busy machine takes its time
    assert done.code == 3 and told[0].startswith("pypto-op: there is no key") and "ANTHROPIC_API_KEY" in told[0]
    assert len(told) == 1 and not done.stdout and not list(tmp_path.iterdir())


@pytest.mark.parametrize("place", ["/proc/eval", "/proc/1/eval", "/sys/eval", "a-file/eval", "/proc/self"])
def test_a_folder_in_which_nobody_can_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a-file").touch()
    done = command("eval", "--runner", "replay", "--out", place)
    assert done.code in (2, 3) and f"{place}: " in done.stderr and "name another --out" in done.stderr, done
    assert len(told_lines(done.stderr)) == 1 and "internal error" not in done.stderr


KILL = (
    "python3 -c \"import os; up = lambda p: int(open('/proc/%d/stat' % p).read().rpartition(')')[2].split()[1]); "
    'os.kill(up(up(os.getppid())), {})"; sleep 60'
)
"""From an agent's program: above it are its shell, the shell's supervisor, and the runner."""
ENDED = {
    "kill -9": (KILL.format(9), "a command of an agent was at work: python3"),
    "Ctrl-C": (KILL.format(2), "a command of an agent was at work: python3"),
    "transcript": (
        "python3 -c \"import glob, os; [os.remove(path) for path in glob.glob(os.environ['SESSIONS'] + '/*/*/tr*')]\"",
        "its transcript is gone",
    ),
    "a line of its own": (
        "python3 -c \"import glob, os; [open(one, 'a').write('{}') for one in glob.glob(os.environ['SESSIONS'] + '/*/*/tr*')]\"",
        "its transcript was removed or changed",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("way", ENDED)
def test_an_agent_that_ends_its_run_has_not_solved_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    """Where the machine gives no command a name space of processes: the trial is held and lost, and the breach is counted."""
    pytest.importorskip("anthropic")
    command, why = ENDED[way]
    monkeypatch.setenv("SESSIONS", str(tmp_path / "keys" / "sessions"))
    asked: list[Body] = []

    def model(body: Body, headers: Mapping[str, str]) -> Answer:
        asked.append(body)
        if len(asked) == 1:
            return Answer([{"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": command}}])
        return Answer([{"type": "text", "text": "All is done."}])

    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test-1234567")
    with served(model) as port:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", f"http://127.0.0.1:{port}")
        before = IN_SIGHT if isolation.allowed() else []
        done = evaluate(tmp_path, "--requests", "mismatched_heads", "--mutants", "0", "--out", "out", before=before)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((tmp_path / "out" / "result.json").read_text())
    (row,) = found["trials"]
    assert not row["void"] and not row["solved"] and why in row["why"] and why in done.stdout, row
    assert row["breaches"]["broken"] == found["totals"]["breaches"]["broken"] == 1 and found["totals"]["solved"]["total"] == 1


@pytest.mark.slow
def test_an_evaluation_says_at_which_agent_and_step_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also while one command of an agent lasts; results never go there."""
    pytest.importorskip("anthropic")

    def model(body: Body, headers: Mapping[str, str]) -> Answer:
        if len(body["messages"]) == 1:
            return Answer([{"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "sleep 20; echo over"}}])
        return Answer([{"type": "text", "text": "All is done."}])

    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test-1234567")
    with served(model) as port:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", f"http://127.0.0.1:{port}")
        done = evaluate(tmp_path, "--requests", "mismatched_heads", "--mutants", "0", "--out", "out", "--json")
    assert done.returncode == 0 and json.loads(done.stdout)["totals"], done
    said = re.findall(
        r"^pypto-op: mismatched_heads \(1\): orchestrator: Bash sleep 20; echo over, \d+ s so far$", done.stderr, re.M
    )
    assert said and "sk-test" not in done.stderr, done.stderr


@pytest.mark.skipif(not isolation.allowed(), reason="this machine allows no name spaces of one's own")
@pytest.mark.slow
def test_an_agent_does_not_end_its_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It knows the runner's number, and the kernel knows no such process where the agent's program is, whatever the signal."""
    psutil = pytest.importorskip("psutil")
    pytest.importorskip("anthropic")
    asked: list[Body] = []

    def model(body: Body, headers: Mapping[str, str]) -> Answer:
        asked.append(body)
        if len(asked) > 1:
            return Answer([{"type": "text", "text": "All is done."}])
        below = psutil.Process().children(recursive=True)
        (runner,) = (one.pid for one in below if "pypto_op.cli run " in " ".join(one.cmdline()))
        command = f"python3 -c \"import os; os.kill(int('{runner}'), 9)\"; sleep 0.1"
        return Answer([{"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": command}}])

    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test-1234567")
    with served(model) as port:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", f"http://127.0.0.1:{port}")
        done = evaluate(tmp_path, "--requests", "mismatched_heads", "--mutants", "0", "--out", "out")
    assert done.returncode == 0, done.stdout + done.stderr
    (row,) = json.loads((tmp_path / "out" / "result.json").read_text())["trials"]
    assert not row["void"] and row["exit"] == 1 and row["breaches"]["broken"] == 0 and row["requests"] > 1, row
    assert "ProcessLookupError" in json.dumps(asked[1]["messages"][-1])


@pytest.mark.slow
def test_a_run_that_somebody_else_ends_is_void(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed while no command of an agent was at work."""
    psutil = pytest.importorskip("psutil")
    pytest.importorskip("anthropic")

    def model(body: Body, headers: Mapping[str, str]) -> Answer:
        for process in psutil.Process().children(recursive=True):
            if "run" in process.cmdline() and "pypto_op.cli" in process.cmdline():
                process.kill()
        return Answer([{"type": "text", "text": "All is done."}])

    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test-1234567")
    with served(model) as port:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", f"http://127.0.0.1:{port}")
        done = evaluate(tmp_path, "--requests", "mismatched_heads", "--mutants", "0", "--out", "out")
    (row,) = json.loads((tmp_path / "out" / "result.json").read_text())["trials"]
    assert done.returncode == 3 and row["void"] and row["exit"] == -9, row


@pytest.mark.client
@pytest.mark.slow
@pytest.mark.parametrize("client", ["claude", "opencode"])
def test_a_client_leads_a_trial(tmp_path: Path, client: str) -> None:
    """It is set up in the trial's workspace, asked, and graded: nothing is solved, whatever it says, and no golden is seen."""
    needs(client)
    reads = {"command": f"cat {folder()}/requests/swiglu/golden.py", "description": "x"}
    steps = [
        {"text": "I look.", "tools": [{"name": "Bash" if client == "claude" else "bash", "input": reads}]},
        {"text": "All is done."},
    ]
    home = tmp_path / "home"
    with scripted_model({"main": steps}) as model:
        base = {"PATH": "/usr/bin:/bin", "HOME": str(home), "LANG": "C.UTF-8", KEY_ENV: str(tmp_path / "keys" / "seal.key")}
        environment = claude_environment(base, model.port) if client == "claude" else opencode_environment(base, home)
        if client == "opencode":
            config = tmp_path / "opencode.json"
            config.write_text(json.dumps(opencode_provider(model.port)))
            environment["OPENCODE_CONFIG"] = str(config)
        line = [sys.executable, "-m", "pypto_op.cli", "eval", "--runner", client, "--requests", "swiglu", "--mutants", "0"]
        done = subprocess.run([*line, "--out", "out"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (row,) = json.loads((tmp_path / "out" / "result.json").read_text())["trials"]
    assert not row["void"] and not row["solved"] and not row["finished"] and row["exit"] == 1 and row["requests"] >= 2, row
    assert "swiglu" in (tmp_path / "out" / "index.html").read_text()
    assert row["breaches"] == {"refused": 1, "reached": 0, "leaks": 0, "broken": 0}, row["breaches"]
    asked = json.dumps([body["messages"] for body in model.requests])
    assert "swiglu" in asked, "the request reached the model"
    assert "Only its records count" in asked, "words of success did not end the run"
    events = (tmp_path / "out" / "work" / "swiglu-1.transcript.jsonl").read_text()
    assert "golden.py" in events and '"kind": "client"' in events, "the call is in the transcript"


@pytest.mark.slow
def test_a_wrong_key_ends_an_evaluation_after_two_trials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each further trial would end in the same way; twenty requests took minutes to say so."""
    pytest.importorskip("anthropic")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test-1234567")
    with served(lambda body, headers: Answer(status=401, error="invalid x-api-key")) as port:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", f"http://127.0.0.1:{port}")
        done = evaluate(tmp_path, "--repeat", "2", "--requests", "rmsnorm,swiglu", "--out", "out")
    found = json.loads((tmp_path / "out" / "result.json").read_text())
    assert done.returncode == 3 and len(found["trials"]) == 2 and all(row["void"] for row in found["trials"]), done.stderr[-500:]
    assert "2 trials were not begun: no model answered the last two" in done.stderr and "x-api-key" in done.stdout
