"""Programs of a launch run in other orders, in a process that chooses them; on a GPU each verdict asks for that."""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.triton import lab

from pypto_op.triton.run import reordered
from pypto_op.triton.run.case import Case
from pypto_op.triton.run.judging.judge_device import JudgeDevice
from pypto_op.triton.run.passes import Run
from pypto_op.triton.run.processes.sessions import CandidateSession, Started
from pypto_op.triton.run.setup.request import Request, policy_of
from pypto_op.triton.run.watching import orders

KERNELS = """
@triton.jit
def last_kernel(x_ptr, part_ptr, out_ptr, n, BLOCK: tl.constexpr, PARTS: tl.constexpr):
    row = tl.program_id(0)
    i = row * BLOCK + tl.arange(0, BLOCK)
    tl.store(part_ptr + row, tl.sum(tl.load(x_ptr + i, mask=i < n, other=0.0), axis=0))
    if row == tl.num_programs(0) - 1:
        tl.store(out_ptr, tl.sum(tl.load(part_ptr + tl.arange(0, PARTS)), axis=0))


@triton.jit
def shifting_kernel(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    here = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.store(x_ptr + i, tl.load(x_ptr + i - 1, mask=(i > 0) & (i < n), other=0.0) + here, mask=i < n)


@triton.jit
def persistent_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    for block in range(tl.program_id(0), tl.cdiv(n, BLOCK), tl.num_programs(0)):
        i = block * BLOCK + tl.arange(0, BLOCK)
        tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) * 2.0, mask=i < n)


@triton.jit
def boxes_kernel(x_ptr, out_ptr, H, W, BLOCK: tl.constexpr):
    at = (tl.program_id(2) * H + tl.program_id(1)) * W + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK) < W
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=mask) * 2.0, mask=mask)


@triton.jit
def ordered_kernel(x_ptr, out_ptr, turn_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    while tl.atomic_cas(turn_ptr, row, row) != row:
        pass
    i = row * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) * 2.0, mask=i < n)
    tl.atomic_xchg(turn_ptr, row + 1)
"""
TWICE, SUM = "return x * 2", "return x.sum()"
OF_LAST = "out, part = torch.empty(()), torch.empty(8)\nlast_kernel[(8,)](x, part, out, 50, BLOCK=8, PARTS=8)\nreturn out"
KINDS = {
    "the last program adds up what the others leave": (SUM, OF_LAST, {"down"}),
    "each program reads its neighbour's block, which changes in place": (
        "return x + torch.cat([torch.zeros(1), x[:-1]])",
        "out = x.clone()\nshifting_kernel[(7,)](out, 50, BLOCK=8)\nreturn out",
        {"", "up"},
    ),
    "three programs take seven blocks in turn": (
        TWICE,
        "out = torch.empty_like(x)\npersistent_kernel[lambda meta: (24 // meta['BLOCK'],)](x, out, 50, BLOCK=8)\nreturn out",
        set(),
    ),
    "programs along three axes": (
        TWICE,
        "out = torch.empty_like(x)\nboxes_kernel[(2, 5, 1)](x, out, 5, 10, BLOCK=8)\nreturn out",
        set(),
    ),
    "programs that wait for each other are left in their own order": (
        TWICE,
        "out, turn = torch.empty_like(x), torch.zeros(1, dtype=torch.int32)\n"
        "ordered_kernel[(7,)](x, out, turn, 50, BLOCK=8)\nreturn out",
        set(),
    ),
}


@dataclass
class Prepared:
    """A verification before its first pass, with a process whose calls may choose the order of programs."""

    run: Run
    started: Started
    session: CandidateSession
    wrong: set[str]

    def case(self) -> tuple[dict[str, Any], dict[str, Any]]:
        self.started.task.open(0)
        found = self.started.task.case(0, 0)
        assert found is not None
        return found

    def begin(self, others: reordered.Reordered) -> None:
        given, reference = self.case()
        others.begin(self.run.cases[0], given, reference, 0)

    def opened(self, wanted: Callable[[Case], bool]) -> Iterator[tuple[Case, int]]:
        self.started.task.open(0)
        yield from ((case, 0) for case in self.run.cases if wanted(case))


@pytest.fixture(params=KINDS)
def prepared(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Prepared]:
    want, forward, wrong = KINDS[request.param]
    project = lab.folder(tmp_path / "op", lab.task(want, "torch.randn(50)"), lab.impl(forward, kernels=KERNELS))
    run = Run(project, Request(target="interpret", timeout=60.0), None, time.monotonic(), policy_of(None))
    limits = run.request.limits(run.started)
    started = Started(project, "interpret", limits)
    session = CandidateSession(project, started.place, limits, ordered=True)
    run.place, run.desk, run.cases = started.place, JudgeDevice(started.place), [Case(0)]
    with contextlib.closing(started), contextlib.closing(session):
        yield Prepared(run, started, session, wrong)


