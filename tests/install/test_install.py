"""`pypto-op install`: idempotent, dry, reversible; a user's own files are never touched."""

from __future__ import annotations

import json
import os
import shutil
import stat
import sys
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from tests import calling
from tests.quickly import needs_package
from tests.telling import told_lines

from pypto_op.bundle.agents import load_agents
from pypto_op.bundle_files import bundle_root
from pypto_op.errors import InfraError
from pypto_op.hashing import sha256_bytes
from pypto_op.install import target as target_module
from pypto_op.install.commands import check_python
from pypto_op.install.commands import install as command
from pypto_op.install.render import CLAUDE_PLUGIN, render
from pypto_op.install.target import MANIFEST
from pypto_op.vocabulary import Role

pytestmark = needs_package("mcp")


@pytest.fixture
def place(tmp_path):
    """A workspace with a space in its path and a file of the user's own."""
    root = tmp_path / "my work"
    (root / "custom").mkdir(parents=True)
    (root / "notes.txt").write_text("mine")
    return root


def run(place, *words, harness="both", files_only=True):
    """Call the command as a user does; return exit code and what was said."""
    named = [] if harness is None else ["--harness", harness]
    arguments = [*named, "--target", str(place), *(["--files-only"] if files_only else []), *words]
    done = CliRunner().invoke(command, arguments, standalone_mode=False)
    if done.exception:
        raise done.exception
    return done.return_value, done.output


def refused(place, *words, harness="both", files_only=True):
    """Call the command through `main`; return exit code and its one line."""
    arguments = ["install", "--harness", harness, "--target", str(place), *(["--files-only"] if files_only else []), *words]
    answer = calling.command(*arguments)
    (line,) = told_lines(answer.stderr)
    return answer.code, line


