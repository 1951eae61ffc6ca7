"""Triton's interpreter runs a kernel's text; here that is the text which Python compiled, and each program that ran is kept.

Triton 3.7.1 asks `inspect` for the source of the function and starts at the last line that begins with `def`. So it runs
another function where `functools.wraps` names one, and words of a docstring where these say `def`.
"""

from __future__ import annotations

import ast
import inspect
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pypto_op.triton.program import Program, function_in, program_of_tree
from pypto_op.triton.run.watching.handed import is_jitted
from pypto_op.triton.run.watching.kernel_guard import KernelGuard


def _is_filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018 - an empty one raises
    except ValueError:
        return False
    return True


def _folder_of_triton() -> str:
    import triton

    return str(Path(triton.__file__).resolve().parent) + os.sep


def _in_its_module(module: Any, word: str, _function: Any) -> Any:
    """Return a function that calls what a module has under a name when it is called."""

    def called(*args: Any, **kwargs: Any) -> Any:
        return getattr(module, word)(*args, **kwargs)

    return called


def _words_of_language() -> dict[int, tuple[Any, str, Any]]:
    """Return where Triton's language keeps each of its functions, by the id: module, name, and the function itself."""
    import triton.language as tl
    from triton.language import core

    loops = (tl.range, tl.static_range)
    found: dict[int, tuple[Any, str, Any]] = {}
    for module in (core, tl.math, tl):
        words = {name: value for name, value in vars(module).items() if core.is_builtin(value) or value in loops}
        found |= {id(value): (module, name, value) for name, value in words.items()}
    return found


class Programs:
    """Makes what the interpreter runs."""

    def __init__(self) -> None:
        # programs of the jitted functions that ran, Triton's own left out. One without a source has an empty hash.
        self.ran: set[Program] = set()
        self.guard = KernelGuard()  # looks at what the bodies ask for
        self._made: dict[Callable[..., Any], Program] = {}
        self._words: dict[int, tuple[Any, str, Any]] = {}

    def instead_of_rewrite_ast(self, _original: Any) -> Any:
        """Stand for `FunctionRewriter.rewrite_ast`, which returns the function that the interpreter runs."""
        self._words = _words_of_language()

        def rewrite_ast(rewriter: Any) -> Any:
            return self._rewritten(rewriter)

        return rewrite_ast

    def _rewritten(self, rewriter: Any) -> Any:
        function = rewriter.fn
        code = function.__code__
        try:
            lines, first = inspect.getsourcelines(code)
            definition = function_in("".join(lines))
        except (OSError, SyntaxError):
            return function
        made = program_of_tree(code.co_filename, code.co_name, definition)
        if not os.path.realpath(code.co_filename).startswith(_folder_of_triton()):
            definition = self.guard.guarded(definition)
        definition = rewriter.ast_transformer.visit(definition)
        ast.increment_lineno(ast.fix_missing_locations(definition), first - 1)
        found = self._executed(definition, function, code.co_filename, rewriter.kwargs)
        self._made[found] = made
        return found

    def _executed(self, definition: ast.FunctionDef, function: Any, file: str, given: dict[str, Any]) -> Any:
        """Return the function that a definition makes in the globals of another, with what it asks for out of sight of them."""
        from triton.runtime import interpreter

        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=False)
        # As on a device, a body sees what its maker's names stand for; Triton's own interpreter loses them.
        around = {name: cell.cell_contents for name, cell in cells if _is_filled(cell)}
        around |= self._renamed({**function.__globals__, **around}, set(function.__code__.co_names) | around.keys())
        closed = {**around, "interpreter_semantic": interpreter.interpreter_semantic, **self.guard.names()}
        parameters = ast.arguments([], [ast.arg(name) for name in closed], None, [], [], None, [])
        body = [definition, ast.Return(ast.Name(definition.name, ast.Load()))]
        maker = ast.FunctionDef("maker of a kernel", parameters, body, [])
        module = ast.fix_missing_locations(ast.Module([ast.copy_location(maker, definition)], []))
        made: dict[str, Any] = dict(given)
        exec(compile(module, file, "exec"), function.__globals__, made)  # noqa: S102
        return made["maker of a kernel"](*closed.values())

    def _renamed(self, space: dict[str, Any], names: set[str]) -> dict[str, Any]:
        """Return what stands for functions of Triton's language that a file calls by names of its own (`exp = tl.exp`).

        The interpreter puts its functions into Triton's modules for each launch, and so misses those names.
        """
        found = {name: self._words.get(id(space.get(name))) for name in names}
        return {name: _in_its_module(*word) for name, word in found.items() if word is not None and word[2] is space[name]}

    def around_combining(self, original: Any) -> Any:
        """Stand around the start of a reduction or scan: Triton's interpreter would call the combining function as it stands."""

        def start(operation: Any, axis: Any, combine_fn: Any) -> None:
            original(operation, axis, combine_fn)
            if is_jitted(combine_fn) and not combine_fn.fn.__code__.co_filename.startswith(_folder_of_triton()):
                operation.combine_fn = SimpleNamespace(fn=combine_fn.rewrite())

        return start

    def around_rewrite(self, original: Any) -> Any:
        """Stand around `InterpretedFunction.rewrite`, which every launch and every call of a device function asks."""

        of_triton = _folder_of_triton()

        def rewrite(kernel: Any) -> Any:
            found = original(kernel)
            code = kernel.fn.__code__
            made = self._made.get(found) or (os.path.realpath(code.co_filename), code.co_name, "")
            if not made[0].startswith(of_triton):
                self.ran.add(made)
            return found

        return rewrite
