"""Inputs that hold one value throughout get others in one pass, where the reference takes them."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tests.triton import lab

from pypto_op.triton.run.inputs import one_value


def test_what_holds_one_value_gets_others_of_its_kind() -> None:
    drawn = torch.randn(4, 16, 32)
    given = [drawn, torch.zeros(32), torch.ones(4, 16), torch.ones(4, 16, dtype=torch.bool), torch.full((4,), 15), 2.0, 7, True]
    x, bias, mask, flags, lengths, factor, whole, switch = one_value.varied(given, 5)
    assert torch.equal(x, drawn) and (whole, switch) == (7, True)
    assert bias.unique().numel() == 32 and bias.abs().max() <= 0.5
    assert mask.unique().tolist() == [0.0, 1.0] and bool((mask[:, 0] == 1).all())
    assert 0 < int((~flags).sum()) < 40 and bool(flags[:, 0].all())
    assert lengths.max() == 15 and 7 <= int(lengths.min()) < 15
    assert 1.0 <= factor <= 3.0 and factor != 2.0
    assert torch.equal(given[1], torch.zeros(32))


def test_numbers_in_lists_and_dicts_get_others_too() -> None:
    given = [[2.0, 7, torch.ones(3)], {"limit": 0.5, "mode": "sum"}]
    (factor, whole, ones), options = one_value.varied(given, 5)
    assert 1.0 <= factor <= 3.0 and factor != 2.0 and whole == 7 and ones.unique().numel() == 3
    assert options["limit"] != 0.5 and options["mode"] == "sum" and given[1]["limit"] == 0.5
    assert one_value.found([{"limit": 0.5}]) and not one_value.found([{"limit": 1}])
    kept = {name: (moved[0][0], moved[1]["limit"]) for name, moved in one_value.ways(given, 5)}
    assert [*kept] == ["other", "other but 0/0", "other but 1/limit", "other tensors"]
    assert kept["other but 0/0"][0] == 2.0 != kept["other"][0] and kept["other but 1/limit"][1] == 0.5 != kept["other"][1]
    assert kept["other tensors"] == (2.0, 0.5)


@pytest.mark.parametrize(
    "inputs",
    [[torch.randn(4, 4), 3, False, "mean"], [torch.zeros(4, dtype=torch.int64)], [torch.tensor(5)], [torch.full((4,), -100)],
     [torch.full((3,), float("-inf"))], [torch.randn(64, 8), torch.full((4,), 16)]],
    ids=["drawn", "index", "single", "label", "infinite", "parts_of_an_axis"],
)  # fmt: skip
def test_what_others_may_not_replace_is_left(inputs: list[object]) -> None:
    assert one_value.varied(inputs, 5) is None


def test_a_view_keeps_its_strides() -> None:
    given = torch.ones(1, 8).expand(4, 8)
    (found,) = one_value.varied([given], 5)
    assert (found.shape, found.stride()) == (given.shape, given.stride())


@pytest.mark.slow
def test_an_input_that_the_reference_takes_with_no_other_value_is_said(place: Path) -> None:
    text = lab.task("assert bool((xs[1] == 0).all())\nreturn torch.exp(x)", "[torch.randn(4, 6), torch.zeros(6)]")
    kernel = """
    @triton.jit
    def exp_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
        offsets = tl.arange(0, BLOCK)
        tl.store(out_ptr + offsets, tl.exp(tl.load(x_ptr + offsets, mask=offsets < n)), mask=offsets < n)
    """
    result = lab.verify(lab.folder(place, text, lab.impl("return run(exp_kernel, x)", kernels=kernel)))
    assert result["status"] == "PASS", result["failures"]
    assert any("tensor 1 of one value: the reference took no other values" in said for said in result["caveats"])
