"""The role of a worker that runs the kernel under judgement."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from pypto_op.backends.wire import read_values
from pypto_op.backends.worker import pypto_hooks
from pypto_op.backends.worker.closure import Closure
from pypto_op.backends.worker.crossing import address
from pypto_op.backends.worker.device import make_device
from pypto_op.backends.worker.earlier_calls import EarlierCalls, inside, steering_of, tensors_of
from pypto_op.backends.worker.given import NARROW, Call, Change, content
from pypto_op.backends.worker.guard import Guard, fence_of
from pypto_op.backends.worker.loading import Failure, failure_of, load_function
from pypto_op.backends.worker.outputs import leaves_of, objects_of, structure_of
from pypto_op.backends.worker.recorder import LaunchRecorder
from pypto_op.backends.worker.sentinel import AMBIGUOUS, PLAUSIBLE, Sentinel
from pypto_op.backends.worker.shown import Shown
from pypto_op.backends.worker.source_check import back_door
from pypto_op.backends.worker.tampering import Snapshot, refuse_other, settings
from pypto_op.backends.worker.tiles import TileObserver
from pypto_op.backends.worker.tripwire import Tripwire
from pypto_op.vocabulary import Loader, Outcome

_SEED = 1_592_653_589
"""Of each call; none that a wrapper would choose, since one that seeds anew is refused."""


@dataclass(frozen=True)
class _Others:
    """The calls on other values than a case's."""

    floats: tuple[Change, Call] | None = None  # what was done to the floats, and that call
    whole: tuple[Change, Call] | None = None  # likewise for integers
    refused: bool = False  # there are floats, or integers that are data, and the wrapper raises on all others


