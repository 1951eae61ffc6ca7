"""Comparisons that would be made on a GPU are made all the same where the GPU is away, and say the same."""

from __future__ import annotations

import dataclasses
import textwrap
from pathlib import Path

import pytest
import torch
from tests import program

from pypto_op.triton.run.judging.judge_device import JudgeDevice
from pypto_op.triton.run.judging.judgement import compare
from pypto_op.triton.run.setup import targets
from pypto_op.triton.run.setup.request import policy_of
from pypto_op.triton.run.setup.targets import Target, choose

_ELEMENTS = 1 << 21


@pytest.mark.parametrize("target", [Target.INTERPRET, Target.CUDA])
@pytest.mark.parametrize("factor", [1.0, 1.05])
@pytest.mark.slow
def test_a_wrong_output_is_refused_and_a_right_one_is_not_wherever_it_is_compared(target: Target, factor: float) -> None:
    desk = JudgeDevice(dataclasses.replace(choose("interpret"), target=target))
    golden = torch.rand(_ELEMENTS, generator=torch.Generator().manual_seed(1)) + 1.0
    answer = golden.clone()
    answer[-1] *= factor
    found = desk.of_case(
        {"outputs": golden, "mutated": {}, "inputs": []},
        {"outputs": answer, "mutated": {}},
        lambda want, got: compare(want["outputs"], got["outputs"], policy_of(None)),
    )
    assert found.ok == (factor == 1.0), found.message


def test_what_fails_on_the_device_is_asked_again_on_the_cpu() -> None:
    desk = JudgeDevice(dataclasses.replace(choose("interpret"), target=Target.CUDA))
    desk._device = torch.device("meta")  # a device that holds no numbers, as one that was lost
    values = torch.ones(_ELEMENTS)
    assert desk.compare(values, lambda tensor: float(tensor.sum())) == _ELEMENTS


def test_workers_begin_before_the_judge_loads_torch() -> None:
    """What a command imports before it starts them must not bring torch, or both imports come one after another."""
    names = ", ".join(
        f"pypto_op.triton.{name}" for name in ("run.verify", "run.processes.roles", "run.processes.sessions", "bench.benchmark")
    )
    found = "{'torch', 'numpy', 'libcst'} & set(sys.modules)"
    done = program.python("-c", f"import sys, {names}\nassert not {found}, {found}")
    assert done.returncode == 0, done.stderr


def test_a_verdict_from_a_device_says_what_the_interpreter_alone_sees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, "_has_cuda", lambda: True)
    monkeypatch.setattr(targets, "_has_npu", lambda: True)
    for word in ("cuda", "npu"):
        assert any("races" in line and "--target interpret" in line for line in choose(word).caveats)
    assert not any("races" in line for line in choose("interpret").caveats), "there they are looked for"


@pytest.mark.parametrize(
    ("visible", "target"), [("0", Target.CUDA), ("", Target.INTERPRET), ("-1", Target.INTERPRET), ("GPU-5a", Target.CUDA)]
)
def test_a_gpu_that_is_hidden_is_not_there(visible: str, target: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The verdict was ReferenceFailed: no CUDA GPUs are available."""
    (tmp_path / "nvidia-smi").write_text("#!/bin/sh\n", encoding="utf-8")
    (tmp_path / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert choose("auto").target is target


def test_draws_on_cuda_come_from_a_generator_that_cuda_seeds() -> None:
    code = """
    import torch
    from pypto_op.backends import hostshim
    from pypto_op.triton.run.interpreter import hostdevice
    hostshim.install()
    hostdevice.install()
    drawn = lambda: (torch.cuda.manual_seed(3), torch.rand(4, device="cuda"))[1]
    torch.manual_seed(3)
    assert not torch.equal(torch.rand(4), drawn()) and torch.equal(drawn(), drawn()) and torch.cuda.initial_seed() == 3
    with torch.random.fork_rng(device_type="cuda"):
        inside = torch.rand(4, device="cuda")
    assert torch.equal(torch.rand(4, device="cuda"), inside)
    """
    done = program.with_torch("-c", textwrap.dedent(code))
    assert done.returncode == 0, done.stderr
