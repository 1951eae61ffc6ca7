"""One whole request, replayed: what each step waits for, what it makes the processors do, and what it asks of the model.

The words come from `examples/transcripts/rmsnorm.yaml`; hooks, gates, pypto and verdicts are real. So the figures are those
of the team's way of working, without the model's own time.
"""

from __future__ import annotations

import bisect
import compileall
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

import pypto_op
import pypto_op_lint
from benchmarks.table import Row, Table
from pypto_op.bundle_files import bundle_root
from pypto_op.proof.key import KEY_ENV
from pypto_op.runner.journal import TRANSCRIPT, read

_TRANSCRIPT = Path(__file__).resolve().parents[1] / "examples" / "transcripts" / "rmsnorm.yaml"
_BEFORE = Path(__file__).with_name("results") / "request_before.json"
BUNDLE = "{{bundle}}"
"""Stands for the bundle's folder, as in a transcript."""
_LOOK_SECONDS = 0.05
_WAITED, _WHOLE, _CALLS, _TOKENS = 50.0, 60.0, 18.0, 150.0


@dataclass
class _Spent:
    """Processor seconds of a process and all below it, over time; those of a process that lives shorter than a look are lost."""

    own: dict[int, float] = field(default_factory=dict)
    times: list[float] = field(default_factory=list)
    sums: list[float] = field(default_factory=list)

    def look(self, root: psutil.Process, mark: str) -> None:
        """Add what there is now; a resident process that left the tree is known by `mark` in its environment."""
        for process in psutil.process_iter():
            try:
                if process.pid not in self.own and not self._belongs(process, root, mark):
                    continue
                used = process.cpu_times()
                self.own[process.pid] = max(self.own.get(process.pid, 0.0), used.user + used.system)
            except psutil.Error:
                continue
        self.times.append(time.time())
        self.sums.append(sum(self.own.values()))

    def _belongs(self, process: psutil.Process, root: psutil.Process, mark: str) -> bool:
        above = {parent.pid for parent in process.parents()}
        if process.pid == root.pid or root.pid in above or above & self.own.keys():
            return True
        return process.environ().get(KEY_ENV, "") == mark

    def between(self, begun: float, ended: float) -> float:
        """Return what was spent between two moments."""
        if not self.times:
            return 0.0
        first, last = (min(bisect.bisect_left(self.times, at), len(self.times) - 1) for at in (begun, ended))
        return self.sums[last] - self.sums[first]


