"""The league: faults in public kernels; how many of them does each kernel's own test see, and how many `triton verify`?

`prepare` lays kernels, faults and tests out in a folder, which may travel to a machine with a GPU; `play` needs nothing else.
"""

from __future__ import annotations

import json
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.public import kernels
from benchmarks.public.mutants import planted
from pypto_op.evals.statistics import Share

ROOT = Path(__file__).parents[2]
PLAYERS: dict[str, str] = {
    **dict.fromkeys(
        (f"tritonbench/{name}" for name in (
            "sin_kernel", "l2_norm_triton1", "kldiv_compute", "chunk_cumsum_kernel", "matrix_vector_multip", "rms_norm_triton",
            "rowwise_quantization_triton", "mean_reduction", "swiglu_fwd", "dequantize_rowwise", "reversed_cumsum_scalar",
            "square_matrix", "vector_addition_custom", "add_example", "cosine_compute",
            "triton_softmax", "softmax_triton1", "rmsnorm_fused",
            "l2_norm_bwd", "layernorm_fwd_triton", "max_reduction", "matmul_leakyrelu")), ""),
    "attorch/softmax_layers": "tests/test_softmax_layers.py",
    "attorch/glu_layer": "tests/test_glu_layer.py",
    "attorch/layer_norm_layer": "tests/test_layer_norm_layer.py",
    "attorch/rms_norm_layer": "tests/test_rms_norm_layer.py",
    "liger/layer_norm": "test/transformers/test_layer_norm.py",
    "liger/group_norm": "test/transformers/test_group_norm.py",
    "liger/softmax": "test/transformers/test_softmax.py",
    "liger/relu_squared": "test/transformers/test_relu_squared.py",
    "liger/dyt": "test/transformers/test_dyt.py",
}  # fmt: skip
"""Kernel -> its collection's test; "" where the file has its test itself."""
_SKIP = {"tritonbench/l2_norm_bwd": (), "tritonbench/max_reduction": ("kernel_1", "kernel_2", "backward")}
_BACK = ("backward", "bwd")
"""Functions that the task, which looks at forward alone, does not reach."""
_PACKAGES = {
    "attorch": ["attorch", "tests"],
    "liger": ["src/liger_kernel", "test/__init__.py", "test/utils.py", "test/transformers"],
}


def prepare(sources: dict[str, Path], out: Path, most: int) -> int:
    """Lay everything out in `out`; return the number of mutants."""
    shutil.rmtree(out, ignore_errors=True)
    count = 0
    for name in PLAYERS:
        source, _, file = name.partition("/")
        entry = next(one for one in kernels.entries() if (one["source"], one["file"]) == (source, file))
        place = out / name.replace("/", "_")
        project, path = kernels.place(entry, sources[source], place / "op")
        text = path.read_text(encoding="utf-8")
        found = planted(text, most, seed=sum(map(ord, name)), skip=_SKIP.get(name, _BACK))
        count += len(found)
        document = {"kernel": str(path.relative_to(place)), "original": text, "mutants": [asdict(mutant) for mutant in found]}
        if source == "tritonbench":
            original = sources[source] / kernels.FILES[source].format(file)
            shutil.copyfile(original, place / "own.py")
        (place / "mutants.json").write_text(json.dumps(document), encoding="utf-8")
    for source, parts in _PACKAGES.items():
        for part in parts:
            origin, target = sources[source] / part, out / "own" / source / part
            target.parent.mkdir(parents=True, exist_ok=True)
            (shutil.copytree if origin.is_dir() else shutil.copyfile)(origin, target)
    return count


