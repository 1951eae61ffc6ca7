"""`python run_in_sim.py FILE`: run a script that was written for the device with the real pypto on the CPU.

What the simulator's worker does for a candidate, done for a whole test file: host shim, calculator, kernels in SIM.
"""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path

from pypto_op.backends import calculator, hostshim, native
from pypto_op.backends.worker import pypto_hooks


def main() -> None:
    """Run the script named by the first argument as `__main__`."""
    ingredients = calculator.find_ingredients()
    assert ingredients is not None and ingredients.toolchain.complete, "needs pypto, cmake, g++ and make"
    library = calculator.ensure(ingredients)
    tools = native.ensure(ingredients.toolchain)
    if tools is not None:
        os.environ["PATH"] = f"{tools.bin_dir}:{os.environ['PATH']}"
        os.environ["PYPTO_OP_CXX"] = ingredients.toolchain.paths["g++"]
    switch = tools.cost_model_switch if tools is not None else None
    pypto_hooks.load_before_pypto(switch)
    hostshim.install()
    import pypto  # noqa: F401

    pypto_hooks.load_calculator(library)
    pypto_hooks.switch_cost_model(switch, on=False)
    pypto_hooks.simulate(numeric=True)
    script = Path(sys.argv[1]).resolve()
    sys.argv = [str(script)]
    sys.path.insert(0, str(script.parent))
    runpy.run_path(str(script), run_name="__main__")


if __name__ == "__main__":
    main()
