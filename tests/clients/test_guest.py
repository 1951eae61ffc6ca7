"""An installed workspace in the real clients when its bundle moves, and the plugin from a marketplace; the model is scripted."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.clients.installed import claude_environment, needs, opencode_environment, opencode_provider
from tests.clients.test_bundle import run_client, tools_of
from tests.hooks.conftest import BAD_IMPL, STATE, make_operator
from tests.hooks.scripted_model import Script, ScriptedModel, scripted_model
from tests.install.places import ROOT, copy_bundle, install, pypto_op
from tests.quickly import needs_package

pytestmark = [pytest.mark.client, pytest.mark.slow, needs_package("mcp")]

IMPL = "custom/soft/soft_impl.py"
USERS = b'{\r\n\t"model": "claude-sonnet-4-5", "n": 1.50, "\\u00e9": "\xc3\xa9\\/x",\r\n "hooks": {"Stop": []}}'


def script(names: dict[str, str], key: str) -> Script:
    def call(tool: str, **arguments: Any) -> dict[str, Any]:
        return {"tools": [{"name": names[tool], "input": arguments}]}

    return {
        "main": [
            call("bash", command="echo all is quiet", description="x"),
            call("write", **{key: "src/a.py", "content": "a = 1\n"}),
            call("write", **{key: IMPL, "content": BAD_IMPL}),
        ]
    }


CLAUDE = script({"bash": "Bash", "write": "Write"}, "file_path")
OPENCODE = script({"bash": "bash", "write": "write"}, "filePath")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    workspace = tmp_path / "work"
    make_operator(workspace / "custom/soft", STATE)
    (workspace / IMPL).unlink()
    (tmp_path / "home").mkdir()
    return workspace


def clean(tmp_path: Path, port: int) -> dict[str, str]:
    """Return Claude Code's environment, with no `pypto-op` on PATH, of this checkout or another."""
    environment = claude_environment({"HOME": str(tmp_path / "home"), "LANG": "C.UTF-8"}, port)
    folders = [folder for folder in environment["PATH"].split(":") if not (Path(folder) / "pypto-op").exists()]
    return environment | {"PATH": ":".join(folders), "PYPTO_OP_SERVER_IDLE": "5"}


def session(tmp_path: Path, workspace: Path, model: ScriptedModel) -> tuple[dict[str, Any], str]:
    """Run one session; return what the client says of itself and all that it printed."""
    command = [needs("claude"), "-p", "[[actor:main]] go", "--model", "claude-sonnet-4-5", "--permission-mode", "acceptEdits"]
    more = ["--allowedTools", "Bash,Write,Read", "--output-format", "stream-json", "--verbose"]
    model.requests.clear()
    done = run_client([*command, *more], workspace, clean(tmp_path, model.port))
    return next(line for text in done.stdout.splitlines() if (line := json.loads(text)).get("subtype") == "init"), done.stdout


def survived(model: ScriptedModel, workspace: Path, remedy: str) -> None:
    assert "all is quiet" in model.told("main", 1)
    assert "[is_error]" not in model.told("main", 2) and (workspace / "src/a.py").is_file()
    assert "[is_error]" in model.told("main", 3) and remedy in model.told("main", 3)
    assert not (workspace / IMPL).exists()


def test_claude_code_where_the_bundle_moved(place: Path, tmp_path: Path) -> None:
    needs("claude")
    bundle = copy_bundle(tmp_path / "bundle")
    (place / ".claude").mkdir()
    settings = place / ".claude/settings.local.json"
    settings.write_bytes(USERS)
    shared = b'{"model": "x" }'
    (place / ".claude/settings.json").write_bytes(shared)
    (place / ".gitignore").write_bytes(b"*.o")
    with scripted_model(CLAUDE) as model:
        env = clean(tmp_path, model.port)
        install(bundle, place, "--gitignore", harness="claude", env=env)
        assert b'"model": "claude-sonnet-4-5", "n": 1.50' in settings.read_bytes(), "the user's layout stays"
        assert b"/.pypto-op/" in (place / ".gitignore").read_bytes()
        moved = bundle.rename(tmp_path / "renamed")
        begun, _ = session(tmp_path, place, model)
        assert [plugin["name"] for plugin in begun["plugins"]] == ["pypto-op"]
        assert [server["status"] for server in begun["mcp_servers"]] == ["connected"]
        survived(model, place, "doctor --target")
        assert "is gone" in model.told("main", 0), "the session hears of it at its start"
        done = pypto_op(moved, "doctor", "--target", str(place), env=env)
        assert done.returncode == 0 and "repaired" in done.stdout, done
        session(tmp_path, place, model)
        assert "blocking_rules: OL01" in model.told("main", 3)
        assert "mcp__plugin_pypto-op_pypto-op__verify" in tools_of(model, "main")
        shutil.rmtree(moved)
        gone = subprocess.run(["sh", ".pypto-op/uninstall.sh"], cwd=place, env=env, capture_output=True, text=True, check=False)
    assert gone.returncode == 0 and gone.stderr == ""
    assert settings.read_bytes() == USERS and (place / ".claude/settings.json").read_bytes() == shared
    assert (place / ".gitignore").read_bytes() == b"*.o" and not (place / ".pypto-op").exists()
    assert not (tmp_path / "home/.claude/settings.json").exists(), "the account's own settings are not touched"


