"""`python -m pypto_op.debug.child REQUEST`: a process of its own that runs a kernel with pypto's dumps, or traces a golden.

Like `pypto-op script` it runs the operator's files as they are; it finds causes and gives no verdict.
"""

from __future__ import annotations

import json
import os
import resource
import runpy
import sys
from pathlib import Path
from typing import Any

from pypto_op.backends.wire import read_values, write_values

_SEED = 42


def main() -> None:
    """Carry out the request that the first argument names; what fails ends the process with the usual traceback."""
    request = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    limit = int(request["memory_mb"]) * 1024 * 1024
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    {"kernel": _kernel, "golden": _golden}[request["call"]](request)


def _kernel(request: dict[str, Any]) -> None:
    from pypto_op.backends.sim import simulate_here

    os.environ["TILE_FWK_OUTPUT_DIR"] = request["folder"]

    def further() -> None:
        import pypto

        if verify := request.get("verify"):
            pypto.set_verify_options(**verify)
        if debug := request.get("debug"):
            pypto.set_debug_options(**debug)
        if stage := request.get("stage"):
            pypto.set_host_options(compile_stage=getattr(pypto.CompStage, stage))

    simulate_here(further)
    import torch

    values, _ = read_values(Path(request["inputs"]))
    function = _loaded(Path(request["file"]), request["function"])
    torch.manual_seed(_SEED)
    returned = function(*values)
    leaves = list(returned) if isinstance(returned, (list, tuple)) else [returned]
    write_values(Path(request["outputs"]), leaves)


def _golden(request: dict[str, Any]) -> None:
    from pypto_op.backends import hostshim
    from pypto_op.debug.golden_trace import Trace

    hostshim.install()
    values, _ = read_values(Path(request["inputs"]))
    function = _loaded(Path(request["file"]), request["function"])
    trace = Trace(Path(request["file"]))
    with trace:
        returned = function(*values)
    leaves = list(returned) if isinstance(returned, (list, tuple)) else [returned]
    trace.write(Path(request["outputs"]), values, leaves)


def _loaded(file: Path, function: str) -> Any:
    sys.path.insert(0, str(file.parent))
    return runpy.run_path(str(file), run_name=file.stem)[function]


if __name__ == "__main__":
    main()
