"""Runs an operator's kernel and golden for the debugger, in workers (`child`) that are forked from the simulator's zygote."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pypto_op.backends.base import DEFAULT_LIMITS, RunResult
from pypto_op.backends.enclosed import enclosure_document
from pypto_op.backends.session import Plan, WorkerSession
from pypto_op.backends.sim import SimTools, prepare
from pypto_op.backends.toolchain import INSTALL_LINE, find_toolchain
from pypto_op.errors import ContractError, InfraError
from pypto_op.judge.cases.calling import positions, used_inputs
from pypto_op.judge.cases.contract import Contract
from pypto_op.judge.cases.inputs import DEFAULT_SEED, with_seed
from pypto_op.judge.cases.subject import Subject
from pypto_op.locks import held_folder
from pypto_op.vocabulary import Outcome
from pypto_op.workspace import OpWorkspace

TENSORS: Mapping[str, Any] = {
    "verify": {"enable_pass_verify": True, "pass_verify_save_tensor": True, "pass_verify_pass_filter": ["no_verify"]}
}
"""The result of every operation of the tensor graph, in the order in which the calculator ran them."""

GRAPHS: Mapping[str, Any] = {"verify": {"enable_pass_verify": False}, "debug": {"compile_debug_mode": 1}, "stage": "TENSOR_GRAPH"}
"""The recorded graph, with the kernel's lines; nothing is computed."""

PASSES = ("ExpandFunction", "SplitK", "L1CopyInReuseMerge", "InferDynShape", "InferParamIndex", "CodegenPreproc")
"""The passes that pypto itself checks by default (`verify.pass_verify_pass_filter` of tile_fwk_config.json)."""

CHECKED_PASSES: Mapping[str, Any] = {"verify": {"enable_pass_verify": True, "pass_verify_pass_filter": list(PASSES)}}
"""The graph is computed again after each of `PASSES` and compared with the tensor graph."""

ALL_GRAPHS: Mapping[str, Any] = {"debug": {"compile_debug_mode": 1}}
"""The graph before and after every pass: some 15 MB for a small kernel, hundreds for a large one."""

MEMORY = Path("/dev/shm")
"""A file system in memory, on Linux."""

_NAME = "pypto-op-debug"
_ROOM = 8 << 30
"""Free bytes that are wanted there; dumps are read whole, so larger ones would not fit into memory either."""

KERNEL_VALUES, GOLDEN_VALUES = "kernel_values", "golden_values"
"""Stems, in a desk's folder, of what kernel and golden are called with."""


@dataclass(frozen=True)
class Run:
    """How a run ended."""

    ok: bool  # it ended well
    words: str  # one line on how it ended, "" where it ended well
    text: str  # what it printed, the last 64 KiB of each stream
    folder: Path  # its dumps, and what it returned under the stem `outputs`


@contextmanager
def scratch(ws: OpWorkspace, name: str) -> Iterator[Path]:
    """Give a folder below `_debug/` that is removed afterwards: dumps are large, and a golden's values must not stay."""
    ws.debug_dir.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=ws.debug_dir))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def scratch_in_memory(ws: OpWorkspace, name: str, memory: Path = MEMORY) -> Iterator[Path]:
    """Give a folder like `scratch`, in memory where there is room: on disk thousands of small files cost a fifth of a search."""
    if not _has_room(memory):
        with scratch(ws, name) as folder:
            yield folder
        return
    with held_folder(memory, _NAME) as folder:
        yield folder


def _has_room(memory: Path) -> bool:
    try:
        told = os.statvfs(memory)
    except OSError:
        return False
    return told.f_bavail * told.f_frsize >= _ROOM and os.access(memory, os.W_OK | os.X_OK)


def demand_numbers() -> SimTools:
    """Return what runs kernels here.

    Raises:
        InfraError: this machine has no simulator with numbers.
    """
    tools = prepare()
    if not tools.numeric:
        lack = find_toolchain().missing
        why = f"{', '.join(lack)} not on PATH" if lack else "its calculator is not built"
        remedy = INSTALL_LINE if lack else "run `pypto-op doctor --build`"
        raise InfraError(f"pypto computes no numbers here ({why})", remedy=remedy)
    return tools


