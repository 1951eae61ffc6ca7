"""OL03: a kernel returns and yields nothing."""

import libcst as cst

from pypto_op.vocabulary import Severity
from pypto_op_lint.examples import impl
from pypto_op_lint.rule import IMPLS, Invalid, Rule, Valid
from pypto_op_lint.tree import Function, Site


class NoReturnInKernel(Rule):
    """The jit kernel has a `return` or a `yield`.

    What it does:
        Reports every `return`, with or without a value, `yield` and `yield from` of a function that is decorated with jit or
        with `pypto.frontend.function`; and the `yield` of a helper that the graph calls as a statement. Plain helpers may
        return.

    Why:
        A kernel's results are its output parameters; pypto's parser refuses `return`. `yield` makes a generator of what
        is run by Python.

    Example:
        return pypto.exp(x)

    Use instead:
        out[:] = pypto.exp(x)

    Known limits:
        None.
    """

    id = "OL03"
    name = "no-return-in-kernel"
    severity = Severity.S1
    artifacts = IMPLS
    needs = frozenset({"kernels", "calls", "graph_functions"})
    MESSAGE = "the kernel returns"
    FIX_HINT = "write the result into an output parameter and let the kernel end"

    VALID = [
        Valid(impl()),
        Valid(impl(after="def _sizes(limit):\n    yield from range(16, limit, 16)\n")),
        Valid(impl("pypto.set_vec_tile_shapes(64, 128)\nout[:] = _exp(x)\n", before="def _exp(t):\n    return pypto.exp(t)\n")),
    ]
    INVALID = [
        Invalid(impl("return pypto.exp(x)\n")),
        Invalid(impl("out[:] = pypto.exp(x)\nreturn\n")),
        Invalid(impl("out[:] = pypto.exp(x)\nyield\n")),
        Invalid(impl("y = yield pypto.exp(x)\nout[:] = y\n")),
        Invalid(impl("yield from [pypto.exp(x)]\n")),
        Invalid(impl("_body(x, out)\n", before="def _body(x, out):\n    out[:] = pypto.exp(x)\n    yield\n")),
        Invalid(impl("if x.shape[0] == 1:\n    return None\nout[:] = pypto.exp(x)\n")),
    ]

    def visit_Return(self, site: Site) -> None:
        """A return of the kernel itself, or of a function defined inside it."""
        self._look(site, "the kernel returns")

    def visit_Yield(self, site: Site) -> None:
        """`yield`, `yield x`, `yield from x`, as a statement or inside an expression."""
        if not self._look(site, "the kernel yields") and site.function is not None and self._result_dropped(site.function):
            self.report(site, f"`{site.function.name}` yields, so calling it as a statement runs nothing of it")

    def _look(self, site: Site, what: str) -> bool:
        function = site.function
        while function is not None:
            if self.facts.is_kernel(function) or self._is_inlined(function):
                self.report(site, what)
                return True
            function = function.owner
        return False

    def _result_dropped(self, function: Function) -> bool:
        """Whether graph code calls `function` for what it does, not for what it gives."""
        calls = [c for c in self.facts.calls.calls_of(function) if c.kind == "call" and self.facts.in_graph(c.site)]
        return any(c.site.parent is not None and isinstance(c.site.parent.node, cst.Expr) for c in calls)

    def _is_inlined(self, function: Function) -> bool:
        """`@pypto.frontend.function` is parsed like a kernel."""
        targets = [d.func if isinstance(d, cst.Call) else d for d in function.decorators]
        return any("pypto.frontend.function" in self.facts.ev.paths(target) for target in targets)
