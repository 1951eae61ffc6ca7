"""Files of the user's own: whatever they hold, what was put in comes out byte for byte."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.quickly import examples

from pypto_op.errors import ContractError
from pypto_op.install.claude_client import entries
from pypto_op.install.edits import Edit, put_into_settings, put_lines, undone

PATH = Path("settings.local.json")
TABLES = entries(Path("/home/user/é x"), "pypto-op-01234567")
HOOK = {"matcher": "Bash", "hooks": [{"type": "command", "command": 'echo \'{"a": "}"}\''}]}

leaves = st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.just(HOOK)
values = st.recursive(leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3))
tables = st.dictionaries(st.text(max_size=6), st.booleans(), max_size=3)
documents = st.dictionaries(st.text(max_size=6), values, max_size=4).flatmap(
    lambda document: st.fixed_dictionaries(
        {}, optional={"enabledPlugins": tables, "extraKnownMarketplaces": tables, "hooks": st.just({"Stop": [HOOK]})}
    ).map(lambda extra: {**document, **extra})
)


@st.composite
def files(draw: st.DrawFn) -> bytes:
    """A settings file as somebody might have laid it out."""
    if draw(st.integers(0, 9)) == 0:
        return draw(st.sampled_from([b"", b"\n", b" \r\n", b"{}", b"{ }\n", b"\xef\xbb\xbf{}", b"{\n}\n"]))
    indent = draw(st.sampled_from([None, 1, 2, 4, "\t"]))
    text = json.dumps(draw(documents), indent=indent, ensure_ascii=draw(st.booleans()))
    text = text.replace("\n", draw(st.sampled_from(["\n", "\r\n"]))) + draw(st.sampled_from(["", "\n", "\r\n", "\n\n"]))
    return (draw(st.sampled_from(["", "\ufeff"])) + text).encode("utf-8", "surrogatepass")


def valid(before: bytes) -> bool:
    try:
        before.decode()
    except UnicodeDecodeError:
        return False
    return True


@given(files().filter(valid))
@settings(max_examples=examples(300))
def test_settings_come_back_byte_for_byte(before: bytes) -> None:
    after, edit = put_into_settings(PATH, "x", before, TABLES)
    told = json.loads(after.decode("utf-8-sig"))
    for table, keys in TABLES.items():
        assert all(told[table][key] == value for key, value in keys.items())
    assert undone(after, Edit.from_row(json.loads(json.dumps(edit.as_row()))), before) == before
    trailing = after + b"\n"
    assert undone(trailing, edit, before) == before + b"\n", "what the user wrote meanwhile stays"
    again = json.dumps(told, indent=2).encode()
    assert undone(again, edit, before) == before, "the client laid it out anew, and nothing else changed"
    told["mine"] = {"é": 1}
    mine = undone(json.dumps(told).encode(), edit, before)
    assert mine is not None and json.loads(mine) == {**(json.loads(before.decode("utf-8-sig").strip() or "{}")), "mine": {"é": 1}}


def test_a_file_that_was_made_goes_unless_somebody_wrote_into_it() -> None:
    after, edit = put_into_settings(PATH, "x", None, TABLES)
    assert undone(after, edit, None) is None
    assert undone(json.dumps(json.loads(after)).encode(), edit, None) is None
    told: dict[str, Any] = {**json.loads(after), "model": "x"}
    mine = undone(json.dumps(told).encode(), edit, None)
    assert mine is not None and json.loads(mine) == {"model": "x"}


@pytest.mark.parametrize("before", [b'{\n  // mine\n  "a": 1\n}', b'{"a": 1,}', b"[]", b"\xff", b"{", b'{"enabledPlugins": []}'])
def test_what_the_client_could_not_read_is_refused(before: bytes) -> None:
    with pytest.raises(ContractError) as refused:
        put_into_settings(PATH, "x", before, TABLES)
    assert "settings.local.json" in refused.value.one_line() and "\n" not in refused.value.one_line()


@given(st.binary(max_size=60) | st.none())
def test_lines_of_a_gitignore_come_back_byte_for_byte(before: bytes | None) -> None:
    done = put_lines(".gitignore", before, ["/.pypto-op/"])
    if done is None:
        assert before is not None and b"/.pypto-op/" in before
        return
    after, edit = done
    assert b"/.pypto-op/" in after.split(b"\n") or b"/.pypto-op/\r" in after.split(b"\n")
    assert undone(after, edit, before) == before
    assert undone(after + b"*.log\n", edit, before) == (before or b"") + b"*.log\n"
