"""`pypto-op new` and `pypto-op interfaces new`: documents from templates, with TODO where a person must decide.

The templates lie in this package and not in a skill: the code that fills them and the schemas that check them
change together, and a wheel carries them without further wiring.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from pypto_op.documents import constraints, design, front_matter, golden, port_table, ragged, spec
from pypto_op.documents.design import ModuleRow
from pypto_op.documents.policy import get_policy
from pypto_op.documents.spec import Spec
from pypto_op.errors import ContractError, unwritable
from pypto_op.vocabulary import DTYPE_ALIASES, DTYPES, HEAVY_OPS
from pypto_op.workspace import OPERATORS_DIR, OpWorkspace, check_op_name, check_runnable

_DOCUMENTS = ("SPEC.md", "API_REPORT.md", "DESIGN.md", "MEMORY.md")
_FLOATS = ("float32", "float16", "bfloat16")
_SYMBOL = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}\Z")
_COMPARE = Path(".agents/skills/pypto-op-verify/scripts/detailed_tensor_compare.py")
_COMPARE_TEXT = '''"""Made by `pypto-op new`, so that tests find the comparison outside a checkout of the bundle too."""

from pypto_op.compare import detailed_tensor_compare

__all__ = ["detailed_tensor_compare"]
'''
_LARGEST_PARTIAL = 1 << 10
"""A partial tile beyond this size would only make goldens slow."""
_TEST_DEPTH = 8
"""How many folders the preamble of the tests climbs in search of the comparison."""


@dataclass(frozen=True)
class Request:
    """What is known of a new operator."""

    op: str  # its name
    dtypes: Sequence[str] = ()  # supported dtypes; () leaves a TODO
    p0_shapes: Sequence[Mapping[str, int]] = ()  # symbol -> size; () leaves a TODO
    dynamic_axes: Sequence[str] = field(default_factory=tuple)  # symbols whose size is known at run time only


def new_operator(request: Request, into: Path) -> OpWorkspace:
    """Write `custom/<op>/` with SPEC.md, API_REPORT.md, DESIGN.md, MEMORY.md, a golden to fill in, and an empty eval/.

    Returns:
        The new workspace. Until it is whole it has another name, so no half of it is ever seen.

    Raises:
        ContractError: a hostile or taken name, an unknown dtype, a bad size or symbol.
        InfraError: it cannot be written, or no kernel could run there.
    """
    op = check_op_name(request.op)
    context = _context(request)
    if not into.is_dir():
        raise ContractError("no such workspace", file=into, remedy="make the folder first")
    workspace = into.resolve()
    for folder in (workspace, *workspace.parents):
        if folder.name == OPERATORS_DIR and any(folder.glob("*/SPEC.md")):
            remedy = f"run it in {folder.parent}, or name that with --into"
            raise ContractError("lies among the operators of a workspace", file=workspace, remedy=remedy)
    root = workspace / OPERATORS_DIR / op
    if root.exists() or root.is_symlink():
        raise ContractError("already exists", file=root, remedy="choose another name, or work there")
    check_runnable(root)  # said now, not after the whole plan is written
    draft = root.with_name(f".{op}.{os.urandom(4).hex()}.new")
    try:
        (draft / "eval").mkdir(parents=True)
        for name in _DOCUMENTS:
            (draft / name).write_text(_render(f"{name}.j2", context), encoding="utf-8")
        (draft / f"{op}_golden.py").write_text(_render("golden.py.j2", context), encoding="utf-8")
        if not _finds_compare(root):
            (draft / _COMPARE).parent.mkdir(parents=True)
            (draft / _COMPARE).write_text(_COMPARE_TEXT, encoding="utf-8")
        os.rename(draft, root)  # noqa: PTH104 - Path.rename would replace an empty folder that appeared meanwhile
    except OSError as error:
        shutil.rmtree(draft, ignore_errors=True)
        if root.exists():
            raise ContractError("already exists", file=root, remedy="choose another name") from None
        raise unwritable(error, root) from None
    return OpWorkspace.at(root)


def new_interfaces(ws: OpWorkspace, modules: int | None = None) -> str:
    """Return a module_interfaces.yaml made from the golden's signature, SPEC.md and DESIGN.md.

    Args:
        modules: N; default: what DESIGN.md decides, else 1.

    Raises:
        ContractError: the golden cannot be read, SPEC.md is there and broken, or N is no number of modules.
    """
    signature = golden.read_signature(ws.golden)
    golden.need_written(ws.golden)
    known = spec.load(ws.spec) if ws.spec.is_file() else None
    count = modules if modules is not None else _module_count(ws)
    if not 1 <= count <= 32:
        raise ContractError(f"{count} modules", remedy="an operator has 1 to 32")
    if not signature.parameters:
        raise ContractError("the golden has no parameters", file=ws.golden)
    table = port_table.rows(front_matter.read(ws.spec).body) if known else {}
    results = [name for name, row in table.items() if row.is_output]
    made, final = _modules(signature, count, _rows(ws, count), results)
    atol, rtol = _tolerance(known)
    context = {
        "op": ws.name,
        "golden": ws.golden_name(),
        "inputs": [_input(name, known, table) for name in signature.parameters],
        "modules": [{**module, "outputs": [_output(name, known, table) for name in module["outputs"]]} for module in made],
        "final": final,
        "heavy": ", ".join(HEAVY_OPS),
        "counted": _counted_heavy(ws) if count == 1 else None,
        "atol": repr(atol),
        "rtol": repr(rtol),
        "shapes": _composition_shapes(known),
    }
    return _render("module_interfaces.yaml.j2", context)


def _counted_heavy(ws: OpWorkspace) -> list[str]:
    """Return the heavy operations that are counted in the golden: one module does them all."""
    signals = golden.read_signals(ws.golden)
    found = {"matmul": signals.matmuls, "cross_tile_reduce": signals.cross_tile_reduces, "recurrence": signals.state_groups}
    return [name for name, count in found.items() if count]


def _render(template: str, context: Mapping[str, Any]) -> str:
    folder = Path(__file__).with_name("templates")
    # Markdown and YAML, not HTML: every value in the context was checked against a narrow pattern.
    environment = Environment(  # noqa: S701
        loader=FileSystemLoader(folder), undefined=StrictUndefined, keep_trailing_newline=True
    )
    return environment.get_template(template).render(**context)


def _context(request: Request) -> dict[str, Any]:
    dtypes = [DTYPE_ALIASES.get(word, word) for word in request.dtypes]
    for word in dtypes:
        if word not in DTYPES:
            raise ContractError(f"{word[:40]!r} is no dtype", remedy=f"use {', '.join(DTYPES)}")
    if len(set(dtypes)) < len(dtypes):
        raise ContractError("a dtype is named twice", remedy="name it once")
    symbols = {symbol for shape in request.p0_shapes for symbol in shape}
    for symbol in [*symbols, *request.dynamic_axes]:
        if not _SYMBOL.match(symbol):
            raise ContractError(f"{symbol[:40]!r} is no symbol", remedy="use letters, digits and _")
    for axis in request.dynamic_axes:
        if request.p0_shapes and axis not in symbols:
            raise ContractError(f"the dynamic axis {axis} is in no P0 shape", remedy=f"name its size there: --p0 {axis}=64")
    for shape in request.p0_shapes:
        if any(not 1 <= size <= 1 << 40 for size in shape.values()):
            raise ContractError("a P0 size is below 1 or above 2^40", remedy="name the sizes that the operator is timed at")
    policy = get_policy()
    tolerance = {word: policy.for_dtype(word) for word in dtypes if word in _FLOATS}
    return {
        "op": request.op,
        "dtypes": dtypes,
        "p0_shapes": [dict(shape) for shape in request.p0_shapes],
        "tolerance": tolerance or ({"float32": policy.for_dtype("float32")} if dtypes else {}),
        "dynamic_axes": list(dict.fromkeys(request.dynamic_axes)),
    }


def _finds_compare(root: Path) -> bool:
    return any((folder / _COMPARE).is_file() for folder in (root, *root.parents)[:_TEST_DEPTH])


def _module_count(ws: OpWorkspace) -> int:
    try:
        return design.load(ws.design).module_count
    except ContractError:
        return 1


def _tolerance(known: Spec | None) -> tuple[float, float]:
    """Return (atol, rtol) for comparing goldens in float32; SPEC.md's where it has such a pair."""
    dtypes = known.supported_dtypes if known else ()
    dtype = next((word for word in dtypes if word in _FLOATS), "float32")
    pair = known.tolerance_for(dtype) if known else None
    if pair is None:
        numbers = get_policy().for_dtype(dtype)
        pair = (numbers["atol"], numbers["rtol"])
    return pair


