"""Tools of other servers: judged by the paths, commands and code that their inputs name."""

from __future__ import annotations

from typing import Any

import pytest
from tests.hooks.conftest import BAD_IMPL, Harness

OP = "custom/soft"
CODER, VERIFIER = "pypto-op:pypto-op-coder", "pypto-op:pypto-op-verifier"
GOLDEN = f"{OP}/modules/soft_module1_golden.py"

REFUSED: list[tuple[str | None, str, dict[str, Any], str]] = [
    (None, "mcp__filesystem__write_file", {"path": f"{OP}/.orchestrator_state.json", "content": "{}"}, "state machine"),
    (None, "mcp__filesystem__edit_file", {"path": f"{OP}/SPEC.md", "edits": [{"oldText": "a", "newText": "b"}]}, "frozen"),
    (None, "mcp__x__edit", {"args": {"target": {"file": f"{OP}/SPEC.md"}}}, "frozen"),
    (None, "mcp__x__apply", {"files": ["src/a.py", f"{OP}/DESIGN.md"]}, "frozen"),
    (None, "mcp__x__do_it", {"uri": f"file://{{workspace}}/{OP}/DESIGN.md"}, "frozen"),
    (None, "mcp__filesystem__move_file", {"source": f"{OP}/soft_golden.py", "destination": "src/x.py"}, "frozen"),
    (None, "mcp__filesystem__delete_directory", {"path": OP}, "files below it"),
    (None, "mcp__filesystem__move_file", {"source": "custom", "destination": "src/x"}, "files below it"),
    (None, "mcp__filesystem__write_file", {"path": "/tmp/x.py", "content": "x"}, "outside the workspace"),
    (CODER, "mcp__filesystem__write_file", {"path": f"{OP}/test_soft.py", "content": "x"}, "does not own it"),
    (CODER, "mcp__filesystem__read_text_file", {"path": GOLDEN}, "information barrier"),
    (CODER, "mcp__filesystem__read_multiple_files", {"paths": ["src/a.py", GOLDEN]}, "information barrier"),
    (CODER, "mcp__filesystem__search_files", {"path": OP, "pattern": "x"}, "goldens"),
    (CODER, "mcp__filesystem__copy_file", {"source": GOLDEN, "destination": f"{OP}/_debug/x"}, "information barrier"),
    (CODER, "mcp__shell__run", {"command": f"cat {GOLDEN}"}, "information barrier"),
    (CODER, "mcp__shell__execute", {"cmd": "pypto-op state complete_stage"}, "only pypto-op-orchestrator"),
    (CODER, "mcp__git__git_diff", {"repo_path": ".", "target": "HEAD~1"}, "history"),
    (CODER, "mcp__shell__get_output", {"command": f"cat {GOLDEN}"}, "information barrier"),
    (CODER, "mcp__ide__executeCode", {"code": f"print(open('{GOLDEN}').read())"}, "information barrier"),
    # a server may stand in another folder than the session
    (CODER, "mcp__filesystem__read_text_file", {"path": "modules/soft_module1_golden.py"}, "information barrier"),
    (CODER, "mcp__filesystem__copy_file", {"source": "soft_module1_golden.py", "destination": "x"}, "information barrier"),
    (CODER, "mcp__shell__run", {"command": "cat modules/soft_module1_golden.py"}, "information barrier"),
    (CODER, "mcp__shell__run", {"command": "head *", "working_dir": f"{{workspace}}/{OP}/modules"}, "information barrier"),
    (CODER, "mcp__shell__run", {"command": "head *"}, "whatever is named"),
    (CODER, "mcp__shell__run", {"command": "git ls-files | xargs cat"}, "whatever is named"),
    (CODER, "mcp__ide__executeCode", {"code": "print(open('modules/soft_module1_golden.py').read())"}, "information barrier"),
    (None, "mcp__ide__executeCode", {"code": "from pypto_op.proof.key import load_key"}, "sealing key"),
]
FREE: list[tuple[str | None, str, dict[str, Any]]] = [
    (None, "mcp__filesystem__write_file", {"path": f"{OP}/soft_impl.py", "content": "x"}),
    (CODER, "mcp__filesystem__write_file", {"path": f"{OP}/soft_impl.py", "content": f"# {OP}/SPEC.md\n"}),
    (CODER, "mcp__filesystem__write_file", {"path": f"{OP}/_debug/x.py", "content": "x"}),
    (CODER, "mcp__filesystem__read_text_file", {"path": f"{OP}/SPEC.md"}),
    (CODER, "mcp__filesystem__list_directory", {"path": "src"}),
    (CODER, "mcp__plugin_pypto-op_pypto-op__verify", {"op_dir": OP, "modes": "sim"}),
    (CODER, "mcp__plugin_pypto-op_pypto-op__lint", {"path": f"{OP}/soft_impl.py"}),
    (VERIFIER, "mcp__plugin_pypto-op_pypto-op__lint", {"path": GOLDEN}),
    (CODER, "mcp__plugin_pypto-op_pypto-op__pypto_api", {"name": "matmul"}),
    (None, "mcp__github__create_issue", {"title": "a/b", "body": "see custom/soft/SPEC.md", "owner": "x"}),
    (None, "mcp__shell__run", {"command": "ls custom/soft"}),
    (CODER, "mcp__shell__run", {"command": "python3 test_soft.py | tail -5; cat soft_impl.py SPEC.md"}),
    (CODER, "mcp__shell__run", {"command": "cat *.py", "working_dir": f"{{workspace}}/{OP}"}),
    (CODER, "mcp__filesystem__read_text_file", {"path": "soft_impl.py"}),
]


@pytest.mark.parametrize(("agent", "tool", "given", "why"), REFUSED)
def test_a_tool_that_would_touch_what_it_may_not_is_refused(
    shared: Harness, agent: str | None, tool: str, given: dict[str, Any], why: str
) -> None:
    given = {
        key: value.format(workspace=shared.workspace) if key in ("uri", "working_dir") else value for key, value in given.items()
    }
    assert why in shared.before(tool, agent, **given).denied


@pytest.mark.parametrize(("agent", "tool", "given"), FREE)
def test_a_tool_that_does_its_work_runs(shared: Harness, agent: str | None, tool: str, given: dict[str, Any]) -> None:
    given = {key: value.format(workspace=shared.workspace) if key == "working_dir" else value for key, value in given.items()}
    assert shared.before(tool, agent, **given).out == ""


def test_what_it_wrote_is_linted(harness: Harness) -> None:
    path = harness.workspace / OP / "soft_impl.py"
    given = {"path": str(path), "content": BAD_IMPL}
    assert harness.before("mcp__filesystem__write_file", **given).out == ""
    path.write_text(BAD_IMPL)
    assert "blocking_rules: OL01" in harness.after("mcp__filesystem__write_file", **given).blocked
    assert harness.after("mcp__filesystem__read_file", path=str(path)).out == ""


def test_what_code_wrote_is_told(harness: Harness) -> None:
    path = harness.workspace / OP / "test_soft.py"
    code = {"code": f"w = open; w('{path}', 'w')"}
    assert harness.before("mcp__ide__executeCode", CODER, **code).out == ""
    path.write_text("")
    told = harness.after("mcp__ide__executeCode", CODER, **code).blocked
    assert "test_soft.py: this file was changed by mcp__ide__executeCode: pypto-op-coder does not own it" in told
