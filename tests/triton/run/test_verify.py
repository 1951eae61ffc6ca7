"""`verify`: samples, result files in every outcome, time limits, stale results, names of files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from tests.calling import command
from tests.triton import lab

from pypto_op.documents import schema
from pypto_op.triton.run import verify
from pypto_op.triton.run.processes.model import load_weights
from pypto_op.triton.run.setup import results
from pypto_op.triton.run.setup.project import Project

pytestmark = pytest.mark.slow

SAMPLES = sorted(path.name for path in lab.EXAMPLES.iterdir() if path.is_dir())
GOOD = "return run(copy_kernel, x)"
SAME = lab.task("return x * 1", "[torch.randn(64)]")
WITHOUT_EPSILON = """
@triton.jit
def sign_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=1.0)
    tl.store(out_ptr + i, x / tl.abs(x), mask=i < n)
"""


@pytest.mark.parametrize("name", SAMPLES)
def test_sample_passes(name: str, place: Path) -> None:
    shutil.copytree(lab.EXAMPLES / name, place)
    result = lab.verify(Project.at(place, name, "triton_ascend_impl"))
    assert result["status"] == "PASS", result["failures"] or result["error"]
    assert result["passed_cases"] == result["total_cases"] >= 2
    assert all(case["launches"] >= 1 for case in result["cases"])
    assert result["backend"] == "interpret"
    assert result["caveats"]


def test_result_has_the_contract_keys_and_is_sealed(place: Path) -> None:
    project = lab.folder(place, SAME, lab.impl(GOOD))
    result = lab.verify(project)
    assert {"op_name", "total_cases", "passed_cases", "failed_cases", "failures"} <= set(result)
    assert result["hashes"].keys() == {"task", "impl", "data", "siblings", "policy"}
    assert result["policy"]["name"] == "mere_mare"
    schema.check(result, "verify_result")
    assert results.is_sealed(result)
    assert not results.is_sealed({**result, "passed_cases": 9})
    for name in ("verify_result_old.json", "first_run.json"):
        (place / name).write_text(json.dumps(result))
    assert project.hashes()["data"] == result["hashes"]["data"], "a result is no data of the task, whatever it is called"
    (place / "printed.json").write_text("")
    assert project.hashes()["data"] == result["hashes"]["data"], "`--json > FILE` makes the file before verify runs"
    (place / "first_run.json").write_text(json.dumps({**result, "passed_cases": 9}))
    assert project.hashes()["data"] != result["hashes"]["data"]


def test_result_of_another_implementation_has_its_own_file(place: Path) -> None:
    project = lab.folder(place, SAME, lab.impl(GOOD), name="triton_optimized")
    lab.verify(project)
    assert sorted(path.name for path in place.glob("*.json")) == ["verify_result_optimized.json"]


AUTOTUNED = """
@triton.autotune(configs=[triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128})], key=["n"])
@triton.jit
def tuned(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    shift = 0 if BLOCK == 64 else WRONG
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) + shift, mask=mask)
"""


@pytest.mark.parametrize(("wrong", "status"), [("0", "PASS"), ("1", "FAIL")])
def test_every_pass_takes_another_configuration_of_an_autotuned_kernel(wrong: str, status: str, place: Path) -> None:
    forward = "out = torch.empty_like(x)\ntuned[lambda m: (triton.cdiv(64, m['BLOCK']),)](x, out, 64)\nreturn out"
    project = lab.folder(place, SAME, lab.impl(forward, kernels=AUTOTUNED.replace("WRONG", wrong)))
    assert lab.verify(project)["status"] == status


def test_weights_are_taken_over_by_name_and_the_rest_in_order() -> None:
    ours, theirs = torch.nn.Module(), torch.nn.Module()
    ours.weight, ours.bias = torch.nn.Parameter(torch.zeros(3, 2)), torch.nn.Parameter(torch.zeros(3))
    weights = {"gemm.weight": torch.ones(3, 2), "bias": torch.ones(3)}
    assert load_weights(ours, weights)[0] == "by name, the rest in order"
    assert bool((ours.weight == 1).all()) and bool((ours.bias == 1).all())
    theirs.other = torch.nn.Parameter(torch.zeros(4))
    assert load_weights(theirs, weights) == ("seed order", ["gemm.weight", "bias"])


def test_an_input_that_only_the_reference_changes_is_named(place: Path) -> None:
    text = lab.task("xs[1].add_(1)\nreturn x * 1", "[torch.randn(64), torch.zeros(4)]")
    (failure,) = lab.verify(lab.folder(place, text, lab.impl(GOOD)))["failures"]
    assert (failure["error_type"], failure["error_msg"]) == (
        "StructureMismatch", "the reference changes its input 1 in place, and forward leaves it",
    )  # fmt: skip


def test_numbers_among_the_arguments_are_known_to_the_static_check(place: Path) -> None:
    reference = lab.task("return x * 1", "[torch.randn(64), (1, 2)]")
    project = lab.folder(
        place, reference, lab.impl("n = xs[1][0] * 64\nout = torch.empty_like(x[:n])\nreturn run(copy_kernel, x, out)")
    )
    assert lab.verify(project, seeds=1)["status"] == "PASS"


@pytest.mark.parametrize("seeds", [1, 2])
def test_a_verdict_of_one_pass_says_what_it_leaves_out(place: Path, seeds: int) -> None:
    """An epsilon that is left out shows on moved inputs alone, and one pass has none."""
    reference = lab.task("return x / (x.abs() + 1e-6)", "[torch.randn(64)]")
    written = lab.impl("return run(sign_kernel, x)", kernels=WITHOUT_EPSILON)
    result = lab.verify(lab.folder(place, reference, written), seeds=seeds)
    said = any("--seeds 1" in line for line in result["caveats"])
    assert (result["status"], said) == (("PASS", True) if seeds == 1 else ("FAIL", False))


def test_a_task_without_cases_says_so(place: Path) -> None:
    more = "\n\ndef get_input_groups():\n    return []\n"
    result = lab.verify(lab.folder(place, lab.task("return x", "[]", more=more), lab.impl(GOOD)))
    assert (result["status"], result["total_cases"]) == ("FAIL", 0)
    assert "no case" in result["error"]


def test_old_result_does_not_survive_a_crash(place: Path) -> None:
    project = lab.folder(place, SAME, lab.impl(GOOD))
    assert lab.verify(project)["status"] == "PASS"
    project.impl.write_text("raise SystemExit(0)\n", encoding="utf-8")
    assert lab.verify(project)["status"] == "FAIL"
    assert lab.read(project.verify_result)["passed_cases"] == 0


def test_missing_task_is_written_down(place: Path) -> None:
    project = lab.folder(place, SAME, lab.impl(GOOD))
    project.task.unlink()
    result = lab.verify(project)
    assert (result["status"], result["total_cases"]) == ("ERROR", 0)
    assert "the task is missing" in result["error"]
    assert lab.read(project.verify_result) == result


def test_task_that_does_not_load_is_written_down(place: Path) -> None:
    project = lab.folder(place, "import torch\nraise RuntimeError('broken')\n", lab.impl(GOOD))
    result = lab.verify(project)
    assert result["status"] == "ERROR"
    assert "broken" in result["error"]


def test_time_out_keeps_what_there_is_and_says_so(place: Path) -> None:
    more = "\n\ndef get_input_groups():\n    return [[torch.randn(n)] for n in (4, 8, 16)]\n"
    forward = "while x.shape[0] == 8:\n    pass\nreturn run(copy_kernel, x)"
    project = lab.folder(place, lab.task("return x * 1", "[]", more=more), lab.impl(forward))
    result = lab.verify(project, timeout=12.0)
    assert result["status"] == "ERROR"
    assert "验证超时" in result["error"]
    assert result["total_cases"] == 3
    assert result["passed_cases"] < 3
    assert result["failures"][-1]["error_type"] == "Timeout"


def test_one_endless_case_costs_only_its_own_limit(place: Path) -> None:
    more = "\n\ndef get_input_groups():\n    return [[torch.randn(n)] for n in (4, 8, 16)]\n"
    forward = "while x.shape[0] == 8:\n    pass\nreturn run(copy_kernel, x)"
    project = lab.folder(place, lab.task("return x * 1", "[]", more=more), lab.impl(forward))
    result = lab.verify(project, case_timeout=3.0, seeds=1)
    assert [case["status"] for case in result["cases"]] == ["pass", "fail", "pass"]


def test_scripts_end_to_end(place: Path) -> None:
    lab.folder(place, SAME, lab.impl("return run(copy_kernel, x) if x.shape[0] < 0 else x"))
    done = lab.script("verify", "--op_name", "expo", "--verify_dir", str(place), "--target", "interpret", "--timeout", "200")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "case 1: OutputAliasesInput" in done.stdout
    assert lab.read(place / "verify_result.json")["failed_cases"] == 1


def test_the_kind_of_an_error_is_told_once(place: Path) -> None:
    """Of an error that the file raised, its place comes first, and its kind then; a kind that stands nowhere comes first."""
    lab.folder(place, SAME, lab.impl("raise KeyError('no such block')"))
    done = command("triton", "verify", "--op_name", "expo", "--verify_dir", place, "--target", "interpret")
    [line] = [line for line in done.stdout.splitlines() if line.startswith("case 1: ")]
    assert done.code == 1 and line.count("KeyError: ") == 1 and "_impl.py:" in line, line


def test_an_unknown_policy_is_told_once_and_starts_nothing(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.folder(place, SAME, lab.impl(GOOD))
    monkeypatch.setattr(verify.Started, "__init__", None)
    done = command("triton", "verify", "--op_name", "expo", "--verify_dir", place, "--policy", "nosuch")
    assert (done.code, (done.stdout + done.stderr).count("nosuch")) == (1, 1)


@pytest.mark.parametrize("name", ["exop", "something_else"])
def test_a_slip_in_the_operators_name_leaves_the_last_verdict(name: str, place: Path) -> None:
    project = lab.folder(place, SAME, lab.impl(GOOD))
    project.verify_result.write_text("{}")
    done = command("triton", "verify", "--op_name", name, "--verify_dir", place)
    assert (done.code, done.stderr.count("\n")) == (1, 1)
    assert done.stderr == f"verify: {place}: no operator is called {name}; did you mean expo?\n"
    assert project.verify_result.read_text() == "{}"


def test_a_folder_without_an_operator_says_which_files_it_lacks(place: Path) -> None:
    place.mkdir()
    done = command("triton", "verify", "--op_name", "expo", "--verify_dir", place)
    assert done.code == 1 and done.stderr.endswith("copy expo_torch.py and expo_triton_ascend_impl.py there\n"), done.stderr
    assert not list(place.iterdir())


def test_bad_folder_and_bad_name_end_in_one_line(tmp_path: Path) -> None:
    done = lab.script("verify", "--op_name", "../x", "--verify_dir", str(tmp_path))
    assert (done.returncode, len(done.stderr.strip().splitlines())) == (1, 1)
    done = lab.script("verify", "--op_name", "expo", "--verify_dir", str(tmp_path / "none"))
    assert (done.returncode, len(done.stderr.strip().splitlines())) == (1, 1)


def test_an_interpreter_error_names_the_kernels_line(place: Path) -> None:
    kernel = """
    @triton.jit
    def ranks_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
        offsets = tl.arange(0, BLOCK)
        x = tl.load(x_ptr + offsets)
        tl.store(out_ptr + offsets, tl.dot(x, x))
    """
    text = lab.impl("out = torch.empty_like(x)\nranks_kernel[(1,)](x, out, BLOCK=64)\nreturn out", kernels=kernel)
    failure = lab.verify(lab.folder(place, SAME, text))["failures"][0]
    line = next(number for number, words in enumerate(text.splitlines(), 1) if "tl.dot" in words)
    assert failure["error_type"] == "InterpreterError"
    assert failure["error_msg"].startswith(f"expo_triton_ascend_impl.py:{line}: ")


GRADIENTS = """
    import torch
    import torch.nn as nn


    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("calls", torch.zeros(1))

        def forward(self, x, grad):
            self.calls += 1
            return self.calls * torch.autograd.grad(torch.tanh(x), x, grad)[0]


    def get_inputs():
        return [torch.randn(8, 64, requires_grad=True), torch.randn(8, 64)]


    def get_init_inputs():
        return []
