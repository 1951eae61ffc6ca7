"""Where a worker's tensors live and how its kernels are made to run there."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import torch


class Device(Protocol):
    """One place, seen from inside a worker."""

    def prepare(self) -> None:
        """Make this process ready for kernels; called once, before any code of a candidate."""

    def place(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return a tensor as the candidate gets it."""

    def synchronize(self) -> None:
        """Wait until everything that was launched is done."""

    def figures(self, call: Callable[[], Any]) -> dict[str, float | int] | None:
        """Time `call`, which has run well once, if that was asked for and this place can tell time."""


class Host:
    """The CPU: pypto's simulator under the host shim."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._numeric = bool(document["numeric"])
        self._switch = Path(document["switch"]) if document.get("switch") else None
        self._cost_model = bool(document["cost_model"])
        self._silent = bool(document.get("silent"))
        self._passes = bool(document.get("passes", True))

    def prepare(self) -> None:
        """Install the host shim and send every kernel to the simulator."""
        from pypto_op.backends import hostshim
        from pypto_op.backends.worker import pypto_hooks, tensor_graph

        hostshim.install()
        hostshim.conceal()
        graph_only = self._silent or not self._passes
        pypto_hooks.simulate(numeric=self._numeric, further=pypto_hooks.leave_passes_out if graph_only else None)
        if self._numeric and not self._passes:
            tensor_graph.stop_there()
        if self._numeric:
            pypto_hooks.switch_cost_model(self._switch, self._cost_model)

    def place(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return the tensor itself."""
        return tensor

    def synchronize(self) -> None:
        """Return at once."""

    def figures(self, call: Callable[[], Any]) -> dict[str, float | int] | None:
        """Return None: the cost model writes files, which the judge reads."""
        return None


def make_device(document: dict[str, Any]) -> Device:
    """Return the device that `document["class"]` names (`module:Class`), made from the whole document."""
    module, _, name = str(document["class"]).partition(":")
    device: Device = getattr(importlib.import_module(module), name)(document)
    return device
