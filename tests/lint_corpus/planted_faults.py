"""Faults that can be planted into any kernel of `tests/corpus/lint/whole.md`, each with the rule that must see it.

A fault gets the file as `Source`, which knows where entry, wrapper and launch stand, and returns the changed text. The kernels
differ in names, layers, loops and outputs, so a rule that only knows the shape of the small snippets fails here.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass

Fault = Callable[["Source"], str]
FAULTS: dict[str, tuple[str, Fault]] = {}
"""Name of the fault -> the rule that must refuse it, and how it is planted."""

_LITERAL = "@pypto.frontend.jit"


@dataclass(frozen=True)
class Source:
    """One file, and the places in it where faults go."""

    text: str
    op: str

    @property
    def lines(self) -> list[str]:
        return self.text.split("\n")

    @property
    def functions(self) -> list[ast.FunctionDef]:
        return [n for n in ast.walk(ast.parse(self.text)) if isinstance(n, ast.FunctionDef)]

    @property
    def entry(self) -> ast.FunctionDef:
        """The function under the literal decorator."""
        return next(f for f in self.functions if any(ast.unparse(d).startswith(_LITERAL[1:]) for d in f.decorator_list))

    @property
    def wrapper(self) -> ast.FunctionDef:
        return next(f for f in self.functions if f.name.endswith("_wrapper"))

    @property
    def tensors(self) -> list[ast.arg]:
        """The entry's tensor parameters; the last ones are outputs."""
        return [a for a in self.entry.args.args if a.annotation and ast.unparse(a.annotation).startswith("pypto.Tensor")]

    @property
    def launch(self) -> ast.stmt:
        """The wrapper's statement that launches: its only expression statement that calls the entry or its factory."""
        calls = [s for s in self.wrapper.body if isinstance(s, ast.Expr) and isinstance(s.value, ast.Call)]
        return next(s for s in calls if re.search(r"_kernel\b|_build\(", ast.unparse(s.value.func)))

    def inserted(self, function: ast.FunctionDef, *new: str, at_end: bool = False) -> str:
        """Return the text with statements added to `function`, behind its docstring or at its end."""
        body = function.body
        first = body[1] if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant) else body[0]
        indent = " " * first.col_offset
        place = (body[-1].end_lineno or 0) if at_end else first.lineno - 1
        lines = self.lines
        lines[place:place] = [indent + line for line in new]
        return "\n".join(lines)

    def replaced(self, node: ast.stmt | ast.expr, new: str) -> str:
        """Return the text with the source of `node` replaced."""
        segment = ast.get_source_segment(self.text, node)
        assert segment is not None
        assert self.text.count(segment) == 1, segment
        return self.text.replace(segment, new)

    def in_imports(self, line: str) -> str:
        """Return the text with `line` behind `import pypto`."""
        return self.text.replace("\nimport pypto\n", f"\nimport pypto\n{line}\n", 1)


def fault(rule: str) -> Callable[[Fault], Fault]:
    """Register a fault under its function's name."""

    def register(plant: Fault) -> Fault:
        FAULTS[plant.__name__] = (rule, plant)
        return plant

    return register


@fault("OL01")
def aliased_decorator(s: Source) -> str:
    return s.in_imports("\njit = pypto.frontend.jit").replace(_LITERAL, "@jit")


@fault("OL01")
def second_entry(s: Source) -> str:
    copy = f"""

{_LITERAL}
def second_kernel(
    a: pypto.Tensor([16, 64], pypto.DT_FP32),
    b: pypto.Tensor([16, 64], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(16, 64)
    b[:] = pypto.exp(a)
"""
    return s.text + copy


@fault("OL02")
def output_rebound(s: Source) -> str:
    out = s.tensors[-1].arg
    return s.inserted(s.entry, f"{out} = pypto.exp({s.tensors[0].arg})", at_end=True)


@fault("OL03")
def value_returned(s: Source) -> str:
    return s.inserted(s.entry, f"return {s.tensors[-1].arg}", at_end=True)


@fault("OL04")
def tiles_never_set(s: Source) -> str:
    changed = re.sub(r"pypto\.set_(?:vec|cube)_tile_shapes\(", "_ignored(", s.text)
    return changed.replace("\nimport pypto\n", "\nimport pypto\n\n\ndef _ignored(*arguments):\n    del arguments\n", 1)


@fault("OL05")
def output_unannotated(s: Source) -> str:
    last = s.tensors[-1]
    segment = ast.get_source_segment(s.text, last)
    assert segment is not None
    head, found, tail = s.text.rpartition(segment)
    assert found
    return head + last.arg + tail


@fault("OL06")
def builtin_max_on_tensor(s: Source) -> str:
    return s.inserted(s.entry, f"_largest = max({s.tensors[0].arg}, 0.0)")


@fault("OL07")
def second_name_for_pypto(s: Source) -> str:
    return s.in_imports("import pypto as pt")


