"""Verify and time the sample tasks on a GPU; write triton_gpu.json and triton_gpu.md. Called by on_gpu.sh."""

from __future__ import annotations

import json
import os
import platform
import shutil
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

from pypto_op.triton.bench.benchmark import benchmark_triton
from pypto_op.triton.bench.request import Request as BenchRequest
from pypto_op.triton.run.setup.project import Project
from pypto_op.triton.run.setup.request import Request as VerifyRequest
from pypto_op.triton.run.verify import verify_triton

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parents[1] / "examples" / "triton"
TASKS = ("softmax", "layernorm", "matmul", "reduction", "fused", "scatter")
SECONDS = float(os.environ.get("GPU_SECONDS", "520"))


def main() -> int:
    """Run the named tasks, or all; write what there is after each of them."""
    out, names = Path(sys.argv[1]), sys.argv[2:] or list(TASKS)
    begin = time.monotonic()
    document: dict[str, Any] = {"machine": _machine(), "tasks": {}}
    with tempfile.TemporaryDirectory(prefix="triton-gpu-") as folder:
        os.environ.setdefault("PYPTO_OP_KEY_FILE", str(Path(folder) / "seal.key"))
        for name in names:
            left = SECONDS - (time.monotonic() - begin)
            if left < 30:
                document["tasks"][name] = {"skipped": "no time was left"}
                continue
            try:
                document["tasks"][name] = _task(name, Path(folder), left)
            except Exception as error:
                traceback.print_exc()
                document["tasks"][name] = {"error": f"{type(error).__name__}: {error}"}
            _write(out, document)
    _write(out, document)
    print((out / "triton_gpu.md").read_text())
    return 0 if all("benchmark" in entry for entry in document["tasks"].values()) else 1


def _task(name: str, folder: Path, left: float) -> dict[str, Any]:
    work = folder / name
    shutil.copytree(EXAMPLES / name, work)
    shutil.copyfile(HERE / "gpu_shapes" / f"{name}.json", work / "shapes.json")
    project = Project.at(work, name, "triton_ascend_impl")
    begin = time.monotonic()
    verdict = verify_triton(project, VerifyRequest(target="cuda", timeout=min(240.0, left), memory_mb=60_000))
    entry: dict[str, Any] = {"verify": {k: v for k, v in verdict.items() if k not in ("seal", "policy")}}
    entry["verify_seconds"] = round(time.monotonic() - begin, 2)
    print(
        f"{name}: {verdict['status']} {verdict['passed_cases']}/{verdict['total_cases']} in {entry['verify_seconds']} s",
        flush=True,
    )
    for failure in verdict["failures"]:
        print(f"  case {failure['case_idx']}: {failure['error_type']}: {failure['error_msg'][:1500]}", flush=True)
    if verdict["error"]:
        print(f"  {verdict['error']}", flush=True)
    if verdict["status"] != "PASS":
        return entry
    runs = []
    for number in range(2):  # twice, for the spread from run to run
        begin = time.monotonic()
        request = BenchRequest(
            target="cuda", warmup=5, repeats=100, do_bench=number == 0, operators=number == 0, memory_mb=60_000, checked=2
        )
        result = benchmark_triton(project, request)
        runs.append(result)
        print(f"  benchmark in {time.monotonic() - begin:.1f} s: {result['speedup_vs_torch']}", flush=True)
        for row in result["per_shape_results"]:
            if row["status"] == "fail":
                print(f"  shape {row['case_idx']}: {row['error_type']}: {row['error_msg'][:1500]}", flush=True)
    entry["benchmark"] = runs[0]
    entry["second_run"] = [row["implementation"] for row in runs[1]["per_shape_results"]]
    return entry


def _machine() -> dict[str, Any]:
    import torch

    import triton

    return {
        "device": torch.cuda.get_device_name(0),
        "torch": torch.__version__,
        "triton": triton.__version__,
        "python": platform.python_version(),
        "cuda": torch.version.cuda,
    }


def table(document: dict[str, Any]) -> str:
    """Return the results as a Markdown table; the figures are those of the JSON."""
    machine = document["machine"]
    lines = [
        f"{machine['device']}, torch {machine['torch']}, triton {machine['triton']}. Times are medians in microseconds.",
        "",
        "| task | inputs | verdict | kernel us | do_bench us | against do_bench | run to run | spread | PyTorch us "
        "| ratio (95 %) | A/A (95 %) | floor us |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, entry in document["tasks"].items():
        if "benchmark" not in entry:
            verdict = entry.get("verify", {}).get("status") or entry.get("error") or entry.get("skipped")
            lines.append(f"| {name} | | {verdict} | | | | | | | | | |")
            continue
        for row, again in zip(entry["benchmark"]["per_shape_results"], entry["second_run"], strict=True):
            lines.append(_line(name, row, again))
    return "\n".join(lines) + "\n"


def _line(name: str, row: dict[str, Any], again: dict[str, Any] | None) -> str:
    shapes = ", ".join("x".join(map(str, i["shape"])) + " " + i["dtype"][6:] for i in row["input_desc"] if i["type"] == "tensor")
    if row["status"] == "fail":
        return f"| {name} | {shapes} | {row['error_type']} | | | | | | | | | |"
    own = row["implementation"]
    bench = own.get("do_bench_ms")
    cells = [
        name,
        shapes,
        "PASS",
        f"{own['avg_latency_ms'] * 1e3:.1f}",
        f"{bench * 1e3:.1f}" if bench else "",
        f"{(own['avg_latency_ms'] / bench - 1) * 100:+.1f} %" if bench else "",
        f"{abs(again['avg_latency_ms'] / own['avg_latency_ms'] - 1) * 100:.1f} %" if again else "",
        f"{own['spread'] * 100:.1f} %",
        f"{row['framework']['avg_latency_ms'] * 1e3:.1f}",
        _interval(row["ratio"]),
        _interval(row["null_ratio"]),
        f"{row['floor_ms'] * 1e3:.1f}" if row.get("floor_ms") else "",
    ]
    return "| " + " | ".join(cells) + " |"


def _interval(found: dict[str, float] | None) -> str:
    return f"{found['ratio']:.3f} [{found['low']:.3f}, {found['high']:.3f}]" if found else ""


def _write(out: Path, document: dict[str, Any]) -> None:
    (out / "triton_gpu.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    (out / "triton_gpu.md").write_text(table(document), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
