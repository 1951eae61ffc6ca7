"""What is judged: an implementation's wrapper, and the golden function it answers to."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pypto_op import python_text, self_contained
from pypto_op.documents.reading import read_text
from pypto_op.errors import ContractError
from pypto_op.vocabulary import Artifact
from pypto_op.workspace import OpWorkspace, parse_phase


@dataclass(frozen=True)
class Subject:
    """One implementation and its reference, compared at one boundary (direct mode)."""

    workspace: OpWorkspace  # the operator
    impl: Path  # the file that is judged; it need not exist
    wrapper: str  # the function that is called with the primary inputs
    golden: Path  # the file of the one golden that is loaded; never another phase's
    golden_function: str  # the function in it
    phase: int | None  # k of the cumulative phase M_k; None for the integrated implementation
    total_modules: int  # N

    @property
    def boundary(self) -> int:
        """The boundary of the comparison: k, or N for the integrated implementation."""
        return self.total_modules if self.phase is None else self.phase


def resolve(
    workspace: OpWorkspace, total_modules: int, *, impl: Path | str | None = None, up_to: int | str | None = None
) -> Subject:
    """Find wrapper and golden for an implementation.

    Args:
        total_modules: N, from the interfaces.
        impl: the file to judge; default: the integrated impl, or phase `up_to`'s.
        up_to: the phase k; default: what the name of `impl` says, else the whole operator.

    Raises:
        ContractError: the phase does not exist, or contradicts the name of the file, or its golden is missing, is no
            Python or does not stand alone.
    """
    path = None if impl is None else absolute(Path(impl), workspace)
    phase = _phase(workspace, total_modules, path, None if up_to is None else parse_phase(str(up_to)))
    golden = workspace.golden if phase is None else workspace.module_golden(phase)
    if path is None:
        path = workspace.impl if phase is None else workspace.module_impl(phase)
    if not golden.is_file():
        raise ContractError(
            "the golden is missing",
            file=golden,
            remedy="write it first (mathematician)" if phase is None else f"write the golden of M{phase} first",
        )
    python_text.parse(read_text(golden), golden)  # told with its place, where the golden's process would end without a word
    if phase is not None:
        self_contained.check(golden)
    return Subject(
        workspace=workspace,
        impl=path,
        wrapper=workspace.wrapper_name(phase),
        golden=golden,
        golden_function=workspace.golden_name(phase),
        phase=phase,
        total_modules=total_modules,
    )


def absolute(impl: Path, workspace: OpWorkspace) -> Path:
    """Return an implementation's path; a relative one is read from here, else from the operator's directory."""
    if impl.is_absolute():
        return impl
    here = Path.cwd() / impl
    return here if here.exists() or not (workspace.root / impl).exists() else workspace.root / impl


def _phase(workspace: OpWorkspace, total: int, impl: Path | None, asked: int | None) -> int | None:
    kind, named = workspace.artifact_of(impl) if impl is not None else (None, None)
    if kind is Artifact.MODULE_IMPL and named is None:
        raise ContractError("the module suffix is not cumulative", file=impl, remedy="name it ..._module12_impl.py for M2")
    if asked is not None and named is not None and asked != named:
        raise ContractError(f"--up-to-module {asked} contradicts the file, which is M{named}'s", file=impl, remedy="drop one")
    phase = named if asked is None else asked
    if phase is None:
        return None
    if phase > total:
        raise ContractError(
            f"there is no M{phase}: the operator has {total} module(s)",
            file=workspace.interfaces,
            remedy=f"use M1 to M{total}",
        )
    if kind is Artifact.IMPL and asked is not None:
        if asked != total:
            raise ContractError(f"the integrated implementation has no boundary M{asked}", file=impl, remedy=f"use {total}")
        return None
    # The single-module path knows one pseudo-phase M1, whose file is the integrated implementation.
    single = total == 1 and kind is not Artifact.MODULE_IMPL and not workspace.module_impl(1).is_file()
    return None if single else phase
