"""OL51: every output is written, with something that was computed."""

import libcst as cst

from pypto_op.vocabulary import Artifact, Severity
from pypto_op_lint.documents import mapping, mappings
from pypto_op_lint.examples import BODY, GOLDEN, impl
from pypto_op_lint.facts import Facts
from pypto_op_lint.facts.flow import bindings_of
from pypto_op_lint.facts.writes import Write, element_of
from pypto_op_lint.rule import IMPLS, Invalid, Rule, Valid

_YAML = """\
schema_version: 1
op: demo
primary_inputs: [{name: x, shape: [T, 128], dtype: float32}]
modules:
  - id: 1
    name: one
    inputs: [{name: x, source: primary}]
    outputs: [{name: y, shape: [T, 128], dtype: float32}, {name: z, shape: [T, 128], dtype: float32}]
final_outputs: [{name: y, source: module_1}, {name: z, source: module_1}]
"""
_ONE = _YAML.replace(", {name: z, shape: [T, 128], dtype: float32}", "").replace(", {name: z, source: module_1}", "")
_TILES = "pypto.set_vec_tile_shapes(64, 128)\n"
_TWO = """\
x: pypto.Tensor([pypto.DYNAMIC, 128], pypto.DT_FP32),
y: pypto.Tensor([pypto.DYNAMIC, 128], pypto.DT_FP32),
z: pypto.Tensor([pypto.DYNAMIC, 128], pypto.DT_FP32),
"""
_FILL = "def _fill(dst, src):\n    pypto.set_vec_tile_shapes(64, 128)\n    dst[:] = {}\n"
_THREE = "x: pypto.Tensor([pypto.DYNAMIC, 128], pypto.DT_FP32),\nwork: pypto.Tensor([pypto.DYNAMIC, 128], pypto.DT_FP32),\n"
_COPY = "import torch\n\n\ndef demo_golden(x):\n    return x.clone()\n"
_KEEPS = """\
import torch


def demo_golden(x):
    both = torch.cat((x, x), dim=0)
    last = both[x.shape[0] :].clone()
    return torch.exp(x), last
"""
_GATHERS = """\
import torch


def demo_golden(x, table):
    rows = x[table.clamp(min=0)].reshape(-1, x.shape[1] * 1)
    return torch.where((table >= 0).unsqueeze(-1), rows, torch.zeros_like(rows))
"""
_JOINS = frozenset({"cat", "concat", "stack"})
_CHOICES = frozenset({"gather", "index_select", "take_along_dim", "roll", "flip", "masked_fill"})
"""Functions and methods of torch that give elements of their first operand, at other places or some of them."""
_CONSTANTS = frozenset({"zeros_like", "ones_like", "full_like", "zeros", "ones", "full"})
_MOVES = frozenset(
    {"clone", "to", "type", "float", "half", "bfloat16", "double", "view", "reshape", "contiguous", "permute", "transpose",
     "flatten", "squeeze", "unsqueeze", "expand", "empty_like", "dim", "size", "detach", "movedim", "narrow", "unbind"}
)  # fmt: skip


