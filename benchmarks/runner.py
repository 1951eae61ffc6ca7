"""What `pypto-op run` itself costs: each turn and each call, beside hooks and tools, which have tables of their own."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from benchmarks.table import Row, Table, percentiles
from pypto_op.proof.key import KEY_ENV
from pypto_op.runner import journal
from pypto_op.runner.hooks import Hooks, Reply
from pypto_op.runner.loopback import Answer, Body, served
from pypto_op.runner.session import Access, Order, Session

_TARGET = 20.0
_CALL = {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {}}


class _NoHooks(Hooks):
    """Hooks that allow everything: their programs have a table of their own (`python -m benchmarks hooks`)."""

    def _event(self, name: str, agent: str, call: dict[str, object]) -> Reply:
        return Reply(False, "")


def run(quick: bool) -> list[Table]:
    """Measure turns of a conversation that grows: the time from one answer of the model to the next request."""
    turns = 30 if quick else 120
    seconds: list[float] = []
    cpu: list[float] = []
    answered = worked = 0.0

    def model(body: Body, headers: Mapping[str, str]) -> Answer:
        nonlocal answered, worked
        now, done = time.perf_counter(), time.process_time()
        number = sum(message["role"] == "assistant" for message in body["messages"])
        if number:
            seconds.append(now - answered)
            cpu.append(done - worked)
        answered, worked = time.perf_counter(), time.process_time()
        block = {**_CALL, "input": {"file_path": f"{number}.txt"}}
        return Answer([block] if number < turns else [{"type": "text", "text": "done"}])

    with _workspace() as workspace, served(model) as port:
        for number in range(turns):
            (workspace / f"{number}.txt").write_text(f"{number}\n" * 40)
        folder = journal.new_session(workspace)
        access = Access("benchmark", None, f"http://127.0.0.1:{port}")
        vault = journal.Vault(folder / journal.SECRETS, {})
        session = Session(workspace, Order("a request"), access, folder, Console(quiet=True), vault)
        session._office.hooks = _NoHooks(workspace)
        session.run()
    figures = {name: value * 1e3 for name, value in percentiles(seconds[: turns - 1]).items()}
    row = Row("a turn with one Read", {**figures, "cpu": percentiles(cpu[: turns - 1])["p50"] * 1e3}, _TARGET, "p50")
    notes = [
        f"{turns} turns in one conversation, from the model's answer to the next request: journal on disk, without hooks.",
        "`cpu` is the median of processor time, with that of the loopback server: what an idle machine needs.",
    ]
    return [Table("What the runner costs by itself", "ms", [row], notes)]


@contextmanager
def _workspace() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        before = {name: os.environ.get(name) for name in (KEY_ENV,)}
        os.environ[KEY_ENV] = str(Path(folder) / "keys" / "seal.key")
        workspace = Path(folder) / "w"
        workspace.mkdir()
        try:
            yield workspace
        finally:
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value
