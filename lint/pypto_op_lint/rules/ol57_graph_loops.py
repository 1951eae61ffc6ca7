"""OL57: code that builds the graph repeats work by pypto.loop or range only."""

import libcst as cst

from pypto_op.vocabulary import Severity
from pypto_op_lint.examples import BODY, impl
from pypto_op_lint.facts import NO_GRAPH_WORK
from pypto_op_lint.facts.values import Result
from pypto_op_lint.rule import IMPLS, Invalid, Rule, Valid
from pypto_op_lint.tree import Site

_ALLOWED = {"pypto.loop", "pypto.loop_unroll", "builtins.range", "pypto.distributed.loop"}
_CALLS_EACH = {"builtins.map", "builtins.filter", "functools.reduce", "itertools.starmap", "itertools.accumulate"}
_HELPED = "pypto.set_vec_tile_shapes(64, 128)\n_body(x, out)\n"


def _helper(body: str) -> str:
    return impl(_HELPED, before=f"def _body(x, out):\n{body}\n")


class GraphLoops(Rule):
    """Graph code repeats work with `while`, with `for` over something else than a loop, in a comprehension or by recursion.

    What it does:
        In the kernel and in every helper it calls, a `for` must run over `pypto.loop`, `pypto.loop_unroll` or
        `range`; `while`, and comprehensions, `map` and recursion that create operations, are refused. Loops of a
        helper that only computes Python values (a list of factors, a shape) are not the graph's and pass.

    Why:
        Everything but `pypto.loop` is unrolled while the kernel is traced: the graph grows with the data, and a
        bound that is symbolic cannot be traced at all.

    Example:
        while start < n:
            pypto.assemble(pypto.exp(tile), [start, 0], out)

    Use instead:
        for i in pypto.loop(n // TILE, name="ROWS", idx_name="i"):
            pypto.assemble(pypto.exp(tile), [i * TILE, 0], out)

    Known limits:
        `range` is allowed and is unrolled; whether its bound is small is not judged.
    """

    id = "OL57"
    name = "graph-loops"
    severity = Severity.S0
    artifacts = IMPLS
    needs = frozenset({"graph_functions", "graph_sites", "kernels", "tensors", "calls"})
    MESSAGE = "graph code repeats work other than by pypto.loop or range"
    FIX_HINT = "write `for i in pypto.loop(n, name=..., idx_name=...)`, or `range` for a small fixed count"

    VALID = [
        Valid(impl()),
        Valid(
            _helper(
                '    for i in pypto.loop(4, name="L", idx_name="i"):\n'
                "        for j in range(2):\n            out[:] = pypto.exp(x)"
            )
        ),
        Valid(impl(BODY.replace("for i in pypto.loop", "steps = pypto.loop").replace('"i"):', '"i")\nfor i in steps:'))),
        Valid(impl(BODY.replace("for i in pypto.loop", "for i, u in pypto.loop_unroll"))),
        Valid(
            impl(
                "shape = [n for n in (64, 128)]\n" + BODY.replace('"i")', '"i", unroll_list=_factors(1))'),
                before="def _factors(limit):\n    found = []\n    while limit:\n"
                "        found.append(limit)\n        limit //= 2\n    return [1]\n",
            )
        ),
        Valid(impl(before="def _unused(x):\n    while True:\n        x = pypto.exp(x)\n")),
        Valid(
            impl(
                wrapper="""
                def demo_wrapper(x):
                    for name, size in zip(("rows", "cols"), x.shape):
                        if size == 0:
                            raise ValueError(name)
                    out = torch.empty_like(x)
                    demo_kernel(x, out)
                    return out
                """
            )
        ),
    ]
    INVALID = [
        Invalid(impl("while True:\n    out[:] = pypto.exp(x)\n")),
        Invalid(_helper("    n = 0\n    while n < 4:\n        out[:] = pypto.exp(x)\n        n += 1")),
        Invalid(_helper("    for t in [x, out]:\n        out[:] = pypto.exp(t)")),
        Invalid(_helper("    for i, t in enumerate((x, out)):\n        t[:] = pypto.exp(t)")),
        Invalid(impl("for i in (0, 1):\n    out[:] = pypto.exp(x)\n")),
        Invalid(_helper("    parts = [pypto.exp(t) for t in (x, out)]\n    out[:] = parts[0]")),
        Invalid(_helper("    parts = [x * n for n in range(3)]\n    out[:] = parts[0]")),
        Invalid(_helper("    one = lambda t: pypto.exp(t)\n    out[:] = list(map(one, [x]))[0]")),
        Invalid(_helper("    out[:] = list(map(pypto.exp, [x]))[0]")),
        Invalid(
            impl(_HELPED, before="def _body(x, out, n=4):\n    out[:] = pypto.exp(x)\n    if n:\n        _body(x, out, n - 1)\n")
        ),
        Invalid(
            impl(
                _HELPED,
                before="def _step(t):\n    return t.exp()\n\n\ndef _body(x, out):\n"
                "    for t in [x]:\n        out[:] = _step(t)\n",
            )
        ),
    ]

    def check_file(self) -> None:
        """Look at every loop of the graph's functions."""
        facts = self.facts
        for site in facts.graph_sites(cst.While):
            self._while(site, facts.is_kernel(site.function))
        for site in facts.graph_sites(cst.For):
            assert isinstance(site.node, cst.For)
            self._for(site, site.node, facts.is_kernel(site.function))
        for site in facts.graph_sites(cst.ListComp, cst.SetComp, cst.DictComp, cst.GeneratorExp):
            if facts.graph_work(site) is not None:
                self.report(site, f"the comprehension `{self.code(site.node, 40)}` creates graph operations")
        for site in facts.graph_sites(cst.Call):
            assert isinstance(site.node, cst.Call)
            self._call(site, site.node)

    def _while(self, site: Site, always: bool) -> None:
        if always or self.facts.graph_work(site) is not None:
            self.report(site, "`while` in graph code: the graph cannot repeat until a condition")

    def _for(self, site: Site, node: cst.For, always: bool) -> None:
        over = self.facts.ev.values(node.iter)
        if all(isinstance(v, Result) and v.callee in _ALLOWED for v in over):
            return
        if always or self.facts.graph_work(site) is not None:
            self.report(site, f"`for` over `{self.code(node.iter, 40)}` in graph code: it is unrolled by Python")

    def _call(self, site: Site, node: cst.Call) -> None:
        if self.facts.callee_names(node) & _CALLS_EACH:
            given = {name for arg in node.args for name in self.facts.ev.paths(arg.value)}
            if any(name.startswith("pypto.") and name not in NO_GRAPH_WORK for name in given):
                self.report(site, f"`{self.code(node, 40)}` creates graph operations for each item")
        for call in self.facts.calls.calls_at(node):
            function = call.function
            if not self.facts.builds_graph(function):
                continue
            if call.kind == "reference" and self.facts.callee_names(node) & _CALLS_EACH:
                self.report(site, f"`{self.code(node, 40)}` creates graph operations for each item")
            elif call.caller is not None and any(f is call.caller for f in self.facts.calls.reach([function])):
                self.report(site, f"`{function.name}` calls itself and creates graph operations each time")
