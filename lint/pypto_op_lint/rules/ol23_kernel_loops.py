"""OL23: a kernel walks its data in a loop."""

import libcst as cst

from pypto_op.vocabulary import Severity
from pypto_op_lint.examples import BODY, impl
from pypto_op_lint.facts.loops import graph_loops
from pypto_op_lint.rule import IMPLS, Invalid, Rule, Valid


class KernelLoops(Rule):
    """The kernel has no pypto loop.

    What it does:
        Looks for a `for` over `pypto.loop` or `pypto.loop_unroll` in the kernel and the helpers that it calls, or for a
        Python loop that is unrolled into the graph.

    Why:
        Without a loop the whole tensor is one tile's worth of graph: fine for small static shapes, and the first thing to
        break when they grow.

    Example:
        pypto.set_vec_tile_shapes(64, 128)
        out[:] = pypto.exp(x)

    Use instead:
        for i in pypto.loop((n + 63) // 64, name="ROWS", idx_name="i"):
            ...

    Known limits:
        A kernel for one fixed small shape needs none; the finding is a warning.
    """

    id = "OL23"
    name = "kernel-loops"
    severity = Severity.S2
    artifacts = IMPLS
    needs = frozenset({"graph_functions"})
    MESSAGE = "the kernel has no `for` over pypto.loop"
    FIX_HINT = "walk the data with `for i in pypto.loop(n, name=..., idx_name=...)`; for one fixed tile use pypto.loop(1)"

    VALID = [
        Valid(impl()),
        Valid(impl("_body(x, out)\n", before="def _body(x, out):\n" + "".join(f"    {line}\n" for line in BODY.splitlines()))),
        Valid(impl("pypto.set_vec_tile_shapes(64, 128)\nfor i in pypto.loop(1):\n    out[:] = pypto.exp(x)\n")),
    ]
    INVALID = [
        Invalid(impl("pypto.set_vec_tile_shapes(64, 128)\nout[:] = pypto.exp(x)\n")),
        Invalid(impl("# for i in pypto.loop(4)\npypto.set_vec_tile_shapes(64, 128)\npypto.loop(1)\nout[:] = pypto.exp(x)\n")),
    ]

    def check_file(self) -> None:
        """Look for a loop."""
        unrolled = any(self.facts.graph_work(site) is not None for site in self.facts.graph_sites(cst.For))
        if self.facts.kernels and not unrolled and not graph_loops(self.facts):
            self.report(self.facts.kernels[0].site)
