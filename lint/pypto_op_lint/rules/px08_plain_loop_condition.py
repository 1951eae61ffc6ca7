"""PX08: a loop condition is written plainly in the jit entry, and by pypto.cond in a helper."""

import libcst as cst

from pypto_op.vocabulary import Severity
from pypto_op_lint.examples import BODY, impl
from pypto_op_lint.facts.values import Result
from pypto_op_lint.nodes import children
from pypto_op_lint.rule import IMPLS, Invalid, Rule, Valid

_LOOP_TESTS = {"pypto.is_loop_begin", "pypto.is_loop_end"}


def _helper(test: str) -> str:
    """A thin entry whose helper holds the loop."""
    return impl(
        "pypto.set_vec_tile_shapes(64, 128)\n_steps(x, out, True)\n",
        before='def _steps(x, out, flag):\n    for i in pypto.loop(4, name="L", idx_name="i"):\n'
        f"        if {test}:\n            out[:] = pypto.exp(x)\n",
    )


def _body(test: str) -> str:
    return impl(BODY + f"    if {test}:\n        out[:] = pypto.exp(x)\n")


class PlainLoopCondition(Rule):
    """A condition on a loop's index is written in the form of the other kind of function.

    What it does:
        In functions that the front end parses (the jit entry, `pypto.frontend.function`) it reports `if pypto.cond(...)`;
        `--fix` puts the inner condition in its place. In helpers that Python runs it reports a plain `if` on
        `pypto.is_loop_begin` or `pypto.is_loop_end`.

    Why:
        The front end wraps conditions itself and refuses a wrapped one: "Test condition must be a symbolic scalar or boolean",
        in the first line of output only. Python, in a helper, needs a plain truth value and fails with "Not concrete value".

    Example:
        if pypto.cond(pypto.is_loop_begin(i)): ...

    Use instead:
        if pypto.is_loop_begin(i): ...

    Known limits:
        Other symbolic conditions in helpers are not told from plain ones.
    """

    id = "PX08"
    name = "plain-loop-condition"
    severity = Severity.S1
    artifacts = IMPLS
    needs = frozenset({"kernels", "graph_sites", "calls"})
    MESSAGE = "`if pypto.cond(...)` fails in a function that the front end parses"
    FIX_HINT = "in the jit entry write the condition itself, `if pypto.is_loop_begin(i):`; in a helper `if pypto.cond(...):`"

    VALID = [
        Valid(_body("pypto.is_loop_begin(i)")),
        Valid(_body("i == 0")),
        Valid(_helper("pypto.cond(pypto.is_loop_begin(i))")),
        Valid(_helper("flag")),
    ]
    INVALID = [
        Invalid(_body("pypto.cond(pypto.is_loop_begin(i))"), replacement=_body("pypto.is_loop_begin(i)")),
        Invalid(_body("pypto.cond(i == 0)"), replacement=_body("i == 0")),
        Invalid(_body("(first := pypto.cond(i == 0))")),
        Invalid(_helper("pypto.is_loop_begin(i)")),
        Invalid(_helper("not pypto.is_loop_end(i)")),
    ]

    def check_file(self) -> None:
        """Look at every test of the graph."""
        for site in self.facts.graph_sites(cst.If, cst.IfExp, cst.While):
            test: cst.BaseExpression = site.node.test  # type: ignore[attr-defined]
            if self.facts.is_parsed(site.function):
                self._parsed(test)
            else:
                self._plain(test)

    def _parsed(self, test: cst.BaseExpression) -> None:
        """A wrapped condition, written in the test or bound to a name before."""
        for value in self.facts.ev.values(test):
            if isinstance(value, Result) and value.callee == "pypto.cond":
                call = value.call
                plain = call is test and len(call.args) == 1 and call.args[0].keyword is None
                inner = cst.Module(body=[]).code_for_node(call.args[0].value) if plain else ""
                self.report(call, edit=self.replace(call, inner) if inner and "\n" not in inner else None)

    def _plain(self, test: cst.BaseExpression) -> None:
        """A loop condition that Python would have to decide."""
        waiting = [test]
        while waiting:
            node = waiting.pop()
            if isinstance(node, (cst.UnaryOperation, cst.BooleanOperation)):
                waiting.extend(children(node))  # type: ignore[arg-type]
            elif any(isinstance(v, Result) and v.callee in _LOOP_TESTS for v in self.facts.ev.values(node)):
                self.report(
                    test,
                    f"`{self.code(test, 40)}` in a helper that Python runs: the condition is a symbol without a truth value",
                    hint=f"write `if pypto.cond({self.code(test, 40)}):` here, or move the branch into the jit entry",
                )
