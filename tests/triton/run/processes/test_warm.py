"""What a process finds loaded when it is forked, and what seeding and watching it cost: each verdict pays for the rest."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests import program

KERNEL = """
import torch, triton
import triton.language as tl

@triton.jit
def kernel(out):
    tl.store(out + tl.arange(0, 4), 1.0)
"""

FIRST_LAUNCH = """
import sys
import pypto_op.triton.run.processes.candidate
import kernel

before = set(sys.modules)
out = kernel.torch.zeros(4)
kernel.kernel[(1,)](out)
assert out.sum() == 4
print(sorted(name for name in set(sys.modules) - before if name.startswith("triton.")))
"""

SEEDED = """
import random, traceback
import numpy, torch
from pypto_op.triton.run.inputs import draws
from pypto_op.triton.run.processes import model

device = model.prepare({"device": {"target": "interpret"}, "file": draws.__file__})

def drawn():
    on_device = torch.rand(2, device="npu"), torch.rand(2, device="cuda")
    return [random.random(), numpy.random.rand(), torch.rand(2).tolist(), *(made.tolist() for made in on_device)]

torch.manual_seed(7), random.seed(7), numpy.random.seed(7)
wanted = drawn()
traceback.format_stack = None
draws.seed_all(7)
assert drawn() == wanted
"""

TRACED = """
import gc, sys
from pypto_op.backends.worker.askers import BUSY
from pypto_op.triton.run.watching.lines import Lines

asked = []
sys.addaudithook(lambda event, told: asked.append(told[1]) if event == "object.__getattr__" and not BUSY.on else None)

def own():
    return 1

lines = Lines(frozenset([__file__]))
with lines:
    assert own() == 1
assert len(lines.ran) == 1 and asked == [] and gc.isenabled() and not BUSY.on, asked
assert sys._getframe().f_code and asked == ["f_code"]
"""


@pytest.mark.slow
def test_a_first_launch_loads_nothing_more_of_triton(tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text(KERNEL)
    env = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": str(tmp_path)}
    run = program.python("-c", FIRST_LAUNCH, cwd=tmp_path, env=env)
    assert (run.stdout.strip(), run.returncode) == ("[]", 0), run.stderr


def test_seeding_is_pytorchs_own_and_takes_no_stack_traces() -> None:
    run = program.with_torch("-c", SEEDED, env={**os.environ, "TRITON_INTERPRET": "1"})
    assert run.returncode == 0, run.stderr


def test_watching_lines_causes_no_event_that_a_guard_would_look_at(tmp_path: Path) -> None:
    """Python tells hooks of each look at a frame's code, and lines are watched by such a look at every call."""
    (tmp_path / "traced.py").write_text(TRACED)
    run = program.with_torch(tmp_path / "traced.py")
    assert run.returncode == 0, run.stderr
