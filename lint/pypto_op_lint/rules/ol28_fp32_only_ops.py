"""OL28: some operations want float32."""

from collections.abc import Iterator

import libcst as cst

from pypto_op.vocabulary import Severity
from pypto_op_lint.examples import impl
from pypto_op_lint.facts.writes import Writes
from pypto_op_lint.rule import IMPLS, Invalid, Rule, Valid
from pypto_op_lint.tree import Site

_OPS = frozenset({"pypto.sigmoid", "pypto.softmax", "pypto.sin", "pypto.cos"})
_NARROW = frozenset({"pypto.DT_FP16", "pypto.DT_BF16", "pypto.DT_INT8", "pypto.DT_INT32", "pypto.DT_INT16"})
_HALF = "x: pypto.Tensor([8, 128], pypto.DT_FP16),\nout: pypto.Tensor([8, 128], pypto.DT_FP16),\n"
_TILES = "pypto.set_vec_tile_shapes(8, 128)\n"


class Fp32OnlyOps(Rule):
    """An operation that works in float32 only is used on inputs of another dtype without a cast.

    What it does:
        Where a tensor parameter of the kernel has a 16-bit or integer dtype, reports calls of sigmoid, softmax, sin and cos,
        unless the graph casts to float32 somewhere.

    Why:
        pypto refuses them, or rounds on the way.

    Example:
        out[:] = pypto.sigmoid(x)                          # x is DT_FP16

    Use instead:
        y = pypto.sigmoid(pypto.cast(x, pypto.DT_FP32))
        out[:] = pypto.cast(y, pypto.DT_FP16)

    Known limits:
        It does not follow which tensor was cast.
    """

    id = "OL28"
    name = "fp32-only-ops"
    severity = Severity.S2
    artifacts = IMPLS
    needs = frozenset({"foreign_calls", "kernels", "tensors"})
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
        Invalid(impl(_TILES + "out[:] = _act(x)\n", parameters=_HALF, before="def _act(t):\n    return pypto.sin(t)\n")),
    ]

    def check_file(self) -> None:
        """Compare the dtypes of the parameters with the operations."""
        narrow = self._narrow_parameters()
        if not narrow or self._casts_to_fp32():
            return
        for site, node in self._calls():
            if not self._is_wide(node, narrow):
                self.report(site, f"`{self.code(node)}` works in float32, and a parameter of the kernel is narrower")

    def _casts_to_fp32(self) -> bool:
        graph = {id(s) for s in self.facts.graph_sites(cst.Call)}
        return any(
            "pypto.cast" in names and any("pypto.DT_FP32" in self.facts.ev.paths(a.value) for a in node.args)
            for site, node, names in self.facts.foreign_calls
            if id(site) in graph
        )

    def _calls(self) -> Iterator[tuple[Site, cst.Call]]:
        """The operations, as functions and as methods of graph tensors."""
        for site in self.facts.graph_sites(cst.Call):
            node = site.node
            assert isinstance(node, cst.Call)
            if self.facts.callee_names(node) & _OPS or (
                isinstance(node.func, cst.Attribute)
                and f"pypto.{node.func.attr.value}" in _OPS
                and self.facts.tensors.in_graph(node.func.value)
            ):
                yield site, node

    def _is_wide(self, node: cst.Call, narrow: set[str]) -> bool:
        """Whether the operand is a kernel parameter, or a view of one, that is not narrow."""
        is_method = not self.facts.callee_names(node) & _OPS
        operand = node.func.value if is_method and isinstance(node.func, cst.Attribute) else None
        if operand is None:
            operand = node.args[0].value if node.args else None
        roots = Writes(self.facts).roots(operand) if operand is not None else set()
        return bool(roots) and not roots & narrow

    def _narrow_parameters(self) -> set[str]:
        found = set()
        for kernel in self.facts.kernels:
            for parameter in kernel.parameters:
                annotation = parameter.node.annotation
                if annotation is None or not self.facts.tensors.is_tensor_parameter(parameter):
                    continue
                node = annotation.annotation
                parts = [a.value for a in node.args] if isinstance(node, cst.Call) else []
                if any(self.facts.ev.paths(part) & _NARROW for part in parts):
                    found.add(parameter.name)
        return found