def tree(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


@pytest.mark.slow
def test_both_harnesses_come_and_go_without_a_trace(place):
    before = tree(place)
    code, said = run(place)
    assert code == 0 and "note: " in said and "white space" in said
    installed = tree(place)
    for agent in load_agents():
        assert f"{CLAUDE_PLUGIN}/agents/{agent.name}.md" in installed and f".opencode/agents/{agent.name}.md" in installed
    for path in (f"{CLAUDE_PLUGIN}/skills/pypto-op-develop/SKILL.md", ".opencode/skills/pypto-op-develop/SKILL.md", MANIFEST):
        assert path in installed
    assert run(place)[1].startswith(f"{place}: writes 0 files, removes 0")
    assert tree(place) == installed, "a second run changes nothing"
    run(place, "--uninstall", harness=None)
    assert tree(place) == before
    assert sorted(path.name for path in place.iterdir()) == ["custom", "notes.txt"], "no empty folder is left"


@pytest.mark.slow
def test_one_harness_may_be_added_and_removed_alone(place):
    run(place, harness="claude")
    assert not (place / ".opencode").exists()
    run(place, harness="opencode")
    assert (place / ".opencode").exists() and (place / CLAUDE_PLUGIN).exists()
    run(place, "--uninstall", harness="claude")
    assert (place / ".opencode/plugins/pypto-op.js").exists() and not (place / CLAUDE_PLUGIN).exists()
    assert "nothing of pypto-op is installed for claude" in run(place, "--uninstall", harness="claude")[1]
    run(place, "--uninstall", harness="opencode")
    assert not (place / ".opencode").exists() and not (place / ".pypto-op").exists()


def test_a_dry_run_says_everything_and_does_nothing(place):
    before = tree(place)
    _, said = run(place, "--dry-run")
    assert "would write" in said and "+ .opencode/agents/pypto-op-coder.md" in said
    assert tree(place) == before and not (place / ".pypto-op").exists()
    run(place)
    installed = tree(place)
    assert "- .opencode/agents/pypto-op-coder.md" in run(place, "--uninstall", "--dry-run")[1]
    assert tree(place) == installed


@pytest.mark.parametrize(
    "own", [".opencode/agents/pypto-op-coder.md", ".opencode/plugins/pypto-op.js", f"{CLAUDE_PLUGIN}/.mcp.json"]
)
def test_a_file_of_the_users_own_in_the_way_stops_everything(place, own):
    (place / own).parent.mkdir(parents=True)
    (place / own).write_text("my own agent\n")
    before = tree(place)
    code, said = refused(place)
    assert code == 2 and own in said and "nothing was written" in said
    assert tree(place) == before


def test_agents_of_the_same_name_in_the_project_are_named(place):
    own = place / ".claude/agents/pypto-op-coder.md"
    own.parent.mkdir(parents=True)
    own.write_text("---\nname: pypto-op-coder\n---\nmine\n")
    code, said = refused(place, harness="claude")
    assert code == 2 and "pypto-op-coder" in said and not (place / CLAUDE_PLUGIN).exists()


@pytest.mark.slow
def test_what_the_user_changed_is_kept_on_removal_and_in_the_way_of_an_update(place, monkeypatch):
    run(place)
    changed = place / ".opencode/agents/pypto-op-coder.md"
    changed.write_text(changed.read_text() + "mine too\n")
    code, said = refused(place)
    assert code == 2 and "pypto-op-coder.md" in said
    _, said = run(place, "--uninstall")
    assert "kept, since it was changed by hand: .opencode/agents/pypto-op-coder.md" in said
    assert sorted(path.name for path in (place / ".opencode").rglob("*") if path.is_file()) == ["pypto-op-coder.md"]


def test_a_newer_bundle_replaces_and_clears_what_an_older_one_wrote(place, monkeypatch):
    run(place, harness="opencode")
    old = place / ".opencode/agents/pypto-op-retired.md"
    old.write_text("an agent of the older bundle")
    manifest = json.loads((place / MANIFEST).read_text())
    manifest["files"][".opencode/agents/pypto-op-retired.md"] = sha256_bytes(old.read_bytes())
    manifest["version"] = "0.0.9"
    (place / MANIFEST).write_text(json.dumps(manifest))
    _, said = run(place, harness="opencode")
    assert "replaces version 0.0.9" in said and not old.exists()
    assert json.loads((place / MANIFEST).read_text())["version"] != "0.0.9"


def test_a_newer_version_in_the_target_is_not_overwritten_by_an_older_bundle(place):
    run(place)
    manifest = json.loads((place / MANIFEST).read_text())
    manifest |= {"version": "99.0.0", "bundle": "/opt/newer"}
    (place / MANIFEST).write_text(json.dumps(manifest))
    before = tree(place)
    for words in ((), ("--uninstall",)):
        code, said = refused(place, *words)
        assert code == 2 and "99.0.0" in said and "/opt/newer" in said
    assert tree(place) == before


@pytest.mark.parametrize("content", ["", "{", '{"files": {"../x": "1"}}', "[]"])
def test_a_broken_manifest_is_told_in_one_line(place, content):
    (place / ".pypto-op").mkdir()
    (place / MANIFEST).write_text(content)
    code, said = refused(place)
    assert code == 2 and "install.json" in said


def test_a_link_out_of_the_target_is_not_followed(place, tmp_path):
    outside = tmp_path / "elsewhere"
    outside.mkdir()
    (place / ".opencode").symlink_to(outside)
    code, said = refused(place)
    assert code == 2 and "a link leads out" in said and not list(outside.iterdir())


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "make", [os.mkfifo, Path.mkdir, lambda path: path.symlink_to("/dev/zero")], ids=["pipe", "folder", "device"]
)
def test_settings_that_are_no_file_are_told_before_anything_is_written(place, monkeypatch, make):
    monkeypatch.setattr("pypto_op.install.claude_client.find", lambda _client: None)
    monkeypatch.setattr("pypto_op.install.claude_client.register", lambda *_words: None)
    (place / ".claude").mkdir()
    make(place / ".claude" / "settings.local.json")
    code, said = refused(place, harness="claude", files_only=False)
    assert code == 2 and "settings.local.json: is no regular file" in said
    assert not (place / ".pypto-op").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_target_is_told_before_anything_is_written(place):
    place.chmod(0o555)
    try:
        code, said = refused(place)
    finally:
        place.chmod(0o755)
    assert code == 3 and "cannot be written" in said


def test_where_the_disk_refuses_one_line_says_so_and_the_rest_can_be_removed(place, monkeypatch):
    real = target_module.Target._write

    def failing(self, path, content, **options):
        if path.endswith("pypto-op-debugger.md"):
            raise OSError(28, "No space left on device", str(place / path))
        real(self, path, content, **options)

    monkeypatch.setattr(target_module.Target, "_write", failing)
    code, said = refused(place)
    assert code == 3 and "No space left on device); make room on its disk, then run the same command again" in said
    monkeypatch.undo()
    run(place, "--uninstall")
    assert sorted(path.name for path in place.iterdir()) == ["custom", "notes.txt"]


def test_a_missing_target_is_made_and_a_missing_client_is_named(place, monkeypatch, tmp_path):
    fresh = tmp_path / "nowhere" / "yet"
    assert "would write" in run(fresh, "--dry-run")[1] and not fresh.parent.exists()
    assert refused(fresh, "--uninstall")[0] == 2 and not fresh.parent.exists()
    assert run(fresh)[0] == 0 and (fresh / MANIFEST).is_file()
    code, said = refused(place / "notes.txt")
    assert code == 2 and "notes.txt: is no folder; name a folder, or move away what stands there" in said
    monkeypatch.setenv("PATH", str(tmp_path))
    for harness, word in (("claude", "Claude Code"), ("opencode", "OpenCode")):
        code, said = refused(place, harness=harness, files_only=False)
        assert code == 3 and f"{word} is not installed" in said and "--files-only" in said
    assert not (place / ".pypto-op").exists()


