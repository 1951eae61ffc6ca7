"""Loops whose later turns change nothing are found, get inputs on which they do, or are told (`inputs/turns.py`)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tests.triton import lab

from pypto_op.triton.run.inputs import idle, reaching, turns

DRAWS = torch.Generator().manual_seed(3)
LINKS = (torch.rand(3, 20, generator=DRAWS) * torch.arange(20)).long()
FLAGS = (torch.rand(2, 9, 9, generator=DRAWS) < 0.3).int()
DENSE = (torch.rand(2, 12, 12, generator=DRAWS) < 0.6).int()
LENGTHS = torch.rand(9, 9, generator=DRAWS) + 0.1


def _followed(links: torch.Tensor) -> torch.Tensor:
    for _ in range(links.shape[-1]):
        links = links.gather(-1, links)
    return links


def _balanced(x: torch.Tensor) -> torch.Tensor:
    for _ in range(20):
        x = x / x.sum(-1, keepdim=True)
        x = x / x.sum(-2, keepdim=True)
    return x


def _grown(seeds: torch.Tensor) -> torch.Tensor:
    seeds = seeds.clone()
    for _ in range(16):
        seeds[..., 1:] |= seeds[..., :-1].clone()
    return seeds


def _sides(call: Callable[[torch.Tensor], torch.Tensor], given: torch.Tensor) -> tuple[set[str], set[str]]:
    """Return which sides of loops a call never came to, and to which it came."""
    with idle.Idle(Path(__file__)) as watch:
        call(given)
    told = [{side for side in turns.SIDES if any(f"({side})" in key for key in keys)} for keys in (watch.found, watch.busy)]
    return told[0], told[1]


@pytest.mark.parametrize(
    ("call", "given", "more"),
    [(_followed, LINKS, turns.linked([LINKS])), (_balanced, LENGTHS, None), (_grown, DENSE, turns.WAYS["one alone"]([DENSE]))],
)
def test_a_loop_whose_later_turns_change_nothing_is_idle_until_they_do(
    call: Callable[[torch.Tensor], torch.Tensor], given: torch.Tensor, more: list[torch.Tensor] | None
) -> None:
    if more is None:
        more = [given.clone()]
        turns.far_apart(more[0], given)
    idle_on, _ = _sides(call, given)
    _, busy_on = _sides(call, more[0])
    assert idle_on & busy_on, "inputs that go from element to element need turns that random ones do not"


def test_layers_and_steps_over_time_are_no_idle_loops() -> None:
    weights = torch.randn(10, 9, 9, generator=DRAWS)

    def layers(x: torch.Tensor) -> torch.Tensor:
        for weight in weights:
            x = torch.tanh(x @ weight)
        return x

    def steps(x: torch.Tensor) -> torch.Tensor:
        state = torch.zeros_like(x[:, 0])
        for at in range(x.shape[1]):
            state = 0.9 * state + x[:, at]
        return state

    for call in (layers, steps):
        assert _sides(call, LENGTHS)[0] == set()


def test_each_way_goes_from_element_to_element() -> None:
    assert turns.linked([LINKS])[0][0].tolist() == [0, *range(19)]
    assert turns.linked([19 - LINKS.flip(-1)])[0][0].tolist() == [*range(1, 20), 19]
    first, second = turns.joined([LINKS[0], LINKS[1]])
    assert bool((second == first + 1).all()) and int(second.max()) <= int(LINKS[:2].max())
    (pairs,) = turns.joined([LINKS[:2]])
    assert bool((pairs[1] == pairs[0] + 1).all())
    (chain,) = turns.WAYS["chained"]([FLAGS])
    assert torch.equal(chain.sum(-1)[:, :-1] - FLAGS.diagonal(dim1=1, dim2=2)[:, :-1], torch.ones(2, 8, dtype=torch.int64))
    (maze,) = turns.WAYS["a maze"]([FLAGS])
    assert maze[0, 1].tolist() == [0] * 8 + [1] and maze[0, 3].tolist() == [1] + [0] * 8 and bool((maze[0, ::2] == 1).all())
    (lengths,) = turns.detours([LENGTHS])
    assert float(lengths.diagonal(1).sum()) < float(lengths[0, 2:].min())
    for stays in (LENGTHS, torch.arange(9)):
        assert turns.linked([stays + 0.5]) is None and turns.joined([stays]) is None


def test_what_stays_idle_is_told_once_by_its_line() -> None:
    found = {"gather (after 4 turns) in line 7": True, "gather (after 8 turns) in line 7, place 2": True}
    (said,) = idle.told(found)
    assert "loops over line 7, and" in said and idle.told([]) == []
    kinds = [name for name, _ in reaching.reaching([LINKS], found)]
    assert "within linked" in kinds and "within missing" not in kinds, "a loop alone asks for chains alone"


_FOLLOW = """
@triton.jit
def follow_kernel(x_ptr, out_ptr, n, TURNS: tl.constexpr, BLOCK: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    at = tl.load(x_ptr + row * n + cols, mask=cols < n, other=0)
    for _ in range(TURNS):
        at = tl.load(x_ptr + row * n + at, mask=cols < n, other=0)
    tl.store(out_ptr + row * n + cols, at, mask=cols < n)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("count", "status"), [(14, "FAIL"), (24, "PASS")])
def test_a_kernel_that_makes_few_turns_is_refused(tmp_path: Path, count: int, status: str) -> None:
    task = lab.task(
        "for _ in range(24):\n    x = x.gather(-1, x)\nreturn x",
        "[torch.where(torch.rand(3, 24) < 0.2, torch.arange(24), (torch.rand(3, 24) * torch.arange(24)).long())]",
    )
    lines = f"out = torch.empty_like(x)\nfollow_kernel[(3,)](x, out, 24, TURNS={count}, BLOCK=32)\nreturn out"
    result = lab.verify(lab.folder(tmp_path / "op", task, lab.impl(lines, kernels=_FOLLOW)))
    assert result["status"] == status, result["failures"] or result["error"]
