"""PX06: pypto.loop does something only when it is iterated over."""

import libcst as cst

from pypto_op.vocabulary import Severity
from pypto_op_lint.examples import BODY, impl
from pypto_op_lint.facts.loops import LOOPS
from pypto_op_lint.rule import IMPLS, Invalid, Rule, Valid
from pypto_op_lint.tree import Site


class LoopIsIterated(Rule):
    """A call of `pypto.loop` stands alone as a statement.

    What it does:
        Reports an expression statement that calls `pypto.loop` or `pypto.loop_unroll`, and a name bound to such a call that is
        never used.

    Why:
        `pypto.loop` makes a generator. A statement that only calls it creates no loop, and what follows runs once,
        on the first chunk.

    Example:
        pypto.loop(chunks)
        tile = pypto.view(x, [64, 128], [0, 0])

    Use instead:
        for c in pypto.loop(chunks, name="CHUNK", idx_name="c"):
            tile = pypto.view(x, [64, 128], [c * 64, 0])

    Known limits:
        A generator that is handed to code outside the file is taken to be used.
    """

    id = "PX06"
    name = "loop-is-iterated"
    severity = Severity.S1
    artifacts = IMPLS
    needs = frozenset({"foreign_calls"})
    MESSAGE = "a call of pypto.loop is not iterated over, so there is no loop"
    FIX_HINT = "write `for i in pypto.loop(n, name=..., idx_name=...):` and indent the body under it"

    VALID = [
        Valid(impl()),
        Valid(impl(BODY.replace("for i in pypto.loop", "steps = pypto.loop").replace('"i"):', '"i")\nfor i in steps:'))),
        Valid(impl(before='"""pypto.loop(1)"""\n')),
    ]
    INVALID = [
        Invalid(impl("pypto.loop(1)\n" + BODY), lines=(15,)),
        Invalid(impl("steps = pypto.loop(4)\n" + BODY), lines=(15,)),
        Invalid(impl("pypto.loop(4), pypto.loop(2)\n" + BODY), lines=(15, 15)),
        Invalid(
            impl(
                "pypto.set_vec_tile_shapes(64, 128)\n_body(x, out)\n",
                before="def _body(x, out):\n    pypto.loop(x.shape[0])\n    out[:] = pypto.exp(x)\n",
            )
        ),
    ]

    def check_file(self) -> None:
        """Look at where each call's result goes."""
        for site, node, names in self.facts.foreign_calls:
            if names & LOOPS and self._is_lost(site):
                self.report(site, f"`{self.code(node, 40)}` is not iterated over: there is no loop here")

    def _is_lost(self, site: Site) -> bool:
        parent = site.parent.node if site.parent is not None else None
        if isinstance(parent, cst.Expr):
            return True
        if isinstance(parent, (cst.Element, cst.Tuple, cst.List)) and site.parent is not None:
            return self._is_lost(site.parent)  # `pypto.loop(4), pypto.loop(2)` as a statement
        if isinstance(parent, cst.Assign) and len(parent.targets) == 1:
            target = parent.targets[0].target
            if isinstance(target, cst.Name):
                return not any(
                    s.node.value == target.value and s.node is not target  # type: ignore[attr-defined]
                    for s in self.facts.tree.sites(cst.Name)
                    if s.scope is site.scope or s.scope.lookup(target.value) == site.scope.lookup(target.value)
                )
        return False
