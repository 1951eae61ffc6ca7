"""What a program's text names, in whatever language: goldens, the sealing key, git's store, the state machine.

A read leaves no trace, so a name that stands in the text is taken at its word. What the program writes, nobody says
beforehand. A program can hide a name.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pypto_op_lint.guard.effects import READING, Kind
from pypto_op_lint.guard.state_calls import note_state_call
from pypto_op_lint.guard.words import ANY, STAR

if TYPE_CHECKING:
    from pypto_op_lint.guard.shell import Walker

NAMES_KEY = re.compile(r"seal\.key|PYPTO_OP_KEY_FILE|pypto_op\.(?:proof|state)(\.| import .*)\b(key|evidence)\b")
"""What has no business in an agent's command or code, whatever program it stands in."""

_INSIDE = re.compile(r"pypto_op(?:\.| import )(?:state|mcp)\b(?:\.\w+)*")
_GIT_LIBRARY = re.compile(r"\b(?:import|from|require)\W{1,3}(?:git|pygit2|dulwich|GitPython)\b")
_TOKEN = re.compile(r"[^\s'\"`,;()<>|&=\[\]!$\\]+")
_QUOTED = re.compile(r"'([^'\n]*)'|\"([^\"\n]*)\"")
_VECTOR = re.compile(r"[\[(]((?:\s*['\"][^'\"\n]*['\"]\s*,?){2,})[\])]")
_FILLED = re.compile(r"\{[^{}]*\}|%[sdr]|\$\{?\w+\}?")
_JOINED = re.compile(r"['\"][)\s]*\+[(\s]*[rbfu]?['\"]|['\"]\s+\.\s+['\"]")
_BESIDE = re.compile(r"['\"]\s*['\"]")
_GAP = re.compile(r"['\"][)\s]*\+[(\s]*[\w.\[\]]+[)\s]*(?:\+[(\s]*[rbfu]?['\"])?")
_BELOW = re.compile(r"['\"][)\s]*[/,][(\s]*[rbfu]?['\"]")
_LISTS = re.compile(r"\b(?:listdir|scandir|iterdir|walk|copytree|make_archive|readdir\w*|rglob)\b")
_LOADS = re.compile(r"open|read|copy|archive|get(?:lines|source)|load|import_|__import__|exec|system|run\(|cat\b", re.IGNORECASE)
_DEEP = re.compile(r"\b(?:walk|copytree|make_archive|rglob)\b|\*\*")
_MAX_NAMES, _MAX_PATH, _MAX_COMMANDS = 1000, 400, 40


def read_code(walker: Walker, text: str, *, python: bool = False) -> None:
    """Note what a program's text names."""
    text = _JOINED.sub("", _told(text) if python else text)
    text = _GAP.sub(lambda gap: ANY if gap.group().endswith(("'", '"')) else ANY + "'", text)
    if NAMES_KEY.search(text):
        walker.add(Kind.SECRET, "", "code")
    for inside in _INSIDE.findall(text):
        walker.add(Kind.INSIDE, f"`{inside}` in code", "code")
    if _GIT_LIBRARY.search(text):
        walker.add(Kind.HISTORY, "", "code")
    note_state_call(walker, [text], code=True)
    _note_commands(walker, text)
    for name in list(dict.fromkeys(_names(text)))[:_MAX_NAMES]:
        walker.add(Kind.READ, name, "code")


def _told(code: str) -> str:
    """Return Python code without its comments and docstrings; what cannot be parsed stays as it is."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(code.replace(ANY, "_").replace(STAR, "*"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                node.value = ast.Constant(None)
        return ast.unparse(tree)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return code


def _note_commands(walker: Walker, text: str) -> None:
    """Note what the commands read that stand in the text as strings or as lists of words."""
    from pypto_op_lint.guard.calls import is_program

    before = len(walker.effects)
    stdin, walker.stdin = walker.stdin, None
    quoted = [a or b for a, b in _QUOTED.findall(text)]
    vectors = [[a or b for a, b in _QUOTED.findall(found)] for found in _VECTOR.findall(text)]
    for words in [v for v in vectors if is_program(v[0])][:_MAX_COMMANDS]:
        walker.call(words)
    for command in [text for text in quoted if len(text.split()) > 1 and is_program(text.split()[0])][:_MAX_COMMANDS]:
        walker.run_script(command)
    walker.stdin = stdin
    kinds = (*READING, Kind.HISTORY, Kind.STATE, Kind.INSIDE, Kind.SECRET)
    walker.effects[before:] = [effect for effect in walker.effects[before:] if effect.kind in kinds]


def _names(text: str) -> Iterator[str]:
    """Yield the paths, as patterns, that a text may read."""
    texts = [text, _BELOW.sub("/", text), _BESIDE.sub("", text)]
    tokens = [t for each in texts for t in (*_TOKEN.findall(each), *(a or b for a, b in _QUOTED.findall(each)))]
    paths = list(dict.fromkeys(_pattern(token) for token in tokens if len(token) < _MAX_PATH and re.search(r"\w|\.", token)))
    for path in paths:
        for piece in re.split(r"[./:]", path):
            if piece.endswith("_golden"):
                yield f"{ANY}/{piece}.py"
        if "/" in path or ("." in path and {ANY, STAR} & set(path)):
            yield path
    folders = [path for path in paths if not re.search(f"[{ANY}{STAR}]|\\.py$", path)]
    if _LISTS.search(text) and _LOADS.search(text):
        deep = ANY if _DEEP.search(text) else STAR
        globs = [path for path in paths if STAR in path] if not re.search(r"\b(?:listdir|scandir|iterdir|walk)\b", text) else []
        yield from (f"{folder.rstrip('/')}/{end}" for folder in folders for end in ([deep + g for g in globs] or [deep]))
    elif "glob" in text:
        yield from (f"{folder.rstrip('/')}/{path}" for folder in folders for path in paths if STAR in path)


def _pattern(token: str) -> str:
    return _FILLED.sub(ANY, token.removeprefix("file://")).replace("**", ANY).replace("*", STAR).replace("?", STAR)
