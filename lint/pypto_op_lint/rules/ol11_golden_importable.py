"""OL11: the golden can be imported and holds its function."""

import os
import secrets
import subprocess
import sys

from pypto_op.vocabulary import Artifact, LintEvent, Severity
from pypto_op_lint.examples import GOLDEN
from pypto_op_lint.findings import INFO
from pypto_op_lint.rule import Invalid, Rule, Valid

_SECONDS = 180
_PROBE = """
import importlib.util, sys
path, name, word = sys.argv[1:4]
spec = importlib.util.spec_from_file_location("golden_probe", path)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
assert callable(getattr(module, name, None)), f"it has no function {name}"
if callable(getattr(module, "_validate", None)):
    module._validate()
print(word)
"""


class GoldenImportable(Rule):
    """The golden does not define its function, cannot be imported, or fails its own check.

    What it does:
        On a write, checks that `<op>_golden` is defined at module level. When stage 2 is completed, imports the file in a
        process of its own, with a time limit, asks for the function, and calls `_validate()` where the file has it; an
        import that exits early does not count. The gate of stage 2 refuses what is found there.

    Why:
        A golden that does not import is found out by the judge, as an error that looks like the kernel's.

    Example:
        import numpy_that_is_not_there

    Use instead:
        import torch


        def softmax_golden(x):
            return torch.softmax(x, dim=-1)

    Known limits:
        Where torch is not installed, the import is not tried; the finding says so.
    """

    id = "OL11"
    name = "golden-importable"
    severity = Severity.S2
    artifacts = frozenset({Artifact.GOLDEN, Artifact.MODULE_GOLDEN})
    needs = frozenset({"tree"})
    MESSAGE = "the golden does not define its function at module level"
    FIX_HINT = "define the golden function at module level and import only what is installed"

    VALID = [
        Valid(GOLDEN, artifact=Artifact.GOLDEN),
        Valid(
            "import math\n\n\ndef demo_module12_golden(x):\n    return math.exp(x)\n", artifact=Artifact.MODULE_GOLDEN, phase=2
        ),
    ]
    INVALID = [
        Invalid("import torch\n\n\ndef other_golden(x):\n    return x\n", artifact=Artifact.GOLDEN),
        Invalid("import torch\n# def demo_golden(x): ...\n", artifact=Artifact.GOLDEN),
        Invalid(
            "import not_there_at_all\n\n\ndef demo_golden(x):\n    return x\n",
            artifact=Artifact.GOLDEN,
            event=LintEvent.COMPLETE_STAGE,
            stage=2,
        ),
        Invalid(
            "import sys\n\nsys.exit(0)\n\n\ndef demo_golden(x):\n    return x\n",
            artifact=Artifact.GOLDEN,
            event=LintEvent.COMPLETE_STAGE,
            stage=2,
        ),
        Invalid(
            "def demo_golden(x):\n    return x\n\n\ndef _validate():\n    assert demo_golden(1) == 2\n",
            artifact=Artifact.GOLDEN,
            event=LintEvent.COMPLETE_STAGE,
            stage=2,
        ),
    ]

    def check_file(self) -> None:
        """Look for the function; at the gate, import the file."""
        phase = self.unit.phase if self.unit.artifact is Artifact.MODULE_GOLDEN else None
        if self.unit.artifact is Artifact.MODULE_GOLDEN and phase is None:
            return
        name = self.files.ws.golden_name(phase)
        if name not in self.facts.tree.module.bindings:
            self.report(None, f"the golden does not define `{name}` at module level")
        elif self.context.event is LintEvent.COMPLETE_STAGE:
            self._import_once(name)

    def _import_once(self, name: str) -> None:
        """Import the file unless it is known that just these bytes import and are valid; one that reads others is always run."""
        from pypto_op import self_contained
        from pypto_op.hashing import sha256_bytes
        from pypto_op.proof import records

        source, ws = self.unit.path.read_bytes(), self.files.ws
        if any(self_contained.reaches_out(source)):
            self._import(name)
            return
        about = {"golden": sha256_bytes(source), "function": name, **records.package_versions("torch")}
        if records.found(ws, records.GOLDEN_VALID, about) is None and self._import(name):
            records.keep(ws, records.GOLDEN_VALID, about, {"function": name})

    def _import(self, name: str) -> bool:
        """Import the file in a process of its own and say whether that went well; what did not is reported."""
        word = secrets.token_hex(8)
        try:
            done = subprocess.run(
                [sys.executable, "-c", _PROBE, str(self.unit.path), name, word],
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_SECONDS,
                stdin=subprocess.DEVNULL,
                env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
                cwd=self.unit.path.parent,
                check=False,
            )
        except subprocess.TimeoutExpired:
            self.report(None, f"the golden and its _validate() took longer than {_SECONDS} s")
            return False
        if done.returncode == 0 and word in done.stdout:
            return True
        last = (done.stderr.strip().splitlines() or [f"it exited with code {done.returncode} before its end"])[-1]
        if "No module named 'torch'" in last:
            self.report(None, "the import was not tried: torch is not installed here", status=INFO)
        else:
            what = "its _validate() fails" if "in _validate" in done.stderr else "the golden cannot be imported"
            self.report(None, f"{what}: {last[:160]}")
        return False
