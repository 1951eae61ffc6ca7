"""Kernels that compute nothing: when one of them passes, the original kernel was not needed for its PASS.

The jit entry keeps its signature and gets another body, so whatever the wrapper does around the launch stays as it
is. `silent` writes nothing; `sentinel` writes one and the same number into every output.
"""

from __future__ import annotations

from collections.abc import Iterable

import libcst as cst

from pypto_op.mutation.operators.base import pass_line
from pypto_op.mutation.program import Program, below, called

SENTINEL = 4096.0
"""What the sentinel writer writes: exact in every dtype that pypto knows, and no plausible result."""

KINDS = ("silent", "sentinel")


def sabotaged(program: Program, kind: str) -> str:
    """Return the file with every jit entry's body replaced.

    Raises:
        ValueError: an entry declares no output tensor whose shape the text tells (`sentinel` only).
    """
    module = program.module
    for entry in program.entries:
        body = [pass_line()] if kind == "silent" else _writes(module, entry, _outputs(program, entry))
        replaced = module.deep_replace(entry, entry.with_changes(body=cst.IndentedBlock(body)))
        assert isinstance(replaced, cst.Module)
        module = replaced
    return module.code


def _outputs(program: Program, entry: cst.FunctionDef) -> list[str]:
    """Return the entry's parameters that a launch fills with memory which the host allocated; all tensors in doubt."""
    tensors = [parameter for parameter in entry.params.params if _declared(parameter)]
    fresh = {
        node.targets[0].target.value
        for node in below(program.wrapper)
        if isinstance(node, cst.Assign) and isinstance(node.targets[0].target, cst.Name) and _allocates(node.value)
    }
    for call in (node for node in below(program.wrapper) if isinstance(node, cst.Call)):
        given = [arg for arg in call.args if arg.keyword is None]
        if len(given) < len(tensors):
            continue
        names = [
            parameter.name.value
            for parameter, arg in zip(entry.params.params, given, strict=False)
            if _declared(parameter) and fresh & {n.value for n in below(arg.value) if isinstance(n, cst.Name)}
        ]
        if names:
            return names
    return [parameter.name.value for parameter in tensors]


def _allocates(value: cst.BaseExpression) -> bool:
    return any(
        isinstance(node, cst.Call) and called(node).startswith(("empty", "new_empty", "zeros", "new_zeros", "full", "ones"))
        for node in below(value)
    )


def _declared(parameter: cst.Param) -> tuple[list[cst.BaseExpression], cst.BaseExpression] | None:
    """Return shape and dtype of `name: pypto.Tensor([...], dtype)`."""
    match parameter.annotation:
        case cst.Annotation(annotation=cst.Call(args=[cst.Arg(value=cst.List(elements=sizes)), dtype, *_]) as call):
            if called(call) == "Tensor" and sizes:
                return [element.value for element in sizes], dtype.value
    return None


def _writes(module: cst.Module, entry: cst.FunctionDef, outputs: Iterable[str]) -> list[cst.BaseStatement]:
    """Return loops that write the sentinel to every element of `outputs`, row by row."""
    lines: list[str] = []
    for parameter in entry.params.params:
        declared = _declared(parameter)
        if parameter.name.value not in outputs or declared is None:
            continue
        sizes = [module.code_for_node(size) for size in declared[0]]
        lines += _loops(parameter.name.value, sizes, module.code_for_node(declared[1]))
    if not lines:
        raise ValueError(f"{entry.name.value} declares no output as pypto.Tensor([...], dtype)")
    parsed = cst.parse_module("\n".join(lines) + "\n")
    return [statement for statement in parsed.body if isinstance(statement, cst.BaseStatement)]


def _loops(name: str, sizes: list[str], dtype: str) -> list[str]:
    """Return loops over the dynamic axes; the last two go in chunks, whose valid part ends with the tensor."""
    lines: list[str] = []
    offsets, tile, valid = [], [], []
    for axis, size in enumerate(sizes):
        chunk = {1: 128, 2: 16}.get(len(sizes) - axis, 1)
        if "DYN" in size.upper():
            index, length = f"sabotage_{name}_{axis}", f"{name}.shape[{axis}]"
            count = f"({length} + {chunk - 1}) // {chunk}" if chunk > 1 else length
            loop = f'pypto.loop({count}, name="{index.upper()}", idx_name="{index}")'
            lines.append(f"{'    ' * len(lines)}for {index} in {loop}:")
            offsets.append(f"{index} * {chunk}")
            tile.append(str(chunk))
            valid.append(f"pypto.min({length} - {index} * {chunk}, {chunk})")
        else:
            offsets.append("0")
            tile.append(size)
            valid.append(size)
    indent = "    " * len(lines)
    vector = ", ".join((["1"] * len(sizes) + ["16", "128"])[-len(sizes) :])
    value = int(SENTINEL) if "INT" in dtype else SENTINEL
    lines.append(f"{indent}pypto.set_vec_tile_shapes({vector})")
    filled = f"pypto.full([{', '.join(tile)}], {value}, {dtype}, valid_shape=[{', '.join(valid)}])"
    lines.append(f"{indent}pypto.assemble({filled}, [{', '.join(offsets)}], {name})")
    return lines
