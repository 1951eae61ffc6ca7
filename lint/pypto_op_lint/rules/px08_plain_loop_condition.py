"""PX08: a loop condition is written without pypto.cond."""

import libcst as cst

from pypto_op.vocabulary import Severity
from pypto_op_lint.examples import BODY, impl
from pypto_op_lint.rule import IMPLS, Invalid, Rule, Valid
from pypto_op_lint.tree import Site


def _body(test: str) -> str:
    return impl(BODY + f"    if {test}:\n        out[:] = pypto.exp(x)\n")


class PlainLoopCondition(Rule):
    """An `if` in the kernel tests `pypto.cond(...)`.

    What it does:
        Reports `if pypto.cond(...)` in the kernel itself. `--fix` puts the inner condition in its place.

    Why:
        In a jit function the front end wraps the condition itself. Written out, it fails with "Test condition must
        be a symbolic scalar or boolean" in the first line of output, and with an unrelated tile error in the last.

    Example:
        if pypto.cond(pypto.is_loop_begin(i)): ...

    Use instead:
        if pypto.is_loop_begin(i): ...

    Known limits:
        In helpers that Python runs itself `pypto.cond` is how a condition is written; they are not looked at.
    """

    id = "PX08"
    name = "plain-loop-condition"
    severity = Severity.S1
    artifacts = IMPLS
    needs = frozenset({"kernels", "graph_sites", "calls"})
    MESSAGE = "`if pypto.cond(...)` fails in a jit function"
    FIX_HINT = "write the condition itself: `if pypto.is_loop_begin(i):`"

    VALID = [
        Valid(_body("pypto.is_loop_begin(i)")),
        Valid(_body("i == 0")),
    ]
    INVALID = [
        Invalid(_body("pypto.cond(pypto.is_loop_begin(i))"), replacement=_body("pypto.is_loop_begin(i)")),
        Invalid(_body("pypto.cond(i == 0)"), replacement=_body("i == 0")),
    ]

    def visit_If(self, site: Site) -> None:
        """Look at the test."""
        test = site.node.test  # type: ignore[attr-defined]
        if not isinstance(test, cst.Call) or not self.facts.is_kernel(site.function):
            return
        if "pypto.cond" in self.facts.callee_names(test):
            plain = len(test.args) == 1 and test.args[0].keyword is None
            inner = cst.Module(body=[]).code_for_node(test.args[0].value) if plain else ""
            self.report(test, edit=self.replace(test, inner) if inner and "\n" not in inner else None)