"""

BACKWARD = """
@triton.jit
def backward_kernel(x_ptr, grad_ptr, out_ptr, calls_ptr, n, BLOCK: tl.constexpr):
    calls = tl.load(calls_ptr) + 1
    tl.store(calls_ptr, calls)
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    y = 1 - 2 / (tl.exp(2 * tl.load(x_ptr + offsets, mask=mask)) + 1)
    tl.store(out_ptr + offsets, calls * tl.load(grad_ptr + offsets, mask=mask) * FACTOR, mask=mask)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x, grad):
        out = torch.empty_like(x)
        backward_kernel[(triton.cdiv(x.numel(), 512),)](x, grad, out, self.calls, x.numel(), BLOCK=512)
        return out
"""


@pytest.mark.parametrize(("factor", "status"), [("(1 - y * y)", "PASS"), ("(1 - y)", "FAIL")])
def test_a_task_that_differentiates_is_judged(factor: str, status: str, place: Path) -> None:
    """Its forward asks torch for gradients; the calls it counts are those that count."""
    project = lab.folder(place, GRADIENTS, lab.HEAD + BACKWARD.replace("FACTOR", factor))
    result = lab.verify(project)
    assert result["status"] == status, result["failures"]
    if status == "FAIL":
        assert lab.first_error(result) == "PrecisionError"


def test_gradients_of_weights_are_outputs_as_others_are(place: Path) -> None:
    task = lab.EXPO.replace(
        "return torch.exp(x)", "return torch.autograd.grad(self.scale(x).sum(), self.scale.weight)[0]"
    ).replace(
        "def forward",
        "def __init__(self):\n            super().__init__()\n            self.scale = nn.Linear(64, 1)\n\n        def forward",
        1,
    )
    body = """
@triton.jit
def columns_kernel(x_ptr, out_ptr, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    rows, columns = tl.arange(0, ROWS), tl.arange(0, WIDTH)
    tl.store(out_ptr + columns, tl.sum(tl.load(x_ptr + rows[:, None] * WIDTH + columns[None, :]), axis=0))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Linear(64, 1)

    def forward(self, x):
        out = torch.empty(1, 64, device=x.device)
        columns_kernel[(1,)](x, out, ROWS=8, WIDTH=64)
        return out
"""
    result = lab.verify(lab.folder(place, task, lab.HEAD + body))
    assert result["status"] == "PASS", result["failures"]
