"""Other silicon is the most honest variant there is: a GPU's own sums, exponentials and matmuls must pass as natural.

Runs where CUDA is; nothing of the twins was made with a GPU in mind.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import pytest
import torch

from pypto_op.backends.worker.doubling import Doubled, widened
from pypto_op.bundle_files import bundle_root
from pypto_op.compare import Comparison, compare_leaves
from pypto_op.documents.policy import get_policy
from pypto_op.twins.reordering import Reordered, storage_of

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")

DTYPES = (torch.float32, torch.float16, torch.bfloat16)
SEEDS = range(3)
Golden = Callable[..., Any]


def golden_of(op: str) -> Golden:
    path = bundle_root() / "examples" / "ops" / op / f"{op}_golden.py"
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    golden: Golden = getattr(module, f"{op}_golden")
    return golden


def leaves(returned: Any) -> list[torch.Tensor]:
    return [leaf.cpu() for leaf in (returned if isinstance(returned, tuple) else (returned,))]


def on_gpu(function: Golden, values: list[Any]) -> list[torch.Tensor]:
    moved = [value.cuda() if isinstance(value, torch.Tensor) else value for value in values]
    with torch.no_grad():
        return leaves(function(*moved))


def judged(golden: Golden, values: list[Any], candidate: list[torch.Tensor]) -> Comparison:
    policy = get_policy("twin@2")
    twins = []
    for name in policy.twins:
        with torch.no_grad(), Reordered(name, storage_of(values)):
            twins.append(leaves(golden(*values)))
    with torch.no_grad(), Doubled():
        truth = leaves(golden(*(widened(value) for value in values)))
    names = [f"output_{i}" for i in range(len(truth))]
    return compare_leaves(candidate, truth, names=names, policy=policy, twins=twins)


def noise(dtype: torch.dtype, seed: int, *shapes: tuple[int, ...]) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=generator).to(dtype) for shape in shapes]


def cases(op: str, dtype: torch.dtype, seed: int) -> list[list[Any]]:
    """Return ordinary inputs and some that hurt."""
    if op == "softmax":
        (x,) = noise(dtype, seed, (33, 1031))
        return [[x * 4], [x + 100], [x * 1e-3 - 8.9]]
    if op == "rmsnorm":
        x, weight = noise(dtype, seed, (33, 1040), (1040,))
        return [[x, weight, 1e-6], [x * 1e-3, weight, 1e-6], [x + 10, weight, 0.5]]
    q, k, v = noise(dtype, seed, *[(2, 257, 64)] * 3)
    return [[q, k, v, False], [q * 3, k * 3, v, True], [q, k, v + 30, False]]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", ["softmax", "rmsnorm", "flash_attention_fwd"])
def test_a_gpu_running_the_golden_makes_natural_errors(op: str, dtype: torch.dtype) -> None:
    torch.backends.cuda.matmul.allow_tf32 = False
    golden = golden_of(op)
    for seed in SEEDS:
        for number, values in enumerate(cases(op, dtype, seed)):
            found = judged(golden, values, on_gpu(golden, values))
            assert found.all_close, (seed, number, found.message)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_real_fused_kernels_are_natural(dtype: torch.dtype) -> None:
    """torch's own fused attention, softmax and norm on the GPU: written by people who knew nothing of the golden."""
    attention = golden_of("flash_attention_fwd")
    for seed in SEEDS:
        for values in cases("flash_attention_fwd", dtype, seed):
            q, k, v, causal = values
            fused = torch.nn.functional.scaled_dot_product_attention(
                q[None].cuda(), k[None].cuda(), v[None].cuda(), is_causal=causal
            )[0]
            found = judged(lambda *a: attention(*a)[0], values, [fused.cpu()])
            assert found.all_close, found.message
        for values in cases("softmax", dtype, seed):
            found = judged(golden_of("softmax"), values, [torch.softmax(values[0].cuda(), -1).cpu()])
            assert found.all_close, found.message
        for x, weight, eps in cases("rmsnorm", dtype, seed):
            fused = torch.nn.functional.rms_norm(x.cuda(), (x.shape[-1],), weight.cuda(), eps)
            found = judged(golden_of("rmsnorm"), [x, weight, eps], [fused.cpu()])
            assert found.all_close, found.message


def test_tf32_is_no_natural_error_of_float32() -> None:
    """A matmul that silently drops 13 bits of its operands is the fault that this policy is for."""
    torch.backends.cuda.matmul.allow_tf32 = True
    try:
        left, right = noise(torch.float32, 0, (128, 512), (512, 128))
        found = judged(torch.matmul, [left, right], on_gpu(torch.matmul, [left, right]))
        assert not found.all_close
    finally:
        torch.backends.cuda.matmul.allow_tf32 = False