class Candidate:
    """One implementation file, loaded once, called case by case.

    Args:
        document: the session's document, see `pypto_op.backends.session`.
    """

    def __init__(self, document: dict[str, Any]) -> None:
        self._path = Path(document["impl"])
        self._process = os.getpid()
        self._sentinel = Sentinel()
        self._numbers_known = self._mixed = self._as_parts = False
        self._launched = 0
        self._earlier = EarlierCalls()
        self._told: dict[str, str] = {}
        self._shown = Shown()
        self._structure = ""
        numeric = bool(document["device"].get("numeric"))
        self._device = make_device(document["device"])
        self._recorder = LaunchRecorder(
            self._sentinel, numeric=numeric, replaced=lambda: self._snapshot.replaced(), expect=self._device.expect
        )
        self._guard = Guard(fence_of(document))
        self._device.prepare()
        self._sentinel.install()
        pypto_hooks.record_launches(self._recorder.around)
        self._tiles = TileObserver()
        self._tiles.install()
        self._recorder.install()
        self._guard.install()
        self._closure = Closure(document["enclosure"]["scratch"])
        self._closure.install()
        self._snapshot = Snapshot(name for name in list(sys.modules) if name.partition(".")[0] == "pypto")
        self._tripwire = Tripwire()
        self._function = self._load(document["wrapper"], document["impl_sha256"])

    def handle(self, message: dict[str, Any]) -> tuple[list[torch.Tensor], dict[str, Any]]:
        """Run the case whose inputs lie at `message["inputs"]`; return the outputs and the facts about them."""
        stem = Path(message["inputs"])
        others = None
        # Every further run of this call gets its inputs in the same place: what a wrapper makes of the place is no value.
        self._as_parts = bool(message.get("inside") or (message.get("again") and self._earlier.are_parts()))
        first = message.get("others_first") and "filling" not in message
        known = self._shown.begin(self._raw(stem) if first and not message["others_always"] else None)
        if first and not (known and message.get("trial")):
            self._mixed = not self._mixed  # in turns: with all signs changed maxima change, with some products of signs do
            others = self._on_others(stem, mixed=self._mixed)
        values, rehearsal = self._read(stem), None
        if message.get("again"):
            values = self._earlier.onto(values)
        self._earlier.begin(values)
        buffer = self._allocated(message.get("buffer"))
        inputs = _tensors(values)
        before = [content(tensor) for _, tensor in inputs]
        facts: dict[str, Any] = {"outcome": str(Outcome.OK), "detail": "", "structure": ""}
        self._sentinel.which = PLAUSIBLE if message.get("filling") == "plausible" else 0
        try:
            rehearsal = self._rehearsed(stem) if message.get("rehearsed") else None
            leaves, facts["seconds"] = self._call(values, buffer)
            self._raise_other_program()
            # Copies, taken before the check of their origin: a thread may still write to the originals.
            outputs = [_copy(leaf) for leaf in leaves]
        except Failure as failure:
            facts |= {"outcome": str(failure.outcome), "detail": failure.detail, "structure": self._structure}
            if failure.outcome is Outcome.FORBIDDEN:
                return [], facts  # nothing here can be relied on any more, torch included
            leaves, outputs = [], []
        call = self._recorder.call
        launches = self._recorder.launches if outputs else self._recorder.begun
        facts |= {"structure": self._structure, "launches": launches, "call": self._earlier.count}
        pairs = zip(inputs, before, strict=True)
        facts["mutated_inputs"] = sorted({i for (i, tensor), old in pairs if content(tensor) != old})
        if outputs:
            facts |= self._facts_about(leaves, inputs)
            facts["shared_outputs"] = self._earlier.shared(leaves)
            self._earlier.keep(leaves, outputs)
            try:
                facts |= self._facts_of_further_runs(message, values, outputs, buffer, others)
                self._raise_what_a_body_told(rehearsal, call, stem)
                facts |= {"changed_results": self._earlier.changed(), "results_kept": self._earlier.kept_by_others()}
            except Failure as failure:
                facts |= {"outcome": str(failure.outcome), "detail": failure.detail}
                outputs = []
        facts |= {"launched": self._launched, "loaded": {str(Loader.CANDIDATE): self._closure.files()}}
        return [_normal(output) for output in outputs], facts

    def _facts_of_further_runs(
        self,
        message: dict[str, Any],
        values: list[Any],
        outputs: list[torch.Tensor],
        buffer: dict[str, torch.Tensor],
        others: _Others | None,
    ) -> dict[str, Any]:
        """Run the case again, where that tells more; raise Failure when something forbidden is done there."""
        stem, call = Path(message["inputs"]), self._recorder.call
        if buffer:
            return {"sentinel_left": [self._left_in(buffer)], "cost": None}
        facts: dict[str, Any] = {"sentinel_left": self._sentinels_left(stem, outputs), "cost": self._figures(values)}
        return facts if "filling" in message else facts | self._host_computed(stem, call, message["case"], others)

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

    def _call(self, values: Sequence[Any], buffer: dict[str, torch.Tensor] | None = None) -> tuple[list[torch.Tensor], float]:
        """Call the wrapper; return its tensors and the seconds that it took."""
        torch.manual_seed(_SEED)
        self._recorder.begin([tensor for _, tensor in _tensors(values)])
        self._tiles.begin()
        self._device.synchronize()
        self._structure = ""
        before = settings()
        self._let_loose()
        begin = time.perf_counter()
        try:
            returned = self._function(*values, **(buffer or {}))
            self._device.synchronize()
            seconds = time.perf_counter() - begin
            refuse_other(before)
            self._structure = structure_of(returned)
            leaves = list(buffer.values()) if buffer else leaves_of(returned, may_require_grad=False)
            self._recorder.returned(leaves)
            self._earlier.hold([] if buffer else objects_of(returned))
            returned = None  # whatever its end sets off is still watched, as is that of what an earlier call returned
        except Failure:
            raise
        except BaseException as error:
            self._end_if_forked()
            self._raise_what_does_not_fit()
            raise failure_of(error, self._path, Outcome.EXCEPTION) from None
        finally:
            self._recorder.end()
            self._launched += 0 if self._recorder.rehearses else self._recorder.launches
            self._rein_in()
        self._raise_what_does_not_fit()
        return leaves, seconds

    def _figures(self, values: Sequence[Any]) -> dict[str, float | int] | None:
        """Return the device's figures; that they cannot be had does not change the verdict on the numbers."""
        try:
            return self._device.figures(lambda: self._call(values))
        except Exception as error:
            print(f"no figures of the device: {type(error).__name__}: {error}", file=sys.__stderr__)
            return None

    def _let_loose(self) -> None:
        self._tripwire.lift()
        self._snapshot.hide_modules()
        self._guard.arm()
        self._closure.watch()

    def _rein_in(self) -> None:
        """Stop the watch; raise the forbidden act that the candidate committed, if any."""
        self._tripwire.set()
        self._guard.arm(False)
        self._closure.watch(False)
        self._end_if_forked()
        self._snapshot.show_modules()
        if replaced := self._snapshot.changes():
            raise Failure(Outcome.FORBIDDEN, f"{self._path.name} replaced {replaced[0]}") from None
        self._raise_offences()

    def _end_if_forked(self) -> None:
        """End a copy of this process that the candidate forked, before it answers in the judge's ear."""
        if os.getpid() != self._process:
            os._exit(0)

    def _raise_offences(self) -> None:
        if offences := [*self._guard.take_offences(), *filter(None, [self._recorder.take_fault()])]:
            raise Failure(Outcome.FORBIDDEN, f"{self._path.name} tried to {offences[0]}") from None

    def _raise_what_does_not_fit(self) -> None:
        if fault := self._tiles.fault():
            raise Failure(Outcome.DOES_NOT_FIT, f"{self._path.name}: {fault}") from None

    def _raise_other_program(self) -> None:
        if other := self._recorder.other_program:
            raise Failure(Outcome.STALE_PROGRAM, f"{self._path.name}: {other}") from None

    def _raise_what_a_body_told(self, rehearsal: Call | None, call: Call, stem: Path) -> None:
        """Raise where the wrapper has learned from the body of a kernel, which on a device does not run again.

        Then a rehearsal hands over what the call did, and one before the call did not. What a wrapper reads from a kernel's
        output is missing in both. There are two, since a wrapper may take turns between two buffers.
        """
        launch = rehearsal.otherwise(call) if rehearsal is not None else ""
        later = [self._rehearsed(stem) for _ in range(2)] if launch else []
        if later and all(after is not None and not after.otherwise(call) for after in later):
            told = f"launch {launch} depends on Python in a kernel's body, which a device runs once, when it compiles the kernel"
            raise Failure(Outcome.STALE_PROGRAM, f"{self._path.name}: {told}") from None

    def _rehearsed(self, stem: Path) -> Call | None:
        """Return a call in which no kernel is built whose program a device has; None where the wrapper raises."""
        self._recorder.rehearses = True
        try:
            self._call(self._read(stem))
        except Failure as failure:
            if failure.outcome is Outcome.FORBIDDEN:
                raise
            return None
        finally:
            self._recorder.rehearses = False
        return self._recorder.call

    def _facts_about(self, leaves: list[torch.Tensor], inputs: list[tuple[int, torch.Tensor]]) -> dict[str, Any]:
        shared, recorder = {address(leaf) for leaf in leaves if leaf.numel()}, self._recorder
        never, changed = recorder.never_given(leaves), recorder.changed(leaves)
        return {
            "outputs_from_kernel": not never and not changed,
            "changed_outputs": list(changed),
            "prefilled_outputs": list(recorder.prefilled(leaves, kept=False)),
            "kept_outputs": list(recorder.prefilled(leaves, kept=True)),
            "aliased_inputs": sorted({i for i, tensor in inputs if address(tensor) in shared}),
        }

    def _sentinels_left(self, stem: Path, outputs: list[torch.Tensor]) -> list[int]:
        masks = [self._sentinel.mask(output) for output in outputs]
        if doubtful := [i for i, mask in enumerate(masks) if outputs[i].dtype in AMBIGUOUS and bool(mask.any())]:
            second = self._second_run(stem)
            for i in doubtful:
                if i < len(second) and second[i].shape == masks[i].shape:
                    masks[i] &= second[i]
        return [int(mask.sum()) for mask in masks]

    def _host_computed(self, stem: Path, call: Call, case: str, others: _Others | None) -> dict[str, Any]:
        """Find out which kernel arguments and numbers the host computed from the inputs' values, by runs on other values.

        A run is saved where a kernel gets no tensor of the host's, and its numbers cannot come from values: the host read none,
        and they are those of the last inputs of this case. A wrapper that was called on `call`'s values before may hand over
        what it did then. So a call that had to be looked at is `late` unless the runs on others (`others`) came before it.
        """
        told = call.told()
        late = bool(call.tensors or (call.numbers and (call.reads or self._told.get(case, told) != told)))
        self._told[case] = told
        if others is None:
            if self._shown.proves(call) or (not late and (self._numbers_known or not call.numbers)):
                return {}
            self._numbers_known = True
            others, before = self._on_others(stem, whole=bool(call.tensors)), False
        else:
            before = True
        facts: dict[str, Any] = {"host_computed": [], "kept_arguments": []}
        if others.floats is not None:
            change, other = others.floats
            facts["host_computed"], facts["kept_arguments"] = call.computed(other, change, numbers=True)
        if others.refused:
            facts |= {"host_made": call.made(steering_of(self._raw(stem))), "unshown": True}
        if others.whole is not None and call.tensors:
            change, other = others.whole
            facts["host_computed"] += call.computed(other, change, numbers=False)[0]
        if before and not others.refused and not facts["host_computed"] and not facts["kept_arguments"]:
            self._shown.note(call, [other for _, other in filter(None, (others.floats, others.whole))])
        return facts | {"late": late and not before}

    def _on_others(self, stem: Path, *, whole: bool = True, mixed: bool = False) -> _Others:
        """Call the wrapper on other floats, and, where asked for, on other integers; `mixed`: see `Change`."""
        tensors = [tensor for _, tensor in _tensors(self._raw(stem))]
        dtypes = {tensor.dtype: tensor.element_size() for tensor in tensors if tensor.is_floating_point()}
        small = tuple(dtype for dtype, size in dtypes.items() if size == 1)
        signs = ((-1, mixed), (1, False)) if dtypes else ()  # some wrappers refuse what is negative
        floats = self._taken(stem, (Change(sign, mixed, small) for sign, mixed in signs))
        found = _Others(floats, refused=bool(dtypes) and floats is None)
        integers = [t for t in tensors if t.numel() and not t.is_floating_point() and t.dtype is not torch.bool]
        narrow = [t for t in integers if t.dtype in NARROW]
        data = narrow or ([] if dtypes else integers)
        if whole and data:
            # One range for both kinds of bytes would map some of each out of what its dtype holds.
            of_each = {dtype: [t for t in data if t.dtype is dtype] for dtype in dict.fromkeys(t.dtype for t in data)}
            between = {dtype: (min(int(t.min()) for t in ts), max(int(t.max()) for t in ts)) for dtype, ts in of_each.items()}
            kinds = (False,) if narrow else (False, True)
            taken = self._taken(stem, (Change(between=between, reflects=kind) for kind in kinds))
            found = replace(found, whole=taken, refused=found.refused or taken is None)
        return found

    def _taken(self, stem: Path, changes: Iterable[Change]) -> tuple[Change, Call] | None:
        """Return the first of some changes that the wrapper takes, and the call on what it makes of the inputs."""
        for change in changes:
            other = self._again(stem, change)
            if other is not None:
                return change, other
        return None

    def _again(self, stem: Path, change: Change) -> Call | None:
        """Return the call on changed inputs; None where the wrapper refuses them."""
        try:
            self._call(self._laid([change.apply(value) for value in self._raw(stem)]))
        except Failure as failure:
            if failure.outcome is Outcome.FORBIDDEN:
                raise
            return None
        return self._recorder.call

    def _second_run(self, stem: Path) -> list[torch.Tensor]:
        """Return where the outputs follow the other pattern, when everything else is the same."""
        self._sentinel.which = 1
        try:
            leaves, _ = self._call(self._read(stem))
            return [self._sentinel.mask(leaf.detach().cpu().contiguous()) for leaf in leaves]
        except Failure:
            return []
        finally:
            self._sentinel.which = 0

    def _raw(self, stem: Path) -> list[Any]:
        return list(read_values(stem)[0])

    def _read(self, stem: Path) -> list[Any]:
        return self._laid(self._raw(stem))

    def _laid(self, values: Sequence[Any]) -> list[Any]:
        placed = [self._placed(value) for value in values]
        return inside(placed) if self._as_parts else placed

    def _placed(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return self._device.place(value)
        if isinstance(value, (list, tuple)):
            return type(value)(self._placed(item) for item in value)
        return value


def _tensors(values: Sequence[Any]) -> list[tuple[int, torch.Tensor]]:
    """Return the tensors among `values`, nested ones included, each with the position of its argument."""
    return [(position, tensor) for position, value in enumerate(values) for tensor in tensors_of([value])]


def _copy(tensor: torch.Tensor) -> torch.Tensor:
    """Return a copy on the host, to the byte: a bool's copy would otherwise lose the sentinel's."""
    plain = tensor.detach().cpu().contiguous()
    return plain.view(torch.uint8).clone().view(torch.bool) if plain.dtype is torch.bool else plain.clone()


def _normal(tensor: torch.Tensor) -> torch.Tensor:
    """Return a bool tensor with clean bytes (an unwritten one holds the sentinel's); any other unchanged."""
    return tensor.view(torch.uint8) != 0 if tensor.dtype is torch.bool else tensor
