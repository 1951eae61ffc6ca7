"""Reading of text, YAML and JSON from strangers: one line of refusal, never a traceback, never a hang."""

import json
import re
import socket

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.quickly import examples

from pypto_op.documents import front_matter, reading
from pypto_op.documents.writing import write_atomically
from pypto_op.errors import ContractError, InfraError

BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "\n".join(
    f"{c}: &{c} [*{p},*{p},*{p},*{p},*{p},*{p},*{p},*{p},*{p}]" for p, c in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (BOMB, "line 1: anchors and aliases"),
        ("a: &x 1\nb: *x", "line 1: anchors and aliases"),
        ("a: &x [*x]", "anchors and aliases"),
        ("<<: *x\na: 1", "anchors and aliases"),
        ("a: 1\nb: 2\na: 3", "line 3: the key 'a' occurs twice"),
        ("a:\n  b: 1\n  b: 1", "line 3: the key 'b' occurs twice"),
        ("a: !!python/object/apply:os.system ['id']", "line 1: the tag"),
        ("a: !!binary aGk=", "the tag"),
        ("1: a", "the key 1 is not text"),
        ("[a]: b", "is not text"),
        ("a: [1, 2", "not valid YAML"),
        ("a:\n\tb: 1", "line 2: not valid YAML"),
        ("a: 1\n---\nb: 2", "not valid YAML"),
        ("[" * 100 + "]" * 100, "deeper than 64"),
        ("[" * 100_000, "deeper than 64"),
        ("- " * 5000 + "x", "deeper than 64"),
        ("a: '" + "x" * 1_100_000 + "'", "larger than 1000000 bytes"),
        ("a: \x07", "not valid YAML"),
    ],
)
def test_hostile_yaml_is_refused_in_one_line(text, words):
    with pytest.raises(ContractError) as caught:
        reading.parse_yaml(text, file="d.yaml")
    line = caught.value.one_line()
    assert line.startswith("d.yaml: ") and words in line and "\n" not in line and len(line) < 400


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-3", 0.001),
        ("1.0e-4", 0.0001),
        ("-.5", -0.5),
        ("010", 10.0),
        ("12", 12),
        ("-0", 0),
        ("no", "no"),
        ("on", "on"),
        ("true", True),
        ("2026-11-21", "2026-11-21"),
        ("1:30", "1:30"),
        ("0x10", "0x10"),
        (".inf", ".inf"),
        (".nan", ".nan"),
        ("9" * 19, float("9" * 19)),
        ("1_000", "1_000"),
        ("null", None),
        ("'1'", "1"),
        ("", None),
    ],
)
def test_scalars_follow_yaml_1_2(text, value):
    result = reading.parse_yaml(text)
    assert result == value and type(result) is type(value)


def test_line_numbers_count_from_the_file():
    with pytest.raises(ContractError, match="line 12: the key 'a'"):
        reading.parse_yaml("a: 1\na: 2", first_line=11)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"a": 1, "a": 2}', "occurs twice"),
        ('{"a": NaN}', "NaN is not a JSON number"),
        ('{"a": -Infinity}', "-Infinity"),
        ('{"a": 1e999}', "does not fit"),
        ("{", "line 1, column 2"),
        ("[" * 100_000, "nested too deeply"),
        ("1" * 5000, "not valid JSON"),
    ],
)
def test_hostile_json_is_refused_in_one_line(text, words):
    with pytest.raises(ContractError) as caught:
        reading.parse_json(text, file="d.json")
    assert words in caught.value.one_line() and "\n" not in caught.value.one_line()
    assert caught.value.remedy


