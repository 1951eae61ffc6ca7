"""What the linter reads out of a file must be what Python sees in it."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import libcst as cst
import libcst.matchers as m
import pytest
from genuine import KERNELS, TEXTS
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import quickly
from tests.quickly import examples

from pypto_op_lint.api import lint_path
from pypto_op_lint.findings import Finding
from pypto_op_lint.parsing import parse_file
from pypto_op_lint.source import UnreadableSource, decode, normalised
from pypto_op_lint.tree import Tree

SEVERAL = """import f
A = 1

# above

@deco(1)
@deco(
    2,
)
def k(a=f(0)):
    \"\"\"Text
of k.\"\"\"
    b = [
        g(a),
    ]
    # last
    return b
B = 2


class A:
    def m(self):
        return f(self)


if f(A):
    g(1)
else:
    g(2)
x = f(1); y = g(2)
"""
LONG_FUNCTION = "def f(x):\n" + "".join(f"    y{i} = g(x, {i})\n" for i in range(40)) + "    return y1\n"


def _calls_by_ast(text: str) -> set[tuple[int, int, int, int]]:
    found = set()
    lines = text.split("\n")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call):
            ends = [(node.lineno, node.col_offset), (node.end_lineno or 0, node.end_col_offset or 0)]
            shown = [(line, len(lines[line - 1].encode()[:column].decode())) for line, column in ends]
            found.add((*shown[0], *shown[1]))
    return found


def _calls_by_tree(text: str) -> set[tuple[int, int, int, int]]:
    tree = Tree(parse_file(text))
    return {tree.position(site.node) for site in tree.sites(cst.Call)}


@pytest.mark.parametrize("name", TEXTS if quickly.EVERYTHING else list(TEXTS)[::5])
def test_every_call_of_real_files_is_found_where_python_sees_it(name: str) -> None:
    text = decode(TEXTS[name]).text
    expected = _calls_by_ast(text)
    found = _calls_by_tree(text)
    assert found <= expected
    # What is missing stands in strings (f-strings have no positions of their own in older Pythons) or can never run.
    assert len(found) >= 0.9 * len(expected)


@pytest.mark.slow
@settings(max_examples=examples(60))
@given(
    st.lists(
        st.sampled_from(
            [
                "x = f(1)",
                "x = f(1); y = g(2); z = '''a\nb'''; w = h(3)",
                "@deco(1)\n@deco(\n    2,\n)\ndef k(a=f(0)):  # why\n    # first\n    return g(a)",
                LONG_FUNCTION.rstrip("\n"),
                "class A(B(1)):\n    " + LONG_FUNCTION.rstrip("\n").replace("\n", "\n    "),
                "for i in f(3):\n" + "\n".join(f"    g({i})" for i in range(12)),
                "if f(1):\n    g(2)\nelif f(3):\n    g(4)\nelse:\n    g(5)",
                "with f(1) as a, f(2) as b:\n" + "\n".join(f"    g({i})" for i in range(12)),
                "try:\n    f(1)\nexcept E(2) as e:\n    g(3)\nfinally:\n    h(4)",
                "x = 'ä' + f('日本')\nf('ö'); g(1)",
                "if f(1): g(2)",
                "x = f(1) + \\\n    g(2)",
                "# only a comment",
                "",
                "while f(1):\n\tg(2)\n\tif h(3):\n\t\tg(4)",
                "lambda: f(1)",
                "x = f(1) \\\n",
            ]
        ),
        max_size=8,
    )
)
def test_any_order_of_statements_keeps_every_call_in_its_place(statements: list[str]) -> None:
    text = "\n".join(statements) + "\n"
    assert _calls_by_tree(text) == _calls_by_ast(text)


def test_repeated_statements_of_one_file_are_nodes_of_their_own() -> None:
    tree = Tree(parse_file("f(1)\nf(1)\n\ndef g():\n    f(1)\n    f(1)\n"))
    calls = tree.sites(cst.Call)
    assert [tree.position(site.node)[0] for site in calls] == [1, 2, 5, 6]
    assert len({id(site.node) for site in calls}) == 4


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("def f(:\n    pass\n", 1),
        ("x = 1\n  y = 2\n", 2),
        ("x = (\n", 1),
        ("x = '\n", 1),
        ("def f():\nreturn 1\n", 2),
    ],
)
def test_a_syntax_error_is_told_with_its_line(text: str, line: int) -> None:
    with pytest.raises(UnreadableSource) as caught:
        parse_file(text)
    assert caught.value.line == line


@pytest.mark.parametrize(
    "text",
    [
        "x = " + "+".join(["1"] * 5000),
        "x = a" + ".b" * 3000,
        "x = f" + "()" * 3000,
        "x = " + "not " * 5000 + "1",
        "x = " + "lambda: " * 2000 + "1",
        "if a: pass\n" + "".join(f"elif a == {i}: pass\n" for i in range(1500)),
        "x = " + "[" * 5000,
        "x = '\0'",
    ],
)
def test_hostile_nesting_is_refused_instead_of_crashing(text: str) -> None:
    with pytest.raises(UnreadableSource):
        parse_file(text + "\n")


def test_code_that_cannot_run_is_not_in_the_tree() -> None:
    tree = Tree(
        parse_file(
            "from typing import TYPE_CHECKING\n"
            "if TYPE_CHECKING:\n    a()\nelse:\n    b()\n"
            "if False:\n    c()\nif not 0:\n    d()\n"
            "while False:\n    e()\n"
            "def f():\n    return g()\n    h()\n"
            "'''i()'''\n"
        )
    )
    assert [cst.ensure_type(s.node.func, cst.Name).value for s in tree.sites(cst.Call)] == ["b", "d", "g"]


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("bom", ["", "\ufeff"])
def test_line_ends_and_byte_order_mark_survive_a_round_trip(newline: str, bom: str) -> None:
    data = (bom + f"x = 1{newline}y = 'ä'{newline}").encode()
    source = decode(data)
    assert source.text == "x = 1\ny = 'ä'\n"
    assert source.encode(source.text) == data
    assert normalised(data.decode()).text == source.text


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\x00\x01", "binary"),
        (b"x = '\xff'\n", "UTF-8"),
        (b"# coding: nonsense-9\n", "encoding"),
        ("x = 1\n".encode("utf-16"), "binary"),
    ],
)
def test_bytes_that_are_no_text_are_refused(data: bytes, words: str) -> None:
    with pytest.raises(UnreadableSource, match=words):
        decode(data)


def test_a_declared_encoding_is_honoured() -> None:
    source = decode("# -*- coding: latin-1 -*-\nx = 'é'\n".encode("latin-1"))
    assert "é" in source.text
    assert source.encode(source.text) == "# -*- coding: latin-1 -*-\nx = 'é'\n".encode("latin-1")


BREAKERS = [
    *(
        "",
        "# why",
        "    # why",
        "x = f(1)",
        "x = (",
        ")",
        '"""',
        "x = 1 \\",
        "else:",
        "except:",
        "@deco",
        "pass",
        "    return f(2)",
        "\f",
    ),
    *(
        "\u00a0",
        "\0",
        "def k(a):",
        "if x:",
        "class A:",
        "try:",
        "    pass",
        "x = f(1); y = g(2)",
        "async def k(): pass",
        "f'{f(1)}'",
        "\tpass",
    ),
]


