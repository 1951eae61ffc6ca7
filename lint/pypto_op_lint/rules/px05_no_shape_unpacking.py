"""PX05: a tensor's shape is not taken apart in the graph."""

import libcst as cst

from pypto_op.vocabulary import Severity
from pypto_op_lint.examples import BODY, impl
from pypto_op_lint.rule import IMPLS, Invalid, Rule, Valid
from pypto_op_lint.tree import Site

_ROWS = "rows = x.shape[0]"


class NoShapeUnpacking(Rule):
    """Graph code unpacks the `shape` of a tensor into several names.

    What it does:
        In the kernel and in the helpers it calls, reports `a, b = x.shape`, `for n in x.shape`, `f(*x.shape)` and
        the like, also through a name bound to the shape. Single entries, `x.shape[0]`, pass.

    Why:
        pypto takes such a line. But the static entries of a shape are known to the author and belong into constants, where tiles
        can use them; an entry of a dynamic axis is a symbol, and one that reaches a tile shape ends in an error without a line.

    Example:
        rows, cols = x.shape

    Use instead:
        rows = x.shape[0]
        COLS = 128

    Known limits:
        Host code may unpack torch shapes.
    """

    id = "PX05"
    name = "no-shape-unpacking"
    severity = Severity.S2
    artifacts = IMPLS
    needs = frozenset({"graph_sites", "calls"})
    MESSAGE = "graph code unpacks a tensor's shape"
    FIX_HINT = "take the one symbolic entry by `x.shape[0]` and write static entries as constants, or pass them as int parameters"

    VALID = [
        Valid(impl()),
        Valid(impl(BODY.replace(_ROWS, "shape = x.shape\nrows = shape[0]"))),
        Valid(
            impl(
                wrapper="def demo_wrapper(x):\n    rows, cols = x.shape\n"
                "    out = torch.empty((rows, cols))\n    demo_kernel(x, out)\n    return out\n"
            )
        ),
    ]
    INVALID = [
        Invalid(impl(BODY.replace(_ROWS, "rows, cols = x.shape"))),
        Invalid(impl(BODY.replace(_ROWS, "shape = x.shape\n[rows, cols] = shape"))),
        Invalid(impl(BODY.replace(_ROWS, "rows, *rest = x.shape"))),
        Invalid(impl(BODY.replace(_ROWS, "rows, cols = list(x.shape)[:2]"))),
        Invalid(
            impl(
                "pypto.set_vec_tile_shapes(64, 128)\n_body(x, out)\n",
                before="def _body(x, out):\n    rows, cols = x.shape\n    out[:] = pypto.exp(x)\n",
            )
        ),
    ]

    def check_file(self) -> None:
        """Look at assignments with several targets."""
        for site in self.facts.graph_sites(cst.Assign):
            node = site.node
            assert isinstance(node, cst.Assign)
            for target in node.targets:
                self._unpacked(site, target.target, node.value)

    def _unpacked(self, site: Site, target: cst.CSTNode, value: cst.BaseExpression) -> None:
        if not isinstance(target, (cst.Tuple, cst.List)):
            return
        if isinstance(value, (cst.Tuple, cst.List)):
            for name, part in zip(target.elements, value.elements, strict=False):
                self._unpacked(site, name.value, part.value)
        elif self._is_shape(value):
            self.report(site, f"`{self.code(site.node, 50)}` unpacks a tensor's shape in graph code")

    def _is_shape(self, node: cst.BaseExpression) -> bool:
        from pypto_op_lint.facts.values import Member

        if isinstance(node, cst.Attribute) and node.attr.value == "shape":
            return True
        if isinstance(node, cst.Subscript) and any(isinstance(e.slice, cst.Slice) for e in node.slice):
            return self._is_shape(node.value)
        if isinstance(node, cst.Call) and len(node.args) == 1:
            copies = {"builtins.list", "builtins.tuple", "builtins.iter"}
            return bool(self.facts.callee_names(node) & copies) and self._is_shape(node.args[0].value)
        return any(isinstance(v, Member) and v.name == "shape" for v in self.facts.ev.values(node))
