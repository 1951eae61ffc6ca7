"""Lets the processes that a script starts see what the script sees: by `multiprocessing`, by `subprocess`, through a shell.

A Python finds `for_children/sitecustomize.py` by PYTHONPATH, whoever starts it; `multiprocessing` needs no search path, because
its own command lines are changed. A Python that does not look there is told of on standard error.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import json
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from multiprocessing import spawn, util
from pathlib import Path
from types import ModuleType
from typing import Any

from pypto_op import speaking
from pypto_op.errors import PyptoOpError

DEVICE_ENV = "TILE_FWK_DEVICE_ID"
"""By this name pypto's own scripts ask which device is theirs; without it they end at once, as if all were well."""

_FOR_CHILDREN = str(Path(__file__).parent / "for_children")
_TOLD = "PYPTO_OP_SCRIPT_CHILD"
"""Holds what a child must know: the arguments of `prepare`."""

_FORKSERVER = "from multiprocessing.forkserver import main"
"""How the command of multiprocessing's fork server begins."""

_COST_MODEL = "CostModelSimulationOutput"
"""The folder of pypto's cost model; a script that names it wants to read what is in it."""

_PYTHON = re.compile(r"(?:pypy|python)[\d.]*(?:\.exe)?\Z")
_LOOKS_NOWHERE = re.compile(r"-(?![WX])[a-zA-Z]*[EIS]")
"""Options with which a Python loads no `sitecustomize`, or none from PYTHONPATH."""


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


def begin() -> None:
    """Make this process, which a script has started, one in which a script for the NPU runs."""
    told = json.loads(os.environ.get(_TOLD, "{}"))
    script = Path(sys.argv[0]) if sys.argv and sys.argv[0] not in ("", "-c", "-m") else None
    prepare_for(script, bool(told.get("cost_model")), told.get("path"))


def prepare_for(script: Path | None, cost_model: bool = False, path: str | None = None) -> None:
    """Make this process one in which a script runs; what the script's text names is made ready, too.

    Args:
        script: the file, None for code that stands in no file.
        cost_model: run pypto's cost model beside the numbers, also where the text does not name its folder.
        path: see `prepare`.
    """
    text = script.read_text(encoding="utf-8", errors="replace") if script is not None and script.is_file() else ""
    prepare(cost_model or _COST_MODEL in text, path)
    if script is not None and DEVICE_ENV not in os.environ and DEVICE_ENV in text:
        os.environ[DEVICE_ENV] = "0"
        print(f"pypto-op: {DEVICE_ENV} is not set; it is 0 for {script.name}", file=sys.stderr)


def prepare(cost_model: bool, path: str | None = None) -> None:
    """Make this process one in which a script for the NPU runs, and the processes that are started from it; once is enough.

    Args:
        cost_model: run pypto's cost model beside the numbers.
        path: PATH as it was before a simulator put its own tools first, for a process that has inherited it from one.
    """
    if _PREPARED:
        return
    _PREPARED.append(True)
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # before torch is imported; see `backends/cores.py`
    sys.meta_path[:] = [finder for finder in sys.meta_path if not getattr(finder, "waits_for_pypto_op", False)]
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
    path = os.environ.get("PATH")
    start = f"from {__name__} import prepare; prepare({cost_model}, {path!r})"
    spawn.get_command_line = _begun(spawn.get_command_line, start)
    util.spawnv_passfds = _served(util.spawnv_passfds, start)
    others = [place for place in os.environ.get("PYTHONPATH", "").split(os.pathsep) if place not in ("", _FOR_CHILDREN)]
    os.environ["PYTHONPATH"] = os.pathsep.join([_FOR_CHILDREN, *others])
    os.environ[_TOLD] = json.dumps({"cost_model": cost_model, "path": path})
    sys.addaudithook(_tell)


_PREPARED: list[bool] = []


def _begun(real: Callable[..., list[str]], start: str) -> Callable[..., list[str]]:
    """Let the command line of a spawned process begin with `start`."""

    def command_line(**words: Any) -> list[str]:
        line = real(**words)
        if "-c" in line:  # a fork has everything already
            line[line.index("-c") + 1] = f"{start}; {line[line.index('-c') + 1]}"
        return line

    return command_line


def _served(real: Callable[..., int], start: str) -> Callable[..., int]:
    """Let the server that forks processes begin with `start`: Python 3.14 starts processes by it unless told otherwise."""

    def started(path: Any, words: Sequence[Any], descriptors: Any) -> int:
        ready = [f"{start}; {word}" if str(word).startswith(_FORKSERVER) else word for word in words]
        return real(path, ready, descriptors)

    return started


def _tell(event: str, details: tuple[Any, ...]) -> None:
    """Say on standard error that a Python is started which will not see the simulator."""
    if event == "subprocess.Popen":
        _, words, _, environment = details
    elif event in ("os.posix_spawn", "os.exec"):
        _, words, environment = details
    else:
        return
    if why := _missed([] if isinstance(words, (str, bytes)) else [os.fsdecode(word) for word in words], environment):
        print(f"pypto-op: {os.fsdecode(words[0])} is started {why}: what it runs does not see the simulator", file=sys.stderr)


def _missed(words: Sequence[str], environment: Mapping[Any, Any] | None) -> str:
    """Return why a command is a Python that does not look where `sitecustomize` waits; "" for any other."""
    if not words or not _PYTHON.match(Path(words[0]).name):
        return ""
    options = []
    for word in words[1:]:
        if not word.startswith("-") or word in ("-", "-c", "-m"):
            break
        options.append(word)
    blind = next((option for option in options if _LOOKS_NOWHERE.match(option)), "")
    if blind:
        return f"with {blind}"
    given = os.environ if environment is None else {os.fsdecode(k): os.fsdecode(v) for k, v in environment.items()}
    return "" if _FOR_CHILDREN in given.get("PYTHONPATH", "").split(os.pathsep) else "with another PYTHONPATH"


def _without_accelerator() -> None:
    """Have torch's compiler look at the CPU: it would ask the NPU for its streams in C++, where nothing stands in for it."""
    import torch

    torch.accelerator.is_available = lambda: False


def _end(error: PyptoOpError) -> None:
    print(f"pypto-op: {error.one_line()}", file=sys.stderr)
    sys.exit(int(error.exit_code))
