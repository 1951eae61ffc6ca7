#!/usr/bin/env python3
"""Launcher of the bundle's MCP server (stdio); harness configurations name this file and any Python 3.

PYTHONPATH comes before the standard library, so a `random.py` in a folder that it names would run in the server. Python starts
without it, and what it names comes behind all that is installed (`pypto_op.own_python` says why).

The server needs the bundle's own environment. Where this Python has no `mcp`, the one that PYPTO_OP_PYTHON names, the
checkout's .venv, or the environment that the wheel lies in takes over.
"""

import os
import sys

_FLAGS = [flag for flag, is_set in (("-E", True), ("-s", sys.flags.no_user_site), ("-B", sys.dont_write_bytecode)) if is_set]
if __name__ == "__main__" and os.environ.get("PYTHONPATH") and not sys.flags.ignore_environment:
    os.execv(sys.executable, [sys.executable, *_FLAGS, *sys.argv])  # before it decides what is imported

import importlib.util  # noqa: E402
from pathlib import Path  # noqa: E402

_BUNDLE = Path(__file__).resolve().parent.parent
_PACKAGES = [str(_BUNDLE / "scripts"), str(_BUNDLE / "lint")]
_TRIED = "PYPTO_OP_MCP_RELAUNCHED"


def _hand_over() -> None:
    """Go on in a Python that has `mcp`; end with one line where there is none."""
    own = _BUNDLE.parents[4] if _BUNDLE.name == "_bundle" else _BUNDLE / ".venv"
    for python in (os.environ.get("PYPTO_OP_PYTHON"), str(own / "bin" / "python")):
        if python and os.access(python, os.X_OK) and _TRIED not in os.environ:
            os.execve(python, [python, *_FLAGS, __file__, *sys.argv[1:]], {**os.environ, _TRIED: "1"})
    sys.exit(f"pypto-op: no Python with the package mcp was found; {_remedy()}, or set PYPTO_OP_PYTHON")


def _remedy() -> str:
    """Return what adds `mcp`; this Python may lack the bundle's packages, but the file that knows needs no other."""
    try:
        from pypto_op.bundle_files import extra_remedy
    except ImportError:
        return f"install the wheel of {_BUNDLE} again with the extra mcp"
    return extra_remedy("mcp")


def _check() -> None:
    """End with 0 when this Python can import the server as a whole, else with one line."""
    try:
        import pypto_op.mcp.server  # noqa: F401
        import pypto_op.proof.key  # noqa: F401
    except Exception as error:
        sys.exit(f"{sys.executable}: {' '.join(str(error).split())[:200]}")


if __name__ == "__main__":
    sys.path[:0] = [package for package in _PACKAGES if Path(package).is_dir()]
    named = os.environ.get("PYTHONPATH", "").split(":")
    sys.path += [folder for folder in named if folder[:1] == "/" and os.path.realpath(folder) != str(Path.cwd())]
    if sys.argv[1:] == ["--check"]:
        _check()
        sys.exit(0)
    if importlib.util.find_spec("mcp") is None:
        _hand_over()
    from pypto_op.mcp.server import main

    main()
