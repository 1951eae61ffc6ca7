"""Moved inputs meet the reference on the CPU before a device, which ends its process for some; a lost pass is told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tests.triton import lab

from pypto_op.hashing import sha256_file
from pypto_op.triton.run.inputs import reaching, skewed
from pypto_op.triton.run.inputs.rehearsed import Rehearsal
from pypto_op.triton.run.processes.task import Task

TABLE = torch.arange(8.0)
OWN, BEYOND = [torch.tensor([0, 7])], [torch.tensor([0, 8])]


def test_what_the_cpu_refuses_never_meets_a_device() -> None:
    rehearsal = Rehearsal(torch.device("cuda"), lambda inputs: TABLE[inputs[0]])
    rehearsal.of(OWN, OWN)
    with pytest.raises(IndexError):
        rehearsal.of(BEYOND, OWN)


def test_a_model_of_another_number_is_asked_on_the_cpu_too() -> None:
    """A table of 65,535 rows in the place of 65,536 ended the device's process, which took 7 s to start again."""
    shorter = Rehearsal(torch.device("cuda"), lambda inputs: TABLE[:7][inputs[0]])
    with pytest.raises(IndexError):
        shorter.of(OWN, OWN, lambda inputs: TABLE[inputs[0]])


def test_a_reference_that_the_cpu_cannot_run_is_asked_on_its_device() -> None:
    calls = []

    def named(inputs: list[torch.Tensor]) -> None:
        calls.append(inputs)
        raise RuntimeError("expected all tensors to be on the same device")

    rehearsal = Rehearsal(torch.device("cuda"), named)
    rehearsal.of(BEYOND, OWN)
    rehearsal.of(BEYOND, OWN)
    assert len(calls) == 2, "moved and own once each, and never again"


def test_on_the_cpu_nothing_is_called_twice() -> None:
    Rehearsal(torch.device("cpu"), lambda inputs: pytest.fail("called")).of(BEYOND, OWN)


@pytest.mark.parametrize(
    ("reference", "asked"),
    [
        (lambda x: torch.softmax(x @ x.T, dim=-1).half().sum(-1), 0),
        (lambda x: torch.nn.functional.layer_norm(x.view(2, 8), (8,)).relu().amax(), 0),
        (lambda x: TABLE[x.long()[0, 0]], 1),
        (lambda x: x.gather(1, x.long() % 4), 1),
        (lambda x: torch.bernoulli(x), 1),
        (lambda x: torch.nn.functional.binary_cross_entropy(x, x), 1),
        (lambda x: torch.nn.functional.embedding(x.long(), x), 1),
        (lambda x: torch.nn.functional.cross_entropy(x, x[:, 0].long()), 1),
        (lambda x: torch.multinomial(x + 1.0, 1), 1),
    ],
)
def test_the_cpu_is_asked_where_an_operator_refuses_values(reference: Callable[[torch.Tensor], torch.Tensor], asked: int) -> None:
    """A product of large matrices took it two seconds, and takes any numbers."""
    calls = []
    rehearsal = Rehearsal(torch.device("cuda"), calls.append, lambda inputs: reference(*inputs))
    own = [torch.zeros(4, 4)]
    rehearsal.of(own, own)
    assert len(calls) == asked


HONEST = lab.impl("return run(exp_kernel, x)", kernels=lab.EXP_KERNEL)
DYING = """
import os

class Model(nn.Module):
    def forward(self, x):
        if float(x.abs().max()) > 20:
            os._exit(1)
        return torch.exp(x)

def get_inputs():
    return [torch.rand(4, 6)]
def get_init_inputs():
    return []
"""


def test_a_reference_that_dies_on_moved_inputs_is_told(tmp_path: Path) -> None:
    """Every pass after it was left out in silence."""
    task = lab.task("return x", "[x]")
    result = lab.verify(lab.folder(tmp_path, task[: task.index("class Model")] + DYING, HONEST))
    assert result["status"] == "PASS", result["failures"] or result["error"]
    assert any("the reference failed when its inputs were moved" in line for line in result["caveats"])


FOLLOWS = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x):
        for _ in range(x.shape[-1]):
            x = x.gather(-1, x)
        return x

def get_inputs():
    return [torch.rand(2, 40).mul(torch.arange(40)).long()]
def get_init_inputs():
    return []
"""


@pytest.mark.parametrize("rehearsed", [False, True])
def test_what_inputs_come_to_is_seen_on_the_device_alone(
    rehearsed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a GPU the watch met tensors of the CPU, raised, and no inputs came to anything: wrong kernels passed there."""
    monkeypatch.setattr("pypto_op.triton.run.processes.model.prepare", lambda document: torch.device("cpu"))
    path = tmp_path / "follows_torch.py"
    path.write_text(FOLLOWS)
    task = Task({"file": str(path), "sha256": sha256_file(path), "enclosure": {"scratch": str(tmp_path)}})
    task._rehearsal._wanted = rehearsed
    task.handle({"call": "open", "seed": 0})
    case = {"call": "case", "index": 0, "seed": 0, "used": False, "judged": True, "move": "", "vary": [], "places": {}}
    task.handle({**case, "reloads": False, "after": "", "holds": False})
    places = torch.arange(40).sub(1).clamp(0).expand(2, 40).contiguous()
    assert {name.partition(" in ")[0] for name in task._comes_to("within linked", [places], 0)} == {"gather (after 4 turns)"}


SAME_SIGN = DYING.replace("torch.exp(x)", "torch.relu(x)")


@pytest.mark.parametrize(("body", "status"), [("tl.maximum({}, 0.0)", "PASS"), ("{}", "FAIL")])
def test_passes_after_the_one_that_ended_the_reference_are_made(body: str, status: str, tmp_path: Path) -> None:
    """What a relu is for shows in a later pass alone, since the task draws no number below zero."""
    task = lab.task("return x", "[x]")
    kernel = lab.EXP_KERNEL.replace("tl.exp(tl.load(x_ptr + i, mask=i < n))", body.format("tl.load(x_ptr + i, mask=i < n)"))
    implementation = lab.impl("return run(exp_kernel, x)", kernels=kernel)
    result = lab.verify(lab.folder(tmp_path, task[: task.index("class Model")] + SAME_SIGN, implementation))
    assert result["status"] == status, result["failures"] or result["error"]
    if status == "FAIL":
        assert reaching.TOLD_WITHIN in result["failures"][0]["error_msg"]
    else:
        said = [line for line in result["caveats"] if "the reference failed when its inputs were moved" in line]
        assert f"({skewed.FAR})" in said[0] and not any("later passes" in line for line in said)
