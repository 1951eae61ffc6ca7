"""What this machine can do, what each missing piece costs, and the one line that mends it."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass
from importlib import util
from pathlib import Path
from typing import Any

import psutil

from pypto_op import __version__
from pypto_op.backends import calculator
from pypto_op.backends.base import Availability
from pypto_op.backends.cores import usable
from pypto_op.backends.registry import get_backend
from pypto_op.backends.sim import misplaced
from pypto_op.backends.toolchain import INSTALL_LINE, find_toolchain
from pypto_op.bundle_files import extra_remedy
from pypto_op.modes import REGISTRY
from pypto_op.vocabulary import Mode

SCHEMA_VERSION = 1
_GIB = 1024**3
_ROOMY_GIB = 4.0


@dataclass(frozen=True)
class Finding:
    """One piece of the machine."""

    name: str  # what it is
    status: str  # "ok", "missing", or "limited" (works, but less)
    found: str  # what is there, e.g. a version.
    costs: str = ""  # what its absence costs; empty when nothing is missing
    mend: str = ""  # the one line that mends it; empty when nothing is missing or nothing helps


def examine() -> dict[str, Any]:
    """Return the document of `schemas/doctor.schema.json`."""
    available = {mode: get_backend(mode).availability() for mode in Mode}
    findings = [_python(), _torch(), _pypto(), _tool_chain(), _calculator(), _enclosure()]
    findings += [_place(mode, found) for mode, found in available.items() if mode is not Mode.SIM]
    findings += [_node(), _memory()]
    return {
        "schema_version": SCHEMA_VERSION,
        "tool": {"name": "pypto-op", "version": __version__},
        **{str(mode): _availability(found) for mode, found in available.items()},
        "findings": [asdict(finding) for finding in findings],
    }


def _python() -> Finding:
    version = platform.python_version()
    if (3, 10) <= sys.version_info[:2] < (3, 13):
        return Finding("python", "ok", version)
    return Finding("python", "limited", version, "pypto 0.2.0 has wheels for 3.10 to 3.12 only", "use Python 3.11 for .venv")


def _torch() -> Finding:
    ingredients = calculator.find_ingredients()
    if util.find_spec("torch") is None:
        return Finding("torch", "missing", "", "no kernel and no golden can run", extra_remedy("sim"))
    if outside := misplaced():
        problem, _, mend = outside.partition("; ")
        return Finding("packages", "limited", "", problem, mend)
    return Finding("torch", "ok", ingredients.torch_version if ingredients else "installed")


def _pypto() -> Finding:
    version = get_backend(Mode.SIM).availability().versions.get("pypto")
    if version:
        return Finding("pypto", "ok", version)
    return Finding("pypto", "missing", "", "no kernel can run", extra_remedy("sim"))


def _tool_chain() -> Finding:
    found = find_toolchain()
    if found.complete:
        return Finding("c++ tool chain", "ok", found.versions.get("g++", ""))
    return Finding(
        "c++ tool chain",
        "missing",
        f"without {', '.join(found.missing)}",
        "sim checks structure only: no numbers, so never a PASS on precision",
        INSTALL_LINE,
    )


def _calculator() -> Finding:
    ingredients = calculator.find_ingredients()
    if ingredients is None or not ingredients.toolchain.complete:
        return Finding("calculator", "missing", "", "sim checks structure only", "mend the lines above first")
    if other := calculator.other_release(ingredients):
        problem, _, mend = other.partition("; ")
        return Finding("calculator", "missing", "", problem, mend)
    if calculator.cached(ingredients) is not None:
        return Finding("calculator", "ok", "built and cached")
    return Finding(
        "calculator", "limited", "not built yet", "the first verify takes half a minute longer", "pypto-op doctor --build"
    )


def _enclosure() -> Finding:
    if _namespaces_allowed():
        return Finding("enclosure", "ok", "name spaces: goldens hidden, no network, files read-only")
    return Finding(
        "enclosure",
        "limited",
        "audit hook only",
        "a candidate that calls C code could read goldens or write outside its folder",
        "allow unprivileged user name spaces (container: --security-opt seccomp=unconfined)",
    )


def _namespaces_allowed() -> bool:
    """Try it in a process of its own, without torch."""
    code = "import sys; from pypto_op.backends.worker import isolation; sys.exit(not isolation.allowed())"
    own = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}  # and no file of the current folder
    try:
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=30, check=False, cwd="/", env=own)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _availability(found: Availability) -> dict[str, Any]:
    return {"ok": found.ok, "numeric": found.numeric, "reason": found.reason, "versions": found.versions}


def _place(mode: Mode, found: Availability) -> Finding:
    """Return the line of a mode whose pieces have no lines of their own, as the simulator's have."""
    if found.ok:
        shown = ", ".join(f"{name} {version}" for name, version in found.versions.items() if name != "python")
        return Finding(str(mode), "ok", shown)
    return Finding(str(mode), "missing", "", f"the {mode} mode is SKIPPED ({found.reason})", REGISTRY[mode].mend)


def _node() -> Finding:
    path = shutil.which("node")
    if path is None:
        return Finding("node", "missing", "", "only the tests that drive real harness clients are skipped", "install Node 20+")
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return Finding("node", "limited", path, "node does not answer", "reinstall Node")
    return Finding("node", "ok", done.stdout.strip())


def _memory() -> Finding:
    total = psutil.virtual_memory().total / _GIB
    found = f"{total:.1f} GiB, {usable()} cores"
    if total >= _ROOMY_GIB:
        return Finding("memory", "ok", found)
    return Finding("memory", "limited", found, "large cases may end as out_of_memory", "use smaller shapes")


def as_json(document: dict[str, Any]) -> str:
    """Return the document as `--json` prints it."""
    return json.dumps(document, indent=2)
