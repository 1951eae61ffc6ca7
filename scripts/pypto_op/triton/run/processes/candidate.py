"""The role of the process that runs the implementation under judgement."""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import secrets
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from pypto_op.backends.worker.loading import Failure, failure_of, load_module
from pypto_op.backends.worker.sentinel import AMBIGUOUS, PATTERNS, Sentinel
from pypto_op.backends.worker.source_check import back_door
from pypto_op.backends.worker.tampering import Snapshot
from pypto_op.triton.run.inputs import arguments, beyond, circumstances, reloaded
from pypto_op.triton.run.inputs import before as earlier
from pypto_op.triton.run.inputs.draws import seed_all
from pypto_op.triton.run.inputs.packing import Unpackable, address, map_tensors, same_layout, settled, tensors_of
from pypto_op.triton.run.inputs.refresh import ways_of
from pypto_op.triton.run.interpreter import bfloat16, gaps, libdevice, reductions, sparing
from pypto_op.triton.run.processes import model as models
from pypto_op.triton.run.processes.clock import Clock
from pypto_op.triton.run.watching.chosen import Chosen
from pypto_op.triton.run.watching.dispatch import Gate, mode_is_active, turned
from pypto_op.triton.run.watching.fence import TritonFence, TritonGuard
from pypto_op.triton.run.watching.intact import Intact
from pypto_op.triton.run.watching.launch_arguments import Few
from pypto_op.triton.run.watching.launches import Launches
from pypto_op.triton.run.watching.lines import Lines
from pypto_op.triton.run.watching.memory import Memory, aliased, bytes_of, repeated, share_keys
from pypto_op.triton.run.watching.reads import Reads
from pypto_op.vocabulary import Outcome
from pypto_op.workspace import OpWorkspace

with contextlib.suppress(ImportError):  # an older Triton has none
    # The first launch of a process loads it; here the process that candidates are forked from does.
    import triton.experimental.gluon.nvidia.hopper  # noqa: F401

inspect.getmodule(load_module.__code__)  # it notes where each module's file lies, which all that ask for a source need

_COMPUTES = ("numpy", "triton.runtime.interpreter")
"""Modules whose functions compute what a kernel asks for, in the interpreter, which itself replaces those of its language."""
_WATCHED = 8
"""Of so many runs after a case's first, which all are, one has every line of its kernels watched."""
_TURNS = 8
"""So many further calls of an implementation that keeps an output: it may return a few by turns."""
_SEVERAL = 16
"""Fewer elements are alike by chance."""


class _Sentinel(Sentinel):
    """Marks fresh memory while numbers are judged, not while calls are timed."""

    active = True

    def __init__(self, gate: Gate) -> None:
        super().__init__()
        self._gate = gate

    def _filling(self, factory: Callable[..., Any]) -> Callable[..., Any]:
        filled = super()._filling(factory)

        @functools.wraps(factory)
        def chosen(*args: Any, **kwargs: Any) -> Any:
            if not self.active:
                return factory(*args, **kwargs)
            marked = filled(*args, **kwargs)
            with self._gate.opened():
                _level(marked)
            return marked

        return chosen


def _level(tensor: Any) -> None:
    """Give memory that no pattern marks (other dtypes, gaps between elements) the same bytes in every run."""
    if type(tensor) is not torch.Tensor or not tensor.numel():
        return
    marked = tensor.dtype in PATTERNS
    if marked and tensor.is_contiguous():
        return
    kept = tensor.detach().clone() if marked else None
    bytes_of(tensor).fill_(0xA5)
    if kept is not None:
        tensor.detach().copy_(kept)


