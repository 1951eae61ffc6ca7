"""One implementation under judgement: a warm worker, replaced when it is lost, and its scratch folder."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import secrets
import shutil
import signal
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from pypto_op.backends import debris, memory, processes, pypto_log
from pypto_op.backends.base import Limits, RunResult, Wanted
from pypto_op.backends.conversation import Conversation, Ended, Overdue, OverMemory
from pypto_op.backends.cores import leave_to_workers
from pypto_op.backends.enclosed import enclosure_document, hidden_from_candidates
from pypto_op.backends.endings import classify, crash_line
from pypto_op.backends.launcher import Launched
from pypto_op.backends.said import Forged, loaded_of, outcome_of, result_of
from pypto_op.backends.wire import read_values, remove_values, write_values
from pypto_op.errors import ContractError, InfraError
from pypto_op.vocabulary import Outcome
from pypto_op.workspace import OpWorkspace

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from pypto_op.backends.base import Value

RUNS_DIR = "runs"
"""Folder in `_debug/` that holds the scratch folder of each living session."""

_KEEPS_WORKER = frozenset({Outcome.OK, Outcome.BAD_OUTPUT})
"""After anything else pypto may be left in the middle of a function, so the worker is replaced."""

LAUNCHES_PER_WORKER = 64
"""pypto keeps 30 to 110 MiB of address space per launch, so a worker is replaced after so many: a number that the calls
alone decide, so that the same calls share a process every time."""
NEAR_LIMIT = 0.9
"""Share of its memory from which on a worker that the kernel ended for memory has used too much, not the machine too little:
it is looked at some times a second only."""


@dataclass(frozen=True)
class Plan:
    """What a worker is started with."""

    document: dict[str, Any]  # what the worker is told, except for the folder that it gets
    launch: Callable[[dict[str, Any]], Launched]  # starts a worker from a document
    numeric: bool = True  # outputs carry numbers


class WorkerSession:
    """What candidates and references have in common: a worker, its scratch folder, and its losses.

    Args:
        workspace: the operator whose `_debug/` holds the scratch folder.
        file_name: the file that a loss is blamed on.

    Attributes:
        loaded: what the workers loaded beside their own file, by role: absolute path -> sha256 (`worker.closure`).
        replaces_worn: whether a worker that has gathered memory is replaced between two messages; not where it remembers
            something from one message to the next.
        maps_answers: whether answers stay in the pages of their file: not where a worker could change that file afterwards.
        tells_place: whether a worker that takes too long is asked at which line it is; a golden's lines are not to be seen.
    """

    replaces_worn = True
    maps_answers = False
    tells_place = False

    def __init__(self, plan: Plan, workspace: OpWorkspace, limits: Limits, file_name: str) -> None:
        self.plan, self.workspace, self.limits, self.file_name = plan, workspace, limits, file_name
        leave_to_workers()
        self.scratch = _make_scratch(workspace)
        self._numbers = itertools.count()
        self._conversation: Conversation | None = None
        self._waking: Future[Conversation] | None = None  # of a worker that nobody has waited for yet
        self._never_loads: RunResult | None = None
        self._closed = False
        self._gate = threading.Lock()  # between who starts a worker and who closes the session
        self._worn = False
        self._held_mb = 0.0  # by the worker that the kernel ended last
        self.loaded: dict[str, dict[str, str]] = {}

    def close(self) -> None:
        """End the worker and remove the scratch folder; harmless when called twice, and beside a thread that asks."""
        with self._gate:
            first, self._closed = not self._closed, True
        self._drop_worker()
        if first:
            _remove_scratch(self.scratch, self.workspace)

    def ask(self, message: dict[str, Any], inputs: Sequence[Value]) -> tuple[RunResult, dict[str, Any]]:
        """Send one message with `inputs` and wait for the answer; once more, where the machine had too little memory for it.

        Returns:
            the result, with `outputs` empty, and the whole answer: its values under "values".

        Raises:
            NoMemoryLeft: it has too little memory again, or the worker knew something that a new one does not.
        """
        try:
            return self._asked_once(message, inputs)
        except memory.NoMemoryLeft:
            if message.get("again") or not self.replaces_worn:
                raise
        with memory.once_more(self._held_mb, self.limits.memory_mb):
            return self._asked_once(message, inputs)

    def _asked_once(self, message: dict[str, Any], inputs: Sequence[Value]) -> tuple[RunResult, dict[str, Any]]:
        if self._closed:
            raise InfraError("the session is closed")
        if self._worn and not message.get("again"):
            self._drop_worker()
        used = self._conversation is not None
        lost = self._ensure_worker()
        if lost is not None:
            return lost, {}
        conversation = self._conversation
        assert conversation is not None
        number = next(self._numbers)
        stems = (self.scratch / f"inputs{number}", self.scratch / f"outputs{number}")
        kills = processes.kills_for_memory()
        try:
            _hand_over(stems[0], inputs)
            answer = self._exchange(conversation, message, stems)
            result = result_of(answer)
            self._note_loaded(answer)
        except (Ended, Overdue, OverMemory, Forged) as loss:
            answer = {}
            result = self._result_of_loss(conversation, loss, "in the wrapper", kills, self.limits.case_seconds)
        finally:
            for stem in stems:
                remove_values(stem)
        result = self._with_output(result, conversation)
        conversation.end_strays()
        stays = not self.replaces_worn or message.get("followed")
        self._worn = not stays and (result.launched >= LAUNCHES_PER_WORKER or conversation.worn())
        if result.outcome not in _KEEPS_WORKER:
            self._drop_worker()
        if result.outcome is Outcome.OUT_OF_MEMORY and used and self.replaces_worn and not message.get("again"):
            # What pypto kept of earlier calls is not this call's: it has the limit for itself.
            return self._asked_once(message, inputs)
        return result, answer

    def _note_loaded(self, answer: dict[str, Any]) -> None:
        for role, files in loaded_of(answer).items():
            known = self.loaded.setdefault(role, {})
            for path, digest in files.items():
                before = known.setdefault(path, digest)
                if before != digest:  # another worker saw other bytes: no file has this hash, so no verdict can stand
                    known[path] = hashlib.sha256(f"{before} {digest}".encode()).hexdigest()

    def _exchange(self, conversation: Conversation, message: dict[str, Any], stems: tuple[Path, Path]) -> dict[str, Any]:
        """Let the worker run, then give it the nonce that its answer must carry."""
        clock = conversation.begin(self.limits.case_seconds)
        conversation.say({**message, "inputs": str(stems[0]), "outputs": str(stems[1])})
        nonce = secrets.token_hex(16)
        if conversation.hear(clock) != {"event": "ran"}:
            raise Forged
        conversation.say({"nonce": nonce})
        if conversation.hear(clock) != {"event": "wrote"}:
            raise Forged
        try:
            values, answer = read_values(stems[1], mapped=self.maps_answers)
        except (OSError, ValueError):
            raise Forged from None
        if not secrets.compare_digest(str(answer.get("nonce", "")), nonce):
            raise Forged
        return {**answer, "values": values}

    def _ensure_worker(self) -> RunResult | None:
        """Start a worker if there is none; return a result when the file does not load."""
        if self._never_loads is not None:
            return self._never_loads
        if self._conversation is not None:
            return None
        result = self._start_worker()
        if result is not None:
            self._drop_worker()
            self._never_loads = result
        return result

    def wake(self) -> None:
        """Start the worker and do not wait for it, nor for what it is forked from; the first message does."""
        with self._gate:
            if self._waking is None and self._conversation is None and self._never_loads is None and not self._closed:
                apart = ThreadPoolExecutor(1, "wake")
                self._waking = apart.submit(self._launch)
                apart.shutdown(wait=False)

    def _launch(self) -> Conversation:
        return Conversation(self.plan.launch({**self.plan.document, "memory_mb": self.limits.memory_mb}), self.limits)

    def _start_worker(self) -> RunResult | None:
        kills = processes.kills_for_memory()
        waking, self._waking = self._waking, None
        conversation = waking.result() if waking is not None else self._launch()
        with self._gate:
            closed = self._closed
            self._conversation = None if closed else conversation
        if closed:
            conversation.end()
            raise InfraError("the session is closed")
        try:
            event = conversation.hear(conversation.begin(self.limits.startup_seconds))
        except (Ended, Overdue, OverMemory) as loss:
            seconds = self.limits.startup_seconds
            result = self._result_of_loss(conversation, loss, "at import", kills, seconds)
        else:
            if event == {"event": "ready"}:
                return None
            result = RunResult(outcome_of(event.get("outcome")), str(event.get("detail", ""))[:600])
        return self._with_output(result, conversation)

    def _with_output(self, result: RunResult, conversation: Conversation) -> RunResult:
        """Add what the worker printed; pypto's log stays in it only where something went wrong."""
        stdout, detail = conversation.stdout.take(), result.detail
        cause = pypto_log.first_error(stdout) if result.outcome is Outcome.EXCEPTION else ""
        if cause and "Run pass failed" in detail:
            detail = f"{detail} First error: {cause}"
        return replace(
            result,
            detail=detail,
            stdout=(pypto_log.without_log if result.outcome is Outcome.OK else pypto_log.without_noise)(stdout),
            stderr=conversation.stderr.take(),
            peak_rss_mb=conversation.peak_rss_mb,
            numeric=self.plan.numeric,
        )

    def _result_of_loss(self, conversation: Conversation, loss: Exception, when: str, kills: int, seconds: float) -> RunResult:
        if isinstance(loss, Overdue):
            where = crash_line(conversation.stack(), self.file_name) if self.tells_place else self.file_name
            return RunResult(Outcome.TIMED_OUT, f"{where} did not end within {seconds:g} s {when}")
        if isinstance(loss, OverMemory):
            megabytes = self.limits.memory_mb
            return RunResult(Outcome.OUT_OF_MEMORY, f"{self.file_name} used more than {megabytes} MiB {when}")
        if isinstance(loss, Forged):
            return RunResult(Outcome.FORBIDDEN, f"{self.file_name} answered the judge in the worker's place {when}")
        assert isinstance(loss, Ended)
        conversation.stderr.pump()
        for_memory = processes.kills_for_memory() > kills
        self._held_mb = conversation.peak_rss_mb
        by_kernel = for_memory and loss.how.get("signal", signal.SIGKILL) == signal.SIGKILL and "exit" not in loss.how
        if by_kernel and self._held_mb < NEAR_LIMIT * self.limits.memory_mb:
            self._drop_worker()
            raise memory.no_memory_left(self.file_name, self._held_mb, self.limits.memory_mb)
        outcome, detail = classify(
            loss.how,
            conversation.stderr.peek(),
            when=when,
            file_name=self.file_name,
            killed_for_memory=for_memory,
            at_limit=self._held_mb >= NEAR_LIMIT * self.limits.memory_mb,
        )
        return RunResult(outcome, detail)

    def _drop_worker(self) -> None:
        self._worn = False
        waking, conversation = self._waking, self._conversation
        self._waking = self._conversation = None
        for one in (waking.result() if waking is not None and waking.exception() is None else None, conversation):
            if one is not None:
                one.end()


