"""Whatever comes in, the hooks answer in their own words: random events, random shell text, random file names."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.hooks.conftest import STATE, Harness, make_operator

from pypto_op_lint import wire
from pypto_op_lint.guard.code import read_code
from pypto_op_lint.guard.commands import judge_command
from pypto_op_lint.guard.paths import Surroundings
from pypto_op_lint.guard.policy import Policy
from pypto_op_lint.guard.shell import Walker
from pypto_op_lint.guard.words import ANY, LISTED, STAR, pattern_regex

pytestmark = pytest.mark.slow


def judged(policy: Policy, command: str) -> str | None:
    return judge_command(policy, command, str(policy.around.cwd))


SHARED = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
FIELDS = st.sampled_from(
    ["tool_name", "tool_input", "cwd", "agent_type", "session_id", "stop_hook_active", "duration_ms", "tool_response"]
)
WORDS = st.sampled_from(
    ["echo", "cat", "rm", "-rf", ">", ">>", "|", "&&", ";", "&", "$(", ")", "`", "'", '"', "{", "}", "custom/soft", "$x",
     "custom/soft/soft_impl.py", "*", "~", "\\", "\n", "<<EOF", "EOF", "if", "then", "fi", "for", "in", "do", "done", "sed",
     "-i", "python3", "-c", "open('custom/soft/soft_impl.py','w')", "bash", "git", "checkout", "--", "find", "-delete",
     "${x:-y}", "((", "))", "[[", "]]", "case", "esac", "xargs", "env", "A=1", "产物", "\ud800", "\x01", "tee", "/tmp/x"]
)  # fmt: skip


@SHARED
@given(stdin=st.binary(max_size=200))
@example(stdin=b"{}")
@example(stdin=b'{"tool_name": null}')
def test_random_bytes_on_stdin(shared: Harness, stdin: bytes) -> None:
    answer = shared.raw("pre", stdin)
    assert answer.code == 0
    assert answer.err == ""
    assert answer.denied, "nothing that is no event passes a guard in silence"


@SHARED
@given(fields=st.dictionaries(FIELDS, JSON, max_size=6), event=st.sampled_from(["PreToolUse", "PostToolUse", "Stop"]))
def test_random_fields_of_an_event(shared: Harness, fields: dict[str, object], event: str) -> None:
    answer = shared.raw("pre", json.dumps({"hook_event_name": event, **fields}).encode())
    assert answer.code == 0
    assert answer.err == ""
    assert isinstance(answer.json, dict)


@SHARED
@given(words=st.lists(WORDS | st.text(max_size=6), max_size=14), separator=st.sampled_from([" ", ""]))
def test_random_shell_text_through_the_hook(shared: Harness, words: list[str], separator: str) -> None:
    answer = shared.raw("pre", json.dumps(
        {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": separator.join(words)}}
    ).encode())  # fmt: skip
    assert answer.code == 0
    assert answer.err == ""
    assert "fault of pypto-op" not in answer.out


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Policy:
    workspace = tmp_path_factory.mktemp("fuzz") / "w"
    make_operator(workspace / "custom" / "soft", STATE)
    return Policy(Surroundings(workspace, Path("/home/x"), workspace), None)


@settings(max_examples=300)
@given(words=st.lists(WORDS | st.text(max_size=10), max_size=24), separator=st.sampled_from([" ", "", "\n"]))
def test_random_shell_text_in_the_library(policy: Policy, words: list[str], separator: str) -> None:
    reason = judged(policy, separator.join(words))
    assert reason is None or reason.startswith("[pypto-op-guard] ")


QUOTINGS = st.sampled_from(["{}", "'{}'", '"{}"', "$'{}'"])


@settings(max_examples=200)
@given(data=st.data())
def test_no_quoting_hides_a_redirect(policy: Policy, data: st.DataObject) -> None:
    """A target may be cut anywhere, each piece quoted in its own way: it stays the same target."""
    target, pieces = "custom/soft/soft_impl.py", []
    while target:
        size = data.draw(st.integers(1, len(target)))
        pieces.append(data.draw(QUOTINGS).format(target[:size]))
        target = target[size:]
    prefix = data.draw(st.sampled_from(["echo x >", "tee ", "true && : >>", "(cd . && rm -f ", "A=1 truncate -s 0 "]))
    suffix = ")" if prefix.startswith("(") else ""
    assert judged(policy, prefix + "".join(pieces) + suffix)


@settings(max_examples=200)
@given(data=st.data())
def test_no_detour_hides_a_path(policy: Policy, data: st.DataObject) -> None:
    detours = st.sampled_from(["./", "src/../", "custom/../", "./././", "custom/soft/../../", "custom/soft/_debug/../../../"])
    path = "".join(data.draw(st.lists(detours, max_size=4))) + "custom/soft/soft_impl.py"
    assert judged(policy, f"echo x > {path}")
    assert judged(policy, f"cat {path}") is None


READERS = ["open({})", "w = open; w({})", "__import__('linecache').getlines({})", "exec('x = ' + {})", "os.system('cat ' + {})"]


@settings(max_examples=200)
@given(data=st.data())
def test_no_piecing_together_hides_a_golden_that_is_named(policy: Policy, data: st.DataObject) -> None:
    """A literal may be cut anywhere and joined in the program's own ways: it is still named."""
    golden = "custom/soft/modules/soft_module1_golden.py"
    coder = Policy(replace(policy.around, team=True), "pypto-op-coder")
    cut = data.draw(st.integers(1, len(golden) - 1))
    joined = data.draw(st.sampled_from(["'{}' + '{}'", "'{}' '{}'", "'{}{}'", "f'{}{}'", "('{}' + ('{}'))"])).format(
        golden[:cut], golden[cut:]
    )
    code = data.draw(st.sampled_from(READERS)).format(joined)
    for command in (f'python3 -c "{code}"', f"python3 - <<'END'\n{code}\nEND", f'perl -e "{code}"', f'echo "{code}" | python3'):
        assert judged(coder, command), command
        assert judged(policy, command) is None


@settings(max_examples=200)
@given(code=st.text(max_size=80) | st.lists(WORDS, max_size=12).map(" ".join))
def test_random_code_is_read_without_a_fault(code: str) -> None:
    for python in (True, False):
        walker = Walker("/w", "/home")
        read_code(walker, code, python=python)
        assert all(effect.program for effect in walker.effects)


@given(payload=st.binary(max_size=300), cut=st.integers(0, 320))
def test_frames_survive_being_cut(payload: bytes, cut: int) -> None:
    whole = wire.frame(payload)
    assert wire.unframe(whole) == payload
    assert wire.unframe(whole[:cut]) == (payload if cut >= len(whole) else None)


@given(text=st.text(max_size=30))
def test_a_pattern_without_marks_matches_itself_only(text: str) -> None:
    if not set(text) & {ANY, STAR, LISTED}:
        assert pattern_regex(text).match(text)
        assert not pattern_regex(text).match(text + "x")
