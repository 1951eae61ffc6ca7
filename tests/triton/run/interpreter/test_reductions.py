"""`tl.reduce` by a function takes lanes in pairs, as a device does, and leaves what shape it left."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pypto_op.triton.run.interpreter import reductions


@pytest.fixture(autouse=True)
def in_a_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    import triton.language as tl

    def true(block: Any) -> bool:
        return bool(block.handle.data) if block.handle.data.size == 1 else True

    monkeypatch.setattr(tl.core.tensor, "__bool__", true, raising=False)  # as the interpreter has it while a kernel runs


def _reduced(combine: Callable[..., Any], data: Any, axis: int | None, keep: bool = False) -> Any:
    import triton.language as tl
    from triton.runtime import interpreter

    reduction = interpreter.ReduceOps(axis, SimpleNamespace(fn=combine), keep)
    return reductions.in_pairs(reduction, (reduction.to_tensor(data, tl.int32),))[0]


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("axis", [None, 0, 1, 2])
@pytest.mark.parametrize("asks", [False, True])
def test_a_function_that_minds_no_order_gives_what_it_gave(axis: int | None, keep: bool, asks: bool) -> None:
    def larger(a: Any, b: Any) -> Any:
        if asks:
            return a if a and a.handle.data > b.handle.data else b
        return np.maximum(a.handle.data, b.handle.data)

    data = np.random.default_rng(0).integers(1, 99, (2, 8, 4)).astype(np.int32)
    want = np.max(data, axis=axis, keepdims=keep)
    assert np.array_equal(_reduced(larger, data, axis, keep).handle.data.reshape(want.shape), want)


def test_a_lane_meets_the_one_half_a_block_behind() -> None:
    pairs = _reduced(lambda a, b: 10 * a.handle.data + b.handle.data, np.array([1, 2, 3, 4], np.int32), 0)
    assert pairs.handle.data.tolist() == [10 * 13 + 24]  # from the first to the last it would be 1234


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_an_exclusive_or_is_what_it_was(axis: int | None, keep: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    import triton.language as tl
    from triton.runtime import interpreter

    monkeypatch.setattr(interpreter.ReduceOps, "generic_reduce", interpreter.ReduceOps.generic_reduce)
    names = reductions.install()
    data = np.arange(32, dtype=np.int32).reshape(4, 8) * 77 % 31
    reduction = interpreter.ReduceOps(axis, tl.standard._xor_combine, keep)
    found = reduction.apply_impl((reduction.to_tensor(data, tl.int32),))[0].handle.data
    want = functools.reduce(operator.xor, data.reshape(-1) if axis is None else np.moveaxis(data, axis, 0))
    assert np.array_equal(found.reshape(-1), np.reshape(want, -1))
    assert found.size == 1 or found.shape == np.sum(data, axis=axis, keepdims=keep).shape
    assert names == set()
