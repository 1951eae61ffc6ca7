"""`pypto.tril` and `pypto.triu` give the right numbers in a verdict, but the cost model has no pipe for them: no benchmark."""

import pypto
import torch

SIZE = 32


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
def bad_kernel(
    x: pypto.Tensor([pypto.DYNAMIC, SIZE], pypto.DT_FP32),
    out: pypto.Tensor([pypto.DYNAMIC, SIZE], pypto.DT_FP32),
):
    for b in pypto.loop(x.shape[0] // SIZE, name="B", idx_name="b"):
        pypto.set_vec_tile_shapes(32, 32)
        tile = pypto.view(x, [SIZE, SIZE], [b * SIZE, 0])
        pypto.assemble(pypto.tril(tile, 0), [b * SIZE, 0], out)


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
def good_kernel(
    x: pypto.Tensor([pypto.DYNAMIC, SIZE], pypto.DT_FP32),
    out: pypto.Tensor([pypto.DYNAMIC, SIZE], pypto.DT_FP32),
):
    for b in pypto.loop(x.shape[0] // SIZE, name="B", idx_name="b"):
        pypto.set_vec_tile_shapes(32)
        index = pypto.arange(0.0, 32.0, 1.0)
        pypto.set_vec_tile_shapes(32, 32)
        rows = pypto.expand_clone(pypto.reshape(index, [SIZE, 1]), [SIZE, SIZE])
        tile = pypto.view(x, [SIZE, SIZE], [b * SIZE, 0])
        keep = pypto.ge(rows, pypto.reshape(index, [1, SIZE]))
        pypto.assemble(pypto.where(keep, tile, 0.0), [b * SIZE, 0], out)


def bad_wrapper(x):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    bad_kernel(x, out)
    return out


def good_wrapper(x):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    good_kernel(x, out)
    return out
