"""The state machine: a transition in the library and on the command line, and the replay of a long journal."""

from __future__ import annotations

import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.table import Row, Table, percentiles

LINES = 10_000
ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = ROOT / "examples" / "ops" / "rmsnorm"
SERVER = ROOT / "scripts" / "mcp_server.py"


@contextmanager
def operator() -> Iterator[Path]:
    """Yield an operator's directory with a fresh state, under a key of its own."""
    from pypto_op.state.service import transition

    before = os.environ.get("PYPTO_OP_KEY_FILE")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["PYPTO_OP_KEY_FILE"] = f"{folder}/seal.key"
        root = Path(folder) / "custom" / "relu"
        root.mkdir(parents=True)
        transition(root, "init")
        try:
            yield root
        finally:
            os.environ.pop("PYPTO_OP_KEY_FILE")
            if before is not None:
                os.environ["PYPTO_OP_KEY_FILE"] = before


def timed(work: Callable[[], object], rounds: int) -> dict[str, float]:
    """Return min, p50, p95 of the wall time and the median of processor time, children included, in ms."""
    walls, cpus = [], []
    for _ in range(rounds):
        cpu, wall = processor_seconds(), time.perf_counter()
        work()
        walls.append((time.perf_counter() - wall) * 1e3)
        cpus.append((processor_seconds() - cpu) * 1e3)
    return {**percentiles(walls), "cpu": statistics.median(cpus)}


def processor_seconds() -> float:
    """Return the processor time of this process and of its children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


def long_journal(root: Path, lines: int) -> None:
    """Append steps until the journal has `lines` lines, without the slow fsync of each."""
    from pypto_op.hashing import sha256_json
    from pypto_op.state import journal, store
    from pypto_op.state.machine import step
    from pypto_op.workspace import OpWorkspace

    ws = OpWorkspace.at(root)
    loaded = store.load(ws)
    state, tail = loaded.state, loaded.tail
    real, os.fsync = os.fsync, lambda descriptor: None
    try:
        while tail.seq < lines:
            args = {"role": "pypto-op-planner"}
            facts = {"time": f"2026-01-01T00:00:00.{tail.seq:06d}+00:00", "by": "orchestrator"}
            state = step(state, "dispatch", args, facts)
            digest = sha256_json(state)
            tail = journal.append(ws.journal, tail, action="dispatch", args=args, facts=facts, state_sha256=digest)
        store.write_state(ws, state, tail)
    finally:
        os.fsync = real


def gated(rounds: int) -> list[Row]:
    """Time the steps that load documents and lint, on a complete example, in a process that has loaded both before."""
    from pypto_op.state.service import transition

    samples: dict[str, list[float]] = {}
    for _ in range(rounds + 1):
        with operator() as other:
            root = other.parent / "rmsnorm"
            shutil.copytree(EXAMPLE, root)
            transition(root, "init")
            for what, action, given in GATED:
                start = time.perf_counter()
                transition(root, action, **given)
                samples.setdefault(what, []).append((time.perf_counter() - start) * 1e3)
    return [Row(what, percentiles(times[1:])) for what, times in samples.items() if what]


GATED: list[tuple[str, str, dict[str, object]]] = [
    ("complete_stage 1: two documents, lint", "complete_stage", {"stage": 1}),
    ("", "complete_stage", {"stage": 2}),  # runs the golden, which loads torch
    ("complete_stage 3: design, lint", "complete_stage", {"stage": 3}),
    ("freeze_plan: design, contract, lint", "freeze_plan", {}),
    ("complete_stage 4: contract, suite, lint", "complete_stage", {"stage": 4}),
    ("start_phase", "start_phase", {"phase": "M1"}),
    ("submit_for_verify: kernel, lint", "submit_for_verify", {"phase": "M1"}),
]


def server_start(environment: dict[str, str]) -> None:
    """Start the MCP server and wait for its answer to `initialize`."""
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "0"}},
    }
    with subprocess.Popen(
        [sys.executable, str(SERVER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    ) as process:
        assert process.stdin and process.stdout
        process.stdin.write(json.dumps(hello).encode() + b"\n")
        process.stdin.flush()
        answer = json.loads(process.stdout.readline())
        process.stdin.close()
    assert answer["result"]["serverInfo"]["name"] == "pypto-op"


def run(quick: bool) -> list[Table]:
    """Measure."""
    from pypto_op.state import audit
    from pypto_op.state.service import status, transition

    rounds = 20 if quick else 100
    table = Table("state machine", "ms")
    with operator() as root:
        command = [sys.executable, "-m", "pypto_op.cli", "state"]
        where = ("--op-dir", str(root))
        environment = with_bytecode(root.parent)
        shell([*command, "status", *where], environment)
        shell([*command, "dispatch", "--role", "planner", *where], environment)

        def call(*words: str) -> dict[str, float]:
            return timed(lambda: shell([*command, *words, *where], environment), rounds // 2)

        table.rows += [
            Row("transition, library", timed(lambda: transition(root, "dispatch", role="planner"), rounds), 50),
            Row("status, library", timed(lambda: status(root), rounds)),
            Row("transition, command", call("dispatch", "--role", "planner"), 150),
            Row("status, command", call("status")),
            Row("an empty Python program", timed(lambda: shell([sys.executable, "-c", "pass"]), rounds // 2)),
        ]
        long_journal(root, LINES)
        size = (root / ".orchestrator_journal.jsonl").stat().st_size
        table.rows += [
            Row(f"replay of {LINES} lines", timed(lambda: audit.replay(root), 3 if quick else 7), 1000, judged="p50"),
            Row("transition at the end of it", timed(lambda: transition(root, "dispatch", role="planner"), rounds), 50),
        ]
        assert json.loads((root / ".orchestrator_state.json").read_text())["journal"]["sequence"] > LINES
    table.rows += gated(2 if quick else 8)
    table.notes.append(f"the long journal has {size / 1e6:.1f} MB; every transition writes it through to the disk (fsync)")
    with tempfile.TemporaryDirectory() as folder:
        environment = with_bytecode(Path(folder))
        server_start(environment)
        imports = [sys.executable, "-c", "from mcp.server.mcpserver import MCPServer"]
        starts = Table("MCP server, from start to its first answer", "ms")
        starts.rows += [
            Row("the server", timed(lambda: server_start(environment), 3 if quick else 10), 1200, judged="p50"),
            Row("importing mcp alone", timed(lambda: shell(imports, environment), 3 if quick else 10)),
        ]
    return [table, starts]


def shell(command: list[str], environment: dict[str, str] | None = None) -> None:
    """Run a program that must succeed."""
    subprocess.run(command, capture_output=True, check=True, env=environment)


def with_bytecode(folder: Path) -> dict[str, str]:
    """Return an environment in which Python keeps compiled modules, as every installation does."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
