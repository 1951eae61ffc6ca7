"""Who may move the state: tokens, declared roles, and a person at a terminal."""

import os
import pty
import shutil
import subprocess
import sys
import time

import pytest
from tests.state.conftest import needs_a_person

from pypto_op.errors import Refused
from pypto_op.proof.key import KEY_ENV
from pypto_op.state import roles, store
from pypto_op.state.roles import issue, read_token
from pypto_op.state.service import transition
from pypto_op.vocabulary import Role

NOT_THE_ORCHESTRATOR = [str(role) for role in Role if role is not Role.ORCHESTRATOR]


@pytest.fixture
def guarded(tmp_path):
    """An operator that asks for a token, and that token."""
    root = tmp_path / "custom" / "relu"
    root.mkdir(parents=True)
    return root, transition(root, "init", require_token=True)["token"]


def test_the_holder_of_the_token_moves_the_state_and_nobody_else(guarded):
    root, token = guarded
    with pytest.raises(Refused, match="needs the orchestrator's token"):
        transition(root, "fail_stage", stage=1)
    transition(root, "fail_stage", stage=1, token=token)
    with pytest.raises(Refused, match="needs the orchestrator's token"):
        transition(root, "start_stage", stage=1, declared="pypto-op-orchestrator")


@pytest.mark.parametrize("role", NOT_THE_ORCHESTRATOR)
def test_a_dispatch_token_gives_no_right_to_move_the_state(guarded, role):
    root, _ = guarded
    token = issue(role, store.load(store.OpWorkspace.at(root)).state["run_id"])
    with pytest.raises(Refused, match=f"{role} may not call fail_stage"):
        transition(root, "fail_stage", stage=1, token=token)


@pytest.mark.parametrize("role", [*NOT_THE_ORCHESTRATOR, "root", "general-purpose", "my-orchestrator"])
def test_a_declared_role_takes_rights_away_even_where_no_token_is_asked_for(planted, role):
    ws = planted(2)
    with pytest.raises(Refused, match="may not call"):
        transition(ws.root, "fail_stage", stage=2, declared=role)


@pytest.mark.parametrize(
    "forge",
    [
        lambda token: token.replace("planner", "orchestrator"),
        lambda token: token[:-1] + ("0" if token[-1] != "0" else "1"),
        lambda token: token.rsplit(":", 1)[0] + ":" + "0" * 32,
        lambda token: "",
        lambda token: "pto1:pypto-op-orchestrator",
        lambda token: "x" * 5000,
        lambda token: token.replace("pto1", "pto2"),
    ],
)
def test_a_forged_token_is_worth_nothing(guarded, forge):
    root, token = guarded
    sent = transition(root, "dispatch", role="planner", token=token)["token"]
    with pytest.raises(Refused, match="token"):
        transition(root, "fail_stage", stage=1, token=forge(sent))


@needs_a_person
def test_a_token_of_another_operator_or_run_or_account_is_worth_nothing(guarded, tmp_path, monkeypatch):
    root, token = guarded
    other = tmp_path / "custom" / "gelu"
    other.mkdir()
    others = transition(other, "init", require_token=True)["token"]
    with pytest.raises(Refused, match="another operator or an earlier run"):
        transition(root, "fail_stage", stage=1, token=others)
    fresh = transition(root, "adopt", reason="the token is lost", person=True, require_token=True)["token"]
    with pytest.raises(Refused, match="earlier run"):
        transition(root, "fail_stage", stage=1, token=token)
    transition(root, "fail_stage", stage=1, token=fresh)
    monkeypatch.setenv(KEY_ENV, str(tmp_path / "other.key"))
    with pytest.raises(Refused, match="not issued by this account"):
        read_token(fresh)


def test_a_dispatch_is_bound_to_role_phase_and_attempt(planted):
    ws = planted(5, n=2)
    transition(ws.root, "start_phase", phase="M1")
    sent = transition(ws.root, "dispatch", role="coder", phase="M1")
    claim = read_token(sent["token"])
    assert (claim.role, claim.phase, claim.attempt) == ("pypto-op-coder", "M1", "")
    assert sent["attempt"] is None


# -- a person at a terminal -------------------------------------------------------------------------------


def in_terminal(words, typed, *, under=(), **env):
    """Run the command, below the program `under`, with a terminal as its standard input; return exit code and output."""
    master, slave = pty.openpty()
    command = [*under, sys.executable, "-m", "pypto_op.cli", "state", *map(str, words)]
    process = subprocess.Popen(
        command, stdin=slave, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ, **env}
    )
    os.close(slave)
    os.write(master, typed.encode())
    output, _ = process.communicate()
    os.close(master)
    return process.returncode, output


@needs_a_person
def test_a_person_confirms_by_typing_the_name(guarded):
    root, _ = guarded
    words = ["adopt", "--op-dir", root, "--reason", "the token is lost"]
    before = (root / ".orchestrator_journal.jsonl").read_bytes()
    code, output = in_terminal(words, "yes\n")
    assert code == 2 and "was not confirmed" in output
    assert (root / ".orchestrator_journal.jsonl").read_bytes() == before
    code, output = in_terminal([*words, "--require-token"], "relu\n")
    assert code == 0 and "token: pto1:pypto-op-orchestrator" in output


@needs_a_person
def test_the_owner_needs_no_token_in_a_terminal(guarded):
    root, _ = guarded
    code, output = in_terminal(["fail_stage", "--op-dir", root, "--stage", 1, "--as", "owner"], "relu\n")
    assert code == 0 and "failed" in output