def test_files_that_cannot_be_read_are_refused(tmp_path, monkeypatch):
    cases = {
        "missing": "no such file; name a file that is there",
        "folder": "not a regular file; name a file: no folder, pipe or device is read",
        "socket": "not a regular file; name a file",
        "dangling": "its link leads to no file; name a file that is there",
        "loop": "cannot be read (Too many levels of symbolic links); its links lead back to themselves; take one away",
        "big/below": "no such file; name a file that is there",
        "x" * 300: "cannot be read (File name too long); choose a shorter name or folder",
        "latin": "not UTF-8",
        "nul": "NUL",
        "big": "larger than 1000000 bytes",
    }
    (tmp_path / "folder").mkdir()
    (tmp_path / "dangling").symlink_to("missing")
    (tmp_path / "loop").symlink_to("loop")
    monkeypatch.chdir(tmp_path)  # the address of a socket has at most 108 letters
    with socket.socket(socket.AF_UNIX) as door:
        door.bind("socket")
    (tmp_path / "latin").write_bytes("caf\xe9".encode("latin-1"))
    (tmp_path / "nul").write_bytes(b"a\0b")
    (tmp_path / "big").write_bytes(b"a" * 1_000_001)
    for name, words in cases.items():
        with pytest.raises(ContractError) as caught:
            reading.read_text(tmp_path / name)
        assert words in caught.value.one_line() and name in caught.value.one_line()


def test_a_named_pipe_is_refused_instead_of_waited_for(tmp_path):
    import os

    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ContractError, match="not a regular file"):
        reading.read_text(tmp_path / "pipe")


def test_byte_order_mark_and_windows_line_ends_are_accepted(tmp_path):
    path = tmp_path / "SPEC.md"
    path.write_bytes(b"\xef\xbb\xbf---\r\nop_name: relu\r\n---\r\nbody\r\n")
    document = front_matter.read(path)
    assert document.data == {"op_name": "relu"} and document.body == "body\n" and document.body_line == 4


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("# title", "has no front matter"),
        ("", "SPEC.md: the file is empty; bring it back, or write it anew"),
        ("---\na: 1\n", "not closed"),
        ("---\n---\n", "is empty"),
        ("---\n- a\n---\n", "a list"),
        ("---\na: 1\na: 2\n---\n", "line 3: the key 'a' occurs twice"),
        ("---\na: TODO\n---\n", "a: TODO is left"),
    ],
)
def test_front_matter_faults(tmp_path, text, words):
    path = tmp_path / "SPEC.md"
    path.write_text(text)
    with pytest.raises(ContractError) as caught:
        front_matter.load(path, "spec")
    assert words in caught.value.one_line()


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**17), 10**17)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(
        st.characters(codec="utf-8", exclude_categories=("Cc", "Cs"), exclude_characters="\x85\u2028\u2029\ufeff\ufffe\uffff"),
        max_size=20,
    ),
    lambda children: (
        st.lists(children, max_size=4) | st.dictionaries(st.text("abcxyz", min_size=1, max_size=3), children, max_size=4)
    ),
    max_leaves=12,
)


class Careful(yaml.SafeDumper):
    """PyYAML writes YAML 1.1, where 0E0 is a word; here it quotes what YAML 1.2 (10.3.2) takes for a number."""


Careful.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z"), list("-+.0123456789")
)


@settings(max_examples=examples(150))
@given(JSON_VALUES)
@example("0E0")
@example(["1e5", "0o7", "+.5e-3", 1e300])
def test_what_pyyaml_writes_is_read_back(value):
    text = yaml.dump(value, Dumper=Careful, allow_unicode=True)
    if "\u0085" not in text and "&" not in text:
        assert reading.parse_yaml(text) == value


@settings(max_examples=examples(100))
@given(JSON_VALUES)
def test_json_is_read_back(value):
    assert reading.parse_json(json.dumps(value)) == value


@settings(max_examples=examples(300))
@given(st.text(max_size=200))
def test_no_text_breaks_the_yaml_reader(text):
    try:
        reading.parse_yaml(text)
    except ContractError as error:
        assert "\n" not in error.one_line()


@settings(max_examples=examples(200))
@given(st.binary(max_size=200))
def test_no_bytes_break_the_document_reader(tmp_path_factory, raw):
    path = tmp_path_factory.mktemp("raw") / "SPEC.md"
    path.write_bytes(b"---\n" + raw)
    try:
        front_matter.load(path, "spec")
    except ContractError as error:
        assert "\n" not in error.one_line()


def test_what_cannot_be_written_is_told_with_its_remedy(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InfraError, match="File exists\\); something else stands there; move it away"):
        write_atomically(tmp_path / "file" / "SPEC.md", "text")
