"""What a kernel's file says of itself, with lines: the golden's steps by their marks, tiles, launches, views, what is written."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pypto_op import python_text
from pypto_op.documents.reading import read_text
from pypto_op.review.call_sites import calls_of
from pypto_op_lint.facts import Facts
from pypto_op_lint.parsing import parse_file
from pypto_op_lint.tree import Tree

_MARK = re.compile(r"\bgolden (\d+(?:\s*,\s*\d+)*)")
_STEP = re.compile(r"^\s*#?\s*(\d+)\.\s+(\S.*)$")
_TILES = {"set_vec_tile_shapes": "vec", "set_cube_tile_shapes": "cube"}
_LONGEST = 60


@dataclass(frozen=True)
class Step:
    """A numbered operation of the golden's inventory: what it is, and its change of shape."""

    number: int
    operation: str
    change: str


@dataclass(frozen=True)
class Place:
    """A line of the kernel and the code on it."""

    line: int
    code: str


@dataclass(frozen=True)
class View:
    """A call of `pypto.view`: its line, the ranks of shape and offsets where both are written out, and whether it is ragged."""

    line: int
    ranks: tuple[int, int] | None
    ragged: bool


def golden_steps(golden: Path) -> list[Step]:
    """Return the rows of the *Golden function inventory* in a golden's header; [] where it has none.

    Raises:
        ContractError: the file cannot be read.
    """
    head, found, rest = read_text(golden).partition("inventory")
    steps: list[Step] = []
    for line in rest.split("\n")[1:] if found else ():
        match = _STEP.match(line)
        if match and int(match[1]) == len(steps) + 1:
            parts = re.split(r"\s{2,}", match[2].strip(), maxsplit=1)
            steps.append(Step(int(match[1]), parts[0], " ".join(parts[1].split()) if len(parts) > 1 else "-"))
        elif steps:
            break
    return steps


class KernelFacts:
    """Reads a kernel's file once.

    Raises:
        ContractError: it cannot be read or parsed.
    """

    def __init__(self, path: Path, wrapper: str) -> None:
        self.text = read_text(path)
        self._tree = python_text.parse(self.text, path)
        self._lines = self.text.split("\n")
        self.wrapper = next(
            (node for node in self._tree.body if isinstance(node, ast.FunctionDef) and node.name == wrapper), None
        )
        self._facts = Facts(Tree(parse_file(self.text)))
        self.calls = calls_of(self._facts)

    def marks(self) -> dict[int, list[Place]]:
        """Return the lines that carry `# golden N`, by N."""
        found: dict[int, list[Place]] = {}
        for token in tokenize.generate_tokens(io.StringIO(self.text).readline):
            if token.type != tokenize.COMMENT or not (match := _MARK.search(token.string)):
                continue
            line = token.start[0]
            code = self._lines[line - 1][: token.start[1]].strip()
            for number in map(int, re.split(r"\s*,\s*", match[1])):
                found.setdefault(number, []).append(Place(line, code[:_LONGEST]))
        return found

    def called_at(self, line: int) -> list[str]:
        """Return the pypto calls of a line."""
        return list(dict.fromkeys(site.call for site in self.calls if site.line == line))

    def tiles(self) -> Iterator[tuple[str, str, int]]:
        """Yield (function, tile, line) of each setting of a tile."""
        for function in (node for node in ast.walk(self._tree) if isinstance(node, ast.FunctionDef)):
            for node in function.body:
                for call in ast.walk(node):
                    kind = _TILES.get(_last_name(call)) if not isinstance(node, ast.FunctionDef) else None
                    if kind is not None and isinstance(call, ast.Call):
                        shown = ", ".join(ast.unparse(argument) for argument in call.args)
                        yield function.name, f"{kind} ({shown})", call.lineno

    def views(self) -> list[View]:
        """Return every `pypto.view`."""
        found = []
        for call in self._called("view"):
            lists = [argument for argument in call.args if isinstance(argument, ast.List)]
            ranks = (len(lists[0].elts), len(lists[1].elts)) if len(lists) == 2 else None
            found.append(View(call.lineno, ranks, any(word.arg == "valid_shape" for word in call.keywords)))
        return found

    def written(self) -> list[Place]:
        """Return where `pypto.assemble` writes, and what."""
        return [Place(call.lineno, ast.unparse(call.args[-1])) for call in self._called("assemble") if call.args]

    def host_loops(self) -> list[int]:
        """Return the lines of `for ... in range` in the wrapper."""
        loops = [node for node in ast.walk(self.wrapper) if isinstance(node, ast.For)] if self.wrapper else []
        return [loop.lineno for loop in loops if isinstance(loop.iter, ast.Call) and _last_name(loop.iter) == "range"]

    def launches(self) -> list[int]:
        """Return the lines on which the wrapper starts a kernel."""
        wrappers = self._facts.wrappers_named(self.wrapper.name) if self.wrapper else []
        calls = [call for function in wrappers for call in self._facts.launches.in_function(function)]
        return [self._facts.tree.position(call.site.node)[0] for call in calls]

    def _called(self, name: str) -> list[ast.Call]:
        lines = {(site.line, site.col) for site in self.calls if site.call == f"pypto.{name}"}
        calls = [node for node in ast.walk(self._tree) if isinstance(node, ast.Call) and _last_name(node) == name]
        return sorted((call for call in calls if (call.lineno, call.col_offset) in lines), key=lambda call: call.lineno)


def _last_name(node: ast.AST) -> str:
    function = node.func if isinstance(node, ast.Call) else node
    return function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
