"""The simulator: real pypto on the CPU, its calculator for the numbers and its cost model for the times."""

from __future__ import annotations

import atexit
import contextlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from importlib import metadata, util
from pathlib import Path
from typing import Any

from pypto_op.backends import calculator, native
from pypto_op.backends.base import DEFAULT_LIMITS, Availability, Limits
from pypto_op.backends.calculator import Ingredients
from pypto_op.backends.cost import keep_launches, read_cost
from pypto_op.backends.launcher import Launched, Zygote, shared_zygote
from pypto_op.backends.session import CandidateSession, Plan
from pypto_op.backends.worker.trusted import is_trusted
from pypto_op.bundle_files import extra_remedy
from pypto_op.errors import InfraError, PyptoOpError
from pypto_op.vocabulary import Mode
from pypto_op.workspace import OpWorkspace

CAVEATS = (
    "sim judges the mathematics of the tensor graph, before pypto's passes; races and missing synchronisation, overflow of "
    "on-chip buffers, misaligned addresses, the NZ layout and the device's own rounding show on a device only",
)
"""Printed beside every verdict of this backend (design, section 4)."""

_LOG_LEVEL, _LOG_PATH = "ASCEND_GLOBAL_LOG_LEVEL", "ASCEND_PROCESS_LOG_PATH"
STRUCTURE_ONLY = "structure only: compiled, shapes and dtypes checked, no numbers computed"
"""Caveat that comes first when there is no calculator."""


class SimBackend:
    """Kernels in pypto's simulator.

    Args:
        enclose: put each session into name spaces where the machine allows them.
        silent: kernels are compiled and compute nothing; outputs keep what their memory held.
        traces: a folder that keeps what the cost model wrote, call by call (`cost.keep_launches`); None: nothing is kept.
        passes: run pypto's passes, as a verdict must; without them the numbers are the same, for a third of the time
            (`worker.tensor_graph`), and what only a pass refuses is not seen.
    """

    mode = Mode.SIM

    def __init__(self, *, enclose: bool = True, silent: bool = False, traces: Path | None = None, passes: bool = True) -> None:
        self._enclose, self._silent, self._traces, self._passes = enclose, silent, traces, passes

    def sabotaged(self) -> SimBackend:
        """Return this backend with kernels that compute nothing."""
        return SimBackend(enclose=self._enclose, silent=True)

    def availability(self) -> Availability:
        """Say what this machine can simulate, without importing torch or building anything."""
        ingredients = calculator.find_ingredients()
        if outside := misplaced():
            return Availability(False, False, outside, _versions(ingredients), CAVEATS)
        if ingredients is None:
            return Availability(False, False, f"pypto is not installed; {extra_remedy('sim')}", _versions(None), CAVEATS)
        if other := calculator.other_release(ingredients):
            return Availability(False, False, other, _versions(ingredients), CAVEATS)
        reason = "" if ingredients.toolchain.complete else ingredients.toolchain.reason
        caveats = CAVEATS if not reason else (STRUCTURE_ONLY, *CAVEATS)
        return Availability(True, not reason, reason, _versions(ingredients), caveats)

    def open(
        self, impl: Path, wrapper: str, workspace: OpWorkspace, *, limits: Limits = DEFAULT_LIMITS, cost_model: bool = False
    ) -> CandidateSession:
        """Open a session; builds the calculator first if it was never built here.

        Raises:
            InfraError: pypto is not installed, or the calculator cannot be built.
        """
        tools = prepare()
        tools.zygote()
        device = {
            "class": "pypto_op.backends.worker.device:Host",
            "numeric": tools.numeric and not self._silent,
            "switch": tools.switch,
            "cost_model": cost_model,
            "silent": self._silent,
            "passes": self._passes,
        }
        plan = Plan({"enclose": self._enclose, "device": device}, tools.start, tools.numeric)
        reader = self._read if cost_model and tools.numeric else None
        return CandidateSession(Path(impl), wrapper, workspace, plan, limits, reader)

    def _read(self, pypto_dir: Path, launches: int) -> dict[str, float | int] | None:
        """Return the cost model's figures of a call, and keep what they come from where that is wanted."""
        if self._traces is not None:
            keep_launches(pypto_dir, self._traces, launches)
        return read_cost(pypto_dir, launches)


def misplaced() -> str:
    """Say which of the judge's packages lies outside of the folders that workers trust, and what to do; "" for none.

    A package on PYTHONPATH, behind a line of a .pth file or in the user's site looks like a candidate's own code to a
    worker, so a right kernel would be refused there. Such folders are not trusted: a candidate could be put into one.
    """
    for package in ("torch", "pypto", "numpy"):
        found = util.find_spec(package)
        if found is not None and found.origin is not None and not is_trusted(found.origin):
            folder = Path(found.origin).parent.parent
            place = f"{package} lies in {folder}, outside of the site packages of {sys.executable}"
            mend = f"take that folder off PYTHONPATH or the .pth files, then {extra_remedy('sim')}"
            return f"{place}, so no kernel can be judged; {mend}"
    return ""


