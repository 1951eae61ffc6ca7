"""`python -m pypto_op.backends.hostshim FILE [ARGS...]`, or `-m MODULE [ARGS...]`: run what was written for the NPU on the CPU.

Where pypto is installed, its kernels run in the simulator, with numbers where there is a C++ tool chain. Unlike a
verdict, this runs the script as it is, in this process, with nothing between it and the machine.
"""

from __future__ import annotations

import importlib.util
import runpy
import sys
from pathlib import Path

from pypto_op.backends.hostshim.children import prepare_for

MODULE_FLAG = "-m"
"""Says, as it does to Python, that the next word is a module: its relative imports work, and the current folder is searched."""


def main() -> None:
    """Run the script or module named by the arguments as `__main__`, with the rest as its arguments."""
    if len(sys.argv) < 2 or sys.argv[1:] == [MODULE_FLAG]:
        sys.exit("usage: python -m pypto_op.backends.hostshim (FILE | -m MODULE) [ARGS...]")
    module = sys.argv[2] if sys.argv[1] == MODULE_FLAG else None
    sys.argv = sys.argv[2 if module else 1 :]
    sys.path.insert(0, str(Path.cwd()) if module else str(Path(sys.argv[0]).resolve().parent))
    script = _file_of(module) if module else Path(sys.argv[0]).resolve()
    if not script.is_file():
        sys.exit(f"pypto-op: {sys.argv[0]}: no such file")
    prepare_for(script)
    if module:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(str(script), run_name="__main__")


def _file_of(module: str) -> Path:
    """Return the file that `python -m MODULE` runs, without running it; its packages are imported, as they are there."""
    for name in (module, f"{module}.__main__"):
        try:
            spec = importlib.util.find_spec(name)
        except ModuleNotFoundError:
            spec = None
        if spec is not None and spec.origin is not None and spec.submodule_search_locations is None:
            return Path(spec.origin)
    sys.exit(f"pypto-op: no module {module} in {Path.cwd()} that could be run")


if __name__ == "__main__":
    main()
