"""`pypto-op triton tune`: choices of a launch, what is refused, and a whole search in the interpreter."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.calling import Answer, command

from pypto_op.errors import ContractError, InfraError
from pypto_op.proof.key import KEY_ENV
from pypto_op.tuning.triton_kernel import TritonKernel

if importlib.util.find_spec("triton") is None:
    pytest.skip("triton is not installed; run `make setup`", allow_module_level=True)

from tests.triton import lab

from pypto_op.triton.run.setup.project import Project
from pypto_op.tuning.ledger import Fate
from pypto_op.tuning.triton_tune import tune_triton

SLOW = lab.impl("return run(copy_kernel, x)").replace("512", "32")
TASK = lab.task("return x * 1", "[torch.randn(1024)]")


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("account") / "seal.key"


@pytest.fixture
def project(tmp_path: Path, key: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv(KEY_ENV, str(key))
    return lab.folder(tmp_path / "verify", TASK, SLOW)


@pytest.fixture(scope="module")
def passed(key: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a project whose implementation has a PASS; `verified` copies it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(KEY_ENV, str(key))
        project = lab.folder(tmp_path_factory.mktemp("passed"), TASK, SLOW)
        assert lab.verify(project, seeds=1)["status"] == "PASS"
    return project.folder


@pytest.fixture
def verified(project: Project, passed: Path) -> Project:
    shutil.copytree(passed, project.folder, dirs_exist_ok=True)
    return project


def tune(project: Project, *words: str) -> Answer:
    return command("triton", "tune", "--op_name", project.op_name, "--verify_dir", project.folder, *words)


def test_a_block_and_its_grid_change_together() -> None:
    kernel = TritonKernel(SLOW)
    block = next(key for key in kernel.choices if key.startswith("BLOCK of launch"))
    text = kernel.write({block: "128"})
    assert "BLOCK=128)" in text and "x.numel()), 128)" in text and "32" not in text.split("def run")[1].split("return out")[0]
    warps = next(key for key in kernel.choices if key.startswith("num_warps"))
    assert "BLOCK=32, num_warps=8)" in kernel.write({warps: "8"})


def test_a_named_block() -> None:
    named = "SIZE = 64\n\n\ndef run(x):\n    kernel[(triton.cdiv(x.numel(), SIZE),)](x, BLOCK=SIZE, num_warps=4)\n"
    kernel = TritonKernel(named)
    assert kernel.write({"block SIZE, line 1": "256"}).startswith("SIZE = 256\n")
    assert kernel.choices["num_warps of launch 1 of kernel"].now == "4"


def test_without_a_verdict_nothing_is_tuned(project: Project) -> None:
    answer = tune(project, "--target", "interpret")
    assert answer.code == 2 and "there is no verdict" in answer.stderr


def test_no_budget(project: Project) -> None:
    assert tune(project, "--budget", "0").code == 2


@pytest.mark.slow
def test_a_search_in_the_interpreter(verified: Project) -> None:
    """The interpreter takes a while for each program, so fewer and larger ones are faster there."""
    from pypto_op.triton.run.setup.targets import Target, choose

    if choose(None).target is Target.INTERPRET:
        refused = tune(verified)
        assert refused.code == 3 and "there is no GPU" in refused.stderr
    before = verified.impl.read_text(encoding="utf-8")
    answer = tune(verified, "--target", "interpret", "--trials", "3", "--json")
    assert answer.code == 0, answer.stderr
    told = answer.report
    assert told["timings"] == 4 and len(told["candidates"]) == 3
    assert told["written"] and told["gain"] > 1 and told["combinations"] > 100
    report = (verified.folder / f"{verified.op_name}_tuning_report.md").read_text(encoding="utf-8")
    chosen = told["candidates"][told["chosen"] - 1]
    assert f"candidate {told['chosen']} is {told['gain']:.2f} times as fast" in report and chosen["diff"] in report
    assert all(f"| {one['number']} | {one['origin']} |" in report for one in told["candidates"])
    page = (verified.tuning_folder / "tuning.html").read_text(encoding="utf-8")
    assert f"{told['gain']:.2f} times faster" in page and page.count("<circle") == len(told["candidates"])
    assert "times of Triton&#39;s interpreter" in page and all(shape in page for shape in told["before_us"])
    assert verified.impl.read_text(encoding="utf-8") != before
    assert lab.read(verified.verify_result)["status"] == "PASS", "the verdict is about the new bytes"


@pytest.mark.slow
def test_a_search_goes_on_after_a_kill(verified: Project) -> None:
    nothing = tune(verified, "--target", "interpret", "--resume")
    assert nothing.code == 2 and "there is no earlier search" in nothing.stderr
    place = ("--op_name", verified.op_name, "--verify_dir", str(verified.folder), "--target", "interpret", "--dry-run")
    words = [sys.executable, "-m", "pypto_op.cli", "triton", "tune", *place, "--trials", "40"]
    running = subprocess.Popen(
        words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, "PYPTO_OP_RESIDENT": "0"}
    )
    ledger: list[Path] = []
    while running.poll() is None and not ledger:
        time.sleep(0.05)
        ledger = [path for path in verified.tuning_folder.glob("*/candidates.jsonl") if path.stat().st_size]
    running.send_signal(signal.SIGKILL)
    running.wait()
    known = len(ledger[0].read_text(encoding="utf-8").splitlines())
    answer = tune(verified, "--target", "interpret", "--resume", "--trials", str(known + 1), "--dry-run", "--json")
    assert answer.code == 0, answer.stderr
    assert answer.report["resumed"] == known and answer.report["timings"] == 2, "the implementation itself, and one new candidate"


@pytest.mark.slow
def test_a_reference_that_goes_away_ends_the_search_and_blames_no_candidate(project: Project, tmp_path: Path) -> None:
    there = tmp_path / "verify" / "device.json"
    there.write_text("{}", encoding="utf-8")
    inputs = "[torch.randn(4096)] if __import__('json').load(open(__file__.rpartition('/')[0] + '/device.json')) == {} else 1 / 0"
    project.task.write_text(lab.task("return x * 1", inputs), encoding="utf-8")
    assert lab.verify(project, seeds=1)["status"] == "PASS"

    def vanish(words: str) -> None:
        there.write_text("[]", encoding="utf-8")

    with pytest.raises(InfraError, match="the implementation itself does not run any more"):
        tune_triton(project, target="interpret", seconds=60, trials=4, note=vanish)
    (kept,) = project.tuning_folder.glob("*/candidates.jsonl")
    assert len(kept.read_text(encoding="utf-8").splitlines()) == 1, "the first candidate, which was timed before"


@pytest.mark.slow
def test_a_candidate_that_is_fast_because_it_is_wrong(project: Project) -> None:
    """One block must hold a row; half of it is faster, and leaves half of the row out."""
    sums = """
