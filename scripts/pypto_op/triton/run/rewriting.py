"""Triton's interpreter runs a kernel's text; here that is the text which Python compiled, and each program that ran is kept.

Triton 3.7.1 asks `inspect` for the source of the function and starts at the last line that begins with `def`. So it runs
another function where `functools.wraps` names one, and words of a docstring where these say `def`.
"""

from __future__ import annotations

import ast
import inspect
import os
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pypto_op.triton.program import Program, program_of


class Programs:
    """Makes what the interpreter runs.

    Attributes:
        ran: programs of the jitted functions that ran, Triton's own left out. One without a source has an empty hash.
    """

    def __init__(self) -> None:
        self.ran: set[Program] = set()
        self._made: dict[Callable[..., Any], Program] = {}

    def instead_of_rewrite_ast(self, _original: Any) -> Any:
        """Stand for `FunctionRewriter.rewrite_ast`, which returns the function that the interpreter runs."""

        def rewrite_ast(rewriter: Any) -> Any:
            return self._rewritten(rewriter)

        return rewrite_ast

    def _rewritten(self, rewriter: Any) -> Any:
        function = rewriter.fn
        code = function.__code__
        try:
            lines, first = inspect.getsourcelines(code)
            text = textwrap.dedent("".join(lines))
            node = ast.parse(text).body[0]
            made = program_of(code.co_filename, code.co_name, text)
        except (OSError, SyntaxError, IndexError):
            return function
        source = textwrap.dedent("".join(lines[node.lineno - 1 :]))
        tree = ast.parse(source)
        tree.body[0].name = function.__name__  # type: ignore[attr-defined]  # what Triton looks the result up by
        tree = rewriter.ast_transformer.visit(tree)
        ast.increment_lineno(ast.fix_missing_locations(tree), first + node.lineno - 2)
        rewriter.filename = code.co_filename
        found = rewriter._compile_and_exec(tree)
        self._made[found] = made
        return found

    def around_rewrite(self, original: Any) -> Any:
        """Stand around `InterpretedFunction.rewrite`, which every launch and every call of a device function asks."""

        import triton

        of_triton = str(Path(triton.__file__).resolve().parent) + os.sep

        def rewrite(kernel: Any) -> Any:
            found = original(kernel)
            code = kernel.fn.__code__
            made = self._made.get(found) or (os.path.realpath(code.co_filename), code.co_name, "")
            if not made[0].startswith(of_triton):
                self.ran.add(made)
            return found

        return rewrite
