"""The device: torch_npu and pypto on an Ascend NPU, behind the same interface as the simulator."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata, util
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pypto_op.backends import build_cache
from pypto_op.backends.base import DEFAULT_LIMITS, Availability, Limits, RunResult
from pypto_op.backends.conversation import Conversation
from pypto_op.backends.launcher import start_alone
from pypto_op.backends.session import CandidateSession, Plan
from pypto_op.errors import ContractError, InfraError
from pypto_op.pool.devices import DEVICE_ENV, VISIBLE_ENV, visible
from pypto_op.pool.leases import Lease
from pypto_op.vocabulary import Mode
from pypto_op.workspace import OpWorkspace

if TYPE_CHECKING:
    from pypto_op.backends.base import Value

LEASE_SECONDS = 900.0
"""How long a session waits for a device, and how long it may hold one without running a case."""

CAVEATS = ("one device, one run of each case: a race that shows rarely may not show",)

_STATE = ("Freq", "Temperature", "Power", "Aicore Usage")
"""Words in the names of what tells whether a device ran at its full clock, and alone."""

_VARIABLES = ("ASCEND_", "PTO_", "TILE_FWK_", "HCCL_", "NPU_", "ATB_")
"""Prefixes of the variables that the device's software needs in a worker."""


@dataclass(frozen=True)
class Devices:
    """What a device layer found."""

    reason: str  # why there is none that works; empty when there is
    indices: tuple[int, ...]  # the devices
    versions: dict[str, str]  # name to version of the device's software


class DeviceLayer(Protocol):
    """How devices are found and driven."""

    worker_class: str  # `module:Class` of the worker's side (`backends.worker.device.Device`)
    variables: dict[str, str]  # environment of the worker

    def find(self) -> Devices:
        """Look for devices; must not import torch_npu, which ends a process where the driver is broken."""

    def state(self, index: int) -> dict[str, str]:
        """Return what a device says of its clock, temperature and power; {} where it says nothing."""


class Ascend:
    """Real devices, found by the installed packages and the device nodes."""

    worker_class = "pypto_op.backends.worker.npu:Npu"

    def __init__(self) -> None:
        self.variables = {name: value for name, value in os.environ.items() if name.startswith(_VARIABLES)}

    def find(self) -> Devices:
        """Return the devices of this machine, or the first thing that is missing."""
        versions = {"python": platform.python_version()}
        for name in ("torch", "pypto", "torch_npu"):
            if util.find_spec(name) is None:
                return Devices(f"{name} is not installed", (), versions)
            versions[name] = metadata.version(name)
        home = os.environ.get("ASCEND_HOME_PATH")
        if not home:
            return Devices("CANN is not set up: ASCEND_HOME_PATH is not set (source set_env.sh)", (), versions)
        versions["cann"] = Path(home).resolve().name
        nodes = [path.name.removeprefix("davinci") for path in Path("/dev").glob("davinci[0-9]*")]
        indices = tuple(sorted(int(number) for number in nodes if number.isdigit()))
        if not indices:
            return Devices("no NPU: there is no /dev/davinci<N>", (), versions)
        if (seen := visible()) is not None:
            if not seen:
                return Devices(f"no NPU: {VISIBLE_ENV} names none", (), versions)
            indices = tuple(range(len(seen)))  # what is visible is numbered anew, from 0
        return Devices("", indices, versions)

    def state(self, index: int) -> dict[str, str]:
        """Ask `npu-smi`, which comes with the driver."""
        try:
            done = subprocess.run(
                ["npu-smi", "info", "-t", "common", "-i", str(index)], capture_output=True, text=True, timeout=20, check=False
            )
        except (OSError, subprocess.SubprocessError):
            return {}
        return read_state(done.stdout)