class OutputsComputed(Rule):
    """An output of the kernel is not written, or only with a copy of an input or a constant.

    What it does:
        Counts the parameters of the kernel that the graph writes (`out[:] =`, `pypto.assemble`, `.move`, in-place operations,
        helpers included; not those that module_interfaces.yaml calls inputs only) and compares with the outputs of
        module_interfaces.yaml; without one, asks for at least one. An output whose every write is an input, a view, reshape,
        cast or clone of one, one of those times 1 or plus 0, or a constant, is reported, unless the golden does no arithmetic
        either, or gives this output (a state for the next call, the rows that a table names) as a cut, joined, chosen or copied
        input. Where the kernel writes every
        output under its name in module_interfaces.yaml, its work space may hold copies.

    Why:
        A kernel that computes nothing beside a wrapper that does is the commonest fraud, and a dropped output the commonest
        slip.

    Example:
        out[:] = x * 1.0

    Use instead:
        out[:] = pypto.exp(x)

    Known limits:
        Arithmetic that has no effect in a way that it does not know counts as computing.
    """

    id = "OL51"
    name = "outputs-computed"
    severity = Severity.S1
    artifacts = IMPLS
    needs = frozenset({"graph_functions", "siblings"})
    MESSAGE = "an output of the kernel is not written"
    FIX_HINT = "write each output with its computed tile: `out[:] = ...`, `out.move(...)` or `pypto.assemble(tile, offsets, out)`"

    VALID = [
        Valid(impl()),
        Valid(
            impl(_TILES + "y[:] = pypto.exp(x)\nz.move(pypto.abs(x))\n", parameters=_TWO),
            files={"eval/module_interfaces.yaml": _YAML},
        ),
        Valid(impl(_TILES + "out[:] = pypto.clone(x)\n"), files={"demo_golden.py": _COPY}),
        Valid(
            impl(
                _TILES + "acc = pypto.tensor([64, 128], pypto.DT_FP32, 'acc')\nfor i in pypto.loop(4):\n"
                "    acc[:] = acc + pypto.exp(x)\nout[:] = acc\n"
            )
        ),
        Valid(impl("_fill(out, x)\n", before=_FILL.format("pypto.exp(src)"))),
        Valid(
            impl(_TILES + "y[:] = pypto.exp(x)\nz[:] = pypto.clone(x)\n", parameters=_TWO),
            files={"eval/module_interfaces.yaml": _YAML, "demo_golden.py": _KEEPS},
        ),
        Valid(
            impl(
                _TILES + "work[:] = pypto.clone(x)\ny[:] = pypto.exp(work)\nz[:] = pypto.abs(work)\n",
                parameters=_THREE + _TWO.partition("\n")[2],
            ),
            files={"eval/module_interfaces.yaml": _YAML},
        ),
        Valid(
            impl(_TILES + "y[:] = pypto.view(x, [64, 128], [64, 0])\n", parameters=_TWO.rpartition("z:")[0]),
            files={"eval/module_interfaces.yaml": _ONE, "demo_golden.py": _GATHERS},
        ),
    ]  # fmt: skip
    INVALID = [
        Invalid(impl(_TILES + "y = pypto.exp(x)\n")),
        Invalid(impl(_TILES + "y[:] = pypto.exp(x)\n", parameters=_TWO), files={"eval/module_interfaces.yaml": _YAML}),
        Invalid(impl(_TILES + "cache = {}\ncache[0] = pypto.exp(x)\n")),
        Invalid(impl(_TILES + "out[:] = x\n")),
        Invalid(impl(_TILES + "out[:] = x * 1.0\n")),
        Invalid(
            impl(_TILES + "out[:] = pypto.cast(pypto.view(x, [64, 128], [0, 0]), pypto.DT_FP32)\n"),
            files={"demo_golden.py": GOLDEN},
        ),
        Invalid(impl(_TILES + "pypto.assemble(pypto.full([64, 128], 0.0, pypto.DT_FP32), [0, 0], out)\n")),
        Invalid(impl("_fill(out, x)\n", before=_FILL.format("pypto.mul(src, 1)"))),
        Invalid(impl(BODY.replace("pypto.exp(tile)", "tile"))),
        Invalid(impl(BODY + "out[:] = x\n")),
        Invalid(impl(_TILES + "out[:] = pypto.exp(x) * 0.0 + x\n")),
        Invalid(impl(_TILES + "out[:] = pypto.maximum(x, x)\n")),
        Invalid(
            impl(_TILES + "y[:] = pypto.clone(x)\nz[:] = pypto.exp(x)\n", parameters=_TWO),
            files={"eval/module_interfaces.yaml": _YAML, "demo_golden.py": _KEEPS},
        ),
        Invalid(
            impl(_TILES + "y[:] = pypto.exp(x)\nz[:] = pypto.clone(x)\n", parameters=_TWO),
            files={"eval/module_interfaces.yaml": _YAML, "demo_golden.py": _KEEPS.replace(", last", ", last * 2")},
        ),
        Invalid(
            impl(_TILES + "y[:] = pypto.view(x, [64, 128], [64, 0])\n", parameters=_TWO.rpartition("z:")[0]),
            files={"eval/module_interfaces.yaml": _ONE, "demo_golden.py": _GATHERS.replace("rows, ", "rows * 2.0, ")},
        ),
        Invalid(impl(_TILES + "x[:] = pypto.exp(x)\ny[:] = x\n", parameters=_TWO), files={"eval/module_interfaces.yaml": _YAML}),
    ]  # fmt: skip

    def check_file(self) -> None:
        """Count and judge the writes."""
        if not self.facts.kernels:
            return
        writes = self.facts.writes
        inputs = self._only_inputs()
        outputs = {name: own for name, own in writes.outputs().items() if name not in inputs}
        wanted = self._wanted()
        kernel = self.facts.kernels[0]
        if len(outputs) < max(wanted, 1):
            names = ", ".join(f"`{n}`" for n in outputs) or "none"
            self.report(kernel.site, f"the contract has {max(wanted, 1)} output(s), the kernel writes {len(outputs)} ({names})")
        if self._golden_only_moves():
            return
        declared = self._declared()
        named = bool(declared) and set(declared) <= set(outputs)
        free = self._moved(declared) | (set(outputs) - set(declared)) if named else set()
        for name, own in outputs.items():
            if name in free:
                continue
            own = [w for w in own if not any(_overwrites(later, w) for later in own)]
            if all(w.source is not None and writes.is_trivial(w.source) for w in own):
                self.report(own[0].site, f"`{name}` is only given a copy of an input or a constant: the kernel computes nothing")

    def _declared(self) -> list[str]:
        """Names of the operator's outputs in module_interfaces.yaml; none for the kernel of a module."""
        data = mapping(self.files.existing(self.files.ws.interfaces)) or {}
        whole = self.unit.artifact is not Artifact.MODULE_IMPL
        return [str(item.get("name")) for item in mappings(data.get("final_outputs"))] if whole else []

    def _moved(self, declared: list[str]) -> set[str]:
        """Those of the outputs that the golden only cuts, joins or copies, such as a state for the next call."""
        golden = self.files.existing(self.files.ws.golden)
        functions = golden.facts.wrappers_named(self.files.ws.golden_name(None)) if golden is not None and golden.tree else []
        results = functions[0].returned if len(functions) == 1 else []
        if golden is None or len(results) != 1 or results[0] is None:
            return set()
        values = [part.value for part in results[0].elements] if isinstance(results[0], cst.Tuple) else [results[0]]
        if len(values) != len(declared):
            return set()
        return {name for name, value in zip(declared, values, strict=True) if _only_moved(golden.facts, value)}

    def _wanted(self) -> int:
        data = mapping(self.files.existing(self.files.ws.interfaces))
        if data is None:
            return 1
        if self.unit.artifact is not Artifact.MODULE_IMPL:
            return len(mappings(data.get("final_outputs")))
        for module in mappings(data.get("modules")):
            if module.get("id") == self.unit.phase:
                live = module.get("live_out")
                return len(live) if isinstance(live, list) else len(mappings(module.get("outputs")))
        return 1

    def _only_inputs(self) -> set[str]:
        """Names of inputs that no output shares; a result that goes back into one of them is lost."""
        data = mapping(self.files.existing(self.files.ws.interfaces)) or {}
        made = [m for module in mappings(data.get("modules")) for m in mappings(module.get("outputs"))]
        named = {str(item.get("name")) for item in mappings(data.get("primary_inputs"))}
        return named - {str(item.get("name")) for item in (*made, *mappings(data.get("final_outputs")))}

    def _golden_only_moves(self) -> bool:
        """Whether the golden copies, casts or reshapes and does nothing else."""
        ws, phase = self.files.ws, self.unit.phase
        golden = self.files.existing(ws.golden if phase is None else ws.module_golden(phase))
        if golden is None or golden.tree is None:
            return False
        functions = golden.facts.wrappers_named(ws.golden_name(phase))
        if not functions:
            return False
        for function in golden.facts.calls.reach(functions):
            for site in function.sites:
                if isinstance(site.node, (cst.BinaryOperation, cst.AugAssign)):
                    return False
                if isinstance(site.node, cst.Call):
                    node = site.node
                    name = node.func.attr.value if isinstance(node.func, cst.Attribute) else getattr(node.func, "value", "")
                    if name not in _MOVES and not golden.facts.calls.calls_at(node):
                        return False
        return True


