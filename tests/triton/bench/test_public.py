"""`python -m benchmarks.public` on a collection of the tests: a repository that is cloned, laid out as the public ones are."""

from __future__ import annotations

import importlib.util
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

if importlib.util.find_spec("triton") is None:
    pytest.skip("triton is not installed; run `make setup`", allow_module_level=True)

from benchmarks.public import kernels, league, mutants
from benchmarks.public.__main__ import main, told
from tests.triton import lab

from pypto_op.proof.key import KEY_ENV

TASK = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, beta):
        super().__init__()
        self.beta = beta

    def forward(self, x):
        return torch.nn.functional.softplus(x, beta=self.beta)


rows = 4096
columns = 4096


def get_inputs():
    return [torch.randn(rows, columns)]


def get_init_inputs():
    return [2]
"""
KERNEL = """
import torch
import triton
import triton.language as tl


@triton.jit
def sine(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.sin(tl.load(x_ptr + offsets, mask=offsets < n)), mask=offsets < n)


def call_kernel(x):
    out = torch.empty_like(x)
    sine[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)
    return out


##################################################


def test_sine():
    return {"one": call_kernel(torch.arange(70.0))}


result = test_sine()
"""


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a clone of a repository with one task and one kernel, where the public collections have theirs."""
    origin, clone = (tmp_path_factory.mktemp(name) for name in ("origin", "clone"))
    for place, text in (("KernelBench/level1/29_Softplus.py", TASK), ("data/TritonBench_G_v1/sin_kernel.py", KERNEL)):
        (origin / place).parent.mkdir(parents=True)
        (origin / place).write_text(text, encoding="utf-8")
    author = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    for words in (("init", "-q"), ("add", "-A"), (*author, "commit", "-qm", "all")):
        subprocess.run(["git", "-C", str(origin), *words], check=True)
    subprocess.run(["git", "clone", "-q", str(origin), str(clone)], check=True)
    return clone


@pytest.fixture(autouse=True)
def key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_ENV, str(tmp_path / "seal.key"))


def run(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


def rows(answer: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in answer.output.splitlines() if line.startswith("{")]


@pytest.mark.slow
def test_a_public_task_is_imported_and_its_own_model_is_no_kernel(checkout: Path) -> None:
    answer = run("tasks", "--source", f"kernelbench={checkout}", "--levels", "level1")
    assert answer.exit_code == 0, answer.output
    (row,) = rows(answer)
    assert (row["task"], row["import"], row["copy"]) == ("level1/29_Softplus", "imported", "Forbidden")
    assert row["public"][0] == "4096x4096" and row["here"][0] != row["public"][0]
    assert "| level1/29_Softplus | imported | 4096x4096" in answer.output


@pytest.mark.slow
def test_a_public_kernel_is_judged_by_a_task_of_ours(checkout: Path) -> None:
    answer = run("kernels", "--source", f"tritonbench={checkout}", "--only", "tritonbench/sin_kernel")
    assert answer.exit_code == 0, answer.output
    (row,) = rows(answer)
    assert (row["kernel"], row["verdict"]) == ("sin_kernel", "PASS"), row


@pytest.mark.slow
def test_a_file_that_imports_another_of_its_collection_is_judged_by_a_task_of_several_lines(tmp_path: Path) -> None:
    root = tmp_path / "checkout/python/sgl_kernel_npu/sgl_kernel_npu"
    helper = "def rows_at_once():\n    return 64\n"
    first, _, rest = KERNEL.split("#" * 20, maxsplit=1)[0].partition("import triton\n")
    text = f"{first}from sgl_kernel_npu.utils.triton_utils import rows_at_once\nimport triton\n{rest}".replace(
        "64)", "rows_at_once())"
    )
    for place, content in (("utils/triton_utils.py", helper), ("norm/sine.py", text)):
        (root / place).parent.mkdir(parents=True)
        (root / place).write_text(content, encoding="utf-8")
    entry = {"source": "sgl_kernel_npu", "file": "norm/sine", "function": "call_kernel", "args": "x", "inputs": "torch.randn(99)"}
    entry |= {"want": "y = x.sin(); return y", "call": "y = call_kernel(x); return y"}
    row = kernels.row(entry, tmp_path / "checkout", "interpret")
    assert (row["kernel"], row["verdict"]) == ("norm/sine call_kernel", "PASS"), row


def test_a_source_that_is_no_folder() -> None:
    answer = run("tasks", "--source", "kernelbench=/nowhere/at/all")
    assert answer.exit_code == 2 and "is no NAME=FOLDER" in answer.output


def test_every_entry_names_a_collection_and_is_there_once() -> None:
    named = [(entry["source"], entry["file"]) for entry in kernels.entries()]
    functions = [(*pair, entry.get("function")) for pair, entry in zip(named, kernels.entries(), strict=True)]
    assert len(functions) == len(set(functions)) >= 80
    assert {source for source, _ in named} == set(kernels.FILES)
    assert set(league.PLAYERS) <= {f"{source}/{file}" for source, file in named}


def test_each_fault_changes_one_place_of_a_kernel_and_parses() -> None:
    found = mutants.planted(KERNEL, 20, seed=1, skip=())
    assert {fault.kind for fault in found} == {"operator", "operand dropped", "comparison", "constant", "function"}
    before = KERNEL.split("\n")
    for fault in found:
        after = fault.text.split("\n")
        changed = [number for number, pair in enumerate(zip(before, after, strict=True), 1) if pair[0] != pair[1]]
        assert changed == [fault.line] and fault.after in after[fault.line - 1]
        assert before[fault.line - 1].startswith("    "), "the kernel's, not the wrapper's"
    assert mutants.planted(KERNEL, 20, seed=1, skip=("sine",)) == []


@pytest.mark.slow
def test_the_league_of_one_kernel(checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cosine in the place of the sine is seen by both; both accept the kernel as it is."""
    monkeypatch.setattr(league, "PLAYERS", {"tritonbench/sin_kernel": ""})
    monkeypatch.setattr(league, "_PACKAGES", {})
    prepared = tmp_path / "league"
    assert league.prepare({"tritonbench": checkout}, prepared, 20) > 5
    listed = prepared / "tritonbench_sin_kernel" / "mutants.json"
    document = json.loads(listed.read_text(encoding="utf-8"))
    document["mutants"] = [fault for fault in document["mutants"] if "tl.cos(" in fault["after"]]
    listed.write_text(json.dumps(document), encoding="utf-8")
    answer = run("league", "--from", prepared, "--lanes", 1, "--limit", 240, "--out", tmp_path)
    assert answer.exit_code == 0, answer.output
    kept = lab.read(tmp_path / "triton_league_interpret.json")
    assert [(row["number"], row["own"]["ok"], row["judge"]["ok"]) for row in kept] == [(-1, True, True), (0, False, False)], kept
    assert "| all | 1 | 1 | 1 (100 %" in answer.output


def test_results_name_no_folder_of_this_machine(tmp_path: Path) -> None:
    import torch

    assert "site-packages" in told([torch.__file__]) and str(Path(torch.__file__).parents[1]) not in told([torch.__file__])
