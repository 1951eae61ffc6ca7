"""Inputs of the other sign, that are close, or zero in one tensor alone, and whole numbers that crowd (`inputs/reaching.py`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from tests.triton import lab

from pypto_op.triton.run.inputs import reaching, signed, stretched

DRAWS = torch.Generator().manual_seed(4)
EVEN = torch.rand(12, 20, generator=DRAWS) + 0.1
NORMAL, OTHER = torch.randn(12, 20, generator=DRAWS), torch.randn(12, 20, generator=DRAWS)


def _ways(inputs: list[Any], *idle: str) -> dict[str, Any]:
    return dict(reaching.reaching(inputs, dict.fromkeys(idle, False)))


def test_numbers_of_one_sign_get_the_other_where_elements_are_picked() -> None:
    for name in ("sort", "cummax", "max_pool2d_with_indices", "embedding_bag", "amax", "argmin"):
        found = _ways([EVEN], f"{name} (one sign) in line 3")
        (half,), (all_of_them,) = found["within mirrored"], found["within negated"]
        assert bool((half[:6] < 0).all()) and bool((half > 0).any()) and torch.equal(all_of_them, -EVEN)
    assert "within negated" not in _ways([EVEN, NORMAL], "amax (one sign) in line 3"), "a history of maxima has one sign"
    assert "within negated" not in _ways([NORMAL], "sort (one sign) in line 3")


_KERNEL = """
@triton.jit
def greatest_kernel(x_ptr, out_ptr, n, START: tl.constexpr, BLOCK: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + cols, mask=cols < n, other=START)
    tl.store(out_ptr + row, tl.max(x))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("forward", "given", "start", "status"),
    [
        ("return xs[0].amax(-1)", "torch.rand(8, 50)", "0.0", "FAIL"),
        ("return xs[0].max(-1).values", "torch.rand(8, 50)", "0.0", "FAIL"),
        ("return xs[0].amax(-1)", "torch.rand(8, 50)", "-float('inf')", "PASS"),
        ("return xs[1] * xs[0].amax(-1)", "torch.rand(8, 50), torch.randn(8)", "0.0", "PASS"),
        ("return xs[1] * xs[0].amax(-1)", "torch.rand(8, 50), torch.randn(8)", "-float('inf')", "PASS"),
    ],
)
def test_a_maximum_begins_at_zero_where_signs_have_a_meaning_alone(
    tmp_path: Path, forward: str, given: str, start: str, status: str
) -> None:
    launch = f"greatest_kernel[(8,)](xs[0], out, 50, START={start}, BLOCK=64)"
    kernels = _KERNEL
    if "xs[1]" in forward:
        kernels = _KERNEL.replace("x_ptr, out", "x_ptr, by_ptr, out").replace("tl.max(x)", "tl.max(x) * tl.load(by_ptr + row)")
        launch = launch.replace("xs[0], out", "xs[0], xs[1], out")
    lines = f"out = torch.empty(8, device=xs[0].device)\n{launch}\nreturn out"
    result = lab.verify(
        lab.folder(tmp_path / "op", lab.task(forward, f"[{given}]"), lab.impl(lines, kernels=kernels)), policy=None
    )
    assert result["status"] == status, result["failures"] or result["error"]


def test_elements_are_close_in_parts_of_themselves() -> None:
    found = _ways([NORMAL, OTHER], "le (close) in line 3")
    one, two = found["within close 0"]
    parts = ((one - two) / two).abs()
    assert torch.equal(two, OTHER) and bool(parts.min() > 0)
    assert float(parts.min()) < 1e-6 and float((parts < 0.4).float().mean()) > 0.6


def test_short_whole_numbers_are_their_least_in_two_tensors_at_once() -> None:
    short = torch.randint(-900, 900, (2, 70), generator=DRAWS).to(torch.int16)
    one, two = _ways([*short], "clamp (upper) in line 3")["within limits"]
    for first, second in ((-32768, -32768), (32767, 32767), (32767, -32768)):
        assert bool(((one == first) & (two == second)).any())
    assert "within limits" not in _ways([short.int(), NORMAL], "clamp (upper) in line 3"), "those wrap around elsewhere"


def test_rows_have_no_label() -> None:
    grades = torch.randint(2, 6, (5, 14), generator=DRAWS)
    for key in ("eq in line 3", "clamp_min (lower) in line 3"):
        _, found = _ways([OTHER, grades], key)["within rows of the least"]
        assert bool((found[::2] == 2).all()) and torch.equal(found[1::2], grades[1::2])
    assert signed.rows_of_least([torch.stack([torch.randperm(9, generator=DRAWS) for _ in range(4)])]) is None


