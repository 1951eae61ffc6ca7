"""The judge's ends of the two processes: one with the task, one with the implementation. They begin before torch is here."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, TypeAlias

from pypto_op.backends.base import Limits, RunResult
from pypto_op.backends.enclosed import enclosure_document
from pypto_op.backends.session import Plan, WorkerSession
from pypto_op.hashing import sha256_file
from pypto_op.proof.key import key_file
from pypto_op.triton.run.inputs import literals
from pypto_op.triton.run.judging.other_answers import Otherwise
from pypto_op.triton.run.processes.roles import load_driver
from pypto_op.triton.run.setup.project import Project
from pypto_op.triton.run.setup.targets import Place, Target, choose
from pypto_op.triton.run.watching import configurations
from pypto_op.triton.run.watching.printed import own_words
from pypto_op.vocabulary import Outcome
from pypto_op.workspace import OpWorkspace

_ERROR = re.compile(r"\b([A-Za-z_][\w.]*(?:Error|Exception|Exit|Warning|Interrupt|OutOfResources))\b")
_NAMES = {
    Outcome.TIMED_OUT: "Timeout",
    Outcome.FORBIDDEN: "Forbidden",
    Outcome.OUT_OF_MEMORY: "OutOfMemory",
    Outcome.CRASHED: "Crashed",
    Outcome.EXITED: "Exited",
    Outcome.MISSING_FILE: "FileNotFoundError",
    Outcome.MISSING_WRAPPER: "AttributeError",
    Outcome.SYNTAX_ERROR: "SyntaxError",
    Outcome.BAD_OUTPUT: "BadOutput",
}

_REMEDIES = {
    "FileNotFoundError": "; copy the task's data file there, under the name that it had beside the task",
    "ModuleNotFoundError": "; the task needs it: install it in the Python that runs this",
}


Answered: TypeAlias = tuple[dict[str, Any], RunResult, dict[str, Any]]
"""What the implementation made of a case: outputs and mutated inputs, how the run ended, and the facts about it."""


class Told(Exception):
    """A process did not answer as wished.

    Attributes:
        error_type: one word.
        message: what happened, with what the process printed last.
    """

    def __init__(self, error_type: str, message: str, outcome: Outcome) -> None:
        super().__init__(message)
        self.error_type, self.message, self.outcome = error_type, message, outcome


class _Session(WorkerSession):
    replaces_worn = False  # the task stands at a case, and a benchmark at a model

    def __init__(self, project: Project, place: Place, limits: Limits, path: Path, role: str, more: dict[str, Any]) -> None:
        workspace = OpWorkspace(project.folder, project.op_name)
        super().__init__(Plan({}, place.start), workspace, limits, path.name)
        self.project = project
        self._wanted = {
            "role": role,
            "device": place.device,
            "op_dir": str(project.folder),
            "file": str(path),
            "sha256": sha256_file(path),
            **more,
        }

    def _tell(self, message: dict[str, Any], value: Any = None) -> tuple[Any, RunResult, dict[str, Any]]:
        from pypto_op.triton.run.inputs.packing import pack, unpack

        result, answer = self.ask(message, pack(value))
        if result.outcome is not Outcome.OK:
            raise Told(_name_of(result), _words(result, [self.scratch / "task", self.project.folder]), result.outcome)
        values = answer.get("values") or []
        try:
            return (unpack(values) if values else None), result, answer
        except ValueError as error:
            raise Told("Forbidden", f"the answer is damaged: {error}", Outcome.FORBIDDEN) from None


class _OfTask(_Session):
    """A process that runs a copy of the task, which finds its data under every name that it may ask for."""

    maps_answers = True  # hundreds of megabytes, of a file that is this one's and written once

    def __init__(self, project: Project, place: Place, limits: Limits, role: str, more: dict[str, Any]) -> None:
        super().__init__(project, place, limits, project.task, role, more)
        staged = project.stage_task(self.scratch / "task")
        enclosure = enclosure_document(self.scratch, [], trusted=True)
        self.plan = Plan({**self._wanted, "file": str(staged), "enclosure": enclosure}, place.start)

    def _tell(self, message: dict[str, Any], value: Any = None) -> tuple[Any, RunResult, dict[str, Any]]:
        try:
            return super()._tell(message, value)
        except Told as told:  # the task lies elsewhere while it runs
            words = told.message.replace(f"{self.scratch}/task", str(self.project.folder)) + _REMEDIES.get(told.error_type, "")
            raise Told(told.error_type, words, told.outcome) from None


class TaskSession(_OfTask):
    """The process that holds the task.

    Attributes:
        ahead: a case that is asked for while the one before it is judged; what is computed otherwise is that one (`ahead`).
    """

    ahead: Future[Any] | None = None

    def __init__(self, project: Project, place: Place, limits: Limits) -> None:
        numbers = literals.numbers_of([project.task, *project.own_files()])
        super().__init__(project, place, limits, "pypto_op.triton.run.processes.roles:task", {"numbers": numbers})

    def open(self, seed: int) -> int | None:
        """Start a pass over the cases; return how many there are, None if only the end will tell."""
        _, _, answer = self._tell({"call": "open", "seed": seed})
        total = answer.get("total")
        return None if total is None else int(total)

    def case(
        self,
        index: int,
        seed: int,
        *,
        used: bool = False,
        judged: bool = True,
        move: str = "",
        vary: Sequence[str] = (),
        places: Mapping[str, Sequence[float]] | None = None,
        reloads: bool = False,
        after: str = "",
        holds: bool = False,
    ) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """Return a case and facts about it.

        Args:
            index: which, counted from 0.
            used: let the outputs be those of the model's second call; the first is made on other values.
            judged: outputs are wanted.
            move: how inputs are moved, where they can be (`skewed`).
            vary: names of weights that get other values, where they hold one value (`filled`).
            places: where extremes stand (`unread`), or other numbers (`whole`, `constructor`).
            reloads: the first of two calls is made with other parameters (`reloaded`).
            after: it is made with inputs that differ so (`neighbours`), or there are several (`before.KEPT`).
            holds: the process keeps the case that it stands at, for questions about that.

        Returns:
            `init`, `weights`, `inputs`, `outputs` and `mutated` (these two only where they are judged), and `warmed` (how far the
            first call's values are rolled, None without one); None after the last case.
            Facts are `filled`, `varied`, `one_sign` and `skewed`; `same` alone where `move` and `vary` change nothing.
        """
        message = {"call": "case", "index": index, "seed": _of_models(seed), "used": used, "judged": judged}
        message |= {
            "move": move,
            "vary": list(vary),
            "places": dict(places or {}),
            "reloads": reloads,
            "after": after,
            "holds": holds,
        }
        value, _, answer = self._tell(message)
        return None if answer.get("end") else (value, answer)

    def again(self, shift: int, seed: int) -> dict[str, Any]:
        """Return the golden outputs of the present case with its values rolled by `shift` (`refresh`)."""
        value, _, _ = self._tell({"call": "again", "shift": shift, "seed": _of_models(seed)})
        found: dict[str, Any] = value
        return found

    def otherwise(self, seed: int, shift: int = 0) -> Otherwise:
        """Return what gives the outputs of the present case, its values rolled by `shift`, computed otherwise."""

        def asking(call: str) -> Callable[[], Any]:
            return lambda: self._otherwise(call, seed, shift=shift).get("outputs")

        return Otherwise(asking("truth"), asking("rounded"), asking("orders"), asking("ties"))

    def exchanged(self, shapes: Sequence[Sequence[int]], seed: int) -> list[Any] | None:
        """Return samples of the present case's outputs, half of the elements of some inputs exchanged; None: it does not work."""
        found: list[Any] | None = self._otherwise("exchanged", seed, shapes=[list(shape) for shape in shapes]).get("samples")
        return found

    def without_small(self, seed: int, places: Sequence[Sequence[int]]) -> list[Any] | None:
        """Return samples of the present case's outputs without terms that hardly change them; None: it does not work."""
        found: list[Any] | None = self._otherwise("without_small", seed, drops=[list(place) for place in places]).get("samples")
        return found

    def _otherwise(self, call: str, seed: int, **more: Any) -> dict[str, Any]:
        """Return what the present case comes to, computed otherwise (`otherwise.CALLS`); nothing where that does not work."""
        if self.ahead is not None:
            wait([self.ahead])
        try:
            return dict(self._tell({"call": call, "seed": _of_models(seed), "former": self.ahead is not None, **more})[0])
        except Told:
            return {}

    def time(self, message: dict[str, Any]) -> dict[str, Any]:
        """Time the present case (`clock.Clock.time`)."""
        return self._tell({"call": "time", **message})[2]


class SurveySession(_OfTask):
    """The process that runs a public task while its sizes are looked for (`triton.intake.survey`)."""

    def __init__(self, project: Project, place: Place, limits: Limits) -> None:
        super().__init__(project, place, limits, "pypto_op.triton.intake.survey:Survey", {})

    def survey(self, message: dict[str, Any]) -> dict[str, Any]:
        """Return what the survey found (`Survey`)."""
        return self._tell({"call": "survey", **message})[2]


class CandidateSession(_Session):
    """The process that runs the implementation.

    Attributes:
        keys: what it hashes memory with; a second process whose hashes are compared with those of the first gets the same
            (on a device the first is no fork of what the second is a fork of).
        ordered: calls may choose the order of programs (`orders`); on a GPU alone.
    """

    def __init__(
        self, project: Project, place: Place, limits: Limits, keys: Sequence[int] = (), *, ordered: bool = False
    ) -> None:
        self.keys = list(keys) or [secrets.randbits(63) for _ in range(2)]
        own = [os.path.realpath(path) for path in project.own_files()]
        more = {"own": own, "task_module": project.task.stem, "ordered": ordered}
        super().__init__(project, place, limits, project.impl, "pypto_op.triton.run.processes.roles:candidate", more)
        hidden = [path for path in (*project.hidden(), key_file()) if path.exists()]
        self.plan = Plan({**self._wanted, "enclosure": enclosure_document(self.scratch, hidden)}, place.start)

    def run(
        self,
        case: dict[str, Any],
        seed: int,
        *,
        judged: bool = True,
        later: bool = False,
        judges: str | None = None,
        marked: bool = False,
        rounded: bool = False,
        turns: bool = False,
        elsewhere: bool = False,
        backward: bool = False,
    ) -> Answered:
        """Run a case under watch; return outputs and mutated inputs, the result, and the facts.

        Args:
            case: `init`, `weights`, `inputs`, and `warmed`: where it is not None the model's second call is judged, so that what
                the first one left (a sum in scratch memory, an output that is kept) shows.
            judged: outputs are wanted, too; the implementation cannot tell.
            later: the case ran before, so lines of kernels need not be watched each time.
            judges: what outputs are held to, so that the configurations that were taken are judged (`configurations`); None: the
                task's precision where the outputs are wanted.
            marked: lanes of loads that nothing fills hold something else than zeros (`lanes`).
            rounded: operands of products are rounded where a device may do so (`products`).
            turns: autotuned kernels take configurations that no judged call took, on a device, too.
            elsewhere: gradients are on, and inputs begin at other places in memory (`circumstances`).
            backward: the interpreter runs the programs of a launch from the last to the first, where none waits for another.
        """
        given = {name: case[name] for name in ("init", "weights", "inputs", "earlier") if name in case}
        message = {"call": "run", "seed": _of_models(seed), "warmed": case["warmed"], "judged": judged, "later": later}
        judges = (configurations.OWN if judged else "") if judges is None else judges
        message |= {"judges": "" if marked or rounded else judges, "marked": marked, "rounded": rounded, "turns": turns}
        message |= {"elsewhere": elsewhere, "backward": backward}
        message |= {"changes": list(case.get("changes", ())), "reloads": list(case.get("reloads", ())), "keys": self.keys}
        return self._tell(message, given)

    def in_orders(
        self, case: dict[str, Any], seed: int, orders: Sequence[str]
    ) -> tuple[list[tuple[list[str], dict[str, Any]]], RunResult]:
        """Run a case once in each order of programs and warps (`reordered`), where the session is an ordered one.

        Returns:
            Outputs and mutated inputs, each beside the orders that gave just these, bit by bit, in the order of the first of
            them; and the result.
        """
        given = {"init": case["init"], "weights": case["weights"], "inputs": case["inputs"]}
        answers, run, facts = self._tell({"call": "orders", "seed": _of_models(seed), "orders": [*orders]}, given)
        gave = [[order for order, which in zip(orders, facts["which"], strict=True) if which == n] for n in range(len(answers))]
        return list(zip(gave, answers, strict=True)), run

    def time(self, message: dict[str, Any]) -> tuple[dict[int, Any], dict[str, Any]]:
        """Time the present case; return the kept outputs by call, and the facts."""
        kept, _, answer = self._tell({"call": "time", **message})
        return kept or {}, answer


class Started:
    """Task and implementation of a project, in processes that begin to load at once, beside whatever the caller does.

    Attributes:
        hashes: of the project's files, as they were before.
        place: where it runs.
        task, candidate: the processes.
        ordered: a further one with the implementation, whose calls may choose the order of programs; None where nobody asked for
            it, and where the target is no GPU.

    Raises:
        PyptoOpError: a file or the target is missing.
    """

    def __init__(self, project: Project, target: str | None, limits: Limits, *, orders: bool = False) -> None:
        project.check()
        self.hashes = project.hashes()
        self.place = choose(target)
        load_driver(str(self.place.target))  # for `judge_device`
        with contextlib.ExitStack() as undone:
            self.task = TaskSession(project, self.place, limits)
            undone.callback(self.task.close)
            self.candidate = CandidateSession(project, self.place, limits)
            undone.callback(self.candidate.close)
            orders = orders and self.place.target is Target.CUDA
            self.ordered = CandidateSession(project, self.place, limits, ordered=True) if orders else None
            undone.pop_all()
        for session in self._sessions():
            session.wake()

    def _sessions(self) -> list[_Session]:
        return [self.task, self.candidate, *([self.ordered] if self.ordered is not None else [])]

    def close(self) -> None:
        """End them, all at once since a driver takes its time to leave; harmless when called twice."""
        sessions = self._sessions()
        with ThreadPoolExecutor(len(sessions)) as beside:
            for ended in [beside.submit(session.close) for session in sessions]:
                ended.result()


def _of_models(seed: int) -> int:
    """Return the seed for constructors and forward in the pass whose inputs are drawn with `seed`.

    The implementation sees it, so it must not lead to the inputs: a constructor may compute with PyTorch.
    """
    return int.from_bytes(hashlib.sha256(f"models {seed}".encode()).digest()[:4], "big") >> 1 if seed else 0


def _name_of(result: RunResult) -> str:
    if result.outcome in (Outcome.EXCEPTION, Outcome.IMPORT_ERROR):
        found = _ERROR.search(result.detail)
        return found[1].rpartition(".")[2] if found else "Exception"
    return _NAMES.get(result.outcome, str(result.outcome))


def _words(result: RunResult, folders: list[Path]) -> str:
    """Return the detail, and the last of what was printed: a compiler's log says at its end what is wrong."""
    tail = own_words("\n".join((result.stdout, result.stderr)), folders)
    return f"{result.detail}\n{tail}".strip() if tail else result.detail or str(result.outcome)
