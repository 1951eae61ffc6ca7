"""`python -m pypto_op.backends.hostshim FILE [ARGS...]`, or `-m MODULE [ARGS...]`: run what was written for the NPU on the CPU.

Where pypto is installed, its kernels run in the simulator, with numbers where there is a C++ tool chain. Unlike a
verdict, this runs the script as it is, in this process, with nothing between it and the machine.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import os
import runpy
import sys
from collections.abc import Callable, Sequence
from multiprocessing import spawn, util
from pathlib import Path
from types import ModuleType
from typing import Any

from pypto_op import speaking
from pypto_op.errors import PyptoOpError

DEVICE_ENV = "TILE_FWK_DEVICE_ID"
"""By this name pypto's own scripts ask which device is theirs; without it they end at once, as if all were well."""

MODULE_FLAG = "-m"
"""Says, as it does to Python, that the next word is a module: its relative imports work, and the current folder is searched."""

_HERE = "pypto_op.backends.hostshim.__main__"
_FORKSERVER = "from multiprocessing.forkserver import main"
"""How the command of multiprocessing's fork server begins."""

_COST_MODEL = "CostModelSimulationOutput"
"""The folder of pypto's cost model; a script that names it wants to read what is in it."""


class _Simulator(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Makes this process a simulator when pypto is imported: a script that only needs torch never builds the calculator.

    The loader imports pypto, not the finder: what is in `sys.modules` when a finder returns is loaded a second time.

    Args:
        cost_model: run pypto's cost model beside the numbers.
    """

    def __init__(self, cost_model: bool) -> None:
        self._cost_model = cost_model

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        return importlib.machinery.ModuleSpec(name, self) if name == "pypto" else None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        sys.meta_path.remove(self)
        from pypto_op.backends.sim import simulate_here

        try:
            with speaking.aloud("getting the simulator ready"):
                simulate_here(cost_model=self._cost_model)
        except PyptoOpError as error:
            _end(error)
        loaded = sys.modules.get(spec.name)
        if loaded is None:
            raise ModuleNotFoundError(f"No module named {spec.name!r}", name=spec.name)
        self._spec = loaded.__spec__
        return loaded

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec


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
    text = script.read_text(encoding="utf-8", errors="replace")
    prepare(_COST_MODEL in text)
    if DEVICE_ENV not in os.environ and DEVICE_ENV in text:
        os.environ[DEVICE_ENV] = "0"
        print(f"pypto-op: {DEVICE_ENV} is not set; it is 0 for {script.name}", file=sys.stderr)
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


def prepare(cost_model: bool, path: str | None = None) -> None:
    """Make this process one in which a script for the NPU runs, and the processes that `multiprocessing` starts from it.

    Args:
        cost_model: run pypto's cost model beside the numbers.
        path: PATH as it was before a simulator put its own tools first, for a process that has inherited it from one.
    """
    from pypto_op.backends import hostshim
    from pypto_op.backends.hostshim import fused, graphs

    try:
        hostshim.install()
        graphs.install()
        fused.install()
        _without_accelerator()
    except PyptoOpError as error:
        _end(error)
    sys.meta_path.insert(0, _Simulator(cost_model))
    if path is not None:
        os.environ["PATH"] = path
    begin = f"from {_HERE} import prepare; prepare({cost_model}, {os.environ.get('PATH')!r})"
    spawn.get_command_line = _begun(spawn.get_command_line, begin)
    util.spawnv_passfds = _served(util.spawnv_passfds, begin)


def _begun(real: Callable[..., list[str]], begin: str) -> Callable[..., list[str]]:
    """Let the command line of a spawned process begin with `begin`."""

    def command_line(**words: Any) -> list[str]:
        line = real(**words)
        if "-c" in line:  # a fork has everything already
            line[line.index("-c") + 1] = f"{begin}; {line[line.index('-c') + 1]}"
        return line

    return command_line


def _served(real: Callable[..., int], begin: str) -> Callable[..., int]:
    """Let the server that forks processes begin with `begin`: Python 3.14 starts processes by it unless told otherwise."""

    def started(path: Any, words: Sequence[Any], descriptors: Any) -> int:
        ready = [f"{begin}; {word}" if str(word).startswith(_FORKSERVER) else word for word in words]
        return real(path, ready, descriptors)

    return started


def _without_accelerator() -> None:
    """Have torch's compiler look at the CPU: it would ask the NPU for its streams in C++, where nothing stands in for it."""
    import torch

    torch.accelerator.is_available = lambda: False


def _end(error: PyptoOpError) -> None:
    print(f"pypto-op: {error.one_line()}", file=sys.stderr)
    sys.exit(int(error.exit_code))


if __name__ == "__main__":
    main()
