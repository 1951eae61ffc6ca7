"""The bundle's own commands, run as an agent runs them: as processes, judged by exit code and JSON."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from pypto_op import own_python
from pypto_op.errors import InfraError
from pypto_op.vocabulary import ExitCode


class Tools:
    """Runs `pypto-op` in a workspace.

    Args:
        op_dir: the operator that the state actions are about.
    """

    def __init__(self, workspace: Path, op_dir: Path) -> None:
        self._workspace = workspace
        self._op_dir = op_dir

    def doctor(self) -> str:
        """Return one line on what this machine can do."""
        report = json.loads(self._run("doctor", "--json", allowed=(ExitCode.OK,)).stdout)
        sim, npu = report["sim"], report["npu"]
        numbers = "real numbers" if sim["numeric"] else "structure only"
        versions = ", ".join(f"{name} {sim['versions'][name]}" for name in ("python", "torch", "pypto"))
        return f"sim: {numbers} ({versions}); npu: {'ready' if npu['ok'] else npu['reason']}"

    def state(self, action: str, **arguments: Any) -> dict[str, Any]:
        """Carry out a state action and return its JSON.

        Raises:
            InfraError: it was refused; the story has no such turn.
        """
        done = self._run(*self._state_words(action, arguments), allowed=(ExitCode.OK,))
        result: dict[str, Any] = json.loads(done.stdout)
        return result

    def refused(self, action: str, **arguments: Any) -> str | None:
        """Return why the state tool refuses an action, or None when it does not."""
        done = self._run(*self._state_words(action, arguments), allowed=(ExitCode.OK, ExitCode.CONTRACT))
        return None if done.returncode == ExitCode.OK else str(json.loads(done.stdout)["error"])

    def verify(self, op_dir: Path) -> dict[str, Any]:
        """Judge the operator and return the report."""
        done = self._run("verify", str(op_dir), "--json", "--error-maps", allowed=(ExitCode.OK, ExitCode.FAIL))
        report: dict[str, Any] = json.loads(done.stdout)
        return report

    def benchmark(self, op_dir: Path) -> dict[str, Any]:
        """Time the operator and return the result."""
        result: dict[str, Any] = json.loads(self._run("benchmark", str(op_dir), "--json", allowed=(ExitCode.OK,)).stdout)
        return result

    def _state_words(self, action: str, arguments: dict[str, Any]) -> list[str]:
        words = ["state", action, "--op-dir", str(self._op_dir), "--json"]
        for name, value in arguments.items():
            words += [f"--{name.replace('_', '-')}", str(value)]
        return words

    def _run(self, *words: str, allowed: tuple[ExitCode, ...]) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            own_python.running("pypto_op.cli", *words), cwd=self._workspace, capture_output=True, text=True, check=False
        )
        if done.returncode not in [int(code) for code in allowed]:
            raise InfraError(
                f"`pypto-op {' '.join(words[:2])}` ended with exit code {done.returncode}: {_error_of(done)}",
                remedy="run that command by hand",
            )
        return done


def _error_of(done: subprocess.CompletedProcess[str]) -> str:
    """Return why a command ended: with --json the error stands in its output, and stderr may hold lines of progress alone."""
    try:
        return str(json.loads(done.stdout)["error"])
    except (ValueError, LookupError, TypeError):
        said = (done.stderr or done.stdout).strip().splitlines()
        return said[-1] if said else ""
