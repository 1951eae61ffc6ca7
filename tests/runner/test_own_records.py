"""What a program of an agent does to the run's own records and to other roles' files: it is seen, and decides nothing."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.runner.running import Running, calls, says
from tests.runner.test_resume import CODER, turns
from tests.runner.test_view import needs_name_spaces

from pypto_op.proof.key import key_file
from pypto_op.runner import journal
from pypto_op.runner.loopback import Answer, Body
from pypto_op.runner.tools import table

STATE = "mcp__plugin_pypto-op_pypto-op__state_transition"


def sh(words: str) -> tuple[str, dict[str, Any]]:
    return "Bash", {"command": words}


def program(code: str) -> tuple[str, dict[str, Any]]:
    """A call whose words show the guard nothing: the program reads its own code backwards."""
    return sh(f"python3 -c \"exec('''{code[::-1]}'''[::-1])\"")


def state(action: str) -> tuple[str, dict[str, Any]]:
    return STATE, {"op_dir": "custom/soft", "action": action}


def by_coder(running: Running, code: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """An operator whose state was begun, then a program of the coder; return what its call and the state's status answered."""

    def say(number: int, body: Body, headers: Mapping[str, str]) -> Answer:
        if headers["x-pypto-op-agent"].endswith("coder"):
            return calls(program(code)) if turns(body) == 0 else says("coder kernel: DONE")
        script = [calls(sh("pypto-op new soft")), calls(state("init")), calls(("Agent", CODER)), calls(state("status"))]
        return script[turns(body)] if turns(body) < len(script) else says("done")

    done = running.run(say, "--op", "soft")
    assert done.code == 1, done
    found = {(line["conversation"], line["id"]): line for line in running.lines if line["kind"] == "result"}
    return found["main/2.0", "0.0"], json.loads(found["main", "3.0"]["content"])


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("open('custom/soft/soft_golden.py', 'w').write('x = 1')", "does not own it; it belongs to pypto-op-planner"),
        ("import os; os.remove('custom/soft/SPEC.md')", "was deleted by a shell command: pypto-op-coder does not own it"),
        ("import shutil; shutil.rmtree('custom')", "was deleted by a shell command: pypto-op-coder does not own it"),
        ("open(KEY, 'w').write('0' * 64)", "the account's sealing key"),
        ("import os; os.remove(KEY)", "the account's sealing key"),
        ("open('custom/soft/.orchestrator_state.json', 'w').write('{}')", "its seal no longer holds"),
        ("import os; os.remove('custom/soft/.orchestrator_journal.jsonl')", "of the state machine was deleted"),
    ],
)
@pytest.mark.slow
def test_what_is_not_the_agents_is_seen(running: Running, code: str, told: str) -> None:
    result, _ = by_coder(running, code.replace("KEY", repr(str(key_file()))))
    assert result["is_error"] and told in result["content"], result["content"]


@pytest.mark.slow
def test_a_state_that_is_taken_away_is_seen_and_finished_by_nobody(running: Running) -> None:
    """Right after it was made, before anything else was called: whatever is begun anew has every stage before it."""
    code = "import glob, os; [os.remove(path) for path in glob.glob('custom/soft/.orchestrator_*') if os.path.isfile(path)]"
    result, status = by_coder(running, code)
    assert result["is_error"] and result["content"].count("of the state machine was deleted") == 2, result["content"]
    assert status["current_stage"] is None


@needs_name_spaces
@pytest.mark.slow
def test_a_program_does_not_see_the_runs(running: Running) -> None:
    """Neither the transcript, whose lines --resume believes, nor the tokens of the state beside it."""
    sessions = str(journal.sessions_folder(running.workspace).parent)
    code = f"import os, shutil; print(os.listdir({sessions!r})); shutil.rmtree({sessions!r})"
    running.run([calls(program(code)), says("done")])
    assert "[]" in running.told(1) and "busy" in running.told(1)
    assert running.run([says("done")], "--resume", request="").code == 1 and len(running.lines) > 5


def _removed(path: Path) -> None:
    shutil.rmtree(path.parent)


def _longer(path: Path) -> None:
    with path.open("a") as file:
        file.write('{"kind": "resumed", "budget": {"tokens": 1000000000}}\n')


def _another(path: Path) -> None:
    path.write_bytes(path.rename(path.with_suffix(".old")).read_bytes())


@pytest.mark.parametrize("change", [_removed, _longer, _another])
def test_a_transcript_that_somebody_takes_away_or_changes_ends_the_run(running: Running, change: Any) -> None:
    """Where a command sees the runs' folder: the run says so, and no call is made after that."""

    def say(number: int, body: Body, headers: Mapping[str, str]) -> Answer:
        if number == 1:
            change(journal.latest_session(running.workspace) / journal.TRANSCRIPT)
        return calls(sh(f"python3 -c \"open('call-{number}', 'w')\""))

    done = running.run(say, "--json")
    assert done.code == 1 and "its transcript was removed or changed" in json.loads(done.stdout)["why"], done
    assert [path.name for path in running.workspace.glob("call-*")] == ["call-0"] and len(running.bodies) == 2


def test_an_answer_that_is_too_long_for_the_screen(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "MOST_CHARACTERS", 60)
    done = running.run([calls(state("status")), says("done")])
    assert done.code == 1 and "internal error" not in done.stderr and "characters left out" in running.told(1), done


def test_a_tool_that_fails_says_why(running: Running) -> None:
    running.run([calls((STATE, {"op_dir": "custom/" + "a" * 5000, "action": "status"})), says("done")])
    assert "File name too long" in running.told(1)
