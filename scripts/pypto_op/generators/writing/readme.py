"""README.md of an integrated operator, for whoever uses it (coder seed, L1 cleanup)."""

from __future__ import annotations

import ast
from typing import Any

from pypto_op.backends.reference import ReferenceSession
from pypto_op.documents import front_matter, markdown, p0_shapes
from pypto_op.documents.golden import read_signature
from pypto_op.documents.interfaces import Interfaces
from pypto_op.documents.spec import Spec, fixed_dtypes
from pypto_op.errors import ContractError, InfraError
from pypto_op.generators.operator.sources import FLOATS, scalar_defaults
from pypto_op.generators.writing.generated import render
from pypto_op.judge.cases.contract import load_contract
from pypto_op.vocabulary import Outcome
from pypto_op.workspace import OpWorkspace


def readme_text(ws: OpWorkspace, spec: Spec, interfaces: Interfaces, impl: str) -> str:
    """Return the README of the integrated operator, for whoever uses it.

    Args:
        ws: the operator.
        spec: SPEC.md.
        interfaces: the contract.
        impl: the text of the integrated impl.
    """
    staged = interfaces.total_modules > 1
    last = (ws.module_impl(interfaces.total_modules), ws.wrapper_name(interfaces.total_modules))
    wrapper = read_signature(*(last if staged else (ws.impl, ws.wrapper_name())))
    ports = {port.name: port for port in interfaces.primary_inputs}
    taken = [ports[name] for name in wrapper.parameters if name in ports]
    scalars = scalar_defaults(ws, spec, interfaces)
    sizes = _example_sizes(spec, interfaces)
    seen = _seen_dtypes(ws, spec, interfaces) if staged else _told_dtypes(ws, spec, interfaces)
    context: dict[str, Any] = {
        "op": ws.name,
        "wrapper": ws.wrapper_name(),
        "parameters": ", ".join(wrapper.parameters),
        "results": ", ".join(port.name for port in interfaces.final_outputs),
        "rows": [
            {"name": p.name, "kind": kind, "shape": _shape(p.shape), "dtype": ", ".join(seen.get(p.name) or [p.dtype])}
            for kind, group in (("input", taken), ("output", interfaces.final_outputs))
            for p in group
        ],
        "dtypes": ", ".join(spec.supported_dtypes),
        "axes": [_axis(axis, spec) for axis in spec.dynamic_axes],
        "constraints": spec.shape_constraints,
        "edge_cases": _edge_cases(ws),
        "example": [_example(p, sizes, spec, scalars) for p in taken],
        "tolerance": _tolerance(spec),
        "description": _description(impl),
    }
    return render("README.md.j2", context)


def _shape(shape: tuple[str, ...]) -> str:
    return "[" + ", ".join(shape) + "]" if shape else "a number"


def _seen_dtypes(ws: OpWorkspace, spec: Spec, interfaces: Interfaces) -> dict[str, list[str]]:
    """Return which dtypes each tensor really has, by making the inputs once per supported dtype and asking the golden.

    The contract names one dtype per tensor; which of them follow the operator's dtype and which are fixed (a saved
    statistic in float32) stands in eval/test_inputs.py and in the golden. Where those do not run, {} is returned.
    """
    found: dict[str, list[str]] = {}
    contract = load_contract(ws)
    try:
        with ReferenceSession(ws) as session:
            for case in [_first_case(contract.cases, dtype) for dtype in spec.supported_dtypes]:
                named = session.make_inputs(dict(case)) if case is not None else []
                answer = session.golden([value for _, value in named], function=ws.golden_name(), file=ws.golden)
                if answer.outcome is not Outcome.OK:
                    return {}
                outputs = zip((port.name for port in interfaces.final_outputs), answer.outputs, strict=True)
                for name, value in [*named, *outputs]:
                    word = str(getattr(value, "dtype", type(value).__name__)).removeprefix("torch.")
                    if word not in found.setdefault(name, []):
                        found[name].append(word)
    except (ContractError, InfraError, ValueError):
        return {}
    return found


def _told_dtypes(ws: OpWorkspace, spec: Spec, interfaces: Interfaces) -> dict[str, list[str]]:
    """Return the same from SPEC.md's section 5, without a run: what has the first dtype there has each of them in turn."""
    fixed, dtypes = fixed_dtypes(ws.spec), list(spec.supported_dtypes)
    ports = [*interfaces.primary_inputs, *interfaces.final_outputs]
    return {port.name: dtypes for port in ports if port.shape and port.dtype == dtypes[0] and port.name not in fixed}


def _edge_cases(ws: OpWorkspace) -> str:
    """Return SPEC.md's section 9: what comes out for odd inputs, and what raises ValueError."""
    section = markdown.find_section(front_matter.read(ws.spec).sections, ["Edge cases"])
    return section.text.strip() if section else ""


def _first_case(cases: Any, dtype: str) -> Any:
    return next((case for case in cases if isinstance(d := case.get("dtype"), dict) and d.get("default") == dtype), None)


def _axis(axis: str, spec: Spec) -> str:
    low, high = spec.axis_ranges.get(axis, (1, 0))
    return f"{axis} (from {low} to {high})" if high else f"{axis}"


def _example_sizes(spec: Spec, interfaces: Interfaces) -> dict[str, int]:
    return p0_shapes.solve(spec.p0_shapes[0], interfaces, "p0_shapes[0]")


def _example(port: Any, sizes: dict[str, int], spec: Spec, scalars: dict[str, Any]) -> str:
    if not port.shape:
        return f"{port.name} = {scalars.get(port.name, sizes.get(port.name, 1))!r}"
    shape = ", ".join(map(str, port.sizes(sizes)))
    if port.dtype in FLOATS:
        dtype = spec.supported_dtypes[0] if port.dtype in spec.supported_dtypes else port.dtype
        return f'{port.name} = torch.randn({shape}, dtype=torch.{dtype}, device="npu:0")'
    dtype = "int64" if port.dtype == "int" else port.dtype
    return f'{port.name} = torch.zeros({shape}, dtype=torch.{dtype}, device="npu:0")'


def _tolerance(spec: Spec) -> list[str]:
    rows = []
    for dtype in spec.supported_dtypes:
        pair = spec.tolerance_for(dtype) if dtype in FLOATS else None
        if pair is not None:
            rows.append(f"{dtype}: atol {pair[0]:g}, rtol {pair[1]:g}")
    return rows


def _description(impl: str) -> str:
    """Return the first paragraph of the kernel file's docstring, "" without one."""
    words = ast.get_docstring(ast.parse(impl)) or ""
    return " ".join(words.split("\n\n")[0].split())
