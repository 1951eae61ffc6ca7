"""Run a wrapper on one small case and say what came out. No golden is needed: this finds crashes, holes and NaN.

Copy it to custom/<op>/_debug/try_impl.py, set the names, then:
    pypto-op script custom/<op>/_debug/try_impl.py [FILE]
FILE is a copy to run in the place of the operator's own file.
"""

import importlib.util
import sys
from pathlib import Path

OP = "op"
SUFFIX = ""  # "" for <op>_impl.py, "1", "12", ... for modules/<op>_module<SUFFIX>_impl.py
CASE = {"id": "try", "level": "L1", "shape": {"T": 37, "H": 64}, "dtype": {"default": "float32"}, "seed": 42}

OP_DIR = Path(__file__).resolve().parents[1]


def load(path):
    """Import one file by its path."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main():
    """Call the wrapper and print shape, dtype, range and NaN count of each output."""
    stem = f"{OP}_module{SUFFIX}" if SUFFIX else OP
    own = (OP_DIR / "modules" if SUFFIX else OP_DIR) / f"{stem}_impl.py"
    impl = load(Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else own)
    wrapper = getattr(impl, f"{stem}_wrapper")
    inputs = load(OP_DIR / "eval" / "test_inputs.py").make_inputs(CASE)
    parameters = wrapper.__code__.co_varnames[: wrapper.__code__.co_argcount]
    out = wrapper(*(inputs[name] for name in parameters))
    for i, leaf in enumerate(out if isinstance(out, tuple) else (out,)):
        wide = leaf.double()
        print(
            f"output {i}: {tuple(leaf.shape)} {leaf.dtype}, range {float(wide.min()):.4g} to {float(wide.max()):.4g},"
            f" NaN {int(wide.isnan().sum())}, zeros {int((wide == 0).sum())} of {leaf.numel()}"
        )


if __name__ == "__main__":
    main()
