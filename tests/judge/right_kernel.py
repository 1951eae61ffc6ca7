"""Appended before an exploit that names it: a right kernel, for those that cheat with what they keep between calls."""

# ruff: noqa: F821  (a part of an implementation)


@lru_cache(maxsize=None)
def _build_right(dtype, width):
    @pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
    def right_kernel(
        x: pypto.Tensor([pypto.DYNAMIC, width], dtype),
        y: pypto.Tensor([pypto.DYNAMIC, width], dtype),
        total: pypto.Tensor([pypto.DYNAMIC, width], dtype),
        diff: pypto.Tensor([pypto.DYNAMIC, width], dtype),
    ):
        for step in pypto.loop((x.shape[0] + 15) // 16, name="ROWS", idx_name="step"):
            pypto.set_vec_tile_shapes(16, 32)
            rows = pypto.min(x.shape[0] - step * 16, 16)
            left = pypto.view(x, [16, width], [step * 16, 0], valid_shape=[rows, width])
            right = pypto.view(y, [16, width], [step * 16, 0], valid_shape=[rows, width])
            pypto.assemble(left * 2.0 + right, [step * 16, 0], total)
            pypto.assemble(left - right, [step * 16, 0], diff)

    return right_kernel


def right_into(x, y, total, diff):
    _build_right(DTYPES[x.dtype], x.shape[1])(x, y, total, diff)


def right_wrapper(x, y):
    total, diff = torch.empty_like(x), torch.empty_like(x)
    right_into(x, y, total, diff)
    return total, diff
