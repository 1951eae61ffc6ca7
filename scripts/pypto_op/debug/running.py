"""Runs an operator's kernel or golden in `child`, where pypto dumps what is asked for."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pypto_op
from pypto_op.backends.base import Limits
from pypto_op.backends.wire import read_values, write_values
from pypto_op.errors import InfraError
from pypto_op.workspace import OpWorkspace

if TYPE_CHECKING:
    from pypto_op.backends.base import Value

TENSORS: Mapping[str, Any] = {
    "verify": {"enable_pass_verify": True, "pass_verify_save_tensor": True, "pass_verify_pass_filter": ["no_verify"]}
}
"""The result of every operation of the tensor graph, in the order in which the calculator ran them."""

GRAPHS: Mapping[str, Any] = {
    "verify": {"enable_pass_verify": False},
    "debug": {"compile_debug_mode": 1},
    "stage": "TENSOR_GRAPH",
}
"""The recorded graph, with the kernel's lines; nothing is computed."""

PASSES = ("ExpandFunction", "SplitK", "L1CopyInReuseMerge", "InferDynShape", "InferParamIndex", "CodegenPreproc")
"""The passes that pypto itself checks by default (`verify.pass_verify_pass_filter` of tile_fwk_config.json)."""

CHECKED_PASSES: Mapping[str, Any] = {"verify": {"enable_pass_verify": True, "pass_verify_pass_filter": list(PASSES)}}
"""The graph is computed again after each of `PASSES` and compared with the tensor graph."""

ALL_GRAPHS: Mapping[str, Any] = {"debug": {"compile_debug_mode": 1}}
"""The graph before and after every pass: some 15 MB for a small kernel, hundreds for a large one."""


@dataclass(frozen=True)
class Run:
    """How a child ended.

    Attributes:
        code: exit status; negative: the signal; None: it was stopped for time.
        text: its standard error and output, the last 64 KiB.
        outputs: the tensors that it returned; [] unless it ended well.
        facts: further keys that it wrote.
        folder: where pypto put its dumps.
    """

    code: int | None
    text: str
    outputs: list[Any]
    facts: dict[str, Any]
    folder: Path

    @property
    def ok(self) -> bool:
        """Whether it ended well."""
        return self.code == 0

    @property
    def last_words(self) -> str:
        """The last line that says something, for a message."""
        lines = [line.strip() for line in self.text.splitlines() if line.strip()]
        how = "it was stopped for time" if self.code is None else f"exit status {self.code}"
        return lines[-1][:300] if lines else how


@contextmanager
def scratch(ws: OpWorkspace, name: str) -> Iterator[Path]:
    """Give a folder below `_debug/` that is removed afterwards: dumps are large, and a golden's values must not stay."""
    ws.debug_dir.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=ws.debug_dir))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run_child(
    call: str,
    file: Path,
    function: str,
    inputs: Sequence[Value],
    folder: Path,
    *,
    dumps: Mapping[str, Any] | None = None,
    limits: Limits | None = None,
) -> Run:
    """Run `function` of `file` on `inputs`.

    Args:
        call: "kernel", with pypto's simulator, or "golden", with a trace of its tensors.
        folder: an existing folder for what is handed over and dumped.
        dumps: options of pypto; a constant of this module.

    Raises:
        InfraError: the simulator cannot be had here.
    """
    limits = limits or Limits()
    if call == "kernel":
        from pypto_op.backends.sim import prepare

        if not prepare().numeric:
            raise InfraError("pypto computes no numbers here: there is no C++ tool chain", remedy="run `pypto-op doctor`")
    folder.mkdir(parents=True, exist_ok=True)
    write_values(folder / "inputs", inputs)
    request = {
        **(dumps or {}),
        "call": call,
        "file": str(file),
        "function": function,
        "inputs": str(folder / "inputs"),
        "outputs": str(folder / "outputs"),
        "folder": str(folder),
        "memory_mb": limits.memory_mb,
    }
    (folder / "request.json").write_text(json.dumps(request), encoding="utf-8")
    code, text = _run([sys.executable, "-X", "faulthandler", "-m", "pypto_op.debug.child", str(folder / "request.json")], limits)
    if code != 0:
        return Run(code, text, [], {}, folder)
    values, facts = read_values(folder / "outputs")
    return Run(code, text, list(values), facts, folder)


def _run(command: list[str], limits: Limits) -> tuple[int | None, str]:
    package = str(Path(pypto_op.__file__).resolve().parents[1])
    path = os.environ.get("PYTHONPATH")
    environment = {**os.environ, "PYTHONPATH": f"{package}:{path}" if path else package, "PYTHONDONTWRITEBYTECODE": "1"}
    seconds = limits.startup_seconds + limits.case_seconds
    try:
        done = subprocess.run(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired as error:
        return None, (error.stdout or b"")[-65536:].decode(errors="replace")
    return done.returncode, done.stdout[-65536:].decode(errors="replace")
