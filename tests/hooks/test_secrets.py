"""The account's sealing key: no agent's tool reads it, in any folder and under any name that its path has."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.hooks.conftest import STATE, Harness, NearHarness, make_workspace

from pypto_op.proof.key import KEY_ENV, key_file, load_key
from pypto_op_lint.concerns import ACCOUNT_FOLDER, KEY_NAME

AGENTS = [None, "general-purpose", "pypto-op:pypto-op-coder", "pypto-op:pypto-op-orchestrator"]
FOLDER = f"~/{ACCOUNT_FOLDER}"
SAID = "sealing key"


def test_the_guard_knows_where_the_key_lies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEY_ENV, raising=False)
    assert key_file() == Path.home() / ACCOUNT_FOLDER / KEY_NAME


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harness]:
    """A workspace of an account that has a key, and a link to it."""
    base = tmp_path_factory.mktemp("account")
    made = NearHarness(make_workspace(base, STATE), base / "cache")
    key = made.cache / "home" / ACCOUNT_FOLDER / "seal.key"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(KEY_ENV, str(key))
        load_key()
    (made.workspace / "src/link").symlink_to(key)
    (made.workspace / "src/cwd").symlink_to("/proc/self/cwd")
    (made.workspace / "src/roundabout").symlink_to("cwd/..")
    yield made
    made.stop_servers()


@pytest.mark.slow
@pytest.mark.parametrize("agent", AGENTS)
def test_no_tool_reads_it(account: Harness, agent: str | None) -> None:
    for path in (
        f"{FOLDER}/seal.key",
        "src/link",
        str(account.cache / "home" / ACCOUNT_FOLDER / "runs/x"),
        f"{FOLDER}/../pypto-op/seal.key",
        "/proc/self/cwd/../anything",  # leads elsewhere in the process that reads it
        *(f"//proc/thread-self//{place}/anything" for place in ("cwd", "root")),
        "/proc/1/fd/7",
        "src/roundabout/x",
    ):
        assert SAID in account.before("Read", agent, file_path=path).denied, path
    for folder in ("~", "~/.local", FOLDER, str(account.cache)):
        assert SAID in account.before("Grep", agent, pattern=".", path=folder).denied, folder
    assert SAID in account.before("Grep", agent, cwd=account.cache / "home", pattern=".").denied
    assert SAID in account.before("Write", agent, file_path=f"{FOLDER}/seal.key", content="x").denied
    assert SAID in account.before("mcp__filesystem__read_text_file", agent, path=f"{FOLDER}/seal.key").denied


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize(
    "command",
    ["cat src/link", "cat src/l*", "cat ~/.local/*/*/*", "grep -r . src/../../cache/home", "cp src/link custom/soft/_debug/k"],
)
def test_no_command_reads_it_by_another_name(account: Harness, agent: str | None, command: str) -> None:
    assert SAID in account.before("Bash", agent, command=command).denied


def test_a_key_that_a_variable_names_is_as_secret(account: Harness) -> None:
    key = account.workspace / "src/own.key"
    key.write_text("x" * 32)
    own = Harness(account.workspace, account.cache / "own", env={KEY_ENV: str(key)})
    own.cache.mkdir()
    assert SAID in own.before("Read", file_path="src/own.key").denied
    assert SAID in own.before("Bash", command="base64 src/own.key").denied
    assert account.before("Read", file_path="src/own.key").out == ""
    own.stop_servers()


def test_what_lies_beside_it_stays_free(account: Harness) -> None:
    (account.cache / "home/notes.txt").write_text("x")
    assert account.before("Read", file_path="~/notes.txt").out == ""
    assert account.before("Grep", pattern="x", path="src/a.py").out == ""
    assert account.before("Bash", command="cat ~/notes.txt; grep -rn a src/a.py; ls -la ~/.local").out == ""


@pytest.mark.slow
@pytest.mark.parametrize("inside", ["pypto_op.state.service", "pypto_op.state.roles", "pypto_op.mcp.tools"])
def test_nobody_enters_the_state_machine_from_python(account: Harness, inside: str) -> None:
    for agent in AGENTS:
        for code in (f"import {inside}", f"import importlib; importlib.import_module('{inside}')"):
            assert "own checks" in account.before("Bash", agent, command=f'python3 -c "{code}"').denied


@pytest.mark.slow
def test_hidden_goldens_of_an_evaluation(account: Harness, tmp_path: Path) -> None:
    golden = tmp_path / "evals" / "requests" / "x" / "golden.py"
    golden.parent.mkdir(parents=True)
    golden.write_text("hidden\n")
    here = Harness(account.workspace, account.cache, {"PYPTO_OP_HIDDEN": str(tmp_path / "evals")})
    for agent in AGENTS:
        assert "hidden golden" in here.before("Read", agent, file_path=str(golden)).denied
    coder = "pypto-op:pypto-op-coder"
    assert "hidden golden" in here.before("Bash", coder, command=f"cp {golden} custom/soft/_debug/g.py").denied
    assert "hidden golden" in here.before("Grep", coder, pattern=".", path=str(tmp_path)).denied
    for asked in ({"path": str(tmp_path)}, {"path": str(golden.parent)}, {"path": str(tmp_path / "evals" / "..")}, {"path": "/"}):
        for agent in AGENTS:
            assert "hidden golden" in here.before("Glob", agent, pattern="**/golden*", **asked).denied, asked
    for pattern in (f"{tmp_path}/**/golden.py", f"{tmp_path}/ev[a]ls/*/*/*", "../../../../../../../../**/golden.py"):
        assert "hidden golden" in here.before("Glob", coder, pattern=pattern).denied, pattern
    for pattern in ("**/*.py", "custom/soft/modules/*_golden.py", f"{account.workspace}/custom/**"):
        assert here.before("Glob", coder, pattern=pattern).out == "", pattern
    assert not account.before("Read", coder, file_path=str(golden)).denied, "hidden only while an evaluation runs"
