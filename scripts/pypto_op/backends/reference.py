"""Runs what is trusted but can fail: an operator's goldens and its `eval/test_inputs.py`.

In a process of its own, with the host shim on a machine without NPU, the same limits as a candidate, and no
fence: the operator's golden may import what it likes. It never shares a process with a candidate. A module golden
stands alone: it gets a process in which nothing else of the workspace is or can be loaded.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from pypto_op import self_contained
from pypto_op.backends import sim
from pypto_op.backends.base import DEFAULT_LIMITS, Limits, RunResult
from pypto_op.backends.enclosed import enclosure_document, hidden_from_candidates
from pypto_op.backends.said import result_of
from pypto_op.backends.session import Plan, WorkerSession
from pypto_op.errors import ContractError, InfraError
from pypto_op.vocabulary import Outcome
from pypto_op.workspace import OpWorkspace, typed

if TYPE_CHECKING:
    import torch

    from pypto_op.backends.base import Value

_CLOSED = "the session is closed"
_REMEDY = "run the file by itself and mend it"


def check_inputs_there(workspace: OpWorkspace) -> None:
    """Raise ContractError when the operator has no `eval/test_inputs.py` yet."""
    if not workspace.test_inputs.is_file():
        remedy = f"run `pypto-op harness new {typed(workspace.root)}`"
        raise ContractError("is missing", file=workspace.test_inputs, remedy=remedy)


class ReferenceSession:
    """A warm process for the references of one operator; a context manager that leaves nothing running.

    Several threads may ask: one at a time, since there is one conversation. `close` waits for none of them.

    Args:
        limits: memory and time of each call; `startup_seconds` does not matter, since files load within a call.
        alone: a module golden: the process loads this file and nothing else of the workspace, so it makes no inputs.
    """

    def __init__(self, workspace: OpWorkspace, *, limits: Limits = DEFAULT_LIMITS, alone: Path | None = None) -> None:
        self._workspace = workspace
        self._limits = limits
        self._alone = None if alone is None else Path(os.path.realpath(alone))
        self._worker: WorkerSession | None = None
        self._turn = threading.RLock()
        self._gate = threading.Lock()  # for the worker and whether it is wanted any more
        self._closed = False

    def __enter__(self) -> ReferenceSession:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End the process and remove its scratch files; harmless when called twice. Who asks afterwards gets an InfraError."""
        with self._gate:
            worker, self._worker, self._closed = self._worker, None, True
        if worker is not None:
            worker.close()

    def loaded(self) -> dict[str, dict[str, str]]:
        """Return what golden and inputs loaded so far beside their own files, by role (`session.WorkerSession`)."""
        return self._worker.loaded if self._worker is not None else {}

    def make_inputs(self, case: dict[str, Any]) -> list[tuple[str, Value]]:
        """Return the primary inputs of a case, in the order of PRIMARY_INPUT_ORDER, each with its name.

        Raises:
            ContractError: `eval/test_inputs.py` is missing, does not load, raises, does not end, or does not
                return a dict with exactly the names of PRIMARY_INPUT_ORDER.
        """
        file = self._workspace.test_inputs
        check_inputs_there(self._workspace)
        message = {"call": "make_inputs", "file": str(file), "case": case}
        result, answer = self._ask(message, [], file)
        if result.outcome is not Outcome.OK:
            raise ContractError(result.detail, file=file, where=f"case {case.get('id', '?')}", remedy=_REMEDY)
        return list(zip(answer["names"], answer["values"], strict=True))

    def golden(
        self,
        inputs: Sequence[Value],
        *,
        function: str,
        file: Path,
        float64: bool = False,
        twin: str | None = None,
        probe: str | None = None,
    ) -> RunResult:
        """Call a golden.

        Args:
            inputs: its positional arguments; it gets copies.
            float64: hand floating inputs over as float64, and take each narrower floating dtype that the golden
                names for float64, so that the result is what the formula gives without rounding; but what it rounds to 16
                bits and uses further stays so rounded. `others` of the result are answers that are as right.
            twin: run it as this honest twin (`pypto_op.twins.reordering.TWINS`): sums in another order; or as one whose
                numbers end where float16 does, or at their lower end (`pypto_op.twins.half_range`). Not with `float64`.
            probe: `function` returns a mapping of tensors, and this one is wanted (`judge.cases.inspection`).

        Returns:
            The result; MISSING_FILE, MISSING_WRAPPER, EXCEPTION, TIMED_OUT, ... when there is none.
        """
        message = {"call": "golden", "file": str(file), "function": function, "float64": float64, "twin": twin, "probe": probe}
        result, answer = self._ask(message, inputs, Path(file))
        return _with_outputs(result, answer, list(answer["values"])) if result.outcome is Outcome.OK else result

    def goldens(
        self, inputs: Sequence[Value], ways: Sequence[Mapping[str, Any]], *, function: str, file: Path
    ) -> list[RunResult]:
        """Call a golden in several ways, with one message.

        Args:
            inputs: its positional arguments; each call gets copies.
            ways: keywords of `golden`, one mapping for each call.

        Returns:
            One result per way; [] when all were lost together, since the process ended or the time of one call was over.
        """
        plain = {"float64": False, "twin": None, "probe": None}
        message = {"call": "goldens", "file": str(file), "function": function, "ways": [{**plain, **way} for way in ways]}
        result, answer = self._ask(message, inputs, Path(file))
        if result.outcome is not Outcome.OK:
            return []
        found, values = [], list(answer["values"])
        for told in answer["told"]:
            own, values = values[: told["count"]], values[told["count"] :]
            found.append(_with_outputs(result_of(told), told, own))
        return found

    def conditions(
        self, inputs: Sequence[Value], *, function: str, file: Path, expression: str | None = None, quantile: float = 0.5
    ) -> dict[str, Any]:
        """Return how badly the sums of a golden cancel (`pypto_op.stress`): `reached`, `expression` and `sites`.

        Args:
            expression: the one that `reached` is about; None, or one that is not there: the worst.
            quantile: the share of the cells that reach the condition number which is told.

        Raises:
            ContractError: the golden does not run on these inputs.
        """
        message = {"call": "conditions", "file": str(file), "function": function, "quantile": quantile}
        told: dict[str, Any] = self._told({**message, "expression": expression}, inputs, Path(file), "conditions")
        return told

    def unread(self, inputs: Sequence[Value], *, function: str, file: Path) -> list[torch.Tensor]:
        """Return a bool mask per input of the elements that a golden seems not to read (`worker.unread`), [] where unknown."""
        result, answer = self._ask({"call": "unread", "file": str(file), "function": function}, inputs, Path(file))
        return list(answer["values"]) if result.outcome is Outcome.OK else []

    def stress(self, case: dict[str, Any], *, function: str, file: Path, **goal: Any) -> dict[str, Any]:
        """Search for a recipe on which a golden's expression cancels; see `pypto_op.judge.stressing.stress_case`.

        Args:
            case: a suite case without `cancellation_stress`.
            goal: expression, quantile, condition, seed, runs.

        Raises:
            ContractError: golden or `eval/test_inputs.py` do not run on the case.
        """
        inputs_file = os.path.realpath(self._workspace.test_inputs)
        message = {"call": "stress", "file": str(file), "function": function, "case": case, "inputs_file": inputs_file}
        told: dict[str, Any] = self._told({**message, **goal}, [], Path(file), "stress")
        return told

    def call(self, file: Path, function: str, argument: Any) -> Any:
        """Call `function(argument)` of a trusted file; both what goes in and what comes back is JSON.

        Raises:
            ContractError: the file does not load, the function raises, does not end, or returns no JSON.
        """
        message = {"call": "call", "file": str(file), "function": function, "argument": argument}
        return self._told(message, [], Path(file), "returned")

    def _told(self, message: dict[str, Any], inputs: Sequence[Value], file: Path, key: str) -> Any:
        result, answer = self._ask(message, inputs, file)
        if result.outcome is not Outcome.OK:
            raise ContractError(result.detail or str(result.outcome), file=file, remedy=_REMEDY)
        return answer[key]

    def _ask(self, message: dict[str, Any], inputs: Sequence[Value], file: Path) -> tuple[RunResult, dict[str, Any]]:
        with self._turn:
            return self._asked(message, inputs, file)

    def _asked(self, message: dict[str, Any], inputs: Sequence[Value], file: Path) -> tuple[RunResult, dict[str, Any]]:
        message["file"] = os.path.realpath(file)
        worker = self._worker or self._begun(file)
        worker.file_name = file.name
        return worker.ask(message, inputs)

    def _begun(self, file: Path) -> WorkerSession:
        """Return a new worker; whoever closes this session meanwhile finds none, so that is looked at before it is kept."""
        if self._closed:
            raise InfraError(_CLOSED)
        tools = sim.prepare()  # half a minute where nothing was built yet
        document: dict[str, Any] = {"enclose": True, "role": "reference", "device": {}}
        if self._alone is not None:
            self_contained.check(self._alone)
            document["alone"] = {"file": str(self._alone), "workspace": str(self._workspace.root)}
        plan = Plan(document, tools.start)
        worker = WorkerSession(plan, self._workspace, self._limits, file.name)
        enclosure = enclosure_document(worker.scratch, self._hidden(), trusted=True)
        worker.plan = Plan({**plan.document, "enclosure": enclosure}, plan.launch)
        with self._gate:
            if not self._closed:
                self._worker = worker
                return worker
        worker.close()
        raise InfraError(_CLOSED)

    def _hidden(self) -> list[Path]:
        """Return what a module golden finds empty, where the machine has name spaces: every other file of the operator."""
        if self._alone is None:
            return []
        files = [*self._workspace.root.glob("*.py"), *self._workspace.modules_dir.glob("*.py")]
        hidden = dict.fromkeys([*hidden_from_candidates(self._workspace), *files])
        return [path for path in hidden if Path(os.path.realpath(path)) != self._alone]


def _with_outputs(result: RunResult, told: Mapping[str, Any], values: list[Any]) -> RunResult:
    """Return a result with its outputs, and with the other right answers that came along."""
    ways = int(told.get("ways", 1))
    each = len(values) // ways
    result.outputs, *result.others = [values[n * each : (n + 1) * each] for n in range(ways)]
    return result
