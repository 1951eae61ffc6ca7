"""`pypto-op tests new`: modules/test_<op>_module<suffix>.py and test_<op>.py (verifier seed, step C)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pypto_op.documents import default_suite
from pypto_op.documents import spec as spec_document
from pypto_op.documents.golden import read_signature
from pypto_op.documents.interfaces import Interfaces
from pypto_op.documents.spec import Spec
from pypto_op.errors import ContractError
from pypto_op.harness.generated import Outcome, render, stamped_python, write
from pypto_op.harness.material import FLOATS, scalar_defaults
from pypto_op.judge.calling import positions, used_inputs
from pypto_op.judge.contract import load_contract
from pypto_op.workspace import OpWorkspace

_SMALL_SHAPES = 2
_OTHER_VALUES = 2
"""The most values of one scalar beside its default."""
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
    spec, interfaces = spec_document.load(ws.spec), contract.interfaces
    wanted: list[int | None] = [phase] if phase is not None else [None] if e2e else _whatever_is_there(ws, interfaces)
    if phase is not None and not 1 <= phase <= interfaces.total_modules:
        raise ContractError(f"there is no M{phase}", file=ws.interfaces, remedy=f"use M1 to M{interfaces.total_modules}")
    files = [(_path(ws, k), test_text(ws, spec, interfaces, k)) for k in wanted]
    return write(files, force=force)


def test_text(ws: OpWorkspace, spec: Spec, interfaces: Interfaces, phase: int | None) -> str:
    """Return the text of one test.

    Args:
        ws: the operator.
        spec: SPEC.md.
        interfaces: the contract.
        phase: k for the test of M_1..M_k; None for the end-to-end test.

    Raises:
        ContractError: impl or golden is missing, or lacks the function of the agreed name.
    """
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
        "knobs": _knobs(ws, spec, interfaces, used),
        "outputs": _words([port.name for port in outputs]),
        "short": short,
        "id": short if phase is None else f"M{short.removeprefix('module')}",
        "by_dtype": "POLICY",
        "small": [json.dumps(shape) for shape in _small_shapes(ws, interfaces)],
        "p0": [json.dumps(shape) for shape in _p0_shapes(spec, interfaces)],
        **_policies(spec),
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
        raise ContractError("there is no impl with its golden", file=ws.root, remedy="a test is made after both are written")
    return found


def _path(ws: OpWorkspace, phase: int | None) -> Path:
    return ws.test if phase is None else ws.module_test(phase)


def _small_shapes(ws: OpWorkspace, interfaces: Interfaces) -> list[dict[str, int]]:
    """Return the smallest shapes of the suite's levels L1 to L3: one that is whole, and one that is ragged."""
    shapes: list[dict[str, int]] = []
    for case in load_contract(ws).suite.cases:
        shape = {symbol: size for symbol, size in case["shape"].items() if isinstance(size, int)}
        if case["level"] in ("L1", "L2", "L3") and shape not in shapes and set(shape) >= set(interfaces.symbols):
            shapes.append(shape)
    if not shapes:
        raise ContractError("has no small case", file=ws.suite, remedy="add cases of level L1 to L3")

    def work(sizes: dict[str, int]) -> int:
        total = 1
        for size in sizes.values():
            total *= size
        return total

    return sorted(shapes, key=work)[:_SMALL_SHAPES]


def _knobs(ws: OpWorkspace, spec: Spec, interfaces: Interfaces, used: Sequence[str]) -> list[dict[str, Any]]:
    """Return what the small cases set scalars to: the defaults, then each flag the other way, each other value of the suite."""
    knobs: list[dict[str, Any]] = [{}]
    defaults = scalar_defaults(ws, spec, interfaces)
    for port in interfaces.primary_inputs:
        if port.shape or port.name not in used:
            continue
        values = [case[port.name] for case in load_contract(ws).suite.cases if port.name in case]
        others = [False, True] if port.dtype == "bool" else dict.fromkeys(values)
        knobs += [{port.name: value} for value in others if value != defaults[port.name]][:_OTHER_VALUES]
    return knobs


def _p0_shapes(spec: Spec, interfaces: Interfaces) -> list[dict[str, int]]:
    return [default_suite.solve(shape, interfaces, f"p0_shapes[{n}]") for n, shape in enumerate(spec.p0_shapes)]


def _policies(spec: Spec) -> dict[str, Any]:
    policy = spec.policy()
    rows = []
    for dtype in spec.supported_dtypes:
        if policy.name == "allclose":
            numbers = policy.for_dtype(dtype) if dtype in FLOATS else {"atol": 0.0, "rtol": 0.0}
            rows.append((dtype, f"({numbers['atol']!r}, {numbers['rtol']!r})"))
        else:
            # The twins of a twin policy are the judge's; a test alone has the fixed bounds instead.
            rows.append((dtype, repr("mere_mare@1" if policy.needs_twins else policy.as_dict())))
    if policy.name == "allclose":
        return {"policies": rows, "policy_note": "(atol, rtol), as in SPEC.md", "how": _ALLCLOSE}
    return {"policies": rows, "policy_note": "the policy of SPEC.md's tolerance", "how": "policy=policy"}


_ALLCLOSE = "atol=policy[0], rtol=policy[1]"


def _words(names: list[str]) -> str:
    return "(" + ", ".join(f'"{name}"' for name in names) + ("," if len(names) == 1 else "") + ")"