@pytest.mark.slow
def test_only_what_depends_on_the_order_of_programs_gives_other_numbers(prepared: Prepared) -> None:
    given, _ = prepared.case()
    answers, _ = prepared.session.in_orders(given, 0, ["", "up", "down"])
    wrong = {order for some, answer in answers for order in some if not torch.allclose(answer["outputs"], given["outputs"])}
    assert wrong == prepared.wrong


@pytest.mark.slow
@pytest.mark.parametrize("beside", [False, True])
def test_the_verdict_names_the_order_in_which_the_answer_is_wrong(prepared: Prepared, beside: bool) -> None:
    others = reordered.Reordered(prepared.run, prepared.started.task, prepared.session)
    if beside:
        prepared.begin(others)
    others.everything(prepared.opened)
    found = prepared.run.cases[0].judgement
    if prepared.wrong == {"down"}:
        assert found.error_type == "RaceError"
        assert "one after another, from the last to the first" in found.message
    else:
        assert found.error_type == ("PrecisionError" if prepared.wrong else "")


@pytest.mark.slow
@pytest.mark.parametrize("prepared", ["programs along three axes"], indirect=True)
def test_cases_for_which_no_time_is_left_are_named(prepared: Prepared, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reordered, "_ALL_SECONDS", -1.0)
    reordered.Reordered(prepared.run, prepared.started.task, prepared.session).everything(prepared.opened)
    assert [line for line in prepared.run.cases[0].said if line.startswith("no other order of programs was judged")]


@pytest.mark.slow
@pytest.mark.parametrize("prepared", ["programs along three axes"], indirect=True)
def test_a_case_whose_calls_were_right_beside_other_passes_is_not_called_again(
    prepared: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    with contextlib.closing(reordered.Reordered(prepared.run, prepared.started.task, prepared.session)) as others:
        prepared.begin(others)
        monkeypatch.setattr(prepared.started.task, "case", lambda *_, **__: pytest.fail("asked for the case again"))
        others.everything(prepared.opened)
    assert prepared.run.cases[0].judgement.ok and not prepared.run.cases[0].said


@pytest.mark.slow
@pytest.mark.parametrize("prepared", ["programs along three axes"], indirect=True)
def test_calls_that_were_begun_end_with_the_verification(prepared: Prepared) -> None:
    others = reordered.Reordered(prepared.run, prepared.started.task, prepared.session)
    prepared.begin(others)
    others.close()
    assert not prepared.session.scratch.exists()


def test_a_machine_without_a_gpu_starts_no_further_process(tmp_path: Path) -> None:
    project = lab.folder(tmp_path / "op", lab.task(TWICE, "torch.randn(50)"), lab.impl("return x", kernels=KERNELS))
    limits = Request().limits(time.monotonic())
    with contextlib.closing(Started(project, "interpret", limits, orders=True)) as started:
        assert started.ordered is None


@given(st.tuples(*[st.integers(0, 40)] * 3), st.integers(1, 600))
def test_parts_of_a_launch_are_its_programs_in_their_order_each_once(grid: tuple[int, int, int], most: int) -> None:
    parts = list(orders.parts(grid, most))
    programs = [(z, y, x) for cell, size in parts for z, y, x in itertools.product(*map(_steps, cell[2::-1], size[::-1]))]
    assert programs == sorted(itertools.product(*map(range, grid[::-1])))
    assert {cell[3:6] for cell, _ in parts} <= {grid}
    assert len(parts) <= 2 * most


def _steps(first: int, size: int) -> range:
    return range(first, first + size)


def test_what_a_gpu_runs_reads_its_ids_from_memory_and_waits_before_loads(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    triton = pytest.importorskip("triton")
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))

    def patch(kind: type, name: str, around: Callable[[Any], Any]) -> None:
        monkeypatch.setattr(kind, name, around(getattr(kind, name)))

    orders.Orders(contextlib.nullcontext, "cpu", warps=True).install(patch)
    space: dict[str, Any] = {}
    path = tmp_path / "kernels.py"
    path.write_text(lab.IMPORTS + KERNELS, encoding="utf-8")
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), space)  # noqa: S102
    types = {"x_ptr": "*fp32", "out_ptr": "*fp32", "n": "i32", "BLOCK": "constexpr"}
    source = ASTSource(space["persistent_kernel"], types, {"BLOCK": 256})
    code = triton.compile(source, target=GPUTarget("cuda", 90, 32)).asm
    assert code["cubin"]  # NVIDIA's assembler takes it
    assert code["ptx"].count("ld.volatile.global.b32") >= 3  # the id, the number, how warps wait
    assert "ld.global.cg" in code["ptx"] or "cp.async.cg" in code["ptx"]
    assert code["ptx"].count("AGAIN") % 2 == 0 and code["ptx"].count("%ctaid.z") == 2  # before the load, and before the store