class Candidate:
    """`ModelNew` of one file.

    Messages: `run` (build it, give it the weights, call forward under watch, after a call on other values where `warmed` says
    which), `orders` (call forward once in each order of programs), `time` (time the present case).
    """

    def __init__(self, document: dict[str, Any]) -> None:
        self._device = models.prepare(document)
        self._path = Path(document["file"])
        self._process = os.getpid()
        own = frozenset(document["own"])
        self._gate = Gate(own)
        self._sentinel = _Sentinel(self._gate)
        chosen = Chosen()
        self._memory = Memory(chosen.place_of)
        self._launches = Launches(self._memory, chosen, self._gate, own)
        self._reads = Reads(self._carries, own, self._launches.asked, self._gate.is_open)
        self._lines = Lines(own)
        guard = self._launches.programs.guard
        guard.own, guard.begins, guard.leaves = own, self._lines.rest, self._lines.wake
        self._clock = Clock(self._device)
        self._guard = TritonGuard(_fence(document))
        self._launches.bounds.arm = self._guard.arm
        if self._device.type != "cpu":
            torch.zeros(1, device=self._device)  # the driver is loaded before anything is refused
            beyond.spoil(self._device)
        self._reduced: set[str] = set()
        if self._device.type == "cpu":
            bfloat16.mend()
            gaps.mend()
            libdevice.install()
            sparing.install()
            self._reduced = reductions.install()
        self._sentinel.install()
        self._reads.install()
        self._launches.install(interpreted=self._device.type == "cpu", ordered=document["ordered"])
        self._guard.install()
        self._snapshot = Snapshot(_COMPUTES if self._device.type == "cpu" else ())
        self._others = set(sys.modules)
        self._intact = Intact([self._gate, self._sentinel, self._memory, self._launches, self._reads, self._lines, self._guard])
        self._kind = self._load(document["sha256"])
        self._model: Any = None
        self._inputs: Any = None
        self._seed = 0

    def handle(self, message: dict[str, Any]) -> tuple[list[torch.Tensor], dict[str, Any]]:
        """Answer one message."""
        facts: dict[str, Any] = {"outcome": str(Outcome.OK), "detail": "", "structure": ""}
        try:
            answer, more = {"run": self._run, "time": self._time, "orders": self._in_orders}[message["call"]](message)
            values = models.packed(answer, self._path.name)
            facts |= more
        except Failure as failure:
            values = []
            facts |= {"outcome": str(failure.outcome), "detail": failure.detail}
        facts["launches"] = self._launches.count
        return values, facts

    def _load(self, sha256: str) -> type:
        door = back_door(self._path.read_bytes()) if self._path.is_file() else None
        if door:
            raise Failure(Outcome.FORBIDDEN, f"{self._path.name} reaches into the interpreter by {door}")
        # A module may answer for the name with a function of its own, which is watched as well.
        kind = self._loose(lambda: getattr(load_module(self._path, sha256=sha256), "ModelNew", None))
        if not callable(kind):
            raise Failure(Outcome.MISSING_WRAPPER, f"{self._path.name} has no class ModelNew")
        found: type = kind
        return found

    def _run(self, message: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        begin = time.process_time()
        share_keys(message["keys"])
        given = models.read(message)
        seed = self._seed = message["seed"]
        word, untaken = self._build(given, seed)
        facts: dict[str, Any] = {"weights": word, "untaken": untaken, "derived": models.derived(self._model)}
        self._inputs = models.placed(given["inputs"], self._device)
        self._sentinel.active, self._gate.denied = True, []
        self._reads.found = []
        self._lines.rests = message["later"] and secrets.randbelow(_WATCHED) > 0
        self._launches.recording = True
        lanes, configurations = self._launches.bounds.lanes, self._launches.configurations
        lanes.marked, lanes.met, configurations.judges = message["marked"], False, ""
        configurations.turns = message["turns"]
        products = self._launches.bounds.products
        products.rounded, products.met = message["rounded"], False
        self._launches.backward, self._launches.bounds.races.met = message["backward"], False
        first, before_it = (None, {}) if message["warmed"] is None else self._warm(message, given)
        facts |= before_it
        kept = models.marks(first)
        inputs = beyond.copies(self._inputs)
        if message["elsewhere"] and self._device.type == "cpu":  # a device may not load from there
            inputs = circumstances.moved(inputs)
        before = models.marks(inputs)
        state = {name: value for name, value in models.weights_of(self._model).items() if name in message["changes"]}
        stands = models.marks(state)
        follows = "before" in facts
        self._launches.begin(tensors_of(inputs), models.held_by(self._model), follows=follows, own=not message["later"])
        own = models.weights_of(self._model)
        self._memory.rewritten(own[name] for name in message["reloads"] if name in own)
        configurations.judges = message["judges"]
        self._launches.bounds.unread.begin([] if message["later"] else tensors_of(inputs))
        configurations.tries, configurations.tried = message["judged"] and message["later"], set()
        around = circumstances.gradients(inputs) if message["elsewhere"] else None
        returned = self._loose(lambda: self._forward(inputs, seed, around))
        configurations.tries = False
        leaves = tensors_of(models.checked(returned, f"{self._path.name}: forward's output"))
        if any(map(turned, leaves)):
            raise Failure(Outcome.FORBIDDEN, f"{self._path.name}: forward returns a view whose signs PyTorch turns")
        # Copies, taken before their origin is looked at: a thread may still write to the originals.
        copies = map_tensors(returned, lambda leaf: leaf.detach().clone())
        mutated = models.changed(inputs, before)
        facts["left"] = [*state] if models.marks(state) == stands else []
        facts |= {"overwritten": bool(models.changed(first, kept))}
        facts |= {**self._facts(leaves, tensors_of(inputs), mutated), "seconds": time.process_time() - begin}
        outputs = {*map(address, leaves)} - {*map(address, tensors_of(inputs))}
        del returned, leaves
        if message["judged"] and not message["later"]:
            facts["overwritten"] |= self._returns_by_turns(outputs, inputs, seed)
        return {"outputs": copies, "mutated": mutated} if message["judged"] else None, facts

    def _build(self, given: dict[str, Any], seed: int) -> tuple[str, list[str]]:
        """Make a new model with the weights of a message; return what `load_weights` does."""
        self._model = self._loose(lambda: models.build(self._kind, given["init"], seed, self._device, self._path))
        return models.load_weights(self._model, given["weights"])

    def _warm(self, message: dict[str, Any], given: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Call forward before the judged call, on other inputs; return what it returned, and what it used."""
        for shift in earlier.calls(message["warmed"]):
            if message["warmed"] == earlier.OTHER:
                others = models.placed(given["earlier"], self._device)
            else:
                others = map_tensors(self._inputs, same_layout)
                earlier.fill(others, self._inputs, message["warmed"], shift)
            with reloaded.others(models.weights_of(self._model), message["reloads"]):
                self._launches.begin(tensors_of(others), models.held_by(self._model))
                first = self._loose(functools.partial(self._forward, others, message["seed"]))
        chosen = self._launches.chosen.outputs(tensors_of(first))
        return first, {"before": {"used": self._memory.used(), "scalars": self._launches.scalars() | chosen}}

    def _returns_by_turns(self, outputs: set[int], inputs: Any, seed: int) -> bool:
        """Whether one of the outputs at these addresses, which the implementation keeps, changes in some further calls."""
        kept = [torch.empty(0, dtype=torch.uint8, device=one.device).set_(one) for one in self._memory.shared(outputs)]
        before, count = models.marks(kept), self._launches.count
        self._launches.recording = False
        ways = ways_of(inputs) if kept else []
        for _ in range(_TURNS if kept else 0):
            others = map_tensors(inputs, same_layout)
            earlier.fill(others, inputs, earlier.ROLLED, ways=ways)
            self._loose(functools.partial(self._forward, others, seed))
        self._launches.recording, self._launches.count = True, count
        return bool(models.changed(kept, before))

    def _in_orders(self, message: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Run a new model once in each order; where numbers come from, other calls tell."""
        given, seed, orders = models.read(message), message["seed"], self._launches.orders
        assert orders is not None  # the judge asks such sessions alone
        self._sentinel.active, self._launches.recording = True, False
        self._inputs = models.placed(given["inputs"], self._device)
        answers: dict[tuple[str, ...], dict[str, Any]] = {}
        which = []
        for order in message["orders"]:
            orders.begin(order)
            self._build(given, seed)
            inputs = beyond.copies(self._inputs)
            before = models.marks(inputs)
            self._launches.begin(tensors_of(inputs), models.held_by(self._model))
            returned = self._loose(functools.partial(self._forward, inputs, seed))
            models.checked(returned, f"{self._path.name}: forward's output")
            mutated = models.changed(inputs, before)
            marks = (*models.marks(returned), *map(str, mutated), *models.marks(list(mutated.values())))
            answers.setdefault(marks, {"outputs": map_tensors(returned, lambda leaf: leaf.detach().clone()), "mutated": mutated})
            which.append([*answers].index(marks))
        return [*answers.values()], {"which": which}

    def _carries(self, tensor: torch.Tensor) -> bool:
        with self._gate.opened():
            return self._memory.carries(tensor)

    def _forward(self, inputs: Any, seed: int, around: contextlib.AbstractContextManager[Any] | None = None) -> Any:
        seed_all(seed)
        timed = not self._launches.recording
        try:
            with around or torch.no_grad(), self._reads, self._gate, contextlib.nullcontext() if timed else self._lines:
                returned = arguments.call(self._model, inputs)
                returned = self._settled(returned)
                watched = mode_is_active(self._gate) and self._reads.is_active() and (timed or self._lines.is_active())
            models.synchronize(self._device)
        except BaseException as error:
            if self._gate.denied:
                raise Failure(Outcome.FORBIDDEN, self._computed()) from None
            if isinstance(error, Failure):
                raise
            failure = failure_of(error, self._path, Outcome.EXCEPTION)
            if said := self._launches.bounds.said():
                where = failure.detail.split(": ")[0]
                failure = Failure(Outcome.EXCEPTION, f"{where}: {said}")
            raise failure from None
        if self._gate.denied:
            raise Failure(Outcome.FORBIDDEN, self._computed())
        if not watched:
            raise Failure(Outcome.FORBIDDEN, f"{self._path.name} switched the watch over what it does off")
        if self._launches.foreign:
            raise Failure(Outcome.FORBIDDEN, f"{self._path.name} launches {self._launches.foreign[0]}, which is not in its files")
        return returned

    def _settled(self, returned: Any) -> Any:
        try:
            return settled(returned)
        except Unpackable as error:
            raise Failure(Outcome.BAD_OUTPUT, f"{self._path.name}: forward's output: {error}") from None

    def _computed(self) -> str:
        said = self._gate.denied[0]
        return f"{self._path.name}: {said}" if said.startswith("forward") else said

    def _facts(self, leaves: list[torch.Tensor], inputs: list[torch.Tensor], mutated: dict[int, Any]) -> dict[str, Any]:
        marked = [leaf.detach().contiguous() for leaf in leaves if leaf.dtype not in AMBIGUOUS]
        return {
            "structure": type(leaves[0]).__name__ if len(leaves) == 1 else f"{len(leaves)} tensors",
            "outputs_from_kernel": all(map(self._memory.from_kernel, [*leaves, *mutated.values()])),
            "mutated_inputs": sorted(mutated),
            "aliased_inputs": aliased(inputs, leaves),
            "repeated": repeated(leaves),
            "used": self._memory.used(),
            "scalars": self._launches.scalars() | self._launches.chosen.outputs(leaves),
            "computed": self._launches.computed(),
            "configurations": self._launches.configurations.facts(),
            "tried": sorted(self._launches.configurations.tried),
            "lanes": self._launches.bounds.lanes.met,
            "products": self._launches.bounds.products.met,
            "atomics": self._launches.bounds.races.met,
            "reduced": sorted(self._reduced),
            "uncompiled": self._launches.compiling.refused(),
            "unread": self._launches.bounds.unread.found(),
            "reads": [*self._reads.found[:5], *self._launches.lent[:5]],
            "copies": dict(self._launches.copies),
            "copied_outputs": list(self._copied(leaves)),
            "sentinel_left": [int(self._sentinel.mask(leaf).sum()) for leaf in marked],
            "kernels": sorted(set(self._launches.names)),
            "modules": sorted({name.partition(".")[0] for name in set(sys.modules) - self._others}),
            "programs": sorted(self._launches.programs.ran),
            "lines": sorted(self._lines.ran),
            "handed": [*self._launches.handed[:5], *self._launches.programs.guard.denied],
        }

    def _copied(self, leaves: list[torch.Tensor]) -> Iterator[str]:
        """Yield what to say of outputs that PyTorch's copies already were."""
        for position, leaf in enumerate(leaves):
            few = Few.of(leaf)
            name = next((name for name, copy in self._launches.whole if few.elements >= _SEVERAL and few.same(copy)), None)
            if name is not None:
                yield f"output {position}: PyTorch's {name} was the answer already, in each of {few.values.numel()} elements"

    def _time(self, message: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        self._sentinel.active = self._launches.recording = self._launches.configurations.turns = False
        self._launches.begin([], [])
        timing = self._loose(lambda: self._timed(message))
        replaced = self._clock.replaced()
        if replaced:
            raise Failure(Outcome.FORBIDDEN, f"{self._path.name} replaced {replaced}")
        facts = timing.facts() | {"kernels": sorted(set(self._launches.names))}
        if self._launches.foreign:
            raise Failure(Outcome.FORBIDDEN, f"{self._path.name} launches {self._launches.foreign[0]}, which is not in its files")
        kept = {number: map_tensors(value, lambda leaf: leaf.detach()) for number, value in timing.kept.items()}
        return kept, facts

    def _timed(self, message: dict[str, Any]) -> Any:
        try:
            return self._clock.time(self._model, self._inputs, message, lambda inputs: self._forward(inputs, self._seed))
        except Failure:
            raise
        except BaseException as error:
            raise failure_of(error, self._path, Outcome.EXCEPTION, " while it was timed") from None

    def _loose(self, action: Callable[[], Any]) -> Any:
        """Run the candidate's code: this bundle out of sight, the guard armed, and nothing replaced afterwards."""
        self._snapshot.hide_modules()
        self._guard.arm()
        try:
            return action()
        finally:
            self._guard.arm(False)
            if os.getpid() != self._process:
                os._exit(0)
            self._snapshot.show_modules()
            self._raise_offences()

    def _raise_offences(self) -> None:
        offences = self._guard.take_offences()
        if offences:
            raise Failure(Outcome.FORBIDDEN, f"{self._path.name} tried to {offences[0]}") from None
        replaced = [
            *self._snapshot.changes(),
            *filter(None, (self._intact.replaced(), self._launches.replaced(), self._clock.replaced())),
        ]
        if replaced:
            raise Failure(Outcome.FORBIDDEN, f"{self._path.name} replaced {replaced[0]}") from None


def _fence(document: dict[str, Any]) -> TritonFence:
    scratch = os.path.realpath(document["enclosure"]["scratch"])
    folder = Path(document["op_dir"])
    hidden = tuple(os.path.realpath(path) for path in document["enclosure"]["hidden"])
    return TritonFence(scratch, OpWorkspace(folder, folder.name), tuple(document["own"]), hidden, document["task_module"])
