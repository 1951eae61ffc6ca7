"""A kernel of many turns, each of which reads one large input; a script, run by test_kept_turns.py.

It prints one line of JSON: whether the output is right, by how many MB the process grew, and how many it wrote. The word `keep`
lets pypto's interpreter keep all of each turn, as it does by itself.
"""

import json
import resource
import sys
from pathlib import Path

import pypto
import torch

from pypto_op.backends.worker import pypto_hooks

TURNS, ROWS, WIDE = 32, 32768, 128
"""16 MB of float32."""


@pypto.frontend.jit()
def rows_of_a_cache(
    cache: pypto.Tensor([ROWS, WIDE], pypto.DT_FP32),
    out: pypto.Tensor([TURNS, WIDE], pypto.DT_FP32),
):  # type: ignore[no-untyped-def]
    """Each turn takes one row."""
    for i in pypto.loop(TURNS, name="TURNS", idx_name="i"):
        pypto.set_vec_tile_shapes(1, WIDE)
        pypto.assemble(pypto.mul(pypto.view(cache, [1, WIDE], [i * 7, 0]), 2.0), [i, 0], out)


def peak() -> int:
    """Return the most memory that this process has had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def written() -> int:
    """Return how much this process has written, in MB."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("wchar")) >> 20


def main() -> None:
    """Run the kernel once."""
    if "keep" in sys.argv:
        pypto_hooks._switch = lambda *_: None  # never told to forget
    cache = torch.arange(float(ROWS * WIDE)).reshape(ROWS, WIDE)
    out = torch.full((TURNS, WIDE), -7.0)
    before, wrote = peak(), written()
    rows_of_a_cache(cache, out)
    right = torch.equal(out, 2 * cache[: 7 * TURNS : 7])
    print(json.dumps({"right": right, "grew": peak() - before, "wrote": written() - wrote}), flush=True)


if __name__ == "__main__":
    main()
