"""The role of a worker that runs the kernel under judgement."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import torch

from pypto_op.backends.wire import read_values
from pypto_op.backends.worker import pypto_hooks
from pypto_op.backends.worker.closure import Closure
from pypto_op.backends.worker.device import make_device
from pypto_op.backends.worker.guard import Fence, Guard
from pypto_op.backends.worker.loading import Failure, failure_of, load_function
from pypto_op.backends.worker.outputs import leaves_of, structure_of
from pypto_op.backends.worker.recorder import Given, LaunchRecorder, address
from pypto_op.backends.worker.sentinel import AMBIGUOUS, Sentinel
from pypto_op.backends.worker.source_check import back_door
from pypto_op.backends.worker.tampering import Snapshot
from pypto_op.vocabulary import Loader, Outcome
from pypto_op.workspace import OpWorkspace

_SEED = 0


class Candidate:
    """One implementation file, loaded once, called case by case.

    Args:
        document: the session's document, see `pypto_op.backends.session`.
    """

    def __init__(self, document: dict[str, Any]) -> None:
        self._path = Path(document["impl"])
        self._process = os.getpid()
        self._sentinel = Sentinel()
        self._numbers_known = False
        self._recorder = LaunchRecorder(self._sentinel)
        self._device = make_device(document["device"])
        self._guard = Guard(_fence(document))
        self._device.prepare()
        self._sentinel.install()
        pypto_hooks.record_launches(self._recorder.around)
        self._guard.install()
        self._closure = Closure(document["enclosure"]["scratch"])
        self._closure.install()
        self._snapshot = Snapshot()
        self._function = self._load(document["wrapper"], document["impl_sha256"])

    def handle(self, message: dict[str, Any]) -> tuple[list[torch.Tensor], dict[str, Any]]:
        """Run the case whose inputs lie at `message["inputs"]`; return the outputs and the facts about them."""
        stem = Path(message["inputs"])
        values = self._read(stem)
        buffer = self._allocated(message.get("buffer"))
        inputs = _tensors(values)
        before = [_digest(tensor) for _, tensor in inputs]
        facts: dict[str, Any] = {"outcome": str(Outcome.OK), "detail": "", "structure": ""}
        try:
            returned, facts["seconds"] = self._call(values, buffer)
            facts["structure"] = structure_of(returned)
            leaves = list(buffer.values()) or leaves_of(returned)
            # Copies, taken before the check of their origin: a thread may still write to the originals.
            outputs = [_copy(leaf) for leaf in leaves]
        except Failure as failure:
            facts |= {"outcome": str(failure.outcome), "detail": failure.detail}
            leaves, outputs = [], []
        facts["launches"] = self._recorder.launches
        facts["loaded"] = {str(Loader.CANDIDATE): self._closure.files()}
        pairs = zip(inputs, before, strict=True)
        facts["mutated_inputs"] = sorted({i for (i, tensor), old in pairs if _digest(tensor) != old})
        if outputs:
            facts |= self._facts_about(leaves, inputs)
            facts["sentinel_left"] = self._sentinels_left(stem, outputs) if not buffer else [self._left_in(buffer)]
            facts["cost"] = self._figures(values) if not buffer else None
            facts["host_computed"] = self._host_computed(stem, facts.pop("given"), buffer)
        return [_normal(output) for output in outputs], facts

    def _load(self, wrapper: str, sha256: str) -> Callable[..., Any]:
        door = back_door(self._path.read_bytes()) if self._path.is_file() else None
        if door:
            raise Failure(Outcome.FORBIDDEN, f"{self._path.name} reaches into the interpreter by {door}")
        self._let_loose()
        try:
            return load_function(self._path, wrapper, sha256=sha256)
        finally:
            self._rein_in()

    def _allocated(self, wanted: dict[str, Any] | None) -> dict[str, torch.Tensor]:
        """Return the buffer that an inspection wants, by its keyword, full of the sentinel."""
        if not wanted:
            return {}
        made = torch.empty(wanted["shape"], dtype=getattr(torch, wanted["dtype"]))
        return {wanted["name"]: self._device.place(made)}

    def _left_in(self, buffer: dict[str, torch.Tensor]) -> int:
        return sum(int(self._sentinel.mask(tensor.detach().cpu().contiguous()).sum()) for tensor in buffer.values())

    def _call(self, values: Sequence[Any], buffer: dict[str, torch.Tensor] | None = None) -> tuple[Any, float]:
        torch.manual_seed(_SEED)
        self._recorder.begin([tensor for _, tensor in _tensors(values)])
        self._device.synchronize()
        self._let_loose()
        begin = time.perf_counter()
        try:
            returned = self._function(*values, **(buffer or {}))
            self._device.synchronize()
        except BaseException as error:
            self._end_if_forked()
            raise failure_of(error, self._path, Outcome.EXCEPTION) from None
        finally:
            seconds = time.perf_counter() - begin
            self._rein_in()
        return returned, seconds

    def _figures(self, values: Sequence[Any]) -> dict[str, float | int] | None:
        """Return the device's figures; that they cannot be had does not change the verdict on the numbers."""
        try:
            return self._device.figures(lambda: self._call(values))
        except Exception as error:
            print(f"no figures of the device: {type(error).__name__}: {error}", file=sys.__stderr__)
            return None

    def _let_loose(self) -> None:
        self._snapshot.hide_modules()
        self._guard.arm()
        self._closure.watch()

    def _rein_in(self) -> None:
        """Stop watching; raise what the candidate did that it may not."""
        self._guard.arm(False)
        self._closure.watch(False)
        self._end_if_forked()
        self._snapshot.show_modules()
        replaced = self._snapshot.changes()
        if replaced:
            raise Failure(Outcome.FORBIDDEN, f"{self._path.name} replaced {replaced[0]}") from None
        self._raise_offences()

    def _end_if_forked(self) -> None:
        """End a copy of this process that the candidate forked, before it answers in the judge's ear."""
        if os.getpid() != self._process:
            os._exit(0)

    def _raise_offences(self) -> None:
        offences = self._guard.take_offences()
        if offences:
            raise Failure(Outcome.FORBIDDEN, f"{self._path.name} tried to {offences[0]}") from None

    def _facts_about(self, leaves: list[torch.Tensor], inputs: list[tuple[int, torch.Tensor]]) -> dict[str, Any]:
        shared = {address(leaf) for leaf in leaves if leaf.numel()}
        return {
            "outputs_from_kernel": self._recorder.from_kernel(leaves),
            "prefilled_outputs": list(self._recorder.prefilled(leaves)),
            "host_made": self._recorder.host_made(),
            "given": self._recorder.given(),
            "aliased_inputs": sorted({i for i, tensor in inputs if address(tensor) in shared}),
        }

    def _sentinels_left(self, stem: Path, outputs: list[torch.Tensor]) -> list[int]:
        masks = [self._sentinel.mask(output) for output in outputs]
        doubtful = [i for i, mask in enumerate(masks) if outputs[i].dtype in AMBIGUOUS and bool(mask.any())]
        if doubtful:
            second = self._second_run(stem)
            for i in doubtful:
                if i < len(second) and second[i].shape == masks[i].shape:
                    masks[i] &= second[i]
        return [int(mask.sum()) for mask in masks]

    def _host_computed(self, stem: Path, given: dict[str, Given], buffer: dict[str, torch.Tensor]) -> list[str]:
        """Return which kernel arguments the host computed from the inputs' values, found by running on other values.

        Where a kernel gets nothing but single numbers, this is done for the first case only: it costs a run.
        """
        numbers_only = all(one.value.numel() == 1 for one in given.values())
        if not given or buffer or (numbers_only and self._numbers_known):
            return []
        self._numbers_known = True
        try:
            values = [_changed(value) for value in self._read(stem)]
            self._call(values)
        except Failure:
            return []  # values that the wrapper refuses; the judge's second seed has to do
        other = self._recorder.given()
        return [key for key, one in given.items() if one.computed(other.get(key), _changed)]

    def _second_run(self, stem: Path) -> list[torch.Tensor]:
        """Return where the outputs follow the other pattern, when everything else is the same."""
        self._sentinel.which = 1
        try:
            returned, _ = self._call(self._read(stem))
            return [self._sentinel.mask(leaf.detach().cpu().contiguous()) for leaf in leaves_of(returned)]
        except Failure:
            return []
        finally:
            self._sentinel.which = 0

    def _read(self, stem: Path) -> list[Any]:
        values, _ = read_values(stem)
        return [self._placed(value) for value in values]

    def _placed(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return self._device.place(value)
        if isinstance(value, (list, tuple)):
            return type(value)(self._placed(item) for item in value)
        return value


def _fence(document: dict[str, Any]) -> Fence:
    workspace = OpWorkspace(Path(document["op_dir"]), Path(document["op_dir"]).name)
    own = os.path.realpath(document["impl"])
    hidden = tuple(document["enclosure"]["hidden"])
    return Fence(os.path.realpath(document["enclosure"]["scratch"]), workspace, (own,), hidden)


def _tensors(values: Sequence[Any]) -> list[tuple[int, torch.Tensor]]:
    """Return the tensors among `values`, nested ones included, each with the position of its argument."""

    def inside(value: Any) -> list[torch.Tensor]:
        if isinstance(value, torch.Tensor):
            return [value]
        return [t for item in value for t in inside(item)] if isinstance(value, (list, tuple)) else []

    return [(position, tensor) for position, value in enumerate(values) for tensor in inside(value)]


def _changed(value: Any) -> Any:
    """Return float tensors with other values, element by element; everything else as it is."""
    if isinstance(value, torch.Tensor):
        return value * -0.5 if value.is_floating_point() else value
    if isinstance(value, (list, tuple)):
        return type(value)(_changed(item) for item in value)
    return value


def _copy(tensor: torch.Tensor) -> torch.Tensor:
    """Return a copy on the host, to the byte: a bool's copy would otherwise lose the sentinel's."""
    plain = tensor.detach().cpu().contiguous()
    return plain.view(torch.uint8).clone().view(torch.bool) if plain.dtype is torch.bool else plain.clone()


def _digest(tensor: torch.Tensor) -> bytes:
    flat = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
    return blake2b(flat.numpy().data, digest_size=16).digest()


def _normal(tensor: torch.Tensor) -> torch.Tensor:
    """Return a bool tensor with clean bytes (an unwritten one holds the sentinel's); any other unchanged."""
    return tensor.view(torch.uint8) != 0 if tensor.dtype is torch.bool else tensor