@fault("OL08")
def wrapper_misspelt(s: Source) -> str:
    return s.text.replace("_wrapper(", "_wraper(")


@fault("OL16")
def golden_as_fallback(s: Source) -> str:
    return s.inserted(s.wrapper, f"from {s.op}_golden import {s.op}_golden", f"assert {s.op}_golden")


@fault("OL25")
def empty_annotation(s: Source) -> str:
    annotation = s.tensors[-1].annotation
    segment = ast.get_source_segment(s.text, annotation) if annotation is not None else None
    assert segment is not None
    head, _, tail = s.text.rpartition(f"{s.tensors[-1].arg}: {segment}")
    return f"{head}{s.tensors[-1].arg}: pypto.Tensor(){tail}"


@fault("OL26")
def scalar_first(s: Source) -> str:
    first = s.entry.args.args[0].arg
    head, name, tail = s.text.partition(f"def {s.entry.name}(")
    return head + name + tail.replace(f"{first}:", f"_count: int,\n    {first}:", 1)


@fault("OL45")
def launch_in_loop(s: Source) -> str:
    launch = ast.unparse(s.launch)
    return s.replaced(s.launch, f"for _chunk in range(2):\n        {launch}")


@fault("OL45")
def launch_in_while(s: Source) -> str:
    launch = ast.unparse(s.launch)
    return s.replaced(s.launch, f"_turn = 0\n    while _turn < 2:\n        {launch}\n        _turn += 1")


@fault("OL48")
def tile_from_shape(s: Source) -> str:
    return s.inserted(s.entry, f"pypto.set_vec_tile_shapes({s.tensors[0].arg}.shape[0], 64)")


@fault("OL52")
def view_of_other_rank(s: Source) -> str:
    return s.inserted(s.entry, f"_part = pypto.view({s.tensors[0].arg}, [16, 16], [0])")


@fault("OL55")
def unknown_name(s: Source) -> str:
    return s.inserted(s.entry, "_axis = pypto.loop_axis()")


@fault("OL55")
def unknown_method(s: Source) -> str:
    return s.inserted(s.entry, f"_other = {s.tensors[0].arg}.softmaxx(-1)")


@fault("OL56")
def several_unroll_values(s: Source) -> str:
    plain = s.text.replace(", unroll_list=[1]", "")
    return re.sub(r'(pypto\.loop\([^\n]*idx_name="\w+")\)', r"\1, unroll_list=[4, 2, 1])", plain)


@fault("OL57")
def while_in_graph(s: Source) -> str:
    return s.inserted(s.entry, "_turn = 0", "while _turn < 1:", "    _turn += 1")


@fault("OL58")
def pypto_allocation(s: Source) -> str:
    return s.inserted(s.wrapper, "_scratch = pypto.zeros(16, 64, dtype=pypto.DT_FP32)")


@fault("OL62")
def input_scaled_by_operator(s: Source) -> str:
    name = s.wrapper.args.args[0].arg
    return s.inserted(s.wrapper, f"{name} = {name} * 0.5")


@fault("OL62")
def input_scaled_by_torch(s: Source) -> str:
    name = s.wrapper.args.args[0].arg
    return s.inserted(s.wrapper, f"{name} = torch.exp({name})")


@fault("OL62")
def argument_computed(s: Source) -> str:
    name = s.wrapper.args.args[0].arg
    return s.inserted(s.wrapper, f"assert torch.softmax({name}.float(), -1) is not None")


@fault("PX00")
def cut_off(s: Source) -> str:
    return s.text[: s.text.index(f"def {s.entry.name}(") + len(s.entry.name) + 6]


@fault("PX01")
def launched_twice(s: Source) -> str:
    launch = ast.unparse(s.launch)
    return s.replaced(s.launch, f"{launch}\n    {launch}")


@fault("PX01")
def never_launched(s: Source) -> str:
    return s.replaced(s.launch, "pass")


@fault("PX02")
def device_not_set(s: Source) -> str:
    return re.sub(r"^torch\.npu\.set_device\(.*\)$", "", s.text, flags=re.MULTILINE)


@fault("PX03")
def annotations_as_strings(s: Source) -> str:
    return s.text.replace('"""\n\nimport', '"""\n\nfrom __future__ import annotations\n\nimport', 1)


@fault("PX04")
def return_annotation(s: Source) -> str:
    head, name, tail = s.text.partition(f"def {s.entry.name}(")
    return head + name + re.sub(r"\n(\s*)\):\n", r"\n\1) -> None:\n", tail, count=1)


@fault("PX05")
def shape_unpacked(s: Source) -> str:
    return s.inserted(s.entry, f"_rows, _columns = {s.tensors[0].arg}.shape")


@fault("PX06")
def loop_as_statement(s: Source) -> str:
    return s.inserted(s.entry, "pypto.loop(1)")


@fault("PX09")
def npu_not_imported(s: Source) -> str:
    return re.sub(r"^import torch_npu.*\n", "", s.text, flags=re.MULTILINE)
