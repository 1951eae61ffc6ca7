"""Loads one Python file as a module and says in one line what went wrong when it does not load."""

from __future__ import annotations

import hashlib
import importlib.util
import re
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from pypto_op.vocabulary import Outcome

_LONGEST = 400
_STACK_FRAME = re.compile(r"\S+\.so\S*\(.*\) \[0x|\S*libstdc\S*\(")
_OPERATION_ERROR = re.compile(r"\b\w+OpError\b")
_WRAPPED = ("RenderedParserError", "ParserError")
"""What pypto raises in the place of what failed in a kernel."""
_RAISED_ANEW = "InterpreterError"
"""What Triton's interpreter raises at a launch, with the words of what a kernel raised, once for each kernel within a kernel."""
_SOURCE = re.compile(r", func \w+, file \S+, line \d+$")


@dataclass(eq=False)
class Failure(Exception):
    """Why a file did not load, or a call did not return."""

    outcome: Outcome
    detail: str


def load_function(path: Path, name: str, *, sha256: str | None = None) -> Callable[..., Any]:
    """Load `path` as a module and return its function `name`.

    Args:
        sha256: what the file's bytes must hash to; None: anything.

    Raises:
        Failure: with the outcome that names what happened.
    """
    module = load_module(path, sha256=sha256)
    function = getattr(module, name, None)
    if not callable(function):
        others = [key for key in vars(module) if key.endswith(("_wrapper", "_golden")) and key != name]
        hint = f"; it has {', '.join(sorted(others)[:5])}" if others else ""
        raise Failure(Outcome.MISSING_WRAPPER, f"{path.name} has no function {name}{hint}")
    found: Callable[..., Any] = function
    return found


