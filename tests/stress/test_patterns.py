"""Recipes: what each pattern promises, for every shape, axis and dtype; and the text that test_inputs.py gets."""

from __future__ import annotations

import ast
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.quickly import examples

from pypto_op.judge.stressing import patterns_source
from pypto_op.stress.patterns import stressed

SHAPES = st.lists(st.integers(1, 9), min_size=1, max_size=4).map(tuple)
DTYPES = st.sampled_from([torch.float32, torch.float16, torch.bfloat16])
PATTERNS = st.sampled_from(["mirror", "repeat", "plateau", "follow"])


def apply(tensors: dict[str, torch.Tensor], *recipe: dict[str, Any], seed: int = 0) -> dict[str, torch.Tensor]:
    torch.manual_seed(seed)
    return stressed(tensors, recipe)


@pytest.mark.slow
@settings(max_examples=examples(150))
@given(shape=SHAPES, dtype=DTYPES, pattern=PATTERNS, data=st.data(), gap=st.floats(0, 0.5), seed=st.integers(0, 9))
def test_a_step_keeps_names_shape_and_dtype_and_repeats_itself(shape, dtype, pattern, data, gap, seed) -> None:
    axis = data.draw(st.integers(-len(shape), -1))
    generator = torch.Generator().manual_seed(seed)
    tensors = {name: torch.randn(shape, generator=generator).to(dtype) for name in ("x", "y")}
    before = {name: tensor.clone() for name, tensor in tensors.items()}
    step = {"input": "x", "pattern": pattern, "axis": axis, "gap": gap, "of": "y", "sign": -1.0}
    once, again = apply(tensors, step, seed=seed), apply(tensors, step, seed=seed)
    assert list(once) == ["x", "y"]
    assert once["x"].shape == shape and once["x"].dtype == dtype
    assert torch.equal(once["x"], again["x"])
    assert torch.isfinite(once["x"]).all()
    assert once["y"] is tensors["y"]
    assert all(torch.equal(tensors[name], before[name]) for name in before), "the inputs themselves stay"


@pytest.mark.parametrize("size", [2, 3, 64, 65])
def test_mirrored_values_cancel_along_their_axis_and_nowhere_else(size: int) -> None:
    x = torch.randn(40, size, generator=torch.Generator().manual_seed(0))
    made = apply({"x": x}, {"input": "x", "pattern": "mirror", "axis": -1, "gap": 1e-4})["x"].double()
    condition = made.abs().sum(-1) / made.sum(-1).abs()
    assert condition.median() > 1e3
    assert (made.sum(-1) != 0).all()
    assert (made.abs().sum(0) / made.sum(0).abs()).median() < 100


def test_a_product_of_mirrored_and_repeated_values_cancels() -> None:
    tensors = {"a": torch.randn(20, 64), "b": torch.randn(64, 20)}
    recipe = (
        {"input": "a", "pattern": "mirror", "axis": -1, "gap": 1e-4},
        {"input": "b", "pattern": "repeat", "axis": 0, "gap": 1e-4},
    )
    made = {name: tensor.double() for name, tensor in apply(tensors, *recipe).items()}
    assert ((made["a"].abs() @ made["b"].abs()) / (made["a"] @ made["b"]).abs()).median() > 1e3


def test_a_plateau_lies_within_its_gap_and_a_follower_beside_its_leader() -> None:
    tensors = {"x": torch.randn(30, 50), "y": torch.randn(30, 50)}
    flat = apply(tensors, {"input": "x", "pattern": "plateau", "axis": -1, "gap": 1e-3, "scale": 30.0})["x"]
    assert (flat.amax(-1) - flat.amin(-1) <= 1.01e-3 * flat.amax(-1)).all()
    assert flat.amin() >= 29 and flat[0, 0] != flat[0, 1]
    after = apply(tensors, {"input": "x", "pattern": "follow", "of": "y", "sign": -1.0, "gap": 1e-3})["x"]
    assert ((after + tensors["y"]).abs() <= 1.01e-3 * tensors["y"].abs()).all()


def test_an_unknown_pattern_raises() -> None:
    with pytest.raises(ValueError, match="unknown pattern 'magic'"):
        apply({"x": torch.ones(4)}, {"input": "x", "pattern": "magic"})


def test_the_text_for_test_inputs_needs_torch_alone_and_does_the_same() -> None:
    source = patterns_source()
    assert not [node for node in ast.walk(ast.parse(source)) if isinstance(node, (ast.Import, ast.ImportFrom))]
    space: dict[str, Any] = {"torch": torch}
    exec(source, space)
    tensors = {"x": torch.randn(6, 10), "n": 3}
    recipe = [{"input": "x", "pattern": "mirror", "axis": -1, "gap": 0.01}]
    torch.manual_seed(1)
    copied = space["stressed"](tensors, recipe)
    assert torch.equal(copied["x"], apply(tensors, *recipe, seed=1)["x"]) and copied["n"] == 3
    assert space["stressed"](tensors, ()) == tensors
