"""`pypto-op cleanup`: <op>_impl.py and README.md from the last staged impl (coder seed, L1 cleanup); of one module the README."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from pypto_op.documents import interfaces as interfaces_document
from pypto_op.documents import spec as spec_document
from pypto_op.documents.golden import read_signature
from pypto_op.documents.kept_functions import function_hashes, require_kept
from pypto_op.documents.reading import read_text
from pypto_op.documents.writing import write_atomically
from pypto_op.errors import ContractError
from pypto_op.generators.writing.generated import Fate, Outcome, write
from pypto_op.generators.writing.readme import readme_text
from pypto_op.generators.writing.renaming import integrated
from pypto_op.hashing import sha256_bytes
from pypto_op.workspace import OpWorkspace

_RECORD = "cleanup.json"
"""In `_debug/`: which bytes were written, so that a later run knows its own files from edited ones."""


@dataclass(frozen=True)
class Cleaned:
    """What `cleanup` did.

    Attributes:
        files: impl and README; README alone where there is one module.
        source: the last staged impl, or the impl of the one module.
        findings: what the linter would refuse in the new impl; empty when the gate will take it.
    """

    files: list[Outcome]
    source: Path
    findings: list[str]


def cleanup(ws: OpWorkspace, *, force: bool = False) -> Cleaned:
    """Write the integrated impl and its README; files that somebody edited are kept unless `force`.

    Raises:
        ContractError: the impl to begin with is missing, does not parse, or cannot be made one file; or the result would
            not hold the verified functions or the wrapper.
        InfraError: a file cannot be written.
    """
    spec = spec_document.load(ws.spec)
    interfaces = interfaces_document.load(ws.interfaces).with_scalars(spec.default_params)
    n = interfaces.total_modules
    source = ws.impl if n == 1 else ws.module_impl(n)
    if not source.is_file():
        raise ContractError(f"is missing; M{n} is the last module", file=source, remedy="finish the phases first")
    if n == 1:
        return Cleaned(_write(ws, [(ws.readme, readme_text(ws, spec, interfaces, read_text(ws.impl)))], force), source, [])
    text = integrated(ws, source)
    _check(ws, source, text)
    files = _write(ws, [(ws.impl, text), (ws.readme, readme_text(ws, spec, interfaces, text))], force)
    return Cleaned(files, source, _lint(ws))


def _check(ws: OpWorkspace, source: Path, text: str) -> None:
    """Prove the new text before it becomes a file: it compiles, has the wrapper, and lost no verified function."""
    try:
        compile(text, str(ws.impl), "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        raise ContractError(f"would not compile: {error}", file=ws.impl, remedy=f"see {source.name}") from None
    draft = ws.debug_dir / f"cleanup_{ws.impl.name}"
    draft.parent.mkdir(parents=True, exist_ok=True)
    try:
        write_atomically(draft, text)
        before = read_signature(source, ws.wrapper_name(interfaces_document.load(ws.interfaces).total_modules))
        after = read_signature(draft, ws.wrapper_name())
        if before.parameters != after.parameters:
            raise ContractError("the wrapper's parameters changed", file=source, remedy="report this")
        require_kept(function_hashes(source, ws.name), function_hashes(draft, ws.name), file=ws.impl, phase="the last phase")
    finally:
        draft.unlink(missing_ok=True)


def _write(ws: OpWorkspace, files: list[tuple[Path, str]], force: bool) -> list[Outcome]:
    record = ws.debug_dir / _RECORD
    known = _read_record(record)
    outcomes = []
    for path, text in files:
        is_own = path.is_file() and known.get(path.name) == sha256_bytes(path.read_bytes())
        outcomes += write([(path, text)], force=force or is_own)
        if outcomes[-1].fate is not Fate.KEPT:
            known[path.name] = sha256_bytes(text.encode("utf-8"))
    record.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(record, json.dumps(known, indent=2) + "\n")
    return outcomes


def _read_record(record: Path) -> dict[str, str]:
    try:
        data = json.loads(read_text(record))
    except (ContractError, ValueError):
        return {}
    return {str(name): str(value) for name, value in data.items()} if isinstance(data, dict) else {}


def _lint(ws: OpWorkspace) -> list[str]:
    from pypto_op.vocabulary import LintEvent
    from pypto_op_lint.api import lint_path

    result = lint_path(ws.impl, event=LintEvent.SUBMIT_FOR_VERIFY, stage=5)
    blocking = [finding for finding in result.findings if finding.severity.blocks and finding.status == "FAIL"]
    return [f"[{f.rule_id}][{f.severity}] line {f.line}: {f.message}" for f in blocking]
