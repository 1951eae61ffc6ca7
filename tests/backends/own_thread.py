"""A kernel of many leaf functions; a script, run by test_own_thread.py.

It prints one line of JSON: whether the output is right, and how many pieces of device code pypto wrote so.
"""

import ctypes
import json

import pypto
import torch

ROWS, WIDE, PARTS = 32, 128, 6


@pypto.frontend.jit()
def many_leaves(x: pypto.Tensor([ROWS, WIDE], pypto.DT_FP32), out: pypto.Tensor([PARTS * ROWS, WIDE], pypto.DT_FP32)):  # type: ignore[no-untyped-def]
    """Each part has a loop of its own, and other tiles."""
    for part in range(PARTS):
        for i in pypto.loop(ROWS // 16, name=f"ROWS_{part}", idx_name=f"i_{part}"):
            pypto.set_vec_tile_shapes(16, WIDE >> part % 3)
            tile = pypto.view(x, [16, WIDE], [i * 16, 0])
            pypto.assemble(pypto.exp(tile * float(part)) + 1.0, [part * ROWS + i * 16, 0], out)


def main() -> None:
    """Run the kernel once."""
    x, out = torch.linspace(-1.0, 1.0, ROWS * WIDE).reshape(ROWS, WIDE), torch.full((PARTS * ROWS, WIDE), -7.0)
    many_leaves(x, out)
    expected = torch.cat([torch.exp(x * float(part)) + 1.0 for part in range(PARTS)])
    counted = ctypes.CDLL(None).pypto_op_written_in_own_thread
    counted.restype = ctypes.c_ulong
    print(json.dumps({"right": torch.allclose(out, expected), "pieces": counted()}))


if __name__ == "__main__":
    main()
