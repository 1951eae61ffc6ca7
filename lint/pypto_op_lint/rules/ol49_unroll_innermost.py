"""OL49: only the innermost loop is unrolled."""

from pypto_op.vocabulary import Severity
from pypto_op_lint.examples import impl
from pypto_op_lint.facts.loops import GraphLoop, graph_loops, loops_inside
from pypto_op_lint.facts.values import Result, Table
from pypto_op_lint.rule import IMPLS, Invalid, Rule, Valid

_NEST = """\
pypto.set_vec_tile_shapes(64, 128)
for b in pypto.loop(4, name="B", idx_name="b"{0}):
    for i in pypto.loop(8, name="I", idx_name="i"{1}):
        pypto.assemble(pypto.exp(pypto.view(x, [64, 128], [i * 64, 0])), [i * 64, 0], out)
"""


class UnrollInnermost(Rule):
    """A loop with `unroll_list` contains another loop.

    What it does:
        Reports a `for` over `pypto.loop(..., unroll_list=...)`, or over `pypto.loop_unroll`, whose body has another pypto
        loop, in helpers too.

    Why:
        Unrolling an outer loop multiplies the paths of everything inside; compilation takes minutes instead of seconds.

    Example:
        for b in pypto.loop(n, unroll_list=[1]):
            for i in pypto.loop(m): ...

    Use instead:
        for b in pypto.loop(n):
            for i in pypto.loop(m, unroll_list=[1]): ...

    Known limits:
        None.
    """

    id = "OL49"
    name = "unroll-innermost"
    severity = Severity.S1
    artifacts = IMPLS
    needs = frozenset({"graph_functions"})
    MESSAGE = "an outer loop is unrolled"
    FIX_HINT = "move unroll_list to the innermost loop"

    VALID = [
        Valid(impl(_NEST.format("", ""))),
        Valid(impl(_NEST.format("", ", unroll_list=[1]"))),
        Valid(impl(_NEST.format(", unroll_list=None", ""))),
    ]
    INVALID = [
        Invalid(impl(_NEST.format(", unroll_list=[1]", ""))),
        Invalid(impl(_NEST.format(", unroll_list=U", ", unroll_list=U"), before="U = [1]\n")),
        Invalid(impl(_NEST.format(", **OPTIONS", ""), before='OPTIONS = {"unroll_list": [1]}\n')),
        Invalid(
            impl(
                "for b in pypto.loop(4, unroll_list=[1]):\n    _inner(x, out)\n",
                before="def _inner(x, out):\n    pypto.set_vec_tile_shapes(64, 128)\n    for i in pypto.loop(8):\n"
                "        pypto.assemble(pypto.view(x, [64, 128], [i * 64, 0]), [i * 64, 0], out)\n",
            )
        ),
    ]

    def check_file(self) -> None:
        """Look inside each unrolled loop."""
        loops = graph_loops(self.facts)
        for loop in loops:
            if self._unrolled(loop) and any(True for _ in loops_inside(self.facts, loop, loops)):
                self.report(loop.site, "a loop with `unroll_list` contains another loop")

    def _unrolled(self, loop: GraphLoop) -> bool:
        call = loop.call
        if any(isinstance(v, Result) and v.callee == "pypto.loop_unroll" for v in self.facts.ev.values(call)):
            return True
        for arg in call.args:
            if arg.keyword is not None and arg.keyword.value == "unroll_list":
                constant = self.facts.ev.constant(arg.value)
                return constant is None or constant.value is not None
            if arg.star == "**":
                tables = [v for v in self.facts.ev.values(arg.value) if isinstance(v, Table)]
                if any("unroll_list" in t.entries for t in tables):
                    return True
        return False