def run(quick: bool) -> list[Table]:
    """Replay the request once and tell it by step, by command and by agent."""
    _compile()
    with tempfile.TemporaryDirectory() as folder:
        mark = str(Path(folder) / "keys" / "seal.key")
        workspace = Path(folder) / "w"
        workspace.mkdir()
        environment = {**os.environ, KEY_ENV: mark}
        began = time.time()
        command = [sys.executable, "-m", "pypto_op.cli", "run", "--json", "--replay", str(_TRANSCRIPT)]
        child = subprocess.Popen(
            command, cwd=workspace, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        spent, over = _Spent(), threading.Event()
        watch = threading.Thread(target=_watch, args=(spent, psutil.Process(child.pid), mark, over))
        watch.start()
        out, err = child.communicate()
        ended = time.time()
        over.set()
        watch.join()
        if child.returncode:
            raise RuntimeError(f"the replay ended with {child.returncode}: {(out + err)[-600:]}")
        found = next((Path(folder) / "keys").rglob(TRANSCRIPT))
        lines = read(found)
    whole = Row("the whole request", {"waited": ended - began, "cpu": spent.between(began, ended)}, _WHOLE, "cpu")
    steps, agents = _steps(lines, spent, whole), _agents(lines)
    return [_compared(steps[1], agents), *steps, agents]


def _compile() -> None:
    """Compile the bundle's modules, as `scripts/setup.sh` does: else each command does, where PYTHONDONTWRITEBYTECODE is set."""
    for package in (pypto_op, pypto_op_lint):
        compileall.compile_dir(str(Path(package.__file__).parent), quiet=1)


def _watch(spent: _Spent, root: psutil.Process, mark: str, over: threading.Event) -> None:
    while not over.wait(_LOOK_SECONDS):
        spent.look(root, mark)


# -- calls ----------------------------------------------------------------------------------------------------------


def _steps(lines: list[dict[str, Any]], spent: _Spent, whole: Row) -> list[Table]:
    """Return a table of the calls one by one, and one of what each kind of call sums up to."""
    rows, kinds = [], defaultdict(lambda: {"calls": 0.0, "waited": 0.0, "cpu": 0.0})
    begun: dict[tuple[str, str], dict[str, Any]] = {}
    agents = {line["conversation"]: line["agent"].removeprefix("pypto-op-") for line in lines if line["kind"] == "start"}
    for line in lines:
        if line["kind"] == "call":
            begun[line["conversation"], line["id"]] = line
        call = begun.get((line.get("conversation", ""), line.get("id", "")))
        if line["kind"] != "result" or call is None or line["tool"] == "Agent":
            continue
        waited, used = line["at"] - call["at"], spent.between(call["at"], line["at"])
        if _is_command(call):
            rows.append(Row(f"{agents.get(line['conversation'], '?')}: {said(call)}", {"waited": waited, "cpu": used}))
        kind = kinds[_kind(call)]
        for name, value in {"calls": 1.0, "waited": waited, "cpu": used}.items():
            kind[name] += value
    commands = {
        "calls": float(len(rows)),
        "waited": sum(row.values["waited"] for row in rows),
        "cpu": sum(row.values["cpu"] for row in rows),
    }
    notes = ["`waited` on the clock of this machine under this load; `cpu` of all processes that worked for the step."]
    judged = "Judged is `cpu`: nothing sleeps, so an idle machine of two cores waits for no longer than that."
    summed = [Row(kind, dict(values)) for kind, values in sorted(kinds.items(), key=lambda item: -item[1]["waited"])]
    summed += [
        Row("all commands", commands, _WAITED, "cpu"),
        Row("calls that run a command", {"calls": commands["calls"]}, _CALLS, "calls"),
        whole,
    ]
    return [
        Table("One request: the calls that run a command", "s", rows, notes),
        Table("One request: what the calls sum up to", "s", summed, [judged]),
    ]


def _is_command(call: dict[str, Any]) -> bool:
    return call["tool"] == "Bash" or call["tool"].startswith("mcp__")


def said(call: dict[str, Any]) -> str:
    """Return what a call does, on one line of a Markdown table, without the places of this machine."""
    given = call["input"]
    if call["tool"] == "Bash":
        lines = [line.strip() for line in str(given["command"]).replace(str(bundle_root()), BUNDLE).splitlines()]
        return "; ".join(filter(None, lines)).replace("|", "/")
    name = call["tool"].rsplit("__", 1)[-1]
    return " ".join([name, *(str(given[key]) for key in ("action", "stage", "phase", "op_dir") if key in given)])


def _kind(call: dict[str, Any]) -> str:
    if call["tool"] == "Bash":
        return ", ".join(dict.fromkeys(re.findall(r"pypto-op ([a-z-]+)", call["input"]["command"]))) or "shell"
    return call["tool"].rsplit("__", 1)[-1]


def _compared(summed: Table, agents: Table) -> Table:
    """Return what the request takes now, beside what it took before its price was looked at."""
    before = json.loads(_BEFORE.read_text(encoding="utf-8"))
    sums, asked = {row.what: row.values for row in summed.rows}, agents.rows[-1].values
    now = {
        "processor seconds of all commands": (sums["all commands"]["cpu"], _WAITED),
        "processor seconds of the whole request": (sums["the whole request"]["cpu"], _WHOLE),
        "calls that run a command": (sums["all commands"]["calls"], _CALLS),
        "messages to the model": (asked["requests"], None),
        "thousands of input tokens that no cache held": (asked["uncached"], _TOKENS),
        "thousands of input tokens from the cache": (asked["cached"], None),
    }
    rows = [Row(what, {"before": before[what], "now": value}, target, "now") for what, (value, target) in now.items()]
    note = f"before: revision {before['revision']}, {before['what']}; measured once, with the same program."
    return Table("One request, with a mistake and its repair: before and now", "as named", rows, [note])


# -- tokens ---------------------------------------------------------------------------------------------------------


def _agents(lines: list[dict[str, Any]]) -> Table:
    """Return what each agent asked of the model, in thousands of tokens."""
    sums: dict[str, dict[str, float]] = defaultdict(lambda: dict.fromkeys(("requests", "uncached", "cached", "output"), 0.0))
    for line in lines:
        if line["kind"] != "reply":
            continue
        usage, row = line["usage"], sums[line["agent"].removeprefix("pypto-op-")]
        row["requests"] += 1
        row["uncached"] += (usage["input"] + usage["cache_write"]) / 1e3
        row["cached"] += usage["cache_read"] / 1e3
        row["output"] += usage["output"] / 1e3
    rows = [Row(agent, values) for agent, values in sums.items()]
    together = {name: sum(row.values[name] for row in rows) for name in ("requests", "uncached", "cached", "output")}
    notes = [
        "An estimate: bytes / 3.5. `uncached` is what no earlier request of the run began with.",
        "`requests` are messages to the model.",
    ]
    return Table(
        "One request: what it asks of the model",
        "thousands of tokens",
        [*rows, Row("together", together, _TOKENS, "uncached")],
        notes,
    )