def test_unit_vectors_are_alike_and_opposite_as_whole_rows() -> None:
    units, others = NORMAL / NORMAL.norm(dim=-1, keepdim=True), OTHER / OTHER.norm(dim=-1, keepdim=True)
    one, two = _ways([units, others], "gt in line 3")["within same rows"]
    assert torch.equal(one, units) and torch.equal(two[::4], units[::4]) and torch.equal(two[1::4], -units[1::4])
    shares = EVEN.softmax(-1)
    (_, two) = _ways([shares, shares.flip(0)], "gt in line 3")["within same rows"]
    assert bool((two > 0).all()) and torch.allclose(two.sum(-1), torch.ones(12))
    assert "within same rows" not in _ways([NORMAL, OTHER[:, :9]], "gt in line 3")


def test_each_of_two_tensors_is_zero_where_the_other_is_not() -> None:
    one, two = _ways([NORMAL, OTHER], "where in line 3")["within zero"]
    first, second = (one == 0).all(1), (two == 0).all(1)
    assert bool((first & second).any()) and bool((first & ~second).any()) and bool((second & ~first).any())


def test_beside_tiny_elements_some_are_zero() -> None:
    found = _ways([NORMAL], "add (beside a small number) in line 3")
    for name in ("tiny 8", "tiny squares"):
        assert bool((found[f"within {name}"][0] == 0).all(1).any())
    assert not bool((found["within tiny alone"][0] == 0).any()) and not bool((found["within tiny squares alone"][0] == 0).any())


def test_bytes_that_a_remainder_does_not_change_are_the_greatest_in_one_half() -> None:
    small = torch.randint(0, 26, (4, 300), generator=DRAWS)
    assert [int(found.max()) for found in signed.turned([small], 0, 65521)] == [int(small[2:].max()) + 65521]
    (found,) = signed.turned([small.to(torch.uint8)], 0, 65521)
    assert bool((found[2:] == 255).all()) and torch.equal(found[:2], small[:2].to(torch.uint8))
    assert signed.turned([(small % 2).to(torch.uint8)], 0, 65521) is None


def test_whole_numbers_that_repeat_are_all_of_one_value() -> None:
    grades = torch.tensor([[3, 0, 5, 3], [5, 1, 0, 4]])
    (found,) = signed.of_one_value([grades]) or []
    assert found.unique().tolist() == [5]
    distinct = torch.stack([torch.randperm(9, generator=DRAWS)[:2] for _ in range(8)])
    for stays in (distinct, torch.randperm(12, generator=DRAWS), grades.flatten().sort().values, NORMAL):
        assert signed.of_one_value([stays]) is None


def test_the_least_whole_number_is_missing_in_one_tensor_alone_where_there_are_two() -> None:
    own = torch.arange(6).repeat(2)
    found = _ways([own, own.flip(0)], "eq in line 3")
    assert [int(tensor.min()) for tensor in found["within missing 1"]] == [0, 1]
    assert [int(tensor.min()) for tensor in found["within missing"]] == [1, 1]


def test_whole_numbers_are_their_least_and_greatest_where_a_bound_is_idle() -> None:
    pixels = torch.randint(3, 250, (3, 8, 9), generator=DRAWS).to(torch.uint8)
    (found,) = _ways([pixels], "clamp (upper) in line 3")["within ends"]
    assert found.unique().tolist() == [0, 255] and bool((found[0] != found[2]).any())
    assert signed.at_ends([pixels % 7])[0].unique().tolist() == [0, 6]
    for stays in (torch.randperm(12, generator=DRAWS), pixels.flatten().sort().values, NORMAL):
        assert signed.at_ends([stays]) is None


def test_large_whole_numbers_have_no_great_divisor_in_common() -> None:
    small = torch.randint(1, 20, (64,), generator=DRAWS)
    found = next(moved for _, moved in stretched.ways([small, small.flip(0)], lambda given: torch.gcd(*given), [True, True]))
    assert int(found[0].max()) > 2**28 and int(torch.gcd(*found).median()) < 2**20
    assert bool((found[0][small.argsort()].diff() >= 0).all())


def test_the_least_whole_number_stands_once_or_twice_where_groups_are_counted() -> None:
    labels = torch.randint(0, 5, (60,), generator=DRAWS)
    for times in (1, 2):
        (found,) = signed.lone([labels], times)
        assert int((found == 0).sum()) == times and bool((found[labels > 0] == labels[labels > 0]).all())
    assert signed.lone([torch.arange(60)], 1) is None and signed.lone([labels.sort().values], 1) is None


def test_keys_of_which_none_stands_twice_do_so() -> None:
    keys = torch.randperm(30, generator=DRAWS)
    (found,) = signed.twice([keys])
    assert len(found.unique()) < len(keys) and bool(torch.isin(found, keys).all())
    assert signed.twice([torch.arange(30)]) is None and signed.twice([keys // 2]) is None
