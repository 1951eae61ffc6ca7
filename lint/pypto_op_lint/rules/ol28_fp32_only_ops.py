"""OL28: some operations want float32."""

from collections.abc import Iterator

import libcst as cst

from pypto_op.vocabulary import Severity
from pypto_op_lint.examples import impl
from pypto_op_lint.facts.annotations import shape_and_dtype
from pypto_op_lint.facts.values import Param, Result
from pypto_op_lint.rule import IMPLS, Invalid, Rule, Valid
from pypto_op_lint.tree import Parameter, Site

_OPS = frozenset({"pypto.sigmoid", "pypto.softmax", "pypto.sin", "pypto.cos"})
_NARROW = frozenset({"pypto.DT_FP16", "pypto.DT_BF16", "pypto.DT_INT8", "pypto.DT_INT32", "pypto.DT_INT16"})
_HALF = "x: pypto.Tensor([8, 128], pypto.DT_FP16),\nout: pypto.Tensor([8, 128], pypto.DT_FP16),\n"
_MOST_DEPTH = 20
_TILES = "pypto.set_vec_tile_shapes(8, 128)\n"


class Fp32OnlyOps(Rule):
    """An operation that works in float32 only is used on inputs of another dtype without a cast.

    What it does:
        Follows the operand of sigmoid, softmax, sin and cos to the last cast or to a tensor parameter of the kernel, through
        helpers, and reports a 16-bit or integer dtype. Where that leads nowhere and a parameter is that narrow, a cast
        to float32 somewhere in the graph must do.

    Why:
        pypto refuses them, or rounds on the way.

    Example:
        out[:] = pypto.sigmoid(x)                          # x is DT_FP16

    Use instead:
        y = pypto.sigmoid(pypto.cast(x, pypto.DT_FP32))
        out[:] = pypto.cast(y, pypto.DT_FP16)

    Known limits:
        State that is carried through a loop is taken for what it was made as.
    """

    id = "OL28"
    name = "fp32-only-ops"
    severity = Severity.S2
    artifacts = IMPLS
    needs = frozenset({"foreign_calls", "kernels", "tensors", "calls"})
    MESSAGE = "an operation that wants float32 gets another dtype"
    FIX_HINT = "cast to pypto.DT_FP32 before the operation and back behind it"

    VALID = [
        Valid(impl(_TILES + "out[:] = pypto.sigmoid(x)\n")),
        Valid(
            impl(
                _TILES + "wide = pypto.cast(x, pypto.DT_FP32)\nout[:] = pypto.cast(pypto.sigmoid(wide), pypto.DT_FP16)\n",
                parameters=_HALF,
            )
        ),
        Valid(impl(_TILES + "out[:] = pypto.exp(x)\n", parameters=_HALF)),
    ]
    INVALID = [
        Invalid(impl(_TILES + "out[:] = pypto.sigmoid(x)\n", parameters=_HALF)),
        Invalid(impl(_TILES + "out[:] = pypto.cast(pypto.sin(pypto.cast(x, pypto.DT_BF16)), pypto.DT_FP32)\n")),
        Invalid(impl(_TILES + "out[:] = _act(x)\n", parameters=_HALF, before="def _act(t):\n    return pypto.sin(t)\n")),
    ]

    def check_file(self) -> None:
        """Compare the dtypes of the parameters with the operations."""
        doubtful = self._has_narrow_parameter() and not self._casts_to_fp32()
        for site, node, operand in self._calls():
            dtypes = self._dtypes(operand, 0)
            if dtypes & _NARROW or (not dtypes and doubtful):
                self.report(site, f"`{self.code(node)}` works in float32, and its operand is narrower")

    def _casts_to_fp32(self) -> bool:
        graph = {id(s) for s in self.facts.graph_sites(cst.Call)}
        return any(
            "pypto.cast" in names and any("pypto.DT_FP32" in self.facts.ev.paths(a.value) for a in node.args)
            for site, node, names in self.facts.foreign_calls
            if id(site) in graph
        )

    def _calls(self) -> Iterator[tuple[Site, cst.Call, cst.BaseExpression]]:
        """The operations, as functions and as methods of graph tensors, each with its operand."""
        for site in self.facts.graph_sites(cst.Call):
            node = site.node
            assert isinstance(node, cst.Call)
            if self.facts.callee_names(node) & _OPS:
                if node.args:
                    yield site, node, node.args[0].value
            elif (
                isinstance(node.func, cst.Attribute)
                and f"pypto.{node.func.attr.value}" in _OPS
                and self.facts.tensors.in_graph(node.func.value)
            ):
                yield site, node, node.func.value

    def _dtypes(self, node: cst.CSTNode | None, depth: int) -> set[str]:
        """Return the dtypes that a tensor of the graph may have; empty when they are not known."""
        if node is None or depth > _MOST_DEPTH:
            return set()
        if isinstance(node, cst.BinaryOperation):
            return self._dtypes(node.left, depth + 1) | self._dtypes(node.right, depth + 1)
        found: set[str] = set()
        for value in self.facts.ev.values(node):
            if isinstance(value, Result):
                found |= self._made(value.call, depth)
            elif isinstance(value, Param):
                found |= self._declared(value.parameter) if self.facts.is_kernel(value.function) else set()
                calls = self.facts.calls.calls_of(value.function)
                found = found.union(*(self._dtypes(c.argument(value.parameter), depth + 1) for c in calls))
        return found

    def _made(self, call: cst.Call, depth: int) -> set[str]:
        """What a call of pypto makes: of the dtype that it is given, else of its first operand's."""
        given = {name for arg in call.args for name in self.facts.ev.paths(arg.value) if name.startswith("pypto.DT_")}
        return given or (self._dtypes(call.args[0].value, depth + 1) if call.args else set())

    def _declared(self, parameter: Parameter) -> set[str]:
        annotation = parameter.node.annotation
        declared = shape_and_dtype(self.facts, annotation.annotation) if annotation is not None else None
        return self.facts.ev.paths(declared[1]) if declared is not None else set()

    def _has_narrow_parameter(self) -> bool:
        return any(self._declared(parameter) & _NARROW for kernel in self.facts.kernels for parameter in kernel.parameters)