class _Server:
    """A process that answers a line of JSON with one; begun anew when it dies."""

    def __init__(self, module: str, target: str) -> None:
        self._words = [sys.executable, "-m", f"benchmarks.public.{module}", target]
        self._process: subprocess.Popen[str] | None = None

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the answer."""
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(self._words, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            return json.loads(self._process.stdout.readline())  # type: ignore[no-any-return]
        except (OSError, ValueError):
            self._process.kill()
            return {"ok": False, "why": "the server died"}

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.terminate()


class _Lane:
    """One worker of the league: a judge, a server of own tests, and a copy of each package."""

    def __init__(self, prepared: Path, target: str, most: int, limit: float) -> None:
        self._prepared, self._most, self._limit = prepared, most, limit
        self._folder = Path(tempfile.mkdtemp(prefix="league-"))
        self._own, self._judge = _Server("own_tests", target), _Server("judge_server", target)

    def play(self, name: str, document: dict[str, Any], number: int) -> dict[str, Any]:
        """Let both look at a kernel with fault `number`; -1: without one."""
        mutant = document["mutants"][number] if number >= 0 else {"text": document["original"], "kind": "untouched"}
        begin = time.monotonic()
        own = self._own.ask(self._request(name, document, mutant["text"]))
        between = time.monotonic()
        place = self._folder / f"{name.replace('/', '_')}_{number}"
        shutil.copytree(self._prepared / name.replace("/", "_") / "op", place / "op")
        (place / document["kernel"]).write_text(mutant["text"], encoding="utf-8")
        judged = self._judge.ask({"folder": str(place / "op"), "limit": self._limit})
        shutil.rmtree(place)
        fault = {key: mutant.get(key) for key in ("kind", "line", "before", "after")}
        seconds = [round(between - begin, 1), round(time.monotonic() - between, 1)]
        return {"kernel": name, "number": number, **fault, "own": own, "judge": judged, "seconds": seconds}

    def _request(self, name: str, document: dict[str, Any], text: str) -> dict[str, Any]:
        source, _, file = name.partition("/")
        base = {"most": self._most, "limit": self._limit}
        if source == "tritonbench":
            whole = (self._prepared / name.replace("/", "_") / "own.py").read_text(encoding="utf-8")
            own = self._folder / "own.py"
            tests = whole[whole.index("#" * 20) :] if "#" * 20 in whole else ""
            own.write_text(text.split("\n\n\nclass ModelNew(torch.nn.Module)", maxsplit=1)[0] + "\n" + tests, encoding="utf-8")
            kept = self._prepared / name.replace("/", "_") / "kept.pt"
            return {**base, "kind": "script", "file": str(own), "kept": str(kept)}
        root = self._folder / source
        if not root.exists():
            shutil.copytree(self._prepared / "own" / source, root)
        inside = Path(document["kernel"]).relative_to("op")
        path = root / ("src" if source == "liger" else ".") / inside
        before = path.read_text(encoding="utf-8")
        path.write_text(text, encoding="utf-8")
        self._undo = (path, before)
        words = ["--noconftest"] if source == "liger" else []
        return {**base, "kind": "pytest", "root": str(root), "file": str(root / PLAYERS[name]), "words": words}

    def restore(self) -> None:
        """Put the package's file back."""
        if getattr(self, "_undo", None):
            self._undo[0].write_text(self._undo[1], encoding="utf-8")

    def close(self) -> None:
        """End the processes and remove the copies."""
        self._own.close()
        self._judge.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def _in_turn(documents: dict[str, dict[str, Any]]) -> list[tuple[str, int]]:
    """Return each kernel with its first fault, then each with its second: when the time is up, each had as many."""
    most = max(len(document["mutants"]) for document in documents.values())
    return [(name, i) for i in range(most) for name, document in documents.items() if i < len(document["mutants"])]


def play(
    prepared: Path,
    target: str,
    lanes: int,
    seconds: float,
    most: int,
    limit: float,
    told: Callable[[dict[str, Any]], None],
    only: str = "",
) -> list[dict[str, Any]]:
    """Play until everything is done or the time is up; return a row for each kernel with a fault, and without.

    Args:
        prepared: what `prepare` made.
        target: interpret or cuda.
        lanes: how many at once.
        seconds: no kernel is begun after that.
        most: parametrisations of each test function of a package, the smallest.
        limit: seconds for an own test, and for a verdict.
        told: called with each row.
        only: what the names of the kernels have in them.
    """
    names = [name for name in PLAYERS if only in name]
    documents = {name: json.loads((prepared / name.replace("/", "_") / "mutants.json").read_text()) for name in names}
    rows: list[dict[str, Any]] = []
    left: queue.Queue[_Lane] = queue.Queue()
    for _ in range(lanes):
        left.put(_Lane(prepared, target, most, limit))
    end, lock = time.monotonic() + seconds, threading.Lock()

    def one(job: tuple[str, int]) -> None:
        if time.monotonic() > end:
            return
        lane = left.get()
        try:
            row = lane.play(job[0], documents[job[0]], job[1])
            lane.restore()
        finally:
            left.put(lane)
        with lock:
            rows.append(row)
            told(row)

    with ThreadPoolExecutor(lanes) as pool:
        list(pool.map(one, [(name, -1) for name in documents]))
        sound = {row["kernel"] for row in rows if row["own"]["ok"] and row["judge"]["ok"]}
        list(pool.map(one, [job for job in _in_turn(documents) if job[0] in sound]))
    while not left.empty():
        left.get().close()
    return rows


def summary(rows: list[dict[str, Any]]) -> str:
    """Return the kill rates in Markdown: by collection and in all, with Wilson's 95 % intervals."""
    sound = sorted({row["kernel"] for row in rows if row["number"] < 0 and row["own"]["ok"] and row["judge"]["ok"]})
    played = [row for row in rows if row["number"] >= 0]
    heads = ["collection", "kernels", "faults", "own test refuses", "triton verify refuses", "only own", "only verify", "neither"]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for collection in (*sorted({name.split("/")[0] for name in sound}), ""):
        some = [row for row in played if row["kernel"].startswith(collection)]
        names = [name for name in sound if name.startswith(collection)]
        own, judge = (sum(not row[side]["ok"] for row in some) for side in ("own", "judge"))
        pairs = [(row["own"]["ok"], row["judge"]["ok"]) for row in some]
        only = [pairs.count(pair) for pair in ((False, True), (True, False), (True, True))]
        cells = [collection or "all", len(names), len(some), _rate(own, len(some)), _rate(judge, len(some)), *only]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    excluded = [row for row in rows if row["number"] < 0 and row["kernel"] not in sound]
    lines += [
        "",
        *(
            f"- not played: {row['kernel']}: {' '.join((row['own']['why'] or row['judge']['why']).split())[:80]}"
            for row in excluded
        ),
    ]
    return "\n".join(lines) + "\n"


def _rate(hits: int, of: int) -> str:
    if not of:
        return ""
    low, high = Share(hits, of).interval
    return f"{hits} ({hits / of * 100:.0f} %, {low * 100:.0f} to {high * 100:.0f} %)"


def lanes_here() -> int:
    """Return a sensible number of lanes: each is two processes that wait for one another."""
    return max(1, min(16, os.cpu_count() or 1))
