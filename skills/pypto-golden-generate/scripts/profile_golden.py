"""Write GOLDEN_PERF_REPORT.md: what the golden spends its time on, here, on this machine's CPU.

`python profile_golden.py custom/OP/OP_golden.py [--function NAME] [--inputs NAME] [--calls 30] [--rounds 5] [--out FILE]`
Without --out the report goes to standard output. Exit 0: written, 2: the golden or a name in it is not usable.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # else torch's profiler prints a line of its own for each round
import torch  # noqa: E402


class UsageError(Exception):
    """The golden cannot be profiled; the message says why."""


def main(words: list[str] | None = None) -> int:
    """Profile the golden named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("golden", type=Path)
    parser.add_argument("--function", help="default: the file's name without .py")
    parser.add_argument("--inputs", default="_make_inputs", help="function of the golden that returns its arguments")
    parser.add_argument("--calls", type=int, default=30, help="calls a profile")
    parser.add_argument("--rounds", type=int, default=5, help="profiles; the report shows medians")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(words)
    try:
        module = _load(options.golden)
        function = _named(module, options.function or options.golden.stem)
        inputs = _named(module, options.inputs)()
    except UsageError as error:
        print(f"profile_golden: {error}", file=sys.stderr)
        return 2
    torch.set_num_threads(1)
    report = _report(options, function, inputs if isinstance(inputs, tuple) else (inputs,))
    if options.out:
        options.out.write_text(report, encoding="utf-8")
        print(f"written: {options.out}")
    else:
        print(report, end="")
    return 0


def _load(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if not path.is_file() or spec is None or spec.loader is None:
        raise UsageError(f"{path}: no such Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _named(module: Any, name: str) -> Callable[..., Any]:
    found = getattr(module, name, None)
    if not callable(found):
        raise UsageError(f"{module.__name__} has no function {name}")
    return found  # type: ignore[no-any-return]


def _report(options: argparse.Namespace, function: Callable[..., Any], inputs: tuple[Any, ...]) -> str:
    rows = _profile(function, inputs, options.calls, options.rounds)
    walls = sorted(_wall(function, inputs) for _ in range(max(options.rounds * options.calls, 30)))
    lines = [
        f"# {options.golden.stem.removesuffix('_golden')}: golden performance",
        "",
        f"Measured on a CPU ({platform.machine()}, one torch thread, torch {torch.__version__}), not on an NPU: where the",
        "reference spends its time; no target for the kernel.",
        "",
        f"- Function: `{function.__name__}`",
        f"- Inputs: {', '.join(map(_described, inputs))}",
        "",
        "## Op Performance",
        "",
        f"Self time per call in microseconds; median of {options.rounds} profiles of {options.calls} calls.",
        "",
        "| op | count | mean_duration | total |",
        "|---|---|---|---|",
        *(f"| {name} | {count:g} | {total / count:.1f} | {total:.1f} |" for name, count, total in rows),
        "",
        f"Sum of all operations: {sum(total for _, _, total in rows):.0f} us.",
        "",
        "## End to end",
        "",
        f"Wall time of one call without the profiler, {len(walls)} calls: median {statistics.median(walls):.0f} us,",
        f"10th percentile {walls[len(walls) // 10]:.0f} us, 90th percentile {walls[len(walls) * 9 // 10]:.0f} us.",
    ]
    return "\n".join(lines) + "\n"


def _profile(function: Callable[..., Any], inputs: tuple[Any, ...], calls: int, rounds: int) -> list[tuple[str, float, float]]:
    """Return (operation, calls of it, microseconds) per call of the golden, the dearest first."""
    seen: dict[str, list[tuple[float, float]]] = {}
    function(*inputs)
    for _ in range(rounds):
        # `torch.profiler.profile` is the same one with a schedule; it imports torch's compiler, which takes as long as torch.
        with torch.autograd.profiler.profile() as profile:
            for _ in range(calls):
                function(*inputs)
        for row in profile.key_averages():
            if row.key.startswith("aten::"):
                seen.setdefault(row.key[6:], []).append((row.count / calls, row.self_cpu_time_total / calls))
    rows = [
        (name, statistics.median(c for c, _ in found), statistics.median(t for _, t in found)) for name, found in seen.items()
    ]
    return sorted(rows, key=lambda row: -row[2])


def _wall(function: Callable[..., Any], inputs: tuple[Any, ...]) -> float:
    start = time.perf_counter()
    function(*inputs)
    return (time.perf_counter() - start) * 1e6


def _described(value: Any) -> str:
    return f"{list(value.shape)} {str(value.dtype).removeprefix('torch.')}" if isinstance(value, torch.Tensor) else repr(value)


if __name__ == "__main__":
    sys.exit(main())
