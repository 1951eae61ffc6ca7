"""OL47: each sub-kernel may have its own tiles."""

import libcst as cst

from pypto_op.vocabulary import Severity
from pypto_op_lint.examples import impl
from pypto_op_lint.rule import IMPLS, Invalid, Rule, Valid
from pypto_op_lint.tree import Function

_SETTERS = frozenset({"pypto.set_vec_tile_shapes", "pypto.set_cube_tile_shapes"})
_STAGES = """\
def pypto_alpha(t):
    {0}return pypto.exp(t)


def pypto_beta(t):
    {0}return pypto.abs(t)
"""
_BODY = "pypto.set_vec_tile_shapes(64, 128)\nfor i in pypto.loop(1):\n    out[:] = pypto_beta(pypto_alpha(x))\n"


class TilesPerStage(Rule):
    """One tile shape serves several sub-kernels.

    What it does:
        Tells where a function of the graph sets a tile and then calls two or more helpers that build graph and set none of
        their own. A function that sets new tiles between the stages is left alone.

    Why:
        A matmul and a reduction rarely want the same tile; this is a hint for tuning, not a fault.

    Example:
        pypto.set_vec_tile_shapes(64, 128)
        a = pypto_alpha(q)
        b = pypto_beta(a)

    Use instead:
        def pypto_alpha(q):
            pypto.set_vec_tile_shapes(64, 128)
            ...

    Known limits:
        It does not know whether another tile would be faster.
    """

    id = "OL47"
    name = "tiles-per-stage"
    severity = Severity.S3
    artifacts = IMPLS
    needs = frozenset({"foreign_calls", "graph_functions"})
    MESSAGE = "one tile shape serves several sub-kernels"
    FIX_HINT = "when tuning, set the tile inside each sub-kernel"

    VALID = [
        Valid(impl()),
        Valid(impl(_BODY, before=_STAGES.format("pypto.set_vec_tile_shapes(32, 128)\n    "))),
        Valid(impl(_BODY.replace("pypto_beta(pypto_alpha(x))", "pypto_alpha(x)"), before=_STAGES.format(""))),
    ]
    INVALID = [
        Invalid(impl(_BODY, before=_STAGES.format(""))),
        Invalid(
            impl(
                "_demo_kernel_impl(x, out)\n",
                before=_STAGES.format("")
                + "\n\ndef _demo_kernel_impl(x, out):\n"
                + "".join(f"    {line}\n" for line in _BODY.splitlines()),
            )
        ),
    ]

    def check_file(self) -> None:
        """Compare setters and helpers of each function."""
        facts = self.facts
        setting: dict[int, cst.CSTNode] = {}
        often: set[tuple[int, str]] = set()
        again: set[int] = set()
        for site, node, names in facts.foreign_calls:
            if names & _SETTERS and site.function is not None:
                key = (id(site.function), min(names & _SETTERS))
                again |= {key[0]} if key in often else set()
                often.add(key)
                setting.setdefault(key[0], node)
        for function in facts.graph_functions:
            if id(function) not in setting or id(function) in again:
                continue
            stages = {id(c.function): c.function for c in facts.calls.calls_from(function) if c.kind == "call"}
            bare = [f for f in stages.values() if facts.builds_graph(f) and not self._sets(f, setting)]
            if len(bare) >= 2:
                names_ = ", ".join(f"`{f.name}`" for f in sorted(bare, key=lambda f: f.site.order)[:4])
                self.report(setting[id(function)], f"one tile shape serves {names_}")

    def _sets(self, function: Function, setting: dict[int, cst.CSTNode]) -> bool:
        return any(id(f) in setting for f in self.facts.calls.reach([function]))