@pytest.mark.parametrize("version", [(3, 9), (3, 13), (2, 7)])
def test_a_wrong_python_is_named(version):
    with pytest.raises(InfraError, match=r"Python 3\.10 to 3\.12 is needed"):
        check_python(version)
    check_python((3, 11))


def head_of(file) -> dict:
    return yaml.safe_load(file.content.decode().split("---\n")[1])


def test_claude_gets_exact_tools_and_prefixed_skills():
    plan = render("claude", python="/a b/python")
    for agent in load_agents():
        head = head_of(plan[f"{CLAUDE_PLUGIN}/agents/{agent.name}.md"])
        assert head["tools"].split(", ") == list(agent.tools)
        assert head.get("skills", []) == [f"pypto-op:{skill}" for skill in agent.skills]
        assert ("state_transition" in head["tools"]) == (agent.name == Role.ORCHESTRATOR)
    hooks = json.loads(plan[f"{CLAUDE_PLUGIN}/hooks/hooks.json"].content)
    source = json.loads((bundle_root() / "hooks/hooks.json").read_text())
    assert hooks == source
    assert "bundle=" in plan[f"{CLAUDE_PLUGIN}/hooks/place.sh"].content.decode()
    assert "python='/a b/python'" in plan[f"{CLAUDE_PLUGIN}/hooks/place.sh"].content.decode()
    assert list(json.loads(plan[f"{CLAUDE_PLUGIN}/.mcp.json"].content)["mcpServers"]) == ["pypto-op"]


def test_opencode_gets_permissions_that_deny_everything_else():
    plan = render("opencode")
    assert ".opencode/opencode.json" not in plan, "that file is the user's"
    for agent in load_agents():
        allowed = head_of(plan[f".opencode/agents/{agent.name}.md"])["permission"]
        assert next(iter(allowed.items())) == ("*", "deny"), "later rules win, so the general one comes first"
        assert ("pypto-op_state_transition" in allowed) == (agent.name == Role.ORCHESTRATOR)
        assert ("task" in allowed) == ("Agent" in agent.tools)


@pytest.mark.slow
def test_the_launcher_runs_the_command(place):
    import subprocess

    run(place)
    for path in (f"{CLAUDE_PLUGIN}/bin/pypto-op", ".opencode/pypto-op/bin/pypto-op"):
        launcher = place / path
        assert launcher.stat().st_mode & stat.S_IXUSR
        done = subprocess.run([str(launcher), "--version"], capture_output=True, text=True, check=True)
        assert "pypto-op" in done.stdout


@pytest.mark.parametrize("skills", [f"{CLAUDE_PLUGIN}/skills", ".opencode/skills"])
@pytest.mark.slow
def test_scripts_of_a_copied_skill_find_the_bundle_from_any_python(place, skills):
    import subprocess

    run(place)
    kernel = bundle_root() / "examples/triton/softmax/softmax_triton_ascend_impl.py"
    script = f"{skills}/kernel-verifier/scripts/validate_triton_impl.py"
    for path, code, said in ((place / CLAUDE_PLUGIN / "bin", 0, "valid"), ("/nowhere", 3, "not on PATH")):
        done = subprocess.run(
            [sys.executable, "-S", script, str(kernel)], cwd=place, env={"PATH": f"{path}:/usr/bin:/bin"},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == code and said in done.stdout + done.stderr, done.stderr


@pytest.mark.slow
def test_an_installed_wheel_holds_all_that_the_installer_needs(tmp_path):
    """What the wheel includes, laid out as it is in site-packages, renders the same files as the checkout."""
    import tomllib

    built = tomllib.loads((bundle_root() / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    included = {
        source: inside for source, inside in {**built["sources"], **built["force-include"]}.items() if "_bundle" in inside
    }
    wheel = tmp_path / "wheel"
    for source, inside in included.items():
        there = wheel / inside
        there.parent.mkdir(parents=True, exist_ok=True)
        path = bundle_root() / source
        shutil.copytree(path, there, symlinks=True) if path.is_dir() else shutil.copy(path, there)
    for harness in ("claude", "opencode"):
        mine, theirs = render(harness), render(harness, root=wheel / "pypto_op/_bundle", python=sys.executable)
        assert mine.keys() == theirs.keys()
