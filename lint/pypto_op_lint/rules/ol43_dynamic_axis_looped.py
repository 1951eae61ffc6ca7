"""OL43: a dynamic axis is walked by a loop."""

import libcst as cst

from pypto_op.vocabulary import Severity
from pypto_op_lint.documents import front_matter
from pypto_op_lint.examples import impl
from pypto_op_lint.facts import NO_GRAPH_WORK
from pypto_op_lint.facts.loops import GraphLoop, graph_loops
from pypto_op_lint.rule import IMPLS, Invalid, Rule, Valid

_DESIGN = {"DESIGN.md": '---\nschema_version: "2.1"\nop_name: demo\ndynamic_axes: [T]\n---\n'}
_STATIC = {"DESIGN.md": '---\nschema_version: "2.1"\nop_name: demo\ndynamic_axes: []\n---\nThere is no dynamic axis.\n'}
_WORKING = (cst.Call, cst.AssignTarget, cst.AugAssign)
_TILES = "pypto.set_vec_tile_shapes(64, 128)\n"


class DynamicAxisLooped(Rule):
    """DESIGN.md names dynamic axes and the kernel has no real loop.

    What it does:
        Where DESIGN.md's `dynamic_axes` is not empty, asks for a `for` over `pypto.loop` or `pypto.loop_unroll`, in the
        kernel or a helper it calls, that is not known to run just once and whose body adds something to the graph. Words in
        comments and prose do not count.

    Why:
        A dynamic tensor that goes into an operation whole overflows the workspace estimate; it has to be cut into tiles.

    Example:
        pypto.loop(1)
        out[:] = pypto.exp(x)

    Use instead:
        for i in pypto.loop((n + 63) // 64, name="ROWS", idx_name="i"):
            tile = pypto.view(x, [64, 128], [i * 64, 0], valid_shape=[pypto.min(n - i * 64, 64), 128])

    Known limits:
        That the loop walks the dynamic axis, and not another one, is left to the judge.
    """

    id = "OL43"
    name = "dynamic-axis-looped"
    severity = Severity.S1
    artifacts = IMPLS
    needs = frozenset({"graph_functions", "graph_sites", "calls", "tensors", "siblings"})
    MESSAGE = "DESIGN.md names dynamic axes and the kernel has no loop over them"
    FIX_HINT = "walk the dynamic axis with `for i in pypto.loop(n, name=..., idx_name=...)` and views of a fixed tile"

    VALID = [
        Valid(impl(), files=_DESIGN),
        Valid(impl(_TILES + "out[:] = pypto.exp(x)\n"), files=_STATIC),
        Valid(impl(_TILES + "out[:] = pypto.exp(x)\n")),
        Valid(
            impl("_body(x, out, x.shape[0])\n", before="def _body(x, out, n):\n    pypto.set_vec_tile_shapes(64, 128)\n"
                 "    for i in pypto.loop(n // 64):\n        tile = pypto.view(x, [64, 128], [i * 64, 0])\n"
                 "        pypto.assemble(pypto.exp(tile), [i * 64, 0], out)\n"),
            files=_DESIGN,
        ),
    ]  # fmt: skip
    INVALID = [
        Invalid(impl(_TILES + "out[:] = pypto.exp(x)\n"), files=_DESIGN),
        Invalid(impl(_TILES + "# for i in pypto.loop(n):\npypto.loop(8)\nout[:] = pypto.exp(x)\n"), files=_DESIGN),
        Invalid(impl(_TILES + "for i in pypto.loop(1):\n    out[:] = pypto.exp(x)\n"), files=_DESIGN),
        Invalid(impl(_TILES + "for i in pypto.loop(x.shape[0] // 64):\n    pass\nout[:] = pypto.exp(x)\n"), files=_DESIGN),
        Invalid(
            impl(_TILES + 'for i in pypto.loop(8):\n    """Rows."""\n    row = i * 64\nout[:] = pypto.exp(x)\n'), files=_DESIGN
        ),
        Invalid(
            impl(_TILES + "for i in my_loop(4):\n    out[:] = pypto.exp(x)\n", before="def my_loop(n):\n    return range(n)\n"),
            files=_DESIGN,
        ),
    ]

    def check_file(self) -> None:
        """Compare the two."""
        data = front_matter(self.files.existing(self.files.ws.design))
        axes = data.get("dynamic_axes") if data else None
        if not (isinstance(axes, list) and axes and self.facts.kernels):
            return
        loops = [loop for loop in graph_loops(self.facts) if not loop.once]
        if not loops:
            self.report(self.facts.kernels[0].site)
        elif all(self._idle(loop) for loop in loops):
            self.report(loops[0].site, "DESIGN.md names dynamic axes and the body of the kernel's loop computes nothing")

    def _idle(self, loop: GraphLoop) -> bool:
        """Whether the loop's body surely adds nothing to the graph: `pass`, `...`, a docstring, plain numbers."""
        facts = self.facts
        body = facts.tree.site(loop.site.node.body)  # type: ignore[attr-defined]
        if body is None:
            return True
        if facts.graph_work(body) is not None:
            return False
        inside = [site for site in facts.graph_sites(*_WORKING) if site.within(body)]
        called = facts.calls.reach([call.function for call in facts.calls.calls_in(inside)])
        behind = [site for function in called for kind in _WORKING for site in function.of(kind)]
        return not any(self._may_work(site.node) for site in (*inside, *behind))

    def _may_work(self, node: cst.CSTNode) -> bool:
        """Whether a node that is not known to add to the graph may do so all the same."""
        if isinstance(node, cst.Call):
            names = self.facts.callee_names(node)
            known = bool(names) and all(n in NO_GRAPH_WORK or n.startswith("builtins.") for n in names)
            return not known and not self.facts.calls.calls_at(node)
        target = node.target if isinstance(node, (cst.AssignTarget, cst.AugAssign)) else None
        return isinstance(target, cst.Subscript)
