"""Where a Triton kernel can run: the interpreter on a CPU, an NVIDIA GPU, an Ascend NPU."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import platform
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any

from pypto_op import resident
from pypto_op.backends.launcher import Launched, Zygote, shared_zygote, start_alone
from pypto_op.bundle_files import extra_remedy
from pypto_op.errors import ContractError, InfraError
from pypto_op.vocabulary import Word


class Target(Word):
    """A place that runs Triton kernels."""

    INTERPRET = "interpret"
    CUDA = "cuda"
    NPU = "npu"

    @property
    def device(self) -> str:
        """The torch device that tensors are moved to."""
        return "cpu" if self is Target.INTERPRET else self.value


_OF_DRIVERS = ("CUDA_VISIBLE_DEVICES", "ASCEND_RT_VISIBLE_DEVICES", "ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME", "CUDA_HOME", "CC")
"""Variables by which a device, its driver and its compiler are found."""
_HUGE_PAGES = "THP_MEM_ALLOC_ENABLE"
"""Torch's memory on the host comes in pages of 2 MB then. Tensors of a device's size are read in a fifth of the time."""
_first = iter(("task", "candidate", "candidate whose programs run in other orders"))
"""The first three processes of this one are started alone, on a GPU; whoever wants more has them forked."""
_CAVEAT = "the interpreter checks the mathematics: alignment, register and shared-memory limits are not seen, times mean nothing"
_OF_DEVICES = (
    "a device shows races and reads beyond a tensor as wrong numbers, and only where they change any; `--target interpret` "
    "names the line"
)


@dataclass(frozen=True)
class Place:
    """A target of this machine."""

    target: Target  # which
    start: Callable[[dict[str, Any]], Launched]  # starts a process there, from a session's document
    device: dict[str, Any]  # what the document says about the device
    caveats: tuple[str, ...]  # what a verdict from there cannot see
    warm: Callable[[], object] = lambda: None  # begins to load what such a process needs, and does not wait for it


def warm(word: str | None) -> None:
    """Begin to load torch and Triton for the processes of a target, while the caller loads them for itself.

    Where there is no such target nothing happens: `choose` says so to whoever asks next.
    """
    with contextlib.suppress(ContractError, InfraError):
        choose(word).warm()


def choose(word: str | None) -> Place:
    """Return the place that `word` names; None or "auto": a device where there is one, else the interpreter.

    Raises:
        ContractError: there is no such target.
        InfraError: this machine does not have it.
    """
    if importlib.util.find_spec("triton") is None:
        raise InfraError("triton is not installed", remedy=extra_remedy("triton"))
    if word in (None, "", "auto"):
        target = Target.NPU if _has_npu() else Target.CUDA if _has_cuda() else Target.INTERPRET
    else:
        try:
            target = Target(word)
        except ValueError:
            raise ContractError(f"there is no target {word!r}", remedy="use interpret, cuda or npu") from None
    if target is Target.INTERPRET and not _counts():
        words = "with NumPy 2.5 or later, Triton before 3.7 interprets no loop up to a number that is not constant"
        raise InfraError(words, remedy="run `pip install 'numpy<2.5'`")
    if target is Target.CUDA and not _has_cuda():
        raise InfraError("there is no NVIDIA GPU here", remedy="use --target interpret")
    if target is Target.NPU and not _has_npu():
        raise InfraError("there is no Ascend NPU here", remedy="use --target interpret")
    return _place(target)


def _counts() -> bool:
    """Whether Triton's interpreter can make a Python number of a tensor: older ones ask NumPy for what it refuses by now."""
    try:
        triton, numpy = (metadata.version(name).split(".")[:2] for name in ("triton", "numpy"))
    except metadata.PackageNotFoundError:  # a Triton of another name: it tells itself
        return True
    return [*map(int, triton)] >= [3, 7] or [*map(int, numpy)] < [2, 5]


def _place(target: Target) -> Place:
    variables = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0" if target is not Target.NPU else "1"}
    if os.environ.get("PYTHONPATH"):
        variables["PYTHONPATH"] = os.environ["PYTHONPATH"]
    device: dict[str, Any] = {"target": str(target)}
    if target is Target.INTERPRET:
        variables["TRITON_INTERPRET"] = "1"
        return _forked(target, variables, device, (_CAVEAT,))
    device["reserves_memory"] = True  # a driver maps far more than it uses
    variables[_HUGE_PAGES] = os.environ.setdefault(_HUGE_PAGES, "1")  # this process reads such tensors, too
    variables |= {name: os.environ[name] for name in _OF_DRIVERS if name in os.environ}
    if target is not Target.CUDA:
        return Place(target, lambda session: start_alone(session, variables), device, (_OF_DEVICES,))
    later = _forked(target, variables, device, (_OF_DEVICES,))

    def start(session: dict[str, Any]) -> Launched:
        # A driver does not survive a fork, and takes as long to load as torch does. A process of its own loads both side by
        # side; a fork finds torch loaded, which is worth more as soon as there is something to fork from.
        return start_alone(session, variables) if resident.leash is None and next(_first, None) else later.start(session)

    return replace(later, start=start)


def _forked(target: Target, variables: dict[str, str], device: dict[str, Any], caveats: tuple[str, ...]) -> Place:
    """Return a place whose processes are forks of one that has loaded torch and Triton; a device's name spaces stay ours."""
    preload = ["triton", "pypto_op.triton.run.processes.candidate", "pypto_op.triton.run.processes.task"]
    preload += ["pypto_op.triton.run.processes.compiler:make_ready"] if target is Target.CUDA else []
    document = {"pypto": False, "calculator": None, "switch": None, "preload": preload}

    def zygote() -> Zygote:
        return shared_zygote(document, variables)

    def start(session: dict[str, Any]) -> Launched:
        return zygote().start({**session, "enclose": target is Target.INTERPRET})

    return Place(target, start, device, caveats, zygote)


def _has_cuda() -> bool:
    if _hides("CUDA_VISIBLE_DEVICES"):
        return False
    return any(Path(path).exists() for path in ("/dev/nvidiactl", "/dev/nvidia0")) or shutil.which("nvidia-smi") is not None


def _has_npu() -> bool:
    if _hides("ASCEND_RT_VISIBLE_DEVICES"):
        return False
    return any(Path("/dev").glob("davinci[0-9]*")) and importlib.util.find_spec("torch_npu") is not None


def _hides(variable: str) -> bool:
    """Whether whoever started this hides every device of a kind: the variable is there and names none, or -1 first."""
    return os.environ.get(variable, "0").split(",")[0].strip() in ("", "-1")


def versions() -> dict[str, str]:
    """Return the versions of what a verdict rests on."""
    found = {"python": platform.python_version()}
    for name in ("torch", "triton", "triton-ascend", "torch_npu", "numpy"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
