"""Wall time of the real hook program, from the harness's side, beside what any Python program costs here.

All cases take turns within each round, so that a noisy moment on the machine falls on all of them alike. The column
`cpu` is the median of processor time, of the program and of the server that worked for it: it says what the wall
time would be on an idle machine.
"""

from __future__ import annotations

import ast
import json
import os
import re
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.table import Row, Table, percentiles

ROOT = Path(__file__).resolve().parents[1]
HOOK = ROOT / "hooks" / "hook.sh"
LINES = 500
_EXAMPLE = ROOT / "examples/ops/flash_attention_fwd/flash_attention_fwd_impl.py"
_COPIED = ("pypto_load", "pypto_scores", "pypto_weigh", "pypto_first_tile", "pypto_next_tile", "pypto_store")
_SERVED = ("edit", "new", "bash")
REFERENCE_PARSE = 26 / 450
"""Milliseconds that a libcst parse took per line on the machine for which the targets were set."""
SCALED = "p95 scaled"
_ONE_SHOT = "import sys; from pypto_op_lint.api import lint_path, block_message; print(block_message(lint_path(sys.argv[1])))"


def kernel(op: str, lines: int = LINES) -> str:
    """Return a kernel of at least `lines` lines for `op`: the example with copies of its own helper functions."""
    text = _EXAMPLE.read_text(encoding="utf-8")
    helpers = [n for n in ast.parse(text).body if isinstance(n, ast.FunctionDef) and n.name in _COPIED]
    pieces, count, copies = [text.rstrip()], text.count("\n"), 0
    while count < lines:
        node = helpers[copies % len(helpers)]
        copies += 1
        copy = (ast.get_source_segment(text, node) or "").replace(node.name, f"{node.name}_{copies}")
        pieces.append(copy)
        count += copy.count("\n") + 3
    return "\n\n\n".join(pieces).replace("flash_attention_fwd", op)


