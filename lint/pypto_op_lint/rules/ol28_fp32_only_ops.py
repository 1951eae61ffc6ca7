"""OL28: some operations want float32."""

import libcst as cst

from pypto_op.vocabulary import Severity
from pypto_op_lint.examples import impl
from pypto_op_lint.rule import IMPLS, Invalid, Rule, Valid

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
        graph = {id(s) for s in self.facts.graph_sites(cst.Call)}
        calls = [(s, n, names) for s, n, names in self.facts.foreign_calls if id(s) in graph]
        casts = any(
            "pypto.cast" in names and any("pypto.DT_FP32" in self.facts.ev.paths(a.value) for a in node.args)
            for _, node, names in calls
        )
        if casts or not self._has_narrow_parameter():
            return
        for site, node, names in calls:
            if names & _OPS:
                self.report(site, f"`{self.code(node)}` works in float32, and a parameter of the kernel is narrower")

    def _has_narrow_parameter(self) -> bool:
        for kernel in self.facts.kernels:
            for parameter in kernel.parameters:
                annotation = parameter.node.annotation
                if annotation is None or not self.facts.tensors.is_tensor_parameter(parameter):
                    continue
                node = annotation.annotation
                parts = [a.value for a in node.args] if isinstance(node, cst.Call) else []
                if any(self.facts.ev.paths(part) & _NARROW for part in parts):
                    return True
        return False
