"""Whether an optimised implementation is faster than its baseline beyond the noise of both benchmarks."""

from __future__ import annotations

import math
import statistics
from pathlib import Path
from typing import Any

from pypto_op.errors import ContractError
from pypto_op.hashing import read_json
from pypto_op.triton.run.setup import results


def choose(baseline: Path, optimized: Path) -> dict[str, Any]:
    """Compare two results of the benchmark.

    A shape's gain is the quotient of both ratios to the reference, each measured in turns with it, so that a machine that
    got slower in between cancels out. Its bounds come from both confidence intervals and are widened by the larger A/A
    deviation of the two runs.

    Returns:
        `keep` (some shape is faster for certain, none slower for certain, and the geometric mean above 1), `gain` and
        `shapes`: case_idx, gain, low, high, verdict.

    Raises:
        ContractError: a file is no sealed result of a device, or they are not about the same task on the same device.
    """
    old, new = _read(baseline), _read(optimized)
    for name, before, after in (
        ("op_name", old["op_name"], new["op_name"]),
        ("task", old["hashes"]["task"], new["hashes"]["task"]),
        ("data", old["hashes"]["data"], new["hashes"]["data"]),
        ("device", old["device"], new["device"]),
        ("warmup", old["warmup"], new["warmup"]),
        ("repeats", old["repeats"], new["repeats"]),
    ):
        if before != after:
            raise ContractError(f"{name} differs from the baseline's", file=optimized, remedy="time both in the same way")
    pairs = list(zip(old["per_shape_results"], new["per_shape_results"], strict=True))
    shapes = [_shape(before, after) for before, after in pairs]
    gain = math.exp(statistics.fmean(math.log(shape["gain"]) for shape in shapes))
    verdicts = {shape["verdict"] for shape in shapes}
    return {"keep": gain > 1 and "faster" in verdicts and "slower" not in verdicts, "gain": gain, "shapes": shapes}


def _shape(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    before, after = old["ratio"], new["ratio"]
    noise = max(abs(row["null_ratio"]["ratio"] - 1) for row in (old, new))
    low = after["low"] / before["high"] * (1 - noise)
    high = after["high"] / before["low"] * (1 + noise)
    verdict = "faster" if low > 1 else "slower" if high < 1 else "same"
    return {"case_idx": new["case_idx"], "gain": after["ratio"] / before["ratio"], "low": low, "high": high, "verdict": verdict}


def _read(path: Path) -> dict[str, Any]:
    result = read_json(path, remedy="name a result of the benchmark")
    if "per_shape_results" not in result or not results.is_sealed(result):
        raise ContractError("benchmark.py of this account did not write it, or it was changed", file=path, remedy="time it again")
    rows = result["per_shape_results"]
    if not rows or result["passed_cases"] != result["total_cases"] or not result["verify_gate"]["required"]:
        raise ContractError("not every shape was verified and timed", file=path, remedy="verify it, then time it again")
    if result["speedup_vs_torch"] is None or not all(row.get("ratio") and row.get("null_ratio") for row in rows):
        raise ContractError("it claims no speed-up, so there is nothing to compare", file=path, remedy="time it on a device")
    return result
