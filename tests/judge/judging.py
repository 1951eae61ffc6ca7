"""Shared by the judge's tests: operators in a scratch workspace, and `pypto-op verify` called as a user calls it."""

from __future__ import annotations

import contextlib
import json
import shutil
import time
from pathlib import Path
from typing import Any

import psutil
from tests import program
from tests.calling import Answer, command

from pypto_op.backends import launcher
from pypto_op.workspace import OpWorkspace

REPOSITORY = Path(__file__).resolve().parents[2]
OPERATORS = REPOSITORY / "tests" / "fixtures" / "ops"

CASES = [
    {"id": "tile", "level": "L2", "shape": {"N": 16, "D": 32}, "atol": 1e-6, "rtol": 1e-5},
    {"id": "ragged", "level": "L3", "shape": {"N": 21, "D": 32}, "atol": 1e-6, "rtol": 1e-5},
]
"""Two tiny cases of sum_diff: a whole tile, and a ragged tail."""


def verify(op_dir: Path, *arguments: str, modes: str = "sim", as_json: bool = True) -> Answer:
    """Run `pypto-op verify OP_DIR ...` in this process, so that the tests share one warm zygote."""
    usual = {"--modes": modes, "--jobs": "1"}
    options = [word for name, value in usual.items() if name not in arguments for word in (name, value)]
    return command("verify", str(op_dir), *options, *(["--json"] if as_json else []), *arguments)


def place(operator: str, workspace: Path, *, cases: list[dict[str, Any]] | None = None, most: int = 0) -> OpWorkspace:
    """Copy a fixture operator to `workspace`/custom/<operator>.

    Args:
        operator: its name.
        workspace: the folder that becomes a workspace.
        cases: take the place of its suite's.
        most: what SPEC.md says that N is at most; 0: it says nothing, and a verdict draws 130 tiles, a fifth of its cost.
    """
    root = workspace / "custom" / operator
    shutil.copytree(OPERATORS / operator, root, ignore=shutil.ignore_patterns("__pycache__", "_debug", "evaluation_report.json"))
    ws = OpWorkspace.at(root)
    if cases is not None:
        suite = json.loads(ws.suite.read_text())
        defaults = {"dtype": {"default": "float32"}, "precision": True, "seed": 42}
        suite["cases"] = [{**defaults, **case} for case in cases]
        ws.suite.write_text(json.dumps(suite))
    if most:
        spec = ws.spec.read_text()
        assert "dynamic_axes: [N]\n" in spec
        ws.spec.write_text(spec.replace("dynamic_axes: [N]\n", f"dynamic_axes: [N]\ndynamic_axes_ranges: {{N: [1, {most}]}}\n"))
    return ws


def sim_problem() -> str:
    """Return why the simulator gives no numbers here, or ""."""
    from pypto_op.backends.sim import SimBackend

    available = SimBackend().availability()
    return "" if available.ok and available.numeric else available.reason


def left_running(before: set[int]) -> list[str]:
    """Return what this process still has running a moment later, beyond `before`, warm zygotes and the tests' own."""
    deadline = time.monotonic() + 60.0
    while True:
        kept = before | set(launcher.living_zygotes()) | program.warm_pids()
        left = []
        for child in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                if child.pid not in kept and child.status() != psutil.STATUS_ZOMBIE:
                    left.append(f"{child.pid} {child.name()}")
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.02)


def files_below(folder: Path) -> set[str]:
    """Return every file and folder below `folder`, relative to it."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def add_to_wrapper(ws: OpWorkspace, code: str) -> None:
    """Let the wrapper of sum_diff do something more before it returns."""
    source = ws.impl.read_text()
    assert "    return total, diff" in source
    ws.impl.write_text(source.replace("    return total, diff", f"    {code}\n    return total, diff"))
