"""The information barrier: a diagnosis quotes lines, so it is never made about the judge's files."""

from __future__ import annotations

from pathlib import Path

from pypto_op.errors import ContractError
from pypto_op.vocabulary import Artifact
from pypto_op.workspace import OpWorkspace

_JUDGES = frozenset(
    {Artifact.GOLDEN, Artifact.MODULE_GOLDEN, Artifact.TEST, Artifact.MODULE_TEST, Artifact.TEST_INPUTS, Artifact.SUITE}
)


def check_readable(path: Path) -> None:
    """Raise ContractError when `path`, links followed, is a golden, a test, the inputs or the suite of an operator."""
    real = path.expanduser().resolve()
    operator = OpWorkspace.owning(real)
    if operator and operator.artifact_of(real)[0] in _JUDGES:
        raise ContractError("this file is the judge's and is not quoted", file=path, remedy="name the log, or the implementation")