class SimTools:
    """What the simulator's workers are started with on this machine."""

    def __init__(self, calculator_path: Path | None, tools: native.NativeTools | None, compiler: str) -> None:
        self.calculator = calculator_path  # the built library, or None
        self.numeric = calculator_path is not None  # there is one
        self.switch = str(tools.cost_model_switch) if tools else None  # path of the cost model's switch, or None
        self.crash_frames = str(tools.crash_frames) if tools else None  # path of the teller of crashes, or None
        self._document = {
            "pypto": True,
            "calculator": str(calculator_path) if calculator_path else None,
            "switch": self.switch,
            "crash_frames": self.crash_frames,
        }
        # pypto's own log: errors only, to the worker's output instead of files under the home directory.
        # what the environment of a simulating process needs
        self.variables = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0", "ASCEND_SLOG_PRINT_TO_STDOUT": "1", _LOG_LEVEL: "3"}
        if tools:
            path = f"{tools.bin_dir}:{_search_path()}"
            self.variables |= {"PATH": path, "PYPTO_OP_CXX": compiler}

    def zygote(self) -> Zygote:
        """Return this process's zygote; the first call starts it and does not wait for it."""
        return shared_zygote(self._document, self.variables)

    def start(self, document: dict[str, Any]) -> Launched:
        """Start a session from the zygote that lives now, whatever became of an earlier one."""
        return self.zygote().start(document)


def warm_up() -> None:
    """Start the process that workers are forked from, and do not wait for it.

    It takes two seconds to import torch and pypto; a caller that has other things to do first (import torch
    itself, read documents) saves them. Does nothing where that would mean building or failing.
    """
    ingredients = calculator.find_ingredients()
    if ingredients is None or (ingredients.toolchain.complete and calculator.cached(ingredients) is None):
        return
    with contextlib.suppress(PyptoOpError):
        prepare().zygote()


def prepare() -> SimTools:
    """Build what is missing, and return what workers are started with.

    Call it before workers are needed: it may take half a minute on a machine that never built the calculator.

    Raises:
        InfraError: pypto is not installed, or a build failed.
    """
    ingredients = calculator.find_ingredients()
    if ingredients is None:
        raise InfraError("pypto is not installed", remedy=extra_remedy("sim"))
    if other := calculator.other_release(ingredients):
        problem, _, remedy = other.partition("; ")
        raise InfraError(problem, remedy=remedy)
    if not ingredients.toolchain.complete:
        return SimTools(None, None, "")
    library = calculator.ensure(ingredients)
    tools = native.ensure(ingredients.toolchain)
    return SimTools(library, tools, ingredients.toolchain.paths["g++"])


def simulate_here(*, cost_model: bool = False) -> None:
    """Make this very process a simulator: host shim, calculator, kernels in SIM.

    For running a trusted script (`test_<op>.py`) as it is; a candidate is judged through `SimBackend`. What pypto
    writes goes to a folder that is removed at exit, unless TILE_FWK_OUTPUT_DIR names one. Must be called before
    pypto is imported. Without pypto, only the host shim is installed. A level and a folder of pypto's log that the caller's
    environment names (ASCEND_GLOBAL_LOG_LEVEL, ASCEND_PROCESS_LOG_PATH) are kept.

    Args:
        cost_model: run it too, with its plots, and let pypto write where it does by itself: `output/` beside the process.

    Raises:
        InfraError: the calculator cannot be built, or a real torch_npu is installed.
    """
    from pypto_op.backends import hostshim
    from pypto_op.backends.hostshim import recording
    from pypto_op.backends.worker import compiled_once, crashes, pypto_hooks

    if calculator.find_ingredients() is None:
        hostshim.install()
        return
    tools = prepare()
    switch = Path(tools.switch) if tools.switch else None
    folder = _folder_of_this_process()
    asked = {name: os.environ[name] for name in (_LOG_LEVEL, _LOG_PATH) if os.environ.get(name)}
    os.environ.update({**tools.variables, _LOG_PATH: folder, **asked})
    os.environ.pop("ASCEND_SLOG_PRINT_TO_STDOUT", None)  # the output is the script's own
    if cost_model:  # its plots are drawn by a `python3` that has this process's packages, not by the one that draws nothing
        os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    else:
        os.environ.setdefault("TILE_FWK_OUTPUT_DIR", folder)
    pypto_hooks.load_before_pypto(switch)
    hostshim.install()
    if tools.calculator is not None:
        pypto_hooks.load_calculator(tools.calculator)
        pypto_hooks.switch_cost_model(switch, on=cost_model)
    pypto_hooks.simulate(numeric=tools.numeric, lenient=True)
    compiled_once.tell()
    if tools.numeric:
        recording.install()
    crashes.load(Path(tools.crash_frames) if tools.crash_frames else None)
    crashes.tell()


def _folder_of_this_process() -> str:
    """Return a new folder that goes when this process ends, also by a crash or a signal.

    At an ordinary end this process removes it. Otherwise a shell does, which waits for the end of a pipe that only this
    process can write to.
    """
    folder = tempfile.mkdtemp(prefix="pypto-op-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    waits = ["/bin/sh", "-c", 'trap "" HUP INT TERM; read -r _; rm -rf -- "$1"', "sh", folder]
    silent = subprocess.DEVNULL
    with contextlib.suppress(OSError):  # no shell: then only an ordinary end tidies up
        keeper = subprocess.Popen(waits, stdin=subprocess.PIPE, stdout=silent, stderr=silent, cwd="/", start_new_session=True)
        keeper.returncode = 0  # nobody waits for it: it outlives this process
        _KEEPERS.append(keeper)
    return folder


_KEEPERS: list[subprocess.Popen[bytes]] = []
"""Their pipes stay open as long as this process lives."""


def _search_path() -> str:
    return os.environ.get("PATH", os.defpath)


def _versions(ingredients: Ingredients | None) -> dict[str, str]:
    versions: dict[str, Any] = {"python": platform.python_version()}
    for name in ("torch", "pypto"):
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    if ingredients is not None:
        versions["torch"] = ingredients.torch_version
        versions |= {name: text for name, text in ingredients.toolchain.versions.items() if name == "g++"}
    return versions