@pytest.mark.parametrize("before", [None, b"", b"{}\n", USERS, b'\xef\xbb\xbf{"enabledPlugins": {"a@b": true}}'])
def test_claude_codes_settings_come_back_byte_for_byte(place: Path, tmp_path: Path, before: bytes | None) -> None:
    needs("claude")
    env = clean(tmp_path, 9)
    settings = place / ".claude/settings.local.json"
    if before is not None:
        settings.parent.mkdir()
        settings.write_bytes(before)
    install(ROOT, place, harness="claude", env=env)
    told = json.loads(settings.read_bytes().decode("utf-8-sig"))
    assert any(name.startswith("pypto-op@") for name in told["enabledPlugins"])
    install(ROOT, place, "--uninstall", harness="claude", env=env)
    assert (settings.read_bytes() if settings.exists() else None) == before
    assert before is not None or not settings.parent.exists()


def test_a_settings_file_with_comments_is_refused_before_a_byte_is_written(place: Path, tmp_path: Path) -> None:
    needs("claude")
    settings = place / ".claude/settings.local.json"
    settings.parent.mkdir()
    settings.write_bytes(b'{\n  // mine\n  "model": "x"\n}')
    done = pypto_op(ROOT, "install", "--harness", "claude", "--target", str(place), env=clean(tmp_path, 9))
    assert done.returncode == 2 and "settings.local.json" in done.stderr and done.stderr.count("\n") == 1
    assert settings.read_bytes() == b'{\n  // mine\n  "model": "x"\n}' and not (place / ".pypto-op").exists()


def test_opencode_where_the_bundle_moved(place: Path, tmp_path: Path) -> None:
    opencode = needs("opencode")
    bundle = copy_bundle(tmp_path / "bundle")
    schema = b'"$schema": "https://opencode.ai/config.json"'  # where it is missing, the client writes it in
    own = {
        "opencode.json": b"{" + schema + b',"mcp": {}, "permission": {"edit": "allow"}}',
        "opencode.jsonc": b"{ // mine\r\n  " + schema + b', "theme": "x",\n}',
    }
    (place / ".opencode").mkdir()
    for name, content in own.items():
        (place / ".opencode" / name).write_bytes(content)
    environment = opencode_environment(clean(tmp_path, 9), tmp_path / "home")
    install(bundle, place, harness="opencode", env=environment)
    moved = bundle.rename(tmp_path / "renamed")
    environment["OPENCODE_CONFIG"] = str(tmp_path / "opencode.json")
    command = [opencode, "run", "--format", "json", "[[actor:main]]"]
    with scripted_model(OPENCODE) as model:
        (tmp_path / "opencode.json").write_text(json.dumps(opencode_provider(model.port)))
        run_client(command, place, environment)
        survived(model, place, "doctor --target")
        assert pypto_op(moved, "doctor", "--target", str(place), env=environment).returncode == 0
        model.requests.clear()
        run_client(command, place, environment)
        assert "blocking_rules: OL01" in model.told("main", 3)
        offered = tools_of(model, "main")
        assert "pypto-op_verify" in offered and "pypto-op_state_transition" not in offered
    install(moved, place, "--uninstall", harness="opencode", env=environment)
    assert {name: (place / ".opencode" / name).read_bytes() for name in own} == own
    assert not (place / ".opencode/plugins").exists() and not (place / ".opencode/pypto-op").exists()


@pytest.mark.parametrize("is_set_up", [True, False], ids=["set up", "bare"])
def test_the_plugin_from_a_marketplace(place: Path, tmp_path: Path, is_set_up: bool) -> None:
    claude = needs("claude")
    checkout = copy_bundle(tmp_path / "checkout", venv=is_set_up)
    (checkout / ".cache-of-a-build").write_bytes(b"x" * 20_000_000)
    with scripted_model(CLAUDE) as model:
        env = clean(tmp_path, model.port)
        for words in (["marketplace", "add", str(checkout)], ["install", "pypto-op@pypto-op", "--scope", "local"]):
            run_client([claude, "plugin", *words], place, env)
        copied = tmp_path / "home/.claude/plugins/cache/pypto-op"
        size = sum(path.stat().st_size for path in copied.rglob("*") if path.is_file())
        assert 100_000 < size < 5_000_000 and any(copied.rglob("hooks/hook.sh")) and any(copied.rglob("SKILL.md"))
        begun, _ = session(tmp_path, place, model)
        assert [server["status"] for server in begun["mcp_servers"]] == ["connected"]
        assert "pypto-op:pypto-op-coder" in begun["agents"] and "pypto-op:pypto-op-develop" in begun["skills"]
        if is_set_up:
            assert "blocking_rules: OL01" in model.told("main", 3)
            assert "mcp__plugin_pypto-op_pypto-op__verify" in tools_of(model, "main")
            return
        remedy = f"make -C '{checkout}' setup"
        survived(model, place, remedy)
        assert remedy in model.told("main", 0), "the first session says what to run"
        tools = {tool["name"]: tool for body in model.requests for tool in body.get("tools", [])}
        assert remedy in tools["mcp__plugin_pypto-op_pypto-op__set_up"]["description"]
        # What the client would run from its copy, as it does for a marketplace that is no folder of this machine.
        (copy,) = copied.rglob("hooks/hook.sh")
        event = {"hook_event_name": "PreToolUse", "tool_name": "Write", "tool_input": {"file_path": IMPL}, "cwd": str(place)}
        done = subprocess.run(
            ["sh", str(copy), "pre"], input=json.dumps(event), env=env, cwd=place, capture_output=True, text=True, check=True
        )
        assert "make setup" in done.stdout and "deny" in done.stdout
