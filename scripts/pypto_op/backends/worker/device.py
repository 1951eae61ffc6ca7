"""Where a worker's tensors live and how its kernels are made to run there."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import torch

from pypto_op.backends.worker import pypto_hooks
from pypto_op.backends.worker.tensor_graph import TensorGraph


class Device(Protocol):
    """One place, seen from inside a worker."""

    def prepare(self) -> None:
        """Make this process ready for kernels; called once, before any code of a candidate."""

    def place(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return a tensor as the candidate gets it."""

    def synchronize(self) -> None:
        """Wait until everything that was launched is done."""

    def expect(self, *, compiled: bool) -> None:
        """A launch is to come; `compiled`: a device would have its program from an earlier launch in this process."""

    def figures(self, call: Callable[[], Any]) -> dict[str, float | int] | None:
        """Time `call`, which has run well once, if that was asked for and this place can tell time."""


class Host:
    """The CPU: pypto's simulator under the host shim."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._numeric = bool(document["numeric"])
        self._switch = Path(document["switch"]) if document.get("switch") else None
        self._cost_model = bool(document["cost_model"])
        self._silent = bool(document.get("silent"))
        self._graph = TensorGraph(always=self._numeric and not document.get("passes", True))

    def prepare(self) -> None:
        """Install the host shim and send every kernel to the simulator."""
        from pypto_op.backends import hostshim

        hostshim.install()
        hostshim.conceal()
        further = pypto_hooks.leave_passes_out if self._silent else self._graph.options
        pypto_hooks.simulate(numeric=self._numeric, further=further)
        if self._numeric:
            self._graph.install()
            pypto_hooks.switch_cost_model(self._switch, self._cost_model)
        if not self._cost_model:  # whose figures are told by leaf functions, which stand there
            pypto_hooks.leave_program_file_out()

    def place(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return the tensor itself."""
        return tensor

    def synchronize(self) -> None:
        """Return at once."""

    def expect(self, *, compiled: bool) -> None:
        """Leave out the passes of a launch that would go through the same ones again, unless the cost model looks at them."""
        self._graph.expect(compiled=compiled and not self._cost_model)

    def figures(self, call: Callable[[], Any]) -> dict[str, float | int] | None:
        """Return None: the cost model writes files, which the judge reads."""
        return None


def make_device(document: dict[str, Any]) -> Device:
    """Return the device that `document["class"]` names (`module:Class`), made from the whole document."""
    module, _, name = str(document["class"]).partition(":")
    device: Device = getattr(importlib.import_module(module), name)(document)
    return device
