"""Loaded by each Python that a script of `pypto-op script` starts, whichever it is: so it is plain, and imports next to nothing.

When the process asks for torch, torch_npu or pypto, it becomes one in which a script for the NPU runs.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # `typing` is imported by whoever needs it
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

_WANTED = ("torch", "torch_npu", "pypto")


class _Waiting:
    """Finds the first of the packages that the process asks for, and makes the process ready before that is loaded."""

    waits_for_pypto_op = True

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name not in _WANTED:
            return None
        from importlib import machinery

        return machinery.ModuleSpec(name, self)  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        from importlib import import_module

        sys.meta_path.remove(self)
        try:
            children = import_module("pypto_op.backends.hostshim.children")
        except ImportError:
            print(f"pypto-op: {sys.executable} has no pypto-op: what it runs does not see the simulator", file=sys.stderr)
        else:
            children.begin()
        module = import_module(spec.name)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec


def _load_the_other() -> None:
    """Load the `sitecustomize` that this one stands in front of, if there is one, and leave no trace in the search path."""
    this = sys.modules.pop(__name__)
    here = __file__.rpartition("/")[0]
    sys.path[:] = [place for place in sys.path if place.rstrip("/") != here]
    try:
        __import__(__name__)
    except ImportError as error:
        if error.name != __name__:
            raise
    finally:
        sys.modules.setdefault(__name__, this)


sys.meta_path.insert(0, _Waiting())
_load_the_other()