class Desk:
    """The debugger's workers for one kernel and its golden; a context manager that leaves nothing running.

    Args:
        subject: kernel and golden.
        folder: where values and dumps go; an existing one.

    Raises:
        InfraError: this machine has no simulator with numbers.
    """

    def __init__(self, contract: Contract, subject: Subject, folder: Path) -> None:
        self._tools = demand_numbers()
        self.contract, self.subject, self.folder = contract, subject, folder
        self._trusted = self._session("Trusted", subject.golden.name, {})
        self._lock = threading.Lock()

    def __enter__(self) -> Desk:
        return self

    def __exit__(self, *_: object) -> None:
        self._trusted.close()

    def make_inputs(self, case: Mapping[str, Any]) -> None:
        """Make the inputs of a case, with its own seed, for kernel and golden.

        Raises:
            ContractError: `eval/test_inputs.py` does not make them.
        """
        from pypto_op.backends.reference import check_inputs_there

        ws, subject, interfaces = self.subject.workspace, self.subject, self.contract.interfaces
        check_inputs_there(ws)
        names = [port.name for port in interfaces.primary_inputs]
        used = used_inputs(interfaces, subject.phase)

        def handed(file: Path, function: str) -> list[str]:
            return [names[i] for i in positions(file, function, names, used)]

        sets = {
            str(self.folder / KERNEL_VALUES): handed(subject.impl, subject.wrapper),
            str(self.folder / GOLDEN_VALUES): handed(subject.golden, subject.golden_function),
        }
        seeded = with_seed(case, int(case.get("seed", DEFAULT_SEED)))
        self.trusted("hand_over", file=ws.test_inputs, case=seeded, sets=sets)

    def kernel(self, name: str, dumps: Mapping[str, Any]) -> Run:
        """Run the kernel in a process of its own.

        Args:
            name: folder, below the desk's own, for what it dumps.
            dumps: options of pypto; a constant of this module.
        """
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        more = {"folder": str(folder), "dumps": dict(dumps), "switch": self._tools.switch}
        session = self._session("Kernel", self.subject.impl.name, more)
        message = {"file": os.path.realpath(self.subject.impl), "function": self.subject.wrapper}
        try:
            result, _ = session.ask({**message, **self._places(KERNEL_VALUES, folder / "outputs")}, [])
        finally:
            session.close()
        return _run(result, folder)

    def golden(self, call: str) -> Run:
        """Run the golden: "trace" keeps all its tensors in the trusted worker, "float64" writes its answer without rounding."""
        folder = self.folder / call
        folder.mkdir(exist_ok=True)
        message = {"function": self.subject.golden_function, **self._places(GOLDEN_VALUES, folder / "outputs")}
        return _run(self._ask(call, file=self.subject.golden, **message)[0], folder)

    def trusted(self, call: str, *, file: Path, **message: Any) -> dict[str, Any]:
        """Ask the trusted worker for something; return its facts.

        Raises:
            ContractError: what it runs of `file` fails, or what it reads is missing.
        """
        result, answer = self._ask(call, file=file, **message)
        if result.outcome is not Outcome.OK:
            raise ContractError(result.detail or str(result.outcome), file=file, remedy="run the file by itself and mend it")
        return answer

    def _ask(self, call: str, *, file: Path, **message: Any) -> tuple[RunResult, dict[str, Any]]:
        with self._lock:
            return self._trusted.ask({"call": call, "file": os.path.realpath(file), **message}, [])

    def _places(self, values: str, to: Path) -> dict[str, str]:
        return {"values": str(self.folder / values), "to": str(to)}

    def _session(self, role: str, file_name: str, more: Mapping[str, Any]) -> WorkerSession:
        document = {"role": f"pypto_op.debug.child:{role}", "enclose": True, "device": {}, **more}
        session = WorkerSession(Plan(document, self._tools.start), self.subject.workspace, DEFAULT_LIMITS, file_name)
        enclosure = enclosure_document(session.scratch, [], trusted=True)
        session.plan = Plan({**document, "enclosure": enclosure}, self._tools.start)
        return session


def _run(result: RunResult, folder: Path) -> Run:
    ok = result.outcome is Outcome.OK
    return Run(ok, "" if ok else result.detail or str(result.outcome), f"{result.stdout}{result.stderr}", folder)
