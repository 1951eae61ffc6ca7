"""`pypto-op triton tune`: choices of a launch, what is refused, and a whole search in the interpreter."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from tests.calling import Answer, command

from pypto_op.proof.key import KEY_ENV
from pypto_op.tuning.triton_kernel import TritonKernel

if importlib.util.find_spec("triton") is None:
    pytest.skip("triton is not installed; run `make setup`", allow_module_level=True)

from tests.triton import lab

from pypto_op.triton.run.project import Project

SLOW = lab.impl("return run(copy_kernel, x)").replace("512", "32")
TASK = lab.task("return x * 1", "[torch.randn(4096)]")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv(KEY_ENV, str(tmp_path / "seal.key"))
    return lab.folder(tmp_path / "verify", TASK, SLOW)


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


def test_a_search_in_the_interpreter(project: Project) -> None:
    """The interpreter takes a while for each program, so fewer and larger ones are faster there."""
    assert lab.verify(project, seeds=1)["status"] == "PASS"
    from pypto_op.triton.run.targets import Target, choose

    if choose(None).target is Target.INTERPRET:
        refused = tune(project)
        assert refused.code == 3 and "there is no GPU" in refused.stderr
    before = project.impl.read_text(encoding="utf-8")
    answer = tune(project, "--target", "interpret", "--trials", "3", "--json")
    assert answer.code == 0, answer.stderr
    told = answer.report
    assert told["timings"] == 4 and len(told["candidates"]) == 3
    assert told["written"] and told["gain"] > 1
    assert project.impl.read_text(encoding="utf-8") != before
    assert lab.read(project.verify_result)["status"] == "PASS", "the verdict is about the new bytes"