class CandidateSession(WorkerSession):
    """A kernel's wrapper, called case by case.

    Args:
        impl: the implementation's file; it need not exist.
        plan: how workers are started; its document is completed here.
        read_cost: reads the figures of the cost model from the files of a case and its number of launches; None: nobody asked.
    """

    tells_place = True
    others_first = others_always = False

    def __init__(
        self,
        impl: Path,
        wrapper: str,
        workspace: OpWorkspace,
        plan: Plan,
        limits: Limits,
        read_cost: Callable[[Path, int], dict[str, float | int] | None] | None = None,
    ) -> None:
        super().__init__(plan, workspace, limits, impl.name)
        self._read_cost = read_cost
        self._pypto_dir = self.scratch / "pypto"
        try:
            sha256 = hashlib.sha256(impl.read_bytes()).hexdigest()
        except OSError as error:
            sha256 = ""
            self._never_loads = RunResult(Outcome.MISSING_FILE, f"{impl}: {error.strerror}")
        own = {
            "role": "candidate",
            "impl": os.path.realpath(impl),
            "impl_sha256": sha256,
            "wrapper": wrapper,
            "op_dir": str(workspace.root),
            "enclosure": enclosure_document(self.scratch, hidden_from_candidates(workspace)),
        }
        self.plan = replace(plan, document={**plan.document, **own})

    def __enter__(self) -> CandidateSession:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def run(self, case_id: str, inputs: Sequence[Value], **wanted: Unpack[Wanted]) -> RunResult:
        """Call the wrapper with copies of `inputs`; see `base.Session`."""
        buffer, filling = wanted.get("buffer"), wanted.get("filling")
        message: dict[str, Any] = {"case": case_id, "buffer": None if buffer is None else asdict(buffer)}
        message |= {word: wanted.get(word, False) for word in ("again", "followed", "inside", "rehearsed", "trial")}
        message |= {"others_first": self.others_first, "others_always": self.others_always}
        result, answer = self.ask(message if filling is None else {**message, "filling": filling}, inputs)
        if result.outcome is Outcome.OK:
            result.outputs = list(answer["values"])
            if self._read_cost is not None:
                result.cost = self._read_cost(self._pypto_dir, result.launches)
        elif not wanted.get("guess"):
            debris.keep(self._pypto_dir, self.workspace, case_id, self.plan.document, result)
        debris.clear(self._pypto_dir)
        return result


def _hand_over(stem: Path, inputs: Sequence[Value]) -> None:
    try:
        write_values(stem, inputs)
    except TypeError as error:
        raise ContractError(
            f"an input cannot be handed over: {error}", remedy="make_inputs returns dense tensors and numbers"
        ) from None


def _make_scratch(workspace: OpWorkspace) -> Path:
    runs = workspace.debug_dir / RUNS_DIR
    runs.mkdir(parents=True, exist_ok=True)
    scratch = runs / secrets.token_hex(6)
    scratch.mkdir()
    return scratch


def _remove_scratch(scratch: Path, workspace: OpWorkspace) -> None:
    shutil.rmtree(scratch, ignore_errors=True)
    for folder in (scratch.parent, workspace.debug_dir):
        with contextlib.suppress(OSError):
            folder.rmdir()  # only when nothing else is in it
