"""Workers of the debugger, forked from the simulator's zygote: one runs a kernel with pypto's dumps, one does all the rest.

Like `pypto-op script` they run the operator's files as they are; they find causes and give no verdict. What they make stays in
files: the caller needs no torch, whose import would cost as much as everything that is done here.
"""

from __future__ import annotations

import contextlib
import io
import os
import runpy
from pathlib import Path
from typing import Any

from pypto_op.backends.wire import read_values, write_values
from pypto_op.backends.worker.loading import Failure, failure_of, load_function
from pypto_op.backends.worker.reference import Reference
from pypto_op.errors import PyptoOpError
from pypto_op.vocabulary import Outcome

_SEED = 42


class Kernel:
    """Runs a wrapper in `sim` and leaves its outputs and pypto's dumps in files.

    Args:
        document: the session's document; `dumps` has pypto's options (`running`), `folder` takes what pypto writes.
    """

    def __init__(self, document: dict[str, Any]) -> None:
        from pypto_op.backends import hostshim
        from pypto_op.backends.worker import pypto_hooks

        os.environ["TILE_FWK_OUTPUT_DIR"] = document["folder"]
        hostshim.install()
        pypto_hooks.switch_cost_model(Path(document["switch"]) if document["switch"] else None, on=False)
        pypto_hooks.simulate(numeric=True, further=lambda: _set_options(document["dumps"]))

    def handle(self, message: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Call the function of `message` once with the values that lie at `message["values"]`."""
        import torch

        file = Path(message["file"])
        try:
            function = load_function(file, message["function"])
            values, _ = read_values(Path(message["values"]))
            torch.manual_seed(_SEED)
            try:
                returned = function(*values)
            except BaseException as error:
                raise failure_of(error, file, Outcome.EXCEPTION) from None
        except Failure as failure:
            return [], {"outcome": str(failure.outcome), "detail": failure.detail}
        write_values(Path(message["to"]), _leaves(returned))
        return [], {"outcome": str(Outcome.OK), "detail": ""}


def _set_options(dumps: dict[str, Any]) -> None:
    import pypto

    if verify := dumps.get("verify"):
        pypto.set_verify_options(**verify)
    if debug := dumps.get("debug"):
        pypto.set_debug_options(**debug)
    if stage := dumps.get("stage"):
        pypto.set_host_options(compile_stage=getattr(pypto.CompStage, stage))


class Trusted(Reference):
    """Makes inputs, runs the golden in the ways that the debugger wants, and compares what the runs left."""

    def __init__(self, document: dict[str, Any]) -> None:
        super().__init__(document)
        self._answers |= {"hand_over": self._hand_over, "trace": self._trace, "check": self._check, "compare": self._compare}
        self._answers["float64"] = self._float64
        self._traced: Any = None  # stays here: as a file it would take longer than being made

    def _hand_over(self, message: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Make a case's inputs once; leave the values of each set of `message["sets"]` (names by stem) in files."""
        made, told = self._make_inputs(Path(message["file"]), message["case"])
        by_name = dict(zip(told["names"], made, strict=True))
        for stem, names in message["sets"].items():
            write_values(Path(stem), [by_name[name] for name in names])
        return [], {}

    def _trace(self, message: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Run the golden under a trace and keep what it computed, for `compare`."""
        from pypto_op.debug.golden_trace import Trace

        function, file = self._function(message), Path(message["file"])
        values, _ = read_values(Path(message["values"]))
        trace = Trace(file)
        try:
            with trace:
                returned = function(*values)
        except BaseException as error:
            raise failure_of(error, file, Outcome.EXCEPTION) from None
        self._traced = trace.told(values, _leaves(returned))
        return [], {}

    def _float64(self, message: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Write what the golden gives in float64."""
        found, told = self._golden({**message, "inputs": message["values"], "float64": True})
        write_values(Path(message["to"]), found[: len(found) // int(told["ways"])])
        return [], {}

    def _check(self, message: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Run a golden's own `__main__` check; say in `fault` how it fails."""
        file, said = Path(message["file"]), io.StringIO()
        try:
            with contextlib.redirect_stdout(said):
                runpy.run_path(str(file), run_name="__main__")
        except SystemExit as end:
            return [], {"fault": f"exit status {end.code}" if end.code not in (0, None) else ""}
        except Exception as error:  # noqa: BLE001  (whatever it raises is what is asked for)
            return [], {"fault": failure_of(error, file, Outcome.EXCEPTION).detail}
        return [], {"fault": ""}

    def _compare(self, message: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        from pypto_op.backends.worker.crossing import without_modes
        from pypto_op.debug import comparing

        try:
            with without_modes():  # no code of the operator runs here, and a search makes a million calls of torch
                return [], {"found": getattr(comparing, message["what"])(message, self._traced)}
        except PyptoOpError as error:
            raise Failure(Outcome.EXCEPTION, error.one_line()) from None


def _leaves(returned: Any) -> list[Any]:
    return list(returned) if isinstance(returned, (list, tuple)) else [returned]
