"""Who may move the state: tokens, declared roles, and a person at a terminal."""

import os
import pty
import subprocess
import sys

import pytest

from pypto_op.state import roles, store
from pypto_op.state.facts import Refused
from pypto_op.state.key import KEY_ENV
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


def in_terminal(words, typed):
    """Run the command with a terminal as its standard input; return exit code and output."""
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "pypto_op.cli", "state", *map(str, words)]
    process = subprocess.Popen(command, stdin=slave, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    os.close(slave)
    os.write(master, typed.encode())
    output, _ = process.communicate(timeout=60)
    os.close(master)
    return process.returncode, output


def test_a_person_confirms_by_typing_the_name(guarded):
    root, _ = guarded
    words = ["adopt", "--op-dir", root, "--reason", "the token is lost"]
    before = (root / ".orchestrator_journal.jsonl").read_bytes()
    code, output = in_terminal(words, "yes\n")
    assert code == 2 and "was not confirmed" in output
    assert (root / ".orchestrator_journal.jsonl").read_bytes() == before
    code, output = in_terminal([*words, "--require-token"], "relu\n")
    assert code == 0 and "token: pto1:pypto-op-orchestrator" in output


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