class Bench:
    """A workspace of its own, with a cache of its own, and the cases that are timed in it."""

    def __init__(self, folder: Path) -> None:
        self.workspace = folder / "w"
        self.op = self.workspace / "custom" / "fa"
        self.op.mkdir(parents=True)
        self.text = kernel("fa")
        self.impl = self.op / "fa_impl.py"
        self.impl.write_text(self.text, encoding="utf-8")
        self.plain = self.workspace / "notes.py"
        self.plain.write_text("x = 1\n")
        self.environment = {
            **os.environ,
            "XDG_CACHE_HOME": str(folder / "cache"),
            "CLAUDE_PROJECT_DIR": str(self.workspace),
        }
        self.count = 0

    def hook(self, kind: str, tool: str, **tool_input: str) -> bytes:
        """Send one event to the hook program; return what it printed."""
        name = {"pre": "PreToolUse", "post": "PostToolUse"}[kind]
        event = {"hook_event_name": name, "tool_name": tool, "tool_input": tool_input, "cwd": str(self.workspace)}
        done = subprocess.run(
            ["sh", str(HOOK), kind],
            input=json.dumps(event).encode(),
            capture_output=True,
            env=self.environment,
            check=True,
        )
        return done.stdout

    def edit(self) -> Callable[[], object]:
        """Change one line in the middle of the kernel; the returned call is the hook that follows."""
        self.count += 1
        lines = self.text.splitlines()
        lines.insert(len(lines) // 2, f"# edit {self.count}")
        index = next(i for i, line in enumerate(lines) if line.startswith("def ") and i > len(lines) // 2)
        lines.insert(index, f"EDIT_{self.count} = {self.count}")
        self.impl.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return lambda: self.hook("post", "Edit", file_path=str(self.impl))

    def new(self) -> Callable[[], object]:
        """Write a kernel of which no statement was seen before."""
        self.count += 1
        op = f"fresh{self.count}"
        path = self.workspace / "custom" / op / f"{op}_impl.py"
        path.parent.mkdir()
        text = kernel(op).replace("_softmax", f"_softmax{self.count}").replace("block", f"block{self.count}")
        path.write_text(text, encoding="utf-8")
        return lambda: self.hook("post", "Write", file_path=str(path))

    def cold(self) -> Callable[[], object]:
        """End the server, so that the hook finds none."""
        self.stop()
        return lambda: self.hook("post", "Write", file_path=str(self.impl))

    def one_shot(self) -> Callable[[], object]:
        """The same work without hook and server: what a cold hook may not exceed by much."""
        return lambda: program(sys.executable, "-c", _ONE_SHOT, str(self.impl))

    def server_cpu(self) -> float:
        """Return the processor time, in milliseconds, that the server spent on the last event."""
        (log,) = Path(self.environment["XDG_CACHE_HOME"]).glob("pypto-op/run/*/events.jsonl")
        return float(json.loads(log.read_text().splitlines()[-1])["cpu_milliseconds"])

    def stop(self) -> None:
        """Kill the resident server of this workspace."""
        for file in Path(self.environment["XDG_CACHE_HOME"]).glob("pypto-op/run/*/server.pid"):
            try:
                os.kill(int(file.read_text()), signal.SIGKILL)
            except (OSError, ValueError):
                continue
            file.unlink(missing_ok=True)


def program(*command: str) -> None:
    """Run a program to its end; raise CalledProcessError when it fails."""
    subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)


_SCALE_NOTE = (
    "scaled: times {scale:.2f}, the time of a libcst parse on the machine that the targets were set for (26 ms for 450 lines) "
    "by its time in this run; targets are judged by it."
)


def _reference_parse() -> float:
    """Return the milliseconds that a parse of the kernel takes on the machine that the targets were set for."""
    return REFERENCE_PARSE * kernel("fa").count("\n")


def _parse(text: str) -> tuple[float, float]:
    """Return wall and processor milliseconds of a plain libcst parse in this process."""
    import libcst

    wall, cpu = time.perf_counter(), time.process_time()
    libcst.parse_module(text)
    return (time.perf_counter() - wall) * 1e3, (time.process_time() - cpu) * 1e3


def measure(rounds: int, cold_rounds: int) -> dict[str, list[tuple[float, float]]]:
    """Return the samples of every case: wall and processor time in milliseconds."""
    samples: dict[str, list[tuple[float, float]]] = {}

    def take(name: str, call: Callable[[], object]) -> None:
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        call()
        wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
        served = bench.server_cpu() if name in _SERVED else 0.0
        samples.setdefault(name, []).append((wall * 1e3, cpu * 1e3 + served))

    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        bench.hook("post", "Write", file_path=str(bench.impl))
        bench.edit()()
        for _ in range(rounds):
            take("pass", lambda: program(sys.executable, "-c", "pass"))
            samples.setdefault("parse", []).append(_parse(bench.text))
            take("edit", bench.edit())
            take("new", bench.new())
            take("plain", lambda: bench.hook("post", "Write", file_path=str(bench.plain)))
            take("bash", lambda: bench.hook("pre", "Bash", command="cd custom/fa && python3 test_fa.py | tail -5"))
        for _ in range(cold_rounds):
            take("libcst", lambda: program(sys.executable, "-c", "import libcst"))
            take("one-shot", bench.one_shot())
            take("cold", bench.cold())
        bench.stop()
    return samples


def run_table(rounds: int, cold_rounds: int) -> Table:
    """Measure and judge."""
    samples = measure(rounds, cold_rounds)
    rows = [
        ("pass", "yardstick: python -c pass", None),
        ("libcst", "yardstick: python -c 'import libcst'", None),
        ("parse", f"yardstick: libcst.parse_module of the {LINES}-line kernel, in process", None),
        ("plain", "hook after a write that is no operator's", 30),
        ("edit", f"hook after an edit of a {LINES}-line kernel, warm", 60),
        ("new", f"hook after a new {LINES}-line kernel, warm", 120),
        ("bash", "guard before a shell command, warm", None),
        ("one-shot", "yardstick: lint_path in a fresh Python, no hook", None),
        ("cold", "hook that finds no server", 600),
    ]
    table = Table("Hooks: wall time as the harness sees it", "ms")
    libcst = statistics.median(cpu for _, cpu in samples["libcst"])
    scale = _reference_parse() / statistics.median(wall for wall, _ in samples["parse"])
    for name, what, target in rows:
        values = percentiles([wall for wall, _ in samples[name]])
        values[SCALED] = values["p95"] * scale
        if name != "cold":  # the processor time of a server that is still starting is nobody's to know
            values["cpu"] = statistics.median(cpu for _, cpu in samples[name])
            values["cpu / libcst"] = values["cpu"] / libcst
        table.rows.append(Row(what, values, target, SCALED))
    table.notes.append(
        "cpu / libcst: beside the processor time of `import libcst` in the same run; it bears other programs' load."
    )
    table.notes.append(_SCALE_NOTE.format(scale=scale))
    table.notes.append(f"{rounds} rounds, all warm cases in turn; {cold_rounds} cold rounds.")
    return table


def throughput(files: int) -> Table:
    """Lint new kernels one after the other in this process: how many a core does in a second."""
    from pypto_op_lint.api import lint_path

    seconds: list[float] = []
    parses: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(files + 1):
            op = f"many{number}"
            path = Path(folder) / "custom" / op / f"{op}_impl.py"
            path.parent.mkdir(parents=True)
            # Every line differs from those of the kernels before, so that no statement is known yet.
            path.write_text(re.sub(r"\b(rows|tile|block|scores|state|_softmax)", rf"\g<1>{number}", kernel(op)), encoding="utf-8")
            began = time.process_time()
            lint_path(path, stage=5)
            seconds.append(time.process_time() - began)
            parses.append(_parse(path.read_text(encoding="utf-8"))[1])
    table = Table("Lint: kernels of which no statement was seen before, one process", "kernels / CPU second")
    scale = _reference_parse() / statistics.median(parses[1:])
    found = 1 / statistics.median(seconds[1:])
    values = {"p50": found, "p50 scaled": found / scale}
    table.rows.append(Row(f"new {LINES}-line kernels", values, 10, "p50 scaled", at_least=True))
    table.notes.append(_SCALE_NOTE.format(scale=scale))
    table.notes.append(f"{files} kernels after one to warm up; processor time, so the load of other programs matters little.")
    return table


def run(quick: bool) -> list[Table]:
    """Return the tables of the hooks; `quick` repeats less."""
    return [run_table(8 if quick else 40, 3 if quick else 10), throughput(5 if quick else 30)]
