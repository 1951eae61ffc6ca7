"""A text with every construct that a mutation operator looks for. It is read, never run."""

SOURCE = '''"""Attention-like, with everything in it."""

import pypto
import torch

TILE = 16
"""Rows of a tile."""

# The lowest score.
LOWEST = -3.4e38


def widen(tile, dtype):
    """A docstring with 1.5 in it."""
    return tile if dtype == pypto.DT_FP32 else pypto.cast(tile, pypto.DT_FP32)


def weigh(scores, values):
    pypto.set_cube_tile_shapes([128, 128], [128, 128], [128, 128])
    return pypto.matmul(scores, values, pypto.DT_FP32, b_trans=True)


def fold(scores, top, total, rows):
    best = pypto.maximum(pypto.amax(scores, -1, True), LOWEST)
    weights = pypto.exp(scores - best) / 2.0
    total[:] = pypto.view(total, [TILE, 1], [0, 0], valid_shape=[rows, 1]) + pypto.sum(weights, -1, True)
    top[:] = best


@pypto.frontend.jit
def kernel(q: pypto.Tensor([pypto.DYNAMIC, 64], pypto.DT_FP32), v, out, aux, scale: float):
    count = q.shape[0]
    for i in pypto.loop((count + TILE - 1) // TILE, name="I", idx_name="i"):
        rows = pypto.min(count - i * TILE, TILE)
        top = pypto.tensor([TILE, 1], pypto.DT_FP32, "top")
        total = pypto.tensor([TILE, 1], pypto.DT_FP32, "total")
        start = pypto.full([TILE, 1], 0.0, pypto.DT_FP32)
        for j in pypto.loop(0, count, 1, name="J", idx_name="j"):
            tile = pypto.view(q, [TILE, 64], [i * TILE, 0], valid_shape=[rows, 64])
            scores = weigh(widen(tile, pypto.DT_FP32), v) * scale
            scores = pypto.where(pypto.ge(scores, start), scores, LOWEST)
            if pypto.cond(pypto.is_loop_begin(j)):
                fold(scores, top, total, rows)
            pypto.assemble(pypto.cast(scores, pypto.DT_FP16, pypto.CastMode.CAST_RINT), [i * TILE, 0], out)
            pypto.assemble(scores, [i * TILE, 0], aux)


def check(q):
    if q.dim() != 2:
        raise ValueError("two axes")


def specimen_wrapper(q, v, scale):
    check(q)
    if scale < 0.0:
        raise ValueError("negative")
    out = torch.empty(q.shape, dtype=torch.float16, device=q.device)
    aux = torch.empty(q.shape, dtype=q.dtype)
    kernel(q, v, out, aux, float(scale))
    return out, aux
'''
