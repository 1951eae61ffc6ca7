"""Compare intermediate values of a kernel with torch, in order, and name the first that is off.

Copy to custom/<op>/_debug/compare_steps.py, fill in `probes` and `steps`, then:
    pypto-op script custom/<op>/_debug/compare_steps.py
"""

import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent))
RELATIVE = 1e-5
"""Largest error that counts as rounding, relative to the largest value of the step."""


def inputs():
    """Return the kernel's inputs; small, ragged, seeded."""
    torch.manual_seed(42)
    return (torch.randn(37, 64),)


def probes(x):
    """Run the probed copy of the kernel; return {name: tensor} in the order of computation."""
    from probed import probed_wrapper  # the copy beside this file; its wrapper returns a dict

    return probed_wrapper(x)


def steps(x):
    """Return the same names from the formula."""
    wide = x.double()
    return {"exp": wide.exp(), "out": wide.exp() * 2.0}


def main():
    """Print a row for each step; exit 1 at the first that is off."""
    given = inputs()
    actual, expected = probes(*given), steps(*(v.double() if isinstance(v, torch.Tensor) else v for v in given))
    off = None
    for name, value in actual.items():
        if tuple(value.shape) != tuple(expected[name].shape):
            sys.exit(f"{name}: shape {tuple(value.shape)}, expected {tuple(expected[name].shape)}")
        error = (value.double() - expected[name]).abs()
        limit = RELATIVE * float(expected[name].abs().max())
        bad = ~(error <= limit)
        print(f"{name}: largest error {float(error.max()):.3g}, allowed {limit:.3g}, off {int(bad.sum())} of {bad.numel()}")
        if off is None and bool(bad.any()):
            off = name
            for place in bad.nonzero()[:5].tolist() + bad.nonzero()[-2:].tolist():
                print(f"  at {place}: off by {float(error[tuple(place)]):.3g}")
    if off:
        sys.exit(f"first step that is off: {off}")
    print("every step agrees")


if __name__ == "__main__":
    main()
