"""Wall time of the real hook program, from the harness's side, beside what any Python program costs here.

All cases take turns within each round, so that a noisy moment on the machine falls on all of them alike. The column
`cpu` is the median of processor time, of the program and of the server that worked for it: it says what the wall
time would be on an idle machine.
"""

from __future__ import annotations

import ast
import json
import os
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
_SERVED = ("edit", "found", "new", "bash")
LINES_PER_MILLISECOND = 450 / 26
"""What libcst parsed on the machine for which the targets were set."""
_RATIO = "p95 / parse"
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

    def found(self) -> Callable[[], object]:
        """Change the kernel so that rules report; the returned call is the hook that follows."""
        self.count += 1
        wrong = f"    return max({self.count}, 1)\n\n\ndef fa_wrapper_{self.count}("
        self.impl.write_text(self.text.replace("def fa_wrapper(", f"def limit():\n{wrong}"), encoding="utf-8")
        return lambda: self.hook("post", "Edit", file_path=str(self.impl))

    def new(self) -> Callable[[], object]:
        """Write a kernel of another operator."""
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


def _beside_parse(milliseconds: float) -> float:
    """Return how many parses of the kernel a time is worth, on the machine that the targets were set for."""
    return round(milliseconds * LINES_PER_MILLISECOND / kernel("fa").count("\n"), 2)


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
            take("found", bench.found())
            take("new", bench.new())
            take("plain", lambda: bench.hook("post", "Write", file_path=str(bench.plain)))
            take("bash", lambda: bench.hook("pre", "Bash", command="cd custom/fa && python3 test_fa.py | tail -5"))
        for _ in range(cold_rounds):
            take("one-shot", bench.one_shot())
            take("cold", bench.cold())
        bench.stop()
    return samples


def run_table(rounds: int, cold_rounds: int) -> Table:
    """Measure and judge."""
    samples = measure(rounds, cold_rounds)
    rows = [
        ("pass", "yardstick: python -c pass", None),
        ("parse", f"yardstick: libcst.parse_module of the {LINES}-line kernel, in process", None),
        ("plain", "hook after a write that is no operator's", 30),
        ("edit", f"hook after an edit of a {LINES}-line kernel", 120),
        ("found", "the same, with findings to tell", 120),
        ("new", f"hook after a new {LINES}-line kernel", 120),
        ("bash", "guard before a shell command", None),
        ("one-shot", "yardstick: lint_path in a fresh Python, no hook", None),
        ("cold", "first hook of a session, which starts the server", 1200),
    ]
    table = Table("Hooks: wall time as the harness sees it", "ms")
    parse, parse_cpu = (statistics.median(column) for column in zip(*samples["parse"], strict=True))
    for name, what, target in rows:
        values = percentiles([wall for wall, _ in samples[name]])
        if name != "cold":  # the processor time of a server that is still starting is nobody's to know
            values["cpu"] = statistics.median(cpu for _, cpu in samples[name])
            values["cpu / parse"] = values["cpu"] / parse_cpu
        values[_RATIO] = values["p95"] / parse
        table.rows.append(Row(what, values, _beside_parse(target) if target else None, _RATIO))
    table.notes.append(
        f"p95 / parse: beside the median parse of this run. The targets are 120 ms, 1.2 s for the first hook and 30 ms for a "
        f"file of no operator, where libcst parses 450 lines in 26 ms: {_beside_parse(120):g}, {_beside_parse(1200):g} and "
        f"{_beside_parse(30):g} parses of this kernel."
    )
    table.notes.append("cpu: median processor time of the hook and of the server that worked for it, beside that of the parse.")
    table.notes.append(f"{rounds} rounds, all warm cases in turn; {cold_rounds} cold rounds.")
    return table


def in_process(files: int) -> Table:
    """Lint one kernel after the other in this process, each beside libcst's parse of it."""
    from pypto_op_lint.api import lint_path

    seconds: list[float] = []
    parses: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(files + 1):
            op = f"many{number}"
            path = Path(folder) / "custom" / op / f"{op}_impl.py"
            path.parent.mkdir(parents=True)
            path.write_text(kernel(op), encoding="utf-8")
            began = time.process_time()
            lint_path(path, stage=5)
            seconds.append(time.process_time() - began)
            parses.append(_parse(path.read_text(encoding="utf-8"))[1])
    table = Table("Lint in one process, processor time", "as named")
    lint, parse = statistics.median(seconds[1:]), statistics.median(parses[1:]) / 1e3
    values = {"lint / parse": lint / parse, "kernels a second": 1 / lint}
    table.rows.append(Row(f"{LINES}-line kernels", values))
    table.notes.append(f"{files} kernels after one to warm up.")
    return table


def run(quick: bool) -> list[Table]:
    """Return the tables of the hooks; `quick` repeats less."""
    return [run_table(8 if quick else 40, 3 if quick else 10), in_process(5 if quick else 30)]
