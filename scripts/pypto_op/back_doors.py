"""What a kernel's file has no business with: the ways from Python code to the interpreter's own objects and to the judge's.

The judge refuses a candidate that names one (`backends.worker.source_check`) or uses one (`backends.worker.guard`); the
linter tells the coder at the write (rule PX10). This module imports next to nothing, so that both can afford it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

NAMES = frozenset(
    {"__closure__", "cell_contents", "__globals__", "__subclasses__", "__wrapped__", "__builtins__", "__code__"}
    | {"f_back", "f_locals", "f_globals", "f_builtins", "tb_frame", "gi_frame", "cr_frame", "ag_frame"}
)
"""They lead from a function to the variables that it closes over, from a frame to its callers, or to every class there is."""

FINDS_OBJECTS = frozenset({"gc.get_objects", "gc.get_referrers", "gc.get_referents", "sys._current_frames"})
WATCHES = frozenset({"sys.addaudithook", "sys.settrace", "sys.setprofile"})
FRAME_OF_CALLER = "sys._getframe"

STARTS_THREAD = frozenset({"_thread.start_new_thread", "_thread.start_new", "_thread.start_joinable_thread"}) | frozenset(
    {"threading._start_new_thread", "threading._start_joinable_thread"}
)
"""Every thread of Python is started by one of these."""
HANDLES_SIGNAL = "signal.signal"
FORKS = frozenset({"os.fork", "os.forkpty"})
RUNS_BESIDE = (
    STARTS_THREAD
    | FORKS
    | frozenset(
        {"threading.Thread", "threading.Timer", "asyncio.to_thread", "subprocess.Popen", "subprocess.run", "subprocess.call"}
        | {"subprocess.check_call", "subprocess.check_output", "os.system", "os.popen"}
        | {
            f"concurrent.futures{part}.{pool}"
            for part in ("", ".thread", ".process")
            for pool in ("ThreadPoolExecutor", "ProcessPoolExecutor")
        }
        | {
            f"{home}.{kind}"
            for home in ("multiprocessing", "multiprocessing.dummy", "torch.multiprocessing")
            for kind in ("Process", "Pool")
        }
        | {"multiprocessing.pool.Pool", "multiprocessing.pool.ThreadPool", "torch.multiprocessing.spawn"}
    )
)
"""Names whose use ends in a thread, a process or another program: what runs beside a launch can write its outputs."""

MODULES = frozenset({"pypto_op", "gc", "inspect", "ctypes"})
"""Modules that an impl needs for nothing else."""

_ANY_NAME = re.compile("|".join(sorted(NAMES)))


def named(source: str | bytes) -> Iterator[tuple[int, int, str]]:
    """Yield (line, column, name) for each of NAMES in a file; columns from 0.

    It may stand there as an attribute, a name, a string, or the keyword of a class pattern.

    A name that is put together from pieces counts too, as long as the pieces are constants beside one another. Code
    that never runs counts as well.

    Raises:
        SyntaxError, ValueError: the file is no Python.
        RecursionError, MemoryError: it is nested too deeply.
    """
    for node in ast.walk(ast.parse(source)):
        words = node.kwd_attrs if isinstance(node, ast.MatchClass) else (_spelt(node),)
        for text in words:
            if text in NAMES:
                yield node.lineno, node.col_offset, text  # type: ignore[attr-defined]


def may_name(source: str) -> bool:
    """Whether a text holds one of NAMES in one piece: much quicker than `named`."""
    return _ANY_NAME.search(source) is not None


def _spelt(node: ast.AST) -> str | None:
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Name):
        return node.id
    return _text(node) if isinstance(node, (ast.Constant, ast.BinOp, ast.JoinedStr)) else None


def _text(node: ast.expr) -> str | None:
    """Return the constant text of an expression: a literal, literals added up, an f-string of literals."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        parts = [_text(node.left), _text(node.right)]
    elif isinstance(node, ast.JoinedStr):
        parts = [_text(value) for value in node.values]
    elif isinstance(node, ast.FormattedValue):
        parts = [_text(node.value)]
    else:
        return None
    return None if None in parts else "".join(part for part in parts if part is not None)
