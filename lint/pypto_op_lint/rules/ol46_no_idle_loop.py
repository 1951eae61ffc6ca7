"""OL46: no loop that runs once around one that does the work."""

from pypto_op.vocabulary import Severity
from pypto_op_lint.examples import BODY, impl
from pypto_op_lint.facts.loops import graph_loops, loops_inside
from pypto_op_lint.rule import IMPLS, Invalid, Rule, Valid

_INNER = "".join(f"    {line}\n" for line in BODY.splitlines())


class NoIdleLoop(Rule):
    """A loop that runs once stands around another loop.

    What it does:
        Warns about a `for` over `pypto.loop(1)` (any bounds that are known to give one step) whose body, helpers included,
        has another pypto loop. Loops side by side are fine.

    Why:
        `pypto.loop(1)` is there for kernels that have no other loop; around one it only adds a level to the loop tree.

    Example:
        for _ in pypto.loop(1):
            for i in pypto.loop(n):
                ...

    Use instead:
        for i in pypto.loop(n):
            ...

    Known limits:
        Bounds that are computed are not evaluated.
    """

    id = "OL46"
    name = "no-idle-loop"
    severity = Severity.S2
    artifacts = IMPLS
    needs = frozenset({"graph_functions"})
    MESSAGE = "a loop that runs once stands around another loop"
    FIX_HINT = "remove the outer pypto.loop(1)"

    VALID = [
        Valid(impl()),
        Valid(impl("pypto.set_vec_tile_shapes(64, 128)\nfor _ in pypto.loop(1):\n    out[:] = pypto.exp(x)\n")),
        Valid(impl("for _ in pypto.loop(1):\n    pypto.set_vec_tile_shapes(64, 128)\n    out[:] = pypto.exp(x)\n" + BODY)),
        Valid(impl("for _ in pypto.loop(2):\n" + _INNER)),
    ]
    INVALID = [
        Invalid(impl("for _ in pypto.loop(1):\n" + _INNER)),
        Invalid(impl("for _ in pypto.loop(0, ONCE, 1):\n" + _INNER, before="ONCE = 1\n")),
        Invalid(impl("for _ in pypto.loop(1):\n    _body(x, out)\n", before="def _body(x, out):\n" + _INNER)),
    ]

    def check_file(self) -> None:
        """Look for a loop inside each loop that runs once."""
        loops = graph_loops(self.facts)
        for loop in loops:
            if loop.once and any(True for _ in loops_inside(self.facts, loop, loops)):
                self.report(loop.site)