def _input(name: str, known: Spec | None, table: Mapping[str, port_table.Row]) -> dict[str, str]:
    """Describe a primary input as far as SPEC.md tells: its table in section 5, default parameters, and the first dtype."""
    if known is not None and name in known.default_params:
        value = known.default_params[name]
        word = {bool: "bool", int: "int", float: "float32"}.get(type(value), "TODO")
        return {"name": name, "shape": "[]", "dtype": word}
    dtype = port_table.dtype_of(name, table) or (known.supported_dtypes[0] if known else "TODO")
    return {"name": name, "shape": _shape(name, table), "dtype": dtype}


def _output(name: str, known: Spec | None, table: Mapping[str, port_table.Row]) -> dict[str, str]:
    """Describe what a module makes as far as the table tells: one that has a tensor's dtype has that of the operator."""
    dtype = port_table.dtype_of(name, table)
    if not dtype and known is not None and name in table and table[name].like:
        dtype = known.supported_dtypes[0]
    return {"name": name, "shape": _shape(name, table), "dtype": dtype or "TODO"}


def _shape(name: str, table: Mapping[str, port_table.Row]) -> str:
    return (table[name].shape if name in table else "") or "[TODO]"


def _rows(ws: OpWorkspace, count: int) -> tuple[ModuleRow, ...]:
    """Return the modules that DESIGN.md 0.5 describes; () where it does not describe `count` of them."""
    try:
        rows = design.module_rows(ws.design)
    except ContractError:
        return ()
    return rows if count > 1 and len(rows) == count else ()


