"""The shape of the answers, and what happens to input that is late, empty, huge, malformed or odd."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.hooks.conftest import BAD_IMPL, GOOD_IMPL, HOOK, ROOT, Answer, Harness

OP = "custom/soft"
BANNER = "[pypto-op-lint] 产物写入后即时门禁未通过(S0/S1)"


def test_a_bad_write_is_refused_in_the_harness_own_shape(harness: Harness) -> None:
    answer = harness.write(f"{OP}/soft_impl.py", BAD_IMPL)
    assert set(answer.json) == {"decision", "reason"}
    assert answer.json["decision"] == "block"
    lines = answer.blocked.splitlines()
    assert lines[0] == BANNER
    assert any(line.startswith("  [OL01][S0] custom/soft/soft_impl.py") for line in lines)
    assert any(line.startswith("blocking_rules: OL01") for line in lines)
    assert "fix_hints:" in lines
    assert any(line.startswith("  - OL01: ") for line in lines)
    assert f"file: {harness.workspace / OP / 'soft_impl.py'}" in lines
    assert BANNER in answer.out, "the banner is readable in the raw output too"


def test_a_good_write_is_answered_with_nothing(harness: Harness) -> None:
    answer = harness.write(f"{OP}/soft_impl.py", GOOD_IMPL)
    assert answer.blocked == ""
    assert answer.err == ""


def test_every_kind_of_operator_file_is_linted_where_it_lies(harness: Harness) -> None:
    assert "OL01" in harness.write(f"{OP}/modules/soft_module12_impl.py", BAD_IMPL).blocked
    assert "OL01" in harness.write("custom/fresh/fresh_impl.py", BAD_IMPL.replace("soft", "fresh")).blocked
    assert harness.write(f"{OP}/_debug/soft_impl.py", BAD_IMPL).out == ""
    assert harness.write("src/other.py", BAD_IMPL).out == ""


@pytest.mark.parametrize("tool", ["Write", "Edit", "MultiEdit"])
def test_each_edit_tool_is_linted(harness: Harness, tool: str) -> None:
    path = harness.workspace / OP / "soft_impl.py"
    path.write_text(BAD_IMPL)
    assert "OL01" in harness.after(tool, file_path=str(path)).blocked
    assert "OL01" in harness.after(tool, file_path=f"{OP}/soft_impl.py").blocked


@pytest.mark.parametrize("kind", ["pre", "post", "stop"])
@pytest.mark.parametrize(
    "stdin",
    [b"", b"   \n", b"{", b"[1, 2]", b'"text"', b"null", b"{} trailing", b"\xff\xfe{}", b"{'single': 1}", b"[" * 100_000],
    ids=["empty", "blank", "cut", "list", "string", "null", "trailing", "utf16", "python", "deep"],
)
def test_unusable_input_gets_a_clear_answer(shared: Harness, kind: str, stdin: bytes) -> None:
    answer = shared.raw(kind, stdin)
    assert answer.code == 0
    assert "Traceback" not in answer.err
    told = answer.denied or answer.blocked or answer.json.get("systemMessage", "")
    assert "not checked" in told, answer
    assert bool(answer.denied) == (kind == "pre")
    assert bool(answer.blocked) == (kind == "post")


def test_unusable_input_of_unknown_kind_stops_the_tool(shared: Harness) -> None:
    for stdin in (b"", b"{}", b'{"hook_event_name": 3}'):
        answer = shared.raw("", stdin)
        assert answer.code == 2
        assert answer.out == ""
        assert "nothing was checked" in answer.err


def test_an_event_that_is_none_of_ours_is_let_through(shared: Harness) -> None:
    assert shared.event("SessionStart").out == ""
    assert shared.before("WebSearch", query="x").out == ""
    assert shared.after("TodoWrite", todos=[]).out == ""


@pytest.mark.parametrize(
    "fields",
    [
        {"tool_input": None},
        {"tool_input": []},
        {"tool_input": {"file_path": 3, "command": {}}},
        {"tool_name": None},
        {"cwd": 7},
        {"agent_type": ["x"], "session_id": None},
    ],
)
@pytest.mark.parametrize("event", ["PreToolUse", "PostToolUse", "Stop"])
def test_wrong_types_never_end_in_a_traceback(shared: Harness, event: str, fields: dict[str, Any]) -> None:
    answer = shared.event(event, **{"tool_name": "Write", "tool_input": {"file_path": f"{OP}/SPEC.md"}, **fields})
    assert answer.err == ""


def _slow(harness: Harness, pieces: list[tuple[float, bytes]], *, close: bool = True, **env: str) -> Answer:
    """Send stdin in pieces, each after a pause."""
    began = time.perf_counter()
    child = subprocess.Popen(
        ["sh", str(HOOK), "post"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        cwd=harness.workspace, env=harness.environment(**env),
    )  # fmt: skip
    assert child.stdin and child.stdout and child.stderr
    for pause, piece in pieces:
        time.sleep(pause)
        child.stdin.write(piece)
        child.stdin.flush()
    if close:
        child.stdin.close()
    out, err = child.stdout.read(), child.stderr.read()
    child.wait(timeout=300)
    return Answer(child.returncode, out.decode(), err.decode(), time.perf_counter() - began)


@pytest.mark.slow
def test_late_input_is_waited_for(harness: Harness) -> None:
    path = harness.workspace / OP / "soft_impl.py"
    path.write_text(BAD_IMPL)
    event = {"hook_event_name": "PostToolUse", "tool_name": "Write", "tool_input": {"file_path": str(path)}}
    text = json.dumps({**event, "cwd": str(harness.workspace)}).encode()
    assert "OL01" in _slow(harness, [(0.6, text[:20]), (0.6, text[20:])]).blocked


def test_input_that_never_ends_is_answered_in_time(harness: Harness) -> None:
    event = b'{"hook_event_name": "PostToolUse", '
    answer = _slow(harness, [(0, event)], close=False, PYPTO_OP_HOOK_STDIN_SECONDS="0.5")
    assert "still open after 0.5 s" in answer.blocked


def test_a_complete_event_counts_though_stdin_stays_open(harness: Harness) -> None:
    path = harness.workspace / OP / "soft_impl.py"
    path.write_text(BAD_IMPL)
    event = {"hook_event_name": "PostToolUse", "tool_name": "Write", "tool_input": {"file_path": str(path)}}
    answer = _slow(harness, [(0, json.dumps(event).encode())], close=False, PYPTO_OP_HOOK_STDIN_SECONDS="0.5")
    assert "OL01" in answer.blocked


def test_malformed_input_after_a_write_does_not_hide_what_was_written(harness: Harness) -> None:
    harness.before("Bash", command="true")
    (harness.workspace / OP / "soft_impl.py").write_text(BAD_IMPL)
    answer = harness.raw("post", b"{not json")
    assert "not checked" in answer.blocked
    assert BANNER in answer.blocked


@pytest.mark.parametrize("kind", ["PreToolUse", "PostToolUse"])
@pytest.mark.parametrize(
    "name", ["x" * 300 + ".py", "d/" * 2500 + "x.py", "a\0b.py", "\ud800.py"], ids=["name", "path", "NUL", "surrogate"]
)
def test_a_path_that_no_file_can_have_is_told_as_such(shared: Harness, kind: str, name: str) -> None:
    answer = shared.event(kind, tool_name="Write", tool_input={"file_path": f"{OP}/{name}"})
    assert "no file can have its path" in answer.out and "set up" not in answer.out and answer.err == ""


def test_a_patch_of_such_a_path_does_no_harm_to_later_calls(harness: Harness) -> None:
    harness.after("apply_patch", patchText=f"*** Begin Patch\n*** Add File: {OP}/{'x' * 300}.py\n+x\n*** End Patch")
    (harness.workspace / OP / "soft_impl.py").write_text(BAD_IMPL)
    for _ in range(2):
        answer = harness.after("Bash", command="true")
        assert "not checked" not in answer.out, "one bad name once ended every later look in an error"
    assert harness.event("Stop").blocked


@pytest.mark.parametrize(
    "given", [None, {"file_path": 3}, {"to": f"{OP}/soft_impl.py"}], ids=["nothing", "a number", "another key"]
)
def test_a_write_that_names_no_file_is_found_by_content(harness: Harness, given: Any) -> None:
    harness.before("Bash", command="true")
    (harness.workspace / OP / "soft_impl.py").write_text(BAD_IMPL)
    assert BANNER in harness.event("PostToolUse", tool_name="Write", tool_input=given).blocked


@pytest.mark.slow
def test_huge_input_is_answered(harness: Harness) -> None:
    big = "x" * (5 << 20)
    path = harness.workspace / OP / "soft_impl.py"
    path.write_text("# " + big)
    assert harness.after("Write", file_path=str(path), content=big).blocked
    answer = harness.raw("post", b'{"a": "' + b"x" * (65 << 20) + b'"}')
    assert "more than 64 MiB" in answer.blocked


@pytest.mark.parametrize(
    "content",
    [b"", b"\x00\x01\xff" * 50, "import pypto\n".encode("utf-16"), b"\xef\xbb\xbfimport pypto\r\n", b"(" * 50_000, b"def f(:\n"],
    ids=["empty", "binary", "utf16", "bom-crlf", "deep", "syntax"],
)
def test_a_file_that_is_no_kernel_is_refused_in_words(harness: Harness, content: bytes) -> None:
    path = harness.workspace / OP / "soft_impl.py"
    path.write_bytes(content)
    answer = harness.after("Write", file_path=str(path))
    assert answer.blocked
    assert "Traceback" not in answer.blocked


def test_a_file_that_vanished_and_a_folder_are_no_trouble(harness: Harness) -> None:
    assert harness.after("Write", file_path=f"{OP}/gone_impl.py").code == 0
    (harness.workspace / OP / "test_soft.py").unlink()
    (harness.workspace / OP / "test_soft.py").mkdir()
    assert harness.after("Write", file_path=f"{OP}/test_soft.py").code == 0
    (harness.workspace / OP / "modules" / "soft_module12_impl.py").symlink_to("soft_module12_impl.py")
    assert harness.after("Write", file_path=f"{OP}/modules/soft_module12_impl.py").code == 0


def test_the_command_lines_of_hooks_json_work_with_spaces_in_the_path(harness: Harness, tmp_path: Path) -> None:
    bundle = tmp_path / "my bundle"
    shutil.copytree(ROOT / "hooks", bundle / "hooks")
    (bundle / "lint").symlink_to(ROOT / "lint")
    (bundle / "scripts").symlink_to(ROOT / "scripts")
    (bundle / ".venv").symlink_to(ROOT / ".venv")
    table = json.loads((bundle / "hooks/hooks.json").read_text())["hooks"]
    assert set(table) == {"SessionStart", "PreToolUse", "PostToolUse", "Stop", "SubagentStop"}
    path = harness.workspace / OP / "soft_impl.py"
    path.write_text(BAD_IMPL)
    event = {"tool_name": "Write", "tool_input": {"file_path": str(path)}, "cwd": str(harness.workspace)}
    for name, expected in (("PreToolUse", "{}"), ("PostToolUse", "block"), ("Stop", "block"), ("SubagentStop", "block")):
        command = table[name][0]["hooks"][0]["command"]
        done = subprocess.run(
            ["sh", "-c", command], input=json.dumps({**event, "hook_event_name": name}).encode(), capture_output=True,
            env=harness.environment(CLAUDE_PLUGIN_ROOT=str(bundle)), check=True,
        )  # fmt: skip
        assert json.loads(done.stdout or b"{}").get("decision", "{}") == expected
    harness.stop_servers()


def test_the_matchers_cover_every_tool_that_writes() -> None:
    import re

    table = json.loads((ROOT / "hooks/hooks.json").read_text())["hooks"]
    for event in ("PreToolUse", "PostToolUse"):
        matcher = re.compile(table[event][0]["matcher"])
        assert all(matcher.fullmatch(tool) for tool in ("Write", "Edit", "MultiEdit", "NotebookEdit", "Bash"))
    before = re.compile(table["PreToolUse"][0]["matcher"])
    assert before.fullmatch("mcp__plugin_pypto-op_pypto-op__state_transition")
    assert before.fullmatch("mcp__filesystem__write_file") and matcher.fullmatch("mcp__filesystem__write_file")
    assert before.fullmatch("Read") and not before.fullmatch("WebFetch")


# -- which Python ----------------------------------------------------------------------------------------------


def _bundle_without_venv(tmp_path: Path) -> Path:
    bundle = tmp_path / "bundle"
    shutil.copytree(ROOT / "hooks", bundle / "hooks")
    (bundle / "lint").symlink_to(ROOT / "lint")
    (bundle / "scripts").symlink_to(ROOT / "scripts")
    return bundle


def _run(bundle: Path, kind: str, harness: Harness, event: dict[str, Any], **env: str) -> Answer:
    done = subprocess.run(
        ["/bin/sh", str(bundle / "hooks/hook.sh"), kind], input=json.dumps(event).encode(), capture_output=True,
        env={**harness.environment(), **env}, cwd=harness.workspace, check=False,
    )  # fmt: skip
    return Answer(done.returncode, done.stdout.decode(), done.stderr.decode(), 0)


def _tools(tmp_path: Path, *names: str) -> str:
    """Return a PATH with only these programs."""
    folder = tmp_path / "bin"
    folder.mkdir(exist_ok=True)
    for name in names:
        found = shutil.which(name)
        assert found
        (folder / name).symlink_to(found)
    return str(folder)


WRITE = {"tool_name": "Write", "tool_input": {"file_path": f"{OP}/soft_impl.py"}}


def _refusals(bundle: Path, harness: Harness, **env: str) -> list[str]:
    """Return what is said before and after a write of a kernel."""
    before = _run(bundle, "pre", harness, {"hook_event_name": "PreToolUse", **WRITE}, **env)
    after = _run(bundle, "post", harness, {"hook_event_name": "PostToolUse", **WRITE}, **env)
    for answer in (before, after):
        assert answer.code == 0 and "Traceback" not in answer.out + answer.err
    return [before.denied, after.blocked]


def test_without_any_python_what_touches_an_operator_is_refused(harness: Harness, tmp_path: Path) -> None:
    bundle, path = _bundle_without_venv(tmp_path), _tools(tmp_path, "dirname", "sh")
    for said in _refusals(bundle, harness, PATH=path):
        assert "make setup" in said and "\n" not in said
    assert _run(bundle, "pre", harness, {"tool_name": "Bash", "tool_input": {"command": "ls"}}, PATH=path).out == ""


def test_an_old_python_is_passed_over_or_named(harness: Harness, tmp_path: Path) -> None:
    bundle, path = _bundle_without_venv(tmp_path), _tools(tmp_path, "dirname", "sh", "cat", "awk", "sed", "readlink")
    fake = tmp_path / "old"
    fake.write_text(
        f'#!/bin/sh\nshift 2\nexec {ROOT}/.venv/bin/python -c "import sys, runpy; sys.version_info = (3, 7, 1);'
        ' path, *sys.argv[1:] = sys.argv[1:]; sys.argv[0] = path; runpy.run_path(path, run_name=\'__main__\')" "$@"\n'
    )
    fake.chmod(0o755)
    for said in _refusals(bundle, harness, PYPTO_OP_PYTHON=str(fake), PATH=path):
        assert "is 3.7" in said
    (bundle / ".venv").symlink_to(ROOT / ".venv")
    assert _refusals(bundle, harness, PYPTO_OP_PYTHON=str(fake), PATH=path) == ["", ""]


@pytest.mark.slow
def test_a_broken_client_is_told_in_one_line(harness: Harness, tmp_path: Path) -> None:
    bundle = _bundle_without_venv(tmp_path)
    (bundle / "lint").unlink()
    shutil.copytree(ROOT / "lint", bundle / "lint", ignore=shutil.ignore_patterns("__pycache__"))
    wire = bundle / "lint/pypto_op_lint/wire.py"
    wire.write_text("raise RuntimeError('broken\\nin two lines')\n")
    for said in _refusals(bundle, harness, PYPTO_OP_PYTHON=str(ROOT / ".venv/bin/python")):
        assert "RuntimeError: broken in two lines" in said and "\n" not in said
    wire.write_text("import os\n")  # imports, and lacks all that is asked of it
    for said in _refusals(bundle, harness, PYPTO_OP_PYTHON=str(ROOT / ".venv/bin/python")):
        assert said and "\n" not in said


def test_a_python_without_the_linter_is_passed_over_or_named(harness: Harness, tmp_path: Path) -> None:
    bundle = _bundle_without_venv(tmp_path)
    bare = tmp_path / "bare"
    subprocess.run([str(ROOT / ".venv/bin/python"), "-m", "venv", "--without-pip", str(bare)], check=True)
    path = harness.workspace / OP / "soft_impl.py"
    path.write_text(BAD_IMPL)
    event = {"hook_event_name": "PostToolUse", "tool_name": "Write", "tool_input": {"file_path": str(path)}}
    path = _tools(tmp_path, "dirname", "sh", "git", "awk", "sed", "cat", "readlink")
    env = {"PYPTO_OP_PYTHON": str(bare / "bin/python"), "PATH": path}
    answer = _run(bundle, "post", harness, event, **env)
    assert "was not checked" in answer.blocked
    assert "make setup" in answer.blocked
    (bundle / ".venv").symlink_to(ROOT / ".venv")
    assert "OL01" in _run(bundle, "post", harness, event, **env).blocked


def test_the_client_imports_little() -> None:
    """A new import would cost every tool call: only three modules of ours may be loaded, and nothing of anybody else."""
    code = (
        "import sys; before = set(sys.modules); sys.path.insert(0, sys.argv[1]); import pypto_op_lint.client;"
        "print(' '.join(sorted(set(sys.modules) - before)))"
    )
    done = subprocess.run(
        [str(ROOT / ".venv/bin/python"), "-I", "-S", "-c", code, str(ROOT / "lint")],
        capture_output=True, text=True, check=True, env={"PATH": os.environ["PATH"]},
    )  # fmt: skip
    loaded = set(done.stdout.split())
    ours = {"pypto_op_lint", "pypto_op_lint.client", "pypto_op_lint.concerns", "pypto_op_lint.wire"}
    slow = {"asyncio", "dataclasses", "logging", "pathlib", "subprocess", "tempfile", "typing"}
    assert {name for name in loaded - ours if name.split(".")[0] not in sys.stdlib_module_names} == set()
    assert loaded & slow == set()
