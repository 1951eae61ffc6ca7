"""A copy of a kernel with the manifest's probes between its marker pairs.

A buffer is [B, H, NT, rows, columns] for the wrapper, [B * H, NT * rows, columns] for the kernel. A function that holds a
probe but no signature marker gets the buffers as further arguments, and so does each call on the way to it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import libcst as cst

from pypto_op.debug.snapshot_manifest import REQUIRED, Intermediate
from pypto_op.errors import ContractError
from pypto_op_lint.parsing import parse_contract

_DTYPES = {"float32": "DT_FP32", "float16": "DT_FP16", "bfloat16": "DT_BF16", "int32": "DT_INT32"}


def probed(source: str, file: Path, wrapper: str, wanted: Sequence[Intermediate], sizes: Mapping[str, tuple[int, int]]) -> str:
    """Return the kernel's text with the probes filled in.

    Args:
        wrapper: its host function, which takes the buffers as keywords afterwards.
        sizes: rows and columns of each, by name.

    Raises:
        ContractError: a marker pair is missing, or a dtype cannot be probed.
    """
    names = [one.buffer for one in wanted]
    pasted = {
        "SIG_IMPL": [f"{name}," for name in names],
        "CALL_IMPL": [f"{name}," for name in names],
        "HOST_WRAPPER_INSPECT_PASS": [f"{name}," for name in names],
        "SIG_JIT": [_parameter(one, sizes[one.name], file) for one in wanted],
        "HOST_WRAPPER_INSPECT_ALLOC": _allocation(wanted, sizes),
    }
    for one in wanted:
        pasted.setdefault(one.probe_point, []).extend(_probe(one))
    text = source
    for marker, lines in pasted.items():
        text = _filled(text, marker, lines, file)
    module = parse_contract(text, file=file)
    return module.visit(_Threading(names, wrapper, _needy(module, names))).code


def _parameter(one: Intermediate, size: tuple[int, int], file: Path) -> str:
    if one.dtype not in _DTYPES:
        raise ContractError(f"{one.name}: a kernel cannot write {one.dtype}", file=file, remedy="probe it as float32 or int32")
    return f"{one.buffer}: pypto.Tensor([pypto.DYNAMIC, pypto.DYNAMIC, {size[1]}], pypto.{_DTYPES[one.dtype]}),"


def _allocation(wanted: Sequence[Intermediate], sizes: Mapping[str, tuple[int, int]]) -> list[str]:
    given = f"_probed = next(one for one in ({', '.join(one.buffer for one in wanted)},) if one is not None)"
    lines = [given]
    for one in wanted:
        rows, columns = sizes[one.name]
        made = f"torch.empty((*_probed.shape[:3], {rows}, {columns}), dtype=torch.{one.dtype}, device=_probed.device)"
        lines.append(f"{one.buffer} = {made} if {one.buffer} is None else {one.buffer}")
        lines.append(f"{one.buffer} = {one.buffer}.view({one.buffer}.shape[0] * {one.buffer}.shape[1], -1, {columns})")
    return lines


def _probe(one: Intermediate) -> list[str]:
    value = f"_value_{one.name}"
    place = f"[{one.head}, ({one.index}) * {value}.shape[0], 0]"
    return [
        "_tiles = pypto.get_vec_tile_shapes()",
        f"{value} = ({one.value}) + 0.0" if one.dtype.startswith(("float", "bfloat")) else f"{value} = ({one.value}) + 0",
        "pypto.set_vec_tile_shapes(1, 64, 128)",
        f"pypto.assemble(pypto.reshape({value}, [1, {value}.shape[0], {value}.shape[1]]), {place}, {one.buffer})",
        "pypto.set_vec_tile_shapes(*_tiles)",
    ]


def _filled(text: str, marker: str, lines: Sequence[str], file: Path) -> str:
    pair = re.compile(rf"^([ \t]*)# <<< SNAPSHOT:{marker}\n([ \t]*# >>> SNAPSHOT:{marker})$", re.MULTILINE)
    if len(pair.findall(text)) != 1:
        kind = "required" if marker in REQUIRED else "of the manifest"
        raise ContractError(
            f"the empty marker pair SNAPSHOT:{marker} ({kind}) must stand there once",
            file=file,
            remedy=f"add `# <<< SNAPSHOT:{marker}` and `# >>> SNAPSHOT:{marker}` where the kernel's template has them",
        )
    return pair.sub(lambda m: "\n".join([f"{m[1]}# <<< SNAPSHOT:{marker}", *(f"{m[1]}{line}" for line in lines), m[2]]), text)


def _needy(module: cst.Module, names: Sequence[str]) -> dict[str, set[str]]:
    """Return the module's functions that use a buffer without having it: their own, and what the functions they call need."""
    functions = {node.name.value: node for node in module.body if isinstance(node, cst.FunctionDef)}
    uses: dict[str, set[str]] = {}
    calls: dict[str, set[str]] = {}
    for name, node in functions.items():
        text = module.code_for_node(node)
        having = {one.name.value for one in (*node.params.params, *node.params.kwonly_params)}
        inner = "frontend.jit" in text
        uses[name] = set() if inner or having & set(names) else {one for one in names if re.search(rf"\b{one}\b", text)}
        calls[name] = {other for other in functions if other != name and re.search(rf"\b{other}\(", text)}
    changed = True
    while changed:
        changed = False
        for name, node in functions.items():
            having = {one.name.value for one in node.params.params}
            more = set().union(*(uses[other] for other in calls[name])) - uses[name] - having if calls[name] else set()
            if more and "frontend.jit" not in module.code_for_node(node):
                uses[name] |= more
                changed = True
    return uses


class _Threading(cst.CSTTransformer):
    def __init__(self, names: Sequence[str], wrapper: str, needs: Mapping[str, set[str]]) -> None:
        self._names, self._wrapper, self._needs = names, wrapper, needs

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> cst.FunctionDef:
        name = original_node.name.value
        if name == self._wrapper:
            more = [cst.Param(cst.Name(one), default=cst.Name("None")) for one in self._names]
        else:
            more = [cst.Param(cst.Name(one)) for one in self._names if one in self._needs.get(name, ())]
        if not more:
            return updated_node
        params = updated_node.params
        return updated_node.with_changes(params=params.with_changes(params=[*params.params, *more]))

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        func = original_node.func
        needed = self._needs.get(func.value, set()) if isinstance(func, cst.Name) else set()
        more = [cst.Arg(cst.Name(one), keyword=cst.Name(one)) for one in self._names if one in needed]
        return updated_node.with_changes(args=[*updated_node.args, *more]) if more else updated_node