def test_without_a_terminal_nobody_is_the_owner(guarded):
    root, _ = guarded
    for words in (["fail_stage", "--stage", "1", "--as", "owner"], ["adopt", "--reason", "mine"]):
        command = [sys.executable, "-m", "pypto_op.cli", "state", *words, "--op-dir", str(root)]
        done = subprocess.run(command, input="relu\n", capture_output=True, text=True)
        assert done.returncode == 2 and "needs a terminal" in done.stderr


def test_the_token_may_come_from_the_environment(guarded, monkeypatch):
    root, token = guarded
    command = [sys.executable, "-m", "pypto_op.cli", "state", "fail_stage", "--stage", "1", "--op-dir", str(root)]
    done = subprocess.run(command, env={**os.environ, roles.TOKEN_ENV: token}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


# -- an agent's shell -------------------------------------------------------------------------------------

UNMARKED = ["sh", "-c", 'unset CLAUDECODE OPENCODE; "$@"; exit $?', "sh"]
"""What an agent can do about the mark: its own process loses it, the shell above was started with it."""


@pytest.fixture
def harness(tmp_path):
    """A program with a harness's name that starts what it is told to, as a harness does."""
    program = tmp_path / "claude"
    program.write_text('#!/bin/sh\n"$@"\nexit $?\n')
    program.chmod(0o755)
    return [str(program)]


@needs_a_person
@pytest.mark.parametrize("mark", ["CLAUDECODE", "OPENCODE"])
@pytest.mark.parametrize("words", [["fail_stage", "--stage", "1", "--as", "owner"], ["adopt", "--reason", "mine"]])
def test_a_terminal_that_an_agent_made_is_no_persons(guarded, mark, words):
    root, _ = guarded
    before = (root / ".orchestrator_journal.jsonl").read_bytes()
    for under in ([], UNMARKED):
        code, output = in_terminal([*words, "--op-dir", root], "relu\n", under=under, **{mark: "1"})
        assert code == 2 and f"this runs under an agent ({mark} is set)" in output
        assert "a person runs it in a terminal" in output
    assert (root / ".orchestrator_journal.jsonl").read_bytes() == before


@needs_a_person
def test_the_harness_itself_is_known_where_it_marks_nothing(guarded, harness):
    root, _ = guarded
    code, output = in_terminal(["adopt", "--op-dir", root, "--reason", "mine"], "relu\n", under=harness)
    assert code == 2 and "under an agent (claude)" in output


DAEMON = """
import os, pty, subprocess, sys
master, slave = pty.openpty()
os.write(master, b"relu\\n")
done = subprocess.run(sys.argv[2:], stdin=slave, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
open(sys.argv[1] + ".new", "wb").write(done.stdout)
os.rename(sys.argv[1] + ".new", sys.argv[1])
"""


@needs_a_person
@pytest.mark.skipif(not shutil.which("setsid"), reason="no setsid here")
@pytest.mark.slow
def test_a_program_that_left_the_harness_and_made_a_terminal_is_no_person(guarded, tmp_path):
    root, _ = guarded
    (tmp_path / "daemon.py").write_text(DAEMON)
    said = tmp_path / "said"
    command = [sys.executable, "-m", "pypto_op.cli", "state", "adopt", "--op-dir", str(root), "--reason", "mine"]
    clean = {name: os.environ[name] for name in ("PATH", "HOME", KEY_ENV) if name in os.environ}
    subprocess.run(["setsid", "-f", sys.executable, str(tmp_path / "daemon.py"), str(said), *command], env=clean, check=True)
    for _ in range(1200):
        if said.exists():
            break
        time.sleep(0.05)
    assert "without a session made it" in said.read_text()


def in_shell(root, *words, under=UNMARKED, **env):
    command = [*under, sys.executable, "-m", "pypto_op.cli", "state", *words, "--op-dir", str(root)]
    done = subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


@needs_a_person
def test_an_agent_moves_no_state_without_a_token_where_none_was_asked_for(planted, harness):
    ws = planted(2)
    code, output = in_shell(ws.root, "fail_stage", "--stage", "2", CLAUDECODE="1")
    assert code == 2 and "fail_stage by an agent (CLAUDECODE is set) needs the orchestrator's token" in output
    code, output = in_shell(ws.root, "fail_stage", "--stage", "2", under=harness)
    assert code == 2 and "adopt --require-token" in output
    assert in_shell(ws.root, "status", CLAUDECODE="1")[0] == 0


@needs_a_person
def test_an_agents_init_issues_the_token_that_its_later_calls_need(tmp_path, harness):
    root = tmp_path / "custom" / "relu"
    root.mkdir(parents=True)
    code, output = in_shell(root, "init", under=harness)
    assert code == 0
    token = output.partition("token: ")[2].split()[0]
    assert in_shell(root, "fail_stage", "--stage", "1", under=harness)[0] == 2
    assert in_shell(root, "fail_stage", "--stage", "1", "--token", token, under=harness)[0] == 0


def test_a_state_under_a_key_of_its_own_is_none_of_the_accounts(tmp_path, monkeypatch):
    """What a test does below an agent: its states are sealed with a key that opens nothing else."""
    root = tmp_path / "custom" / "relu"
    root.mkdir(parents=True)
    inner = ["sh", "-c", f'export {KEY_ENV}="$1"; shift; "$@"; exit $?', "sh", str(tmp_path / "own.key")]
    for words in (("init",), ("fail_stage", "--stage", "1")):
        assert in_shell(root, *words, under=inner, CLAUDECODE="1")[0] == 0
    code, output = in_shell(root, "start_stage", "--stage", "1", under=[])
    assert code == 2 and "another account or key" in output
