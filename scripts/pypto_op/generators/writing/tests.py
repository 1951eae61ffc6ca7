"""`pypto-op tests new`: modules/test_<op>_module<suffix>.py and test_<op>.py (verifier seed, step C)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pypto_op.documents import spec as spec_document
from pypto_op.documents.golden import read_signature
from pypto_op.documents.interfaces import Interfaces
from pypto_op.documents.reading import read_text
from pypto_op.documents.stamps import stamped_python
from pypto_op.errors import ContractError
from pypto_op.generators.operator.sources import scalar_defaults
from pypto_op.generators.writing.generated import Outcome, render, write
from pypto_op.generators.writing.test_cases import p0_cases, small_cases
from pypto_op.judge.cases.calling import positions, used_inputs
from pypto_op.judge.cases.contract import Contract, load_contract
from pypto_op.workspace import OpWorkspace, typed

_FOLDERS = {
    True: 'os.path.join(os.path.dirname(_test_dir), "eval"), os.path.dirname(_test_dir), _test_dir',
    False: 'os.path.join(_test_dir, "eval"), _test_dir',
}


def new_tests(ws: OpWorkspace, *, phase: int | None = None, e2e: bool = False, force: bool = False) -> list[Outcome]:
    """Write tests; edited files are kept unless `force`.

    Args:
        ws: the operator.
        phase: the test of M_k only.
        e2e: the end-to-end test only. Without both: every test whose impl and golden lie there.
        force: replace edited files too.

    Raises:
        ContractError: a document, an impl or a golden is missing or malformed: a test is made after both.
        InfraError: a file cannot be written.
    """
    contract = load_contract(ws)
    interfaces = contract.interfaces
    wanted: list[int | None] = [phase] if phase is not None else [None] if e2e else _whatever_is_there(ws, interfaces)
    if phase is not None and not 1 <= phase <= interfaces.total_modules:
        raise ContractError(f"there is no M{phase}", file=ws.interfaces, remedy=f"use M1 to M{interfaces.total_modules}")
    return write([(_path(ws, k), test_text(ws, k, contract)) for k in wanted], force=force)


def check_test(ws: OpWorkspace, phase: int | None) -> None:
    """Hold a test to the bytes that `pypto-op tests new` writes for the contract, impl and golden that lie there now.

    What these bytes do is tested with this package: each output is compared by the judge's rule, and a fault fails them.

    Raises:
        ContractError: the test is missing, somebody changed it, or a file that it is made from is missing or malformed.
    """
    path = _path(ws, phase)
    option = "--e2e" if phase is None else f"--up-to-module {phase}"
    remedy = f"run `pypto-op tests new {typed(ws.root)} {option} --force`; tests of your own go into other files"
    if not path.is_file():
        raise ContractError("is missing", file=path, remedy=remedy)
    if read_text(path) != test_text(ws, phase):
        raise ContractError("is not what pypto-op generates for this contract", file=path, remedy=remedy)


def test_text(ws: OpWorkspace, phase: int | None, contract: Contract | None = None) -> str:
    """Return the text of one test.

    Args:
        ws: the operator.
        phase: k for the test of M_1..M_k; None for the end-to-end test.
        contract: of the operator, when it was read already.

    Raises:
        ContractError: impl or golden is missing, or lacks the function of the agreed name.
    """
    contract = contract or load_contract(ws)
    spec, interfaces = spec_document.load(ws.spec), contract.interfaces
    impl, golden = (ws.impl, ws.golden) if phase is None else (ws.module_impl(phase), ws.module_golden(phase))
    names = [port.name for port in interfaces.primary_inputs]
    used = used_inputs(interfaces, phase)
    wrapper, reference = ws.wrapper_name(phase), ws.golden_name(phase)
    for file, function, owner in ((impl, wrapper, "coder"), (golden, reference, "verifier")):
        if not file.is_file():
            raise ContractError("is missing", file=file, remedy=f"a test is made after it; dispatch the {owner} first")
        read_signature(file, function)
    outputs = interfaces.final_outputs if phase is None else interfaces.live_out(phase)
    file = ws.test if phase is None else ws.module_test(phase)
    short = ws.name if phase is None else f"module{ws.module_test(phase).stem.rpartition('_module')[2]}"
    title = f"End-to-end test of {ws.name}" if phase is None else f"Test of the modules M1 to M{phase} of {ws.name}"
    context: dict[str, Any] = {
        "title": f"{title}: the kernel against its golden.",
        "file": file.relative_to(ws.root),
        "folders": _FOLDERS[phase is not None],
        "impl_module": impl.stem,
        "golden_module": golden.stem,
        "wrapper": wrapper,
        "golden": reference,
        "wrapper_inputs": _words([names[i] for i in positions(impl, wrapper, names, used)]),
        "golden_inputs": _words([names[i] for i in positions(golden, reference, names, used)]),
        "outputs": _words([port.name for port in outputs]),
        "short": short,
        "op_dir": "_test_dir" if phase is None else "os.path.dirname(_test_dir)",
        "phase": phase,
        "small": [_shown(case) for case in small_cases(contract, spec, scalar_defaults(ws, spec, interfaces), used)],
        "p0": [_shown(case) for case in p0_cases(contract, spec, interfaces)],
    }
    return stamped_python(render("module_test.py.j2", context))


def _whatever_is_there(ws: OpWorkspace, interfaces: Interfaces) -> list[int | None]:
    count = interfaces.total_modules
    found: list[int | None] = []
    if count > 1:
        found += [k for k in range(1, count + 1) if ws.module_impl(k).is_file() and ws.module_golden(k).is_file()]
    if ws.impl.is_file() and ws.golden.is_file():
        found.append(None)
    if not found:
        missing = ws.golden if not ws.golden.is_file() else ws.impl
        raise ContractError("no such file, and a test compares the kernel with its golden", file=missing, remedy="write it first")
    return found


def _path(ws: OpWorkspace, phase: int | None) -> Path:
    return ws.test if phase is None else ws.module_test(phase)


def _shown(case: Mapping[str, Any]) -> str:
    """Return a case as Python, without remarks."""
    named = {key: case[key] for key in ("id", "level") if key in case}
    return repr({**named, **{key: value for key, value in case.items() if not key.startswith("x_")}})


def _words(names: list[str]) -> str:
    return "(" + ", ".join(f'"{name}"' for name in names) + ("," if len(names) == 1 else "") + ")"