def load_module(path: Path, *, sha256: str | None = None, beside: bool = True) -> ModuleType:
    """Load `path` as a module named after it; raise Failure when that does not work.

    Args:
        sha256: what the file's bytes must hash to; None: anything.
        beside: whether it may import the files that lie beside it.
    """
    try:
        source = path.read_bytes()
    except OSError as error:
        raise Failure(Outcome.MISSING_FILE, f"{path.name}: {error.strerror}") from None
    if sha256 is not None and hashlib.sha256(source).hexdigest() != sha256:
        raise Failure(Outcome.IMPORT_ERROR, f"{path.name} changed while it was being judged")
    try:
        code = compile(source, str(path), "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None)
        where = f"{path.name}:{line}" if line else path.name
        raise Failure(Outcome.SYNTAX_ERROR, f"{where}: {_words(error)}") from None
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    if beside and str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    try:
        exec(code, module.__dict__)
    except BaseException as error:
        raise failure_of(error, path, Outcome.IMPORT_ERROR, " at import") from None
    return module


def failure_of(error: BaseException, path: Path, outcome: Outcome, when: str = "") -> Failure:
    """Classify what code of `path` raised.

    Args:
        error: what was raised.
        outcome: what it counts as when it is an ordinary exception.
        when: appended to the words for an exit (" at import").
    """
    where = _innermost_line(error, path)
    if type(error).__name__ in _WRAPPED:
        return _wrapped(error, path, outcome)
    if isinstance(error, SystemExit):
        return Failure(Outcome.EXITED, f"{where}: sys.exit({_short(repr(error.code))}){when}")
    if isinstance(error, MemoryError) or _ran_out_of_memory(error):
        return Failure(Outcome.OUT_OF_MEMORY, f"{where}: {_words(error)}{when}")
    if type(error).__name__ == _RAISED_ANEW and error.__cause__ is not None:
        return Failure(outcome, f"{where}: {_RAISED_ANEW}: {_words(_causes(error)[-1])}")
    uncompiled = next((cause for cause in reversed(_causes(error)) if isinstance(getattr(cause, "src", None), str)), None)
    if uncompiled is not None and hasattr(uncompiled, "error_message"):
        return _uncompiled(uncompiled, path, outcome, where)
    return Failure(outcome, f"{where}: {_words(error)}")


def _uncompiled(error: Any, path: Path, outcome: Outcome, where: str) -> Failure:
    """Say what Triton's compiler refused: its message is an excerpt of the kernel, with the reason below or in the cause.

    Args:
        error: a `triton.compiler.CompilationError`, the innermost where kernels call one another; its `node` lies in `src`.
    """
    line = _line_in(path, error.src, getattr(error.node, "lineno", 0))
    reason = error.error_message or (str(error.__cause__) if error.__cause__ else "")
    said = _short(" ".join(reason.split())) or _words(error).partition(": ")[2]
    return Failure(outcome, f"{f'{path.name}:{line}' if line else where}: {type(error).__name__}: {said}")


def _line_in(path: Path, source: str, line: int) -> int | None:
    """Return which line of a file is line `line` of a function whose text is `source`; None where it does not stand there."""
    wanted = [text.strip() for text in source.strip().splitlines()]
    lines = [text.strip() for text in path.read_text(encoding="utf-8", errors="replace").splitlines()]
    found = (start for start in range(len(lines) - len(wanted) + 1) if lines[start : start + len(wanted)] == wanted)
    start = next(found, None)
    return None if start is None or not line else start + line


def _wrapped(error: BaseException, path: Path, outcome: Outcome) -> Failure:
    """Say what pypto's parser wrapped: it raises at the launch, in the words of what failed last.

    What failed first is the cause, and its line that of the kernel; passes that then ran over the torso speak of other things.
    """
    chain = [error]
    while (further := chain[-1].__cause__ or chain[-1].__context__) is not None and further not in chain:
        chain.append(further)
    inner = [_line_of(one, path) for one in chain[:0:-1]]
    nodes = [getattr(getattr(one, "node", None), "lineno", None) for one in reversed(chain)]
    line = next(filter(None, [*inner, *nodes, _line_of(error, path)]), None)
    return Failure(outcome, f"{path.name}:{line}: {_words(chain[-1])}" if line else f"{path.name}: {_words(chain[-1])}")


def _ran_out_of_memory(error: BaseException) -> bool:
    words = str(error)
    return isinstance(error, RuntimeError) and any(
        sign in words for sign in ("can't allocate memory", "not enough memory", "std::bad_alloc", "out of memory")
    )


def _words(error: BaseException) -> str:
    """Return the type of an error and the first telling line of its message."""
    message = error.msg if isinstance(error, SyntaxError) else str(error)
    telling = _short(_telling_line(message))
    return f"{type(error).__name__}: {telling}" if telling else type(error).__name__


def _telling_line(message: str) -> str:
    """Return what matters of a message: pypto's say it in the second line, or in the last, above stack frames."""
    lines = [" ".join(line.split()) for line in message.splitlines()]
    lines = [line for line in lines if line and not _STACK_FRAME.match(line)]
    if not lines:
        return ""
    operation = _OPERATION_ERROR.search(lines[0])
    if operation and len(lines) > 1:
        return f"{operation[0]}: {lines[-1]}"
    if lines[0].startswith("Errcode:") and len(lines) > 1:
        return f"{lines[0]} {_SOURCE.sub('', lines[1])}"
    return lines[0]


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def _innermost_line(error: BaseException, path: Path) -> str:
    """Return "file:line" of the user's line that is nearest to the cause: Triton's interpreter raises anew at the launch."""
    line = next(filter(None, (_line_of(cause, path) for cause in reversed(_causes(error)))), None)
    return f"{path.name}:{line}" if line else path.name


def _causes(error: BaseException) -> list[BaseException]:
    """Return an error and what it was raised from, the first cause last."""
    causes, cause = [error], error.__cause__
    while cause is not None and cause not in causes:
        causes.append(cause)
        cause = cause.__cause__
    return causes


def _line_of(error: BaseException, path: Path) -> int | None:
    """Return the innermost line of `path` on the way to an error."""
    frames = traceback.extract_tb(error.__traceback__)
    return next((frame.lineno for frame in reversed(frames) if frame.filename == str(path)), None)
