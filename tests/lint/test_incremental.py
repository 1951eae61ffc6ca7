"""The resident linter keeps what it knows about statements: it must say the same as one that sees the file for the first time."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import pytest
from genuine import KERNELS
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pypto_op_lint.api import lint_path
from pypto_op_lint.examples import impl
from pypto_op_lint.facts import Facts
from pypto_op_lint.findings import Finding
from pypto_op_lint.pieces import CACHE, StatementCache, parse_file
from pypto_op_lint.subtrees import SUBTREES, SubtreeCache
from pypto_op_lint.tree import Tree

START = impl(
    before="""
    import functools
    TILE = (64, 128)


    def _pick(table, key):
        def inner(word):
            return table[word]
        return inner(key)


    def _state():
        global COUNT
        COUNT = 1
        return [TILE for _ in range(3)]


    COUNT = 0
    """
)
LINES = [
    "TILE = (64, 128)",
    "TILE = (x, 3)",
    "COUNT = 2",
    "from pypto import exp",
    "import pypto as pt",
    "out = out * 2",
    "y = torch.exp(x)",
    "demo_kernel(x, out)",
    "for part in x:\n    demo_kernel(part, out)",
    "pypto.set_vec_tile_shapes(*TILE)",
    "pypto.set_vec_tile_shapes(x.shape[0], 128)",
    "def _more(a):\n    global TILE\n    TILE = a\n    return max(a, 1)",
    "class Tile:\n    ROWS = 64",
    "del demo_wrapper",
    "if (size := len(TILE)) > 1:\n    COUNT = size",
    "# only a comment",
    "",
    "if __name__ == '__main__':\n    demo_wrapper(torch.ones(4))",
    "raise SystemExit",
]
EDIT = st.tuples(st.sampled_from(["insert", "delete", "repeat", "swap", "undo"]), st.integers(0, 200), st.sampled_from(LINES))


def _edited(text: str, kind: str, place: int, line: str) -> str:
    lines = text.split("\n")
    place %= max(1, len(lines) - 1)
    indent = lines[place][: len(lines[place]) - len(lines[place].lstrip())]
    if kind == "insert":
        lines[place:place] = [indent + part for part in line.split("\n")]
    elif kind == "delete":
        del lines[place]
    elif kind == "repeat":
        lines.insert(place, lines[place])
    elif kind == "swap":
        lines[place], lines[place - 1] = lines[place - 1], lines[place]
    return "\n".join(lines)


def _is_python(text: str) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    return True


def _forget() -> None:
    CACHE.clear()
    SUBTREES.clear()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("w") / "custom" / "demo" / "demo_impl.py"
    path.parent.mkdir(parents=True)
    return path


def _said(path: Path, text: str) -> list[Finding]:
    return lint_path(path, text=text, stage=5).findings


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(st.lists(EDIT, min_size=1, max_size=6))
def test_findings_after_edits_are_those_of_a_first_look(place: Path, edits: list[tuple[str, int, str]]) -> None:
    texts = [START]
    for kind, where, line in edits:
        changed = texts[max(0, len(texts) - 2)] if kind == "undo" else _edited(texts[-1], kind, where, line)
        texts += [changed] if _is_python(changed) else []
    _forget()
    warm = [_said(place, text) for text in texts]
    for text, found in zip(texts, warm, strict=True):
        _forget()
        assert found == _said(place, text), text


@pytest.mark.parametrize("name", KERNELS)
def test_a_second_look_at_a_real_file_says_the_same(name: str, place: Path) -> None:
    text = KERNELS[name].decode("utf-8")
    _forget()
    first = _said(place, text)
    assert _said(place, "# one more line\n" + text) == [_moved(finding) for finding in first]
    assert _said(place, text) == first


def _moved(finding: Finding) -> Finding:
    edit = finding.fix
    if edit is not None:
        edit = replace(edit, line=edit.line + 1, end_line=edit.end_line + 1)
    return replace(finding, line=finding.line + 1 if finding.line is not None else None, fix=edit)


def test_an_unchanged_statement_is_not_walked_again() -> None:
    parsed, cache = StatementCache(), SubtreeCache()
    text = "import pypto\n\n\ndef f(a):\n" + "".join(f"    b{i} = a + {i}\n" for i in range(20)) + "    return a\n\n\nX = 1\n"
    first = Tree(parse_file(text, parsed), cache)
    kept = {id(subtree) for subtree in first.subtrees}
    first.dispose()
    second = Tree(parse_file(text.replace("X = 1", "Y = 2\nX = 1"), parsed), cache)
    assert [id(subtree) in kept for subtree in second.subtrees] == [True, True, False, True]
    assert second.subtrees[3].sites[0].order == sum(len(s.sites) for s in second.subtrees[:3])


def test_two_living_trees_share_no_site() -> None:
    parsed, cache = StatementCache(), SubtreeCache()
    one, other = (Tree(parse_file("def f(a):\n    return a\n", parsed), cache) for _ in range(2))
    assert one.subtrees[0] is not other.subtrees[0]
    other.dispose()
    assert Facts(one).tree.functions[0].name == "f"


def test_what_nobody_uses_is_dropped_first() -> None:
    cache = SubtreeCache(most_sites=40)
    trees = [Tree(parse_file(f"value_{i} = [{i}, {i}, {i}]\n"), cache) for i in range(20)]
    for tree in trees:
        tree.dispose()
    assert 0 < len(cache) < 20