@triton.jit
def sums(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    row = tl.program_id(0)
    values = tl.load(x_ptr + row * columns + offsets, mask=offsets < columns, other=0.0)
    tl.store(out_ptr + row, tl.sum(values))
"""
    forward = "out = torch.empty(x.shape[0])\nsums[(x.shape[0],)](x, out, x.shape[1], BLOCK=64)\nreturn out"
    project.task.write_text(lab.task("return x.sum(-1)", "[torch.rand(4, 60)]"), encoding="utf-8")
    project.impl.write_text(lab.impl(forward, kernels=sums), encoding="utf-8")
    assert lab.verify(project, seeds=1)["status"] == "PASS"
    tuned = tune_triton(project, target="interpret", seconds=300, trials=5, write=False)
    halved = [
        one for one in tuned.candidates if any(key.startswith("BLOCK") and int(to) < 64 for key, to in one.assignment.items())
    ]
    assert halved and all(one.fate is Fate.WRONG and one.ratio is None for one in halved)
    assert tuned.chosen not in halved


@pytest.mark.slow
def test_what_changed_while_it_was_tuned_is_not_overwritten(verified: Project) -> None:

    def edit(words: str) -> None:
        verified.impl.write_text(SLOW + "# a person's work\n", encoding="utf-8")

    with pytest.raises(ContractError, match="changed while it was tuned"):
        tune_triton(verified, target="interpret", seconds=60, trials=2, note=edit)
    assert verified.impl.read_text(encoding="utf-8").endswith("# a person's work\n")