def _only_moved(facts: Facts, node: cst.CSTNode, depth: int = 0) -> bool:
    """Whether an expression of a golden is an argument of it that was cut, joined, cast or copied, and nothing else."""
    if depth > 20:
        return False
    if isinstance(node, cst.Name):
        found = bindings_of(facts.tree, node)
        return bool(found) and all(
            binding.kind == "parameter"
            or (binding.kind == "assign" and (value := element_of(binding)) is not None and _only_moved(facts, value, depth + 1))
            for binding, _ in found
        )
    if isinstance(node, cst.Subscript):
        return _only_moved(facts, node.value, depth + 1)
    if isinstance(node, (cst.Tuple, cst.List)):
        return all(_only_moved(facts, part.value, depth + 1) for part in node.elements)
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return False
    name, values = node.func.attr.value, [argument.value for argument in node.args]
    if name in _JOINS:
        return bool(values) and _only_moved(facts, values[0], depth + 1)
    if name == "where":
        return (
            len(values) == 3
            and any(_only_moved(facts, value, depth + 1) for value in values[1:])
            and all(_is_constant(value) or _only_moved(facts, value, depth + 1) for value in values[1:])
        )
    if name in _CHOICES:
        of_torch = isinstance(node.func.value, cst.Name) and node.func.value.value == "torch"
        source = values[0] if of_torch and values else node.func.value
        return (name != "masked_fill" or _is_constant(values[-1])) and _only_moved(facts, source, depth + 1)
    return name in _MOVES and _only_moved(facts, node.func.value, depth + 1)


