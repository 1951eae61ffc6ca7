"""From the text of a Python file to libcst's tree, or to the reason why there is none."""

from __future__ import annotations

import ast
import unicodedata
import warnings
from pathlib import Path

import libcst as cst

from pypto_op.errors import ContractError
from pypto_op_lint.source import UnreadableSource, normalised

_MAX_DEPTH = 120
"""Deeper nesting than this is refused: no kernel needs it, recursive readers fall over it, and libcst's native one crashes."""


def parse_file(text: str) -> cst.Module:
    """Parse the text of a Python file.

    Args:
        text: source with plain line feeds and without a byte order mark.

    Raises:
        UnreadableSource: Python or libcst refuses the text, or it is nested too deeply.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            _check_depth(ast.parse(text))
        return _as_python_reads(cst.parse_module(text), text)
    except SyntaxError as error:
        message = error.msg or "invalid syntax"
        raise UnreadableSource(f"is not valid Python: {message}", line=error.lineno, column=error.offset) from error
    except (RecursionError, MemoryError) as error:
        raise UnreadableSource("is nested too deeply to be read") from error
    except ValueError as error:
        raise UnreadableSource(f"is not valid Python: {error}") from error
    except cst.ParserSyntaxError as error:
        raise UnreadableSource(
            f"is not valid Python: {error.message}", line=error.raw_line, column=error.raw_column + 1
        ) from error


def parse_contract(text: str, *, file: Path | str | None = None, remedy: str = "correct the syntax") -> cst.Module:
    """Parse the text of a Python file that a user is to mend where it cannot be read.

    Raises:
        ContractError: with the line, where there is one.
    """
    try:
        return parse_file(normalised(text).text)
    except UnreadableSource as error:
        where = f"line {error.line}" if error.line else None
        raise ContractError(error.problem, file=file, where=where, remedy=remedy) from None


def _as_python_reads(module: cst.Module, text: str) -> cst.Module:
    """Return the tree with identifiers in NFKC, as Python takes them: two spellings may be one name (PEP 3131).

    libcst keeps what is written. A fullwidth letter would then hide a name from every rule that looks for it.
    """
    if text.isascii():
        return module
    outside = {ord(c): " " for c in set(text) if not (c.isascii() or f"a{c}".isidentifier())}
    if unicodedata.is_normalized("NFKC", text.translate(outside)):
        return module
    return module.visit(_Names())


class _Names(cst.CSTTransformer):
    """Spells identifiers as Python does."""

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.Name:
        """Return the name in NFKC."""
        value = unicodedata.normalize("NFKC", updated_node.value)
        return updated_node if value == updated_node.value else updated_node.with_changes(value=value)


def _check_depth(module: ast.Module) -> None:
    """Refuse what would exhaust a recursive reader's stack."""
    for statement in module.body:
        level: list[ast.AST] = [statement]
        for _ in range(_MAX_DEPTH):
            level = [child for node in level for child in ast.iter_child_nodes(node)]
            if not level:
                break
        else:
            raise UnreadableSource(f"nests more than {_MAX_DEPTH} levels deep", line=statement.lineno)
