"""OL03: a kernel returns nothing."""

import libcst as cst

from pypto_op.vocabulary import Severity
from pypto_op_lint.examples import impl
from pypto_op_lint.rule import IMPLS, Invalid, Rule, Valid
from pypto_op_lint.tree import Function, Site


class NoReturnInKernel(Rule):
    """The jit kernel has a `return`.

    What it does:
        Reports every `return` of a function that is decorated with jit or with `pypto.frontend.function`, with or without a
        value. Plain helpers may return.

    Why:
        A kernel's results are its output parameters; pypto's parser refuses `return`.

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
    needs = frozenset({"kernels"})
    MESSAGE = "the kernel returns"
    FIX_HINT = "write the result into an output parameter and let the kernel end"

    VALID = [
        Valid(impl()),
        Valid(impl("pypto.set_vec_tile_shapes(64, 128)\nout[:] = _exp(x)\n", before="def _exp(t):\n    return pypto.exp(t)\n")),
    ]
    INVALID = [
        Invalid(impl("return pypto.exp(x)\n")),
        Invalid(impl("out[:] = pypto.exp(x)\nreturn\n")),
        Invalid(impl("if x.shape[0] == 1:\n    return None\nout[:] = pypto.exp(x)\n")),
    ]

    def visit_Return(self, site: Site) -> None:
        """A return of the kernel itself, or of a function defined inside it."""
        assert isinstance(site.node, cst.Return)
        function = site.function
        while function is not None:
            if self.facts.is_kernel(function) or self._is_inlined(function):
                self.report(site)
                return
            function = function.owner

    def _is_inlined(self, function: Function) -> bool:
        """`@pypto.frontend.function` is parsed like a kernel."""
        targets = [d.func if isinstance(d, cst.Call) else d for d in function.decorators]
        return any("pypto.frontend.function" in self.facts.ev.paths(target) for target in targets)
