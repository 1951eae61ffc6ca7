"""OL28: some operations want float32."""

from collections.abc import Iterator

import libcst as cst

from pypto_op.vocabulary import Severity
from pypto_op_lint.examples import impl
from pypto_op_lint.facts.dtypes import declared_dtypes, dtypes_of
from pypto_op_lint.rule import IMPLS, Invalid, Rule, Valid
from pypto_op_lint.tree import Site

_OPS = frozenset({"pypto.sigmoid", "pypto.softmax", "pypto.sin", "pypto.cos"})
_NARROW = frozenset({"FP16", "BF16", "INT8", "INT32", "INT16"})
_HALF = "x: pypto.Tensor([8, 128], pypto.DT_FP16),\nout: pypto.Tensor([8, 128], pypto.DT_FP16),\n"
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
            dtypes = dtypes_of(self.facts, operand)
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

    def _has_narrow_parameter(self) -> bool:
        return any(declared_dtypes(self.facts, p) & _NARROW for kernel in self.facts.kernels for p in kernel.parameters)