def _modules(
    signature: golden.Signature, count: int, rows: Sequence[ModuleRow], told: Sequence[str]
) -> tuple[list[dict[str, Any]], list[dict[str, str]]]:
    """Return modules and final outputs: called as in DESIGN.md 0.5, or in SPEC.md's table (`told`), else by number."""
    results = signature.returns or len(told) or 1
    last = rows[-1].boundary if rows else ()
    names = next((names for names in (last, told) if len(names) == results), None)
    final = list(names) if names else [f"out{n}" for n in range(results)] if results > 1 else ["out"]
    maker: dict[str, int] = {}
    modules: list[dict[str, Any]] = []
    for k in range(1, count + 1):
        named = rows[k - 1].boundary if rows and k < count else ()
        made = [name for name in (final if k == count else named or (f"boundary{k}",)) if name not in maker]
        maker.update(dict.fromkeys(made, k))
        inputs = [{"name": name, "source": "primary"} for name in signature.parameters] if k == 1 else []
        if k > 1:
            before = modules[-1]["outputs"]
            handed = [name for name in before if name not in final] or before
            inputs = [{"name": name, "source": f"module_{k - 1}"} for name in handed]
        units = rows[k - 1].units if rows else None
        modules.append({"id": k, "name": f"module{k}", "inputs": inputs, "outputs": made, "units": units})
    return modules, [{"name": name, "source": f"module_{maker[name]}"} for name in final]


def _composition_shapes(known: Spec | None) -> list[dict[str, int]]:
    """Return the P0 shapes, and the first of them with dynamic axes that end in a partial tile where SPEC.md allows such."""
    shapes = [dict(shape) for shape in (known.p0_shapes if known else ()) if isinstance(shape, Mapping) and _by_symbol(shape)]
    if known is None or not shapes:
        return []
    partial = dict(shapes[0])
    for number, axis in enumerate(axis for axis in known.dynamic_axes if axis in partial):
        low, high = known.axis_ranges.get(axis, (1, _LARGEST_PARTIAL))
        for size in range(max(low, ragged.TILE + 1 + number), min(high, _LARGEST_PARTIAL) + 1):
            if ragged.is_ragged(size) and constraints.satisfied(known.shape_constraints, {**partial, axis: size}):
                partial[axis] = size
                break
    return shapes if partial in shapes else [*shapes, partial]


def _by_symbol(shape: object) -> bool:
    return isinstance(shape, Mapping) and all(isinstance(size, int) for size in shape.values())
