"""`benchmark`: its gate, its figures, and the tricks that once made a kernel look thousands of times faster."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.triton import lab

from pypto_op.errors import ContractError
from pypto_op.triton.bench import figures, roofline
from pypto_op.triton.bench.benchmark import benchmark_triton
from pypto_op.triton.bench.gate import GateClosed
from pypto_op.triton.bench.request import Request
from pypto_op.triton.run.setup.project import Project

SAME = lab.task("return x * 1", "[torch.randn(64)]")
GOOD = lab.impl("return run(copy_kernel, x)")


def bench(project: Project, **wanted: Any) -> dict[str, Any]:
    wanted.setdefault("checked", 3)
    return benchmark_triton(project, Request(target="interpret", warmup=1, repeats=3, **wanted))


@pytest.fixture(scope="module")
def verdict(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a PASS; read only."""
    project = lab.folder(tmp_path_factory.mktemp("verified") / "verify", SAME, GOOD)
    assert lab.verify(project, seeds=1)["status"] == "PASS"
    return project.folder


@pytest.fixture()
def verified(verdict: Path, place: Path) -> Project:
    """A copy of it: a verdict counts for the bytes, wherever they lie."""
    shutil.copytree(verdict, place)
    return Project.at(place, "expo", "triton_ascend_impl")


@pytest.mark.slow
def test_honest_kernel_is_timed_and_claims_no_speed_up_on_a_cpu(verified: Project) -> None:
    result = bench(verified)
    (row,) = result["per_shape_results"]
    assert row["status"] == "pass"
    assert row["implementation"]["avg_latency_ms"] > 0
    assert row["framework"]["avg_latency_ms"] > 0
    assert row["outputs_checked"] == 3
    assert row["null_ratio"]["low"] <= row["null_ratio"]["ratio"] <= row["null_ratio"]["high"]
    assert result["speedup_vs_torch"] is None
    assert result["none_indices"] == [1]
    assert any("no speed-up is claimed" in note for note in result["notes"])
    assert lab.read(verified.perf_result) == result


@pytest.mark.slow
def test_a_place_without_a_profiler_says_so(verified: Project) -> None:
    unasked, asked = bench(verified), bench(verified, operators=True)
    assert unasked["implementation"]["operators"] == asked["implementation"]["operators"] == {}
    assert "operators is empty: --operators asks torch's profiler on a GPU" in unasked["notes"]
    assert any("on a GPU only, and this ran on interpret" in note for note in asked["notes"])


def test_the_operators_of_a_result_are_the_mean_over_its_shapes() -> None:
    def row(status: str, **operators: float) -> dict[str, Any]:
        return {"status": status, "implementation": {"operators": operators}}

    rows = [
        row("pass", copy=4.0, add=1.0),
        row("pass", copy=2.0),
        row("fail", copy=100.0),
        {"status": "pass", "implementation": {}},
    ]
    assert figures.operators_of(rows, "implementation") == {"copy": 3.0, "add": 0.5}


@pytest.mark.slow
def test_flags_are_written_into_the_result(verified: Project) -> None:
    result = bench(verified, framework_latency_ms=1000.0, verify_not_required=True)
    assert result["per_shape_results"][0]["framework"]["source"] == "given by the caller, not measured"
    assert result["verify_gate"]["required"] is False
    assert result["speedup_vs_torch"] is None
    assert sum("given by the caller" in note or "without a verdict" in note for note in result["notes"]) == 2


def _verdict(project: Project, change: Any) -> None:
    verdict = lab.read(project.verify_result)
    project.verify_result.write_text(json.dumps(change(verdict)), encoding="utf-8")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda v: [v], "it is no object"),
        (lambda v: {"total_cases": 1, "passed_cases": 1, "op_name": "expo"}, "did not write it"),
        (lambda v: {**v, "total_cases": "x", "passed_cases": "x"}, "not both integers"),
        (lambda v: {**v, "total_cases": True, "passed_cases": True}, "not both integers"),
        (lambda v: {**v, "total_cases": 0, "passed_cases": 0}, "nothing was verified"),
        (lambda v: {**v, "passed_cases": 0}, "only 0 of 1"),
        (lambda v: {**v, "op_name": "other"}, "about the operator"),
        (lambda v: {**v, "backend": "cuda"}, "did not write it"),
    ],
)
@pytest.mark.slow
def test_gate_refuses_a_verdict_that_was_made_up(change: Any, words: str, verified: Project) -> None:
    _verdict(verified, change)
    with pytest.raises(GateClosed, match=words):
        bench(verified)
    assert not verified.perf_result.exists()


@pytest.mark.slow
def test_gate_refuses_a_changed_implementation(verified: Project) -> None:
    verified.impl.write_text(GOOD + "\n# later\n", encoding="utf-8")
    with pytest.raises(GateClosed, match="changed since it was verified: impl"):
        bench(verified)


@pytest.mark.slow
def test_gate_accepts_a_copied_verdict_of_the_same_bytes(verified: Project) -> None:
    """The baseline of the optimisation is a copy of the verified files under another name."""
    baseline = Project.at(verified.folder, "expo", "triton_baseline")
    baseline.impl.write_bytes(verified.impl.read_bytes())
    baseline.verify_result.write_bytes(verified.verify_result.read_bytes())
    assert bench(baseline)["passed_cases"] == 1