def _is_constant(node: cst.BaseExpression) -> bool:
    """Whether an expression is a number, or a tensor that holds one number."""
    if isinstance(node, cst.UnaryOperation):
        return _is_constant(node.expression)
    if isinstance(node, (cst.Integer, cst.Float)):
        return True
    return isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value in _CONSTANTS


def _overwrites(later: Write, earlier: Write) -> bool:
    """Whether `later` surely replaces everything that `earlier` wrote: the same block and the same place, or all of it."""
    if later.site.order <= earlier.site.order:
        return False
    block = next((a for a in later.site.ancestors() if isinstance(a.node, cst.IndentedBlock)), None)
    if block is None or not earlier.site.within(block) or later.site.function is not earlier.site.function:
        return False
    if _is_whole(later):
        return True
    same_block = next((a for a in earlier.site.ancestors() if isinstance(a.node, cst.IndentedBlock)), None) is block
    return same_block and _region(later) == _region(earlier) != ""


def _is_whole(write: Write) -> bool:
    """`out[:] = ...` on the tensor itself."""
    targets = write.site.node.targets if isinstance(write.site.node, cst.Assign) else ()
    target = targets[0].target if len(targets) == 1 else None
    if not isinstance(target, cst.Subscript) or len(target.slice) != 1 or not isinstance(target.value, cst.Name):
        return False
    part = target.slice[0].slice
    return isinstance(part, cst.Slice) and part.lower is None and part.upper is None


def _region(write: Write) -> str:
    """Return the source of the place that a write goes to."""
    node = write.site.node
    if isinstance(node, cst.Call):
        parts = [a.value for a in node.args if a.keyword is None][1:]
        return ", ".join(cst.Module(body=[]).code_for_node(part) for part in parts) if len(parts) > 1 else ""
    targets = node.targets if isinstance(node, cst.Assign) else ()
    return cst.Module(body=[]).code_for_node(targets[0].target) if len(targets) == 1 else ""