class NpuBackend:
    """Kernels on a device.

    Args:
        layer: how devices are found and driven; real ones by default.
    """

    mode = Mode.NPU

    def __init__(self, layer: DeviceLayer | None = None) -> None:
        self._layer: DeviceLayer = layer or Ascend()

    def availability(self) -> Availability:
        """Say whether there is a device, and why not."""
        found = self._layer.find()
        ok = not found.reason
        return Availability(ok, ok, found.reason, found.versions, CAVEATS)

    def devices(self) -> tuple[int, ...]:
        """Return the devices that sessions may use: the one that `TILE_FWK_DEVICE_ID` names, or all of them."""
        found = self._layer.find()
        return () if found.reason else (device_index(found.indices),) if DEVICE_ENV in os.environ else found.indices

    def state(self) -> dict[str, str]:
        """Return the state of the device that a session would take; {} where there is none."""
        found = self._layer.find()
        return {} if found.reason else self._layer.state(device_index(found.indices))

    def open(
        self, impl: Path, wrapper: str, workspace: OpWorkspace, *, limits: Limits = DEFAULT_LIMITS, cost_model: bool = False
    ) -> CandidateSession:
        """Open a session on the device that `TILE_FWK_DEVICE_ID` names, and hold that device until it closes.

        Args:
            cost_model: time the kernel on the device as well.

        Raises:
            InfraError: there is no device, or another session holds it for too long.
            ContractError: the variable names no device of this machine.
        """
        found = self._layer.find()
        if found.reason:
            raise InfraError(f"no device: {found.reason}")
        index = device_index(found.indices)
        lease = take_lease(index, held=LEASE_SECONDS + limits.startup_seconds + 10 * limits.case_seconds)
        device = {
            "class": self._layer.worker_class,
            "index": index,
            "profile": cost_model,
            "reserves_memory": True,  # its driver reserves address space beyond any limit; resident memory counts
        }
        variables = dict(self._layer.variables)
        plan = Plan({"enclose": False, "device": device}, lambda document: start_alone(document, variables), numeric=True)
        try:
            return LeasedSession(Path(impl), wrapper, workspace, plan, limits, lease=lease)
        except BaseException:
            lease.release()
            raise


class LeasedSession(CandidateSession):
    """A session that holds a device until it closes."""

    def __init__(self, impl: Path, wrapper: str, workspace: OpWorkspace, plan: Plan, limits: Limits, *, lease: Lease) -> None:
        super().__init__(impl, wrapper, workspace, plan, limits)
        self._lease = lease

    def ask(self, message: dict[str, Any], inputs: Sequence[Value]) -> tuple[RunResult, dict[str, Any]]:
        """Renew the lease, then send one message."""
        self._lease.renew()
        return super().ask(message, inputs)

    def _launch(self) -> Conversation:
        conversation = super()._launch()
        self._lease.uses(conversation.pid)
        return conversation

    def close(self) -> None:
        """End the worker, then give the device back."""
        try:
            super().close()
        finally:
            self._lease.release()


def read_state(text: str) -> dict[str, str]:
    """Return clock, temperature, power and load from the lines `name : value` of `npu-smi info -t common`; the first of each."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        name, colon, value = (part.strip() for part in line.partition(":"))
        if colon and value and any(word in name for word in _STATE):
            found.setdefault(name, value)
    return found


def device_index(indices: tuple[int, ...]) -> int:
    """Return the device that `TILE_FWK_DEVICE_ID` names, the first one by default; raise ContractError if none."""
    word = os.environ.get(DEVICE_ENV, str(indices[0]))
    if not word.isdigit() or int(word) not in indices:
        known = ", ".join(str(index) for index in indices)
        raise ContractError(f"{DEVICE_ENV}={word[:20]!r} names no device", remedy=f"use one of {known}")
    return int(word)


def take_lease(index: int, seconds: float = LEASE_SECONDS, held: float = LEASE_SECONDS) -> Lease:
    """Take the lease of a device; it falls back by itself when its holder ends, or does nothing for `held` seconds.

    Args:
        index: the device, as `TILE_FWK_DEVICE_ID` names it.
        seconds: how long to wait for another holder.

    Raises:
        InfraError: another process holds it for longer than `seconds`, or what used it does not end.
    """
    seen = visible()
    number = seen[index] if seen and index < len(seen) else str(index)
    busy = InfraError(
        f"npu:{index} is busy: another session holds it since {seconds:.0f} s or more",
        remedy=f"wait, or set {DEVICE_ENV} to another device",
    )
    return Lease(build_cache.cache_root() / "leases", f"npu-{number}", held).take(seconds, busy)