def test_script_ends_with_2_and_no_result_when_the_gate_is_closed(place: Path) -> None:
    project = lab.folder(place, SAME, GOOD)
    project.perf_result.write_text("{}", encoding="utf-8")
    done = lab.script("benchmark", "--op_name", "expo", "--verify_dir", str(place), "--target", "interpret")
    assert done.returncode == 2
    assert "verify_result.json" in done.stderr
    assert not project.perf_result.exists()


TRICKS = {
    "cached_by_pointer": (
        "key = x.data_ptr()\nif key not in CACHE:\n    CACHE[key] = run(copy_kernel, x)\nreturn CACHE[key].clone()",
        "CACHE = {}", "WrongWhileTimed",
    ),
    "cached_by_shape": (
        "if x.shape not in CACHE:\n    CACHE[x.shape] = run(copy_kernel, x)\nreturn CACHE[x.shape]", "CACHE = {}", "any",
    ),
    "honest_only_at_first": (
        "COUNT.append(1)\nif len(COUNT) <= 2:\n    return run(copy_kernel, x)\n"
        "return run(copy_kernel, x[:1], torch.empty_like(x))", "COUNT = []", "any",
    ),
    "pytorch_after_a_while": (
        "COUNT.append(1)\nout = run(copy_kernel, x)\nreturn out if len(COUNT) <= 3 else x * 1", "COUNT = []", "Forbidden",
    ),
    "clock_patched": ("time.perf_counter = lambda: 0.0\nreturn run(copy_kernel, x)", "import time", "Forbidden"),
    "thread_not_joined": (
        "out = torch.empty_like(x)\nthreading.Thread(target=run, args=(copy_kernel, x, out)).start()\nreturn out",
        "import threading", "Forbidden",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(TRICKS))
@pytest.mark.slow
def test_timing_trick_is_refused(name: str, place: Path) -> None:
    forward, kernels, expected = TRICKS[name]
    project = lab.folder(place, SAME, lab.impl(forward, kernels=kernels))
    result = bench(project, verify_not_required=True)
    (row,) = result["per_shape_results"]
    assert row["status"] == "fail", row
    if expected != "any":
        assert row["error_type"] == expected, row["error_msg"]
    assert result["speedup_vs_torch"] is None


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (None, "none"),
        ("2", "none"),
        (math.nan, "nan"),
        (math.inf, "inf"),
        (-math.inf, "inf"),
        (-1.0, "negative"),
        (0.0, "zero"),
        (2.0, "valid"),
    ],
)
def test_classes_of_speed_ups(value: Any, kind: str) -> None:
    assert figures.classify(value) == kind


def test_geometric_mean_leaves_odd_shapes_out() -> None:
    rows = [{"case_idx": i + 1, "status": "pass", "speedup_vs_torch": s} for i, s in enumerate((2.0, 8.0, 0.0, math.inf, None))]
    rows.append({"case_idx": 6, "status": "fail", "speedup_vs_torch": None})
    summed = figures.overall(rows)
    assert summed["speedup_vs_torch"] == 4.0
    assert (summed["total_cases"], summed["passed_cases"], summed["failed_cases"]) == (6, 5, 1)
    assert (summed["zero_indices"], summed["inf_indices"], summed["none_indices"]) == ([3], [4], [5])
    assert rows[2]["speedup_vs_torch"] is None


def test_interval_of_equal_sides_holds_one_and_of_a_faster_side_does_not() -> None:
    same = [([1.0, 1.1, 0.9], [1.05, 0.95, 1.0]) for _ in range(10)]
    found = figures.ratio_interval(same)
    assert found is not None
    assert found["low"] <= 1.0 <= found["high"]
    faster = figures.ratio_interval([([2.0, 2.1], [1.0, 1.05]) for _ in range(10)])
    assert faster is not None
    assert faster["low"] > 1.5


def test_floor_is_bytes_over_bandwidth_and_unknown_devices_have_none() -> None:
    import torch

    x = torch.zeros(1200, dtype=torch.float32)
    assert roofline.floor_ms([x], x, "NVIDIA H200") == pytest.approx(9600 / 4.8e12 * 1e3)
    assert roofline.floor_ms([x], x, "something else") is None


def test_without_implementation_and_verdict_the_gate_is_what_is_told(place: Path) -> None:
    lab.folder(place, SAME, GOOD)
    (place / "expo_triton_ascend_impl.py").unlink()

    done = lab.script("benchmark", "--op_name", "expo", "--verify_dir", str(place))

    assert done.returncode == 2
    assert "there is no verdict" in done.stderr


def test_a_pipe_is_no_verdict(place: Path) -> None:
    project = lab.folder(place, SAME, GOOD)
    os.mkfifo(project.verify_result)
    with pytest.raises(ContractError, match="verify_result.json"):
        bench(project)


@pytest.mark.slow
def test_a_reference_that_is_skipped_has_no_latency_from_anyone(verified: Project) -> None:
    result = bench(verified, skip_framework=True)

    assert result["per_shape_results"][0]["framework"]["source"] == "not measured"
    assert "--skip_framework: the reference was not timed, so there is no ratio" in result["notes"]
    assert not any("given by the caller" in note for note in result["notes"])


def test_a_python_without_torch_gets_one_line(place: Path) -> None:
    lab.folder(place, SAME, GOOD)
    code = "import sys; sys.modules['torch'] = None; sys.argv[0] = 'verify'; from _launch import run; run('verify')"
    words = [sys.executable, "-c", code, "--op_name", "expo", "--verify_dir", str(place)]

    done = subprocess.run(words, cwd=lab.SCRIPTS, capture_output=True, text=True, check=False)

    assert done.returncode == 3
    (line,) = done.stderr.splitlines()
    assert "has no torch" in line