@settings(max_examples=examples(150))
@given(
    st.lists(
        st.tuples(st.integers(0, 100), st.sampled_from(BREAKERS), st.sampled_from(["insert", "insert", "delete", "replace"])),
        min_size=1,
        max_size=12,
    )
)
def test_what_python_reads_is_read_and_nothing_else(edits: list[tuple[int, str, str]]) -> None:
    text = SEVERAL
    for place, line, kind in edits:
        lines = text.split("\n")
        at = place % len(lines)
        lines[at : at + (kind != "insert")] = [] if kind == "delete" else [line]
        text = "\n".join(lines)
    try:
        expected = _calls_by_ast(text)
    except (SyntaxError, ValueError):
        with pytest.raises(UnreadableSource):
            parse_file(text)
        return
    in_strings = {"f'{f(1)}'" in line and number for number, line in enumerate(text.split("\n"), 1)}
    found = {call for call in _calls_by_tree(text) if call[0] not in in_strings}
    assert found <= expected


@pytest.mark.parametrize("name", KERNELS)
def test_a_line_in_front_moves_every_finding_by_one(name: str, tmp_path: Path) -> None:
    text, place = KERNELS[name].decode("utf-8"), tmp_path / "custom" / "demo" / "demo_impl.py"
    place.parent.mkdir(parents=True)
    first = lint_path(place, text=text, stage=5).findings
    assert lint_path(place, text="# one more line\n" + text, stage=5).findings == [_moved(finding) for finding in first]


def _moved(finding: Finding) -> Finding:
    edit = finding.fix
    if edit is not None:
        edit = replace(edit, line=edit.line + 1, end_line=edit.end_line + 1)
    return replace(finding, line=finding.line + 1 if finding.line is not None else None, fix=edit)


@given(st.text(alphabet="ab_ｈＡﬁé\u0301ªµ，中 ＝１\n", max_size=40))
def test_names_are_those_that_python_takes(text):
    comment, code = f"# {text!r}\n", f"{text}\n"
    for source in (comment + "a = 1\n", code):
        try:
            ours = parse_file(source)
            names = {node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)}
        except (UnreadableSource, SyntaxError, ValueError):
            continue
        assert {node.value for node in m.findall(ours, m.Name())} == names


def test_a_fullwidth_name_is_no_way_around_a_rule(tmp_path):
    file = tmp_path / "custom" / "op" / "op_impl.py"
    file.parent.mkdir(parents=True)
    found = []
    for name in ("matmul", "ｍatmul"):
        file.write_text(
            "import pypto\nimport torch\n\n\n@pypto.frontend.jit\ndef op_kernel(x, out):\n    # 中文注释，全角。\n"
            f"    out.move(torch.{name}(x, x))\n\n\ndef op_wrapper(x):\n    return torch.{name}(x, x)\n",
            encoding="utf-8",
        )
        found.append(sorted((finding.rule_id, finding.line) for finding in lint_path(file).findings))
    assert found[0] == found[1] and found[0], found
