"""Shows the line of a kernel that pypto works on, where pypto itself does not: in a crash, and when recording breaks off.

pypto's parser walks a kernel's syntax tree, so the kernel's file is on no stack. And of an error it prints the place only
if nothing else fails afterwards; mostly its passes then fail over the torso, and are blamed on line 1.
So each statement is visited through a frame whose name is its place (`endings.with_kernel_frames` reads it), and the first
statement that failed is told when the call fails.
"""

from __future__ import annotations

import ast
import functools
import sys
import traceback
from collections.abc import Callable
from types import FunctionType
from typing import Any

from pypto_op.backends.endings import frame_name

_LONGEST_WORDS = 300


class _Failure:
    """Which statement failed first, of the call that runs."""

    told = ""


def follow() -> None:
    """Follow pypto's parser through every kernel of this process."""
    from pypto.frontend.parser import entry, parser

    kind: Any = parser.Parser
    wrapper: Any = entry.JitCallableWrapper
    if not hasattr(kind.visit, "__wrapped__"):
        kind.visit = _followed(kind.visit)
        wrapper.__call__ = _telling(wrapper.__call__)


def _followed(visit: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return `visit` with a frame for each statement."""

    @functools.wraps(visit)
    def followed(self: Any, node: Any) -> Any:
        if not isinstance(node, ast.stmt) or isinstance(node, ast.FunctionDef):  # which line of it, its statements tell
            return visit(self, node)
        file, line = self.source_name(), node.lineno
        try:
            result = _frame(file, line)(visit, self, node)
        except Exception as error:
            _Failure.told = _Failure.told or f"stopped at {file}:{line}: {_words(error)}{_way(error, file)}"
            raise
        _Failure.told = ""  # an exception below this statement was dealt with
        return result

    return followed


def _telling(call: Callable[..., Any]) -> Callable[..., Any]:
    """Return the call of a kernel; when it fails, the statement that failed first is told on standard error."""

    @functools.wraps(call)
    def telling(self: Any, *args: Any, **kwargs: Any) -> Any:
        _Failure.told = ""
        try:
            return call(self, *args, **kwargs)
        finally:
            if _Failure.told:
                print(_Failure.told, file=sys.stderr, flush=True)

    return telling


def _visited(visit: Callable[[Any, Any], Any], parser: Any, node: Any) -> Any:
    return visit(parser, node)


@functools.lru_cache(maxsize=4096)
def _frame(file: str, line: int) -> Callable[..., Any]:
    """Return `_visited` under the name of a place; the file of the frame stays this one, which no guard takes for a kernel."""
    return FunctionType(_visited.__code__.replace(co_name=frame_name(file, line)), globals())


def _way(error: BaseException, file: str) -> str:
    """Return the lines of a kernel's file on the way into its helpers, "" where there are none."""
    chain: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in chain:
        chain.append(cause)
        cause = cause.__cause__ or cause.__context__
    ways = [[line for frame, line in traceback.walk_tb(one.__traceback__) if frame.f_code.co_filename == file] for one in chain]
    longest = max(ways, key=len)
    return f" (by way of lines {', '.join(map(str, longest))})" if longest else ""


def _words(error: Exception) -> str:
    first = " ".join(str(error).strip().splitlines()[:2])
    return f"{type(error).__name__}: {first}"[:_LONGEST_WORDS]
