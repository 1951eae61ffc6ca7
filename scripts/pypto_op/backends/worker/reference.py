"""The role of a worker that runs code which is trusted but can fail: goldens and `eval/test_inputs.py`."""

from __future__ import annotations

import copy
import hashlib
import json
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
import torch.fx.experimental.symbolic_shapes  # noqa: F401  (the first gradient loads it, in each process anew)

from pypto_op.backends import cores
from pypto_op.backends.hostshim import devices
from pypto_op.backends.wire import read_values
from pypto_op.backends.worker.alone import Alone
from pypto_op.backends.worker.closure import Closure
from pypto_op.backends.worker.doubling import Doubled, widened
from pypto_op.backends.worker.loading import Failure, failure_of, load_module
from pypto_op.backends.worker.on_device import MadeOnDevice
from pypto_op.backends.worker.outputs import leaves_of, structure_of
from pypto_op.backends.worker.right_answers import answer, right_answers
from pypto_op.backends.worker.unread import unread
from pypto_op.twins.half_range import CUTS, Cut
from pypto_op.twins.padding import Padding
from pypto_op.twins.reordering import OTHER_TIES, Reordered, storage_of
from pypto_op.vocabulary import Loader, Outcome


class Reference:
    """Answers `make_inputs`, `golden`, `conditions`, `stress`, `unread` and `call`; each file is loaded once per content."""

    def __init__(self, document: dict[str, Any]) -> None:
        from pypto_op.backends import hostshim

        if document["device"].get("host_shim", True):
            hostshim.install()
        self._closure = Closure(document["enclosure"]["scratch"])
        self._closure.install()
        self._loaded_by: dict[Loader, dict[str, str]] = {loader: {} for loader in (Loader.GOLDEN, Loader.INPUTS)}
        cores.share_among_references()
        self._loaded: dict[tuple[str, str], ModuleType] = {}
        self._readings: dict[str, Any] = {}
        self._no_device: dict[str, bool] = {}
        alone = document.get("alone")
        self._alone = Alone(alone, document["enclosure"]["scratch"]) if alone else None
        self._answers = {
            "make_inputs": lambda message: self._make_inputs(Path(message["file"]), message["case"]),
            "golden": self._golden,
            "goldens": self._goldens,
            "conditions": self._conditions,
            "stress": self._stress,
            "unread": self._unread,
            "call": self._call,
        }

    def handle(self, message: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Answer one message; return the values and the facts about them."""
        facts: dict[str, Any] = {"outcome": str(Outcome.OK), "detail": "", "structure": ""}
        begin = time.perf_counter()
        self._closure.watch()
        try:
            values, more = self._answers[message["call"]](message)
            facts |= more
        except Failure as failure:
            values = []
            facts |= {"outcome": str(failure.outcome), "detail": failure.detail}
        finally:
            self._closure.watch(False)
        loader = Loader.INPUTS if message["call"] == "make_inputs" else Loader.GOLDEN
        self._loaded_by[loader] |= self._closure.take()
        facts["loaded"] = {str(loader): files for loader, files in self._loaded_by.items()}
        facts["seconds"] = time.perf_counter() - begin
        return values, facts

    def _make_inputs(self, file: Path, case: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        make, names = self._maker(file)
        watch = MadeOnDevice(file.parent)
        try:
            with watch:
                made = make(dict(case))
        except BaseException as error:
            raise failure_of(error, file, Outcome.EXCEPTION) from None
        if watch.fault:
            raise Failure(Outcome.BAD_OUTPUT, watch.fault)
        if not isinstance(made, dict):
            raise Failure(Outcome.BAD_OUTPUT, f"make_inputs returned {type(made).__name__}, not a dict")
        if set(made) != set(names):
            wrong = sorted(str(name) for name in set(made) ^ set(names))
            raise Failure(Outcome.BAD_OUTPUT, f"make_inputs and PRIMARY_INPUT_ORDER of {file.name} differ in: {', '.join(wrong)}")
        return [made[name] for name in names], {"names": names}

    def _maker(self, file: Path) -> tuple[Callable[..., Any], list[str]]:
        module = self._module(file)
        make, order = getattr(module, "make_inputs", None), getattr(module, "PRIMARY_INPUT_ORDER", None)
        if not callable(make) or not isinstance(order, (list, tuple)):
            raise Failure(Outcome.MISSING_WRAPPER, f"{file.name} must define make_inputs(case) and PRIMARY_INPUT_ORDER")
        return make, [str(name) for name in order]

    def _function(self, message: dict[str, Any]) -> Callable[..., Any]:
        file, name = Path(message["file"]), message["function"]
        function = getattr(self._module(file), name, None)
        if not callable(function):
            raise Failure(Outcome.MISSING_WRAPPER, f"{file.name} has no function {name}")
        found: Callable[..., Any] = function
        return found

    def _conditions(self, message: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Measure how badly the golden's sums cancel on some inputs."""
        from pypto_op.backends.worker import cancellation

        values, _ = read_values(Path(message["inputs"]))
        golden = self._function(message)
        try:
            reference = cancellation.Golden(golden, Path(message["file"]), self._shim(Path(message["file"])))
            with self._watched():
                return [], {"conditions": cancellation.conditions(reference, message, values)}
        except Failure:
            raise
        except Exception as error:
            raise failure_of(error, Path(message["file"]), Outcome.EXCEPTION) from None

    def _stress(self, message: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Search for inputs on which an expression of the golden cancels."""
        from pypto_op.backends.worker import cancellation

        golden = self._function(message)
        make, order = self._maker(Path(message["inputs_file"]))
        reference = cancellation.Golden(golden, Path(message["file"]), self._shim(Path(message["file"])))
        try:
            return [], {"stress": cancellation.find(reference, make, order, message, self._readings)}
        except Exception as error:
            raise failure_of(error, Path(message["file"]), Outcome.EXCEPTION) from None

    def _unread(self, message: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Guess which elements of some inputs the golden does not read; nothing where it has no gradients."""
        values, _ = read_values(Path(message["inputs"]))
        function = self._function(message)
        try:
            with self._watched(), self._shim(Path(message["file"])):
                return list(unread(function, values)), {}
        except Failure:
            raise
        except Exception:  # noqa: BLE001  (an in-place operation on an input, an operation without a gradient, ...)
            return [], {}

    def _call(self, message: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Call a function of a trusted file with JSON."""
        function = self._function(message)
        try:
            return [], {"returned": json.loads(json.dumps(function(message["argument"]), allow_nan=False))}
        except BaseException as error:
            raise failure_of(error, Path(message["file"]), Outcome.EXCEPTION) from None

    def _golden(self, message: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        return self._answer(message, self._function(message))

    def _answer(self, message: dict[str, Any], function: Callable[..., Any]) -> tuple[list[Any], dict[str, Any]]:
        """Call a golden in one way, on inputs that are read anew."""
        file, name = Path(message["file"]), message["function"]
        values, _ = read_values(Path(message["inputs"]))
        if message["float64"]:
            with self._shim(file):
                return truths(function, values, file)
        twin = _twin(message.get("twin"), values)
        mode: AbstractContextManager[Any] = nullcontext() if twin is None else twin
        before = [_version(value) for value in values]
        try:
            with self._watched(), self._shim(file), mode, torch.no_grad():
                returned = function(*values)
        except Failure:
            raise
        except BaseException as error:
            raise failure_of(error, file, Outcome.EXCEPTION) from None
        if message.get("probe") is not None:
            returned = _probe(returned, message["probe"], name)
        structure, leaves = structure_of(returned), _leaves(returned, name, file)
        mutated = [i for i, value in enumerate(values) if _version(value) != before[i]]
        facts = {"structure": structure, "mutated_inputs": mutated, "orders_values": twin is None or twin.orders_values}
        return [leaf.detach().contiguous() for leaf in leaves], facts

    def _goldens(self, message: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Call a golden in several ways; `told` has the facts of each, and how many of the values are its own."""
        function = self._function(message)
        values: list[Any] = []
        told: list[dict[str, Any]] = []
        for way in message["ways"]:
            # Where the other twins ordered nothing, no tie can be broken otherwise: the golden as it stands is as good.
            if way["twin"] == OTHER_TIES and any(not earlier.get("orders_values", True) for earlier in told):
                way = {**way, "twin": None}
            try:
                found, facts = self._answer({**message, **way}, function)
                facts = {"outcome": str(Outcome.OK), "detail": "", **facts}
            except Failure as failure:
                found, facts = [], {"outcome": str(failure.outcome), "detail": failure.detail}
            told.append({**facts, "count": len(found)})
            values += found
        return values, {"told": told}

    def _module(self, file: Path) -> ModuleType:
        try:
            key = (str(file), hashlib.sha256(file.read_bytes()).hexdigest())
        except OSError as error:
            raise Failure(Outcome.MISSING_FILE, f"{file.name}: {error.strerror}") from None
        if self._alone is not None and str(file) != self._alone.file:
            raise Failure(Outcome.FORBIDDEN, f"{file.name} is not loaded beside a module golden")
        if key not in self._loaded:
            with self._watched():
                self._loaded[key] = load_module(file, sha256=key[1], beside=self._alone is None)
            self._no_device[str(file)] = devices.needs_no_host(file.read_text(encoding="utf-8"))
        return self._loaded[key]

    def _shim(self, file: Path) -> AbstractContextManager[Any]:
        """Leave the host shim out of the calls of a loaded golden that cannot name a device."""
        return devices.SteppedAside() if self._no_device[str(file)] else nullcontext()

    def _watched(self) -> AbstractContextManager[None]:
        return nullcontext() if self._alone is None else self._alone.watched()


def _twin(name: str | None, values: list[Any]) -> Reordered | Cut | None:
    """Return what makes a golden one of its twins; None where that would change nothing, and only cost time."""
    if name is not None and name in CUTS:
        return CUTS[name]()
    twin = Reordered(name, storage_of(values)) if name else None
    return None if twin is None or twin.changes_nothing else twin


def truths(function: Callable[..., Any], values: list[Any], file: Path) -> tuple[list[Any], dict[str, Any]]:
    """Run a golden in float64, and in the other ways that are as right.

    Returns:
        The outputs of each way, one way after another: with the roundings that the golden demands, then with the values that lie
        near ties on other sides of them (`right_answers`), then with other products of padding and NaN (`twins.padding`). The
        facts say how many ways there are.
    """

    facts: dict[str, Any] = {}

    def run(mode: AbstractContextManager[Any], wide: bool) -> list[torch.Tensor]:
        given = copy.deepcopy(values)
        given = [widened(value) for value in given] if wide else given
        before = [_version(value) for value in given]
        try:
            with mode, torch.no_grad():
                returned = function(*given)
        except BaseException as error:
            raise failure_of(error, file, Outcome.EXCEPTION) from None
        facts["mutated_inputs"] = [i for i, value in enumerate(given) if _version(value) != before[i]]
        facts["structure"] = structure_of(returned)
        return _leaves(returned, getattr(function, "__name__", ""), file)

    steps, ways = right_answers(run)
    for padding in (Padding(), Padding(counts=True)) if _any_special(values) else ():
        with padding:
            other = answer(run, Doubled(steps))
            if padding.met:
                ways.append(other)
    return [leaf.detach().contiguous() for way in ways for leaf in way], {**facts, "ways": len(ways)}


def _any_special(values: list[Any]) -> bool:
    """Whether a float among some arguments is a NaN or an infinity."""
    tensors = (value for value in values if isinstance(value, torch.Tensor) and value.is_floating_point())
    return any(not bool(tensor.isfinite().all()) for tensor in tensors)


def _leaves(returned: Any, name: str, file: Path) -> list[torch.Tensor]:
    try:
        return leaves_of(returned)
    except Failure as failure:
        detail = failure.detail.replace("the wrapper", f"{name} of {file.name}")
        raise Failure(failure.outcome, detail) from None


def _probe(returned: Any, wanted: str, name: str) -> torch.Tensor:
    """Return one tensor of the mapping that an inspection companion returned."""
    if not isinstance(returned, dict):
        raise Failure(Outcome.BAD_OUTPUT, f"{name} returned {type(returned).__name__}, not a dict of probes")
    tensor = returned.get(wanted)
    if not isinstance(tensor, torch.Tensor):
        probes = ", ".join(sorted(str(key)[:64] for key in returned)[:8]) or "none"
        raise Failure(Outcome.BAD_OUTPUT, f"{name} has no probe {wanted}; it has: {probes}")
    return tensor


def _version(value: Any) -> list[int]:
    """Return how often torch has changed each tensor of an argument in place."""
    if isinstance(value, torch.Tensor):
        return [value._version]
    return [n for item in value for n in _version(item)] if isinstance(value, (list, tuple)) else []
