"""OL56: before tuning, a loop is unrolled by exactly one factor."""

import libcst as cst

from pypto_op.vocabulary import Artifact, Severity
from pypto_op_lint.examples import BODY, impl
from pypto_op_lint.facts import Facts
from pypto_op_lint.facts.loops import LOOPS
from pypto_op_lint.facts.values import Const, Seq, Table, Value
from pypto_op_lint.rule import BEFORE_TUNING, IMPLS, Invalid, Rule, Valid


def _loop(extra: str, **parts: str) -> str:
    return impl(BODY.replace('idx_name="i")', f'idx_name="i", {extra})'), **parts)


class SingleUnroll(Rule):
    """An `unroll_list` does not hold exactly one value.

    What it does:
        Follows the `unroll_list` of every `pypto.loop` and `pypto.loop_unroll`, through names, tuples, `**options`,
        partials and helpers, and wants exactly one value. In DESIGN.md it looks at the Python blocks.

    Why:
        Each further value compiles the loop's body once more. During construction that turns seconds of compilation into
        minutes; which factors pay is found in the tuning stage, where the rule is off.

    Example:
        for i in pypto.loop(n, name="ROWS", idx_name="i", unroll_list=[8, 4, 2, 1]): ...

    Use instead:
        for i in pypto.loop(n, name="ROWS", idx_name="i", unroll_list=[1]): ...

    Known limits:
        A list whose length the file does not show is refused in code and let pass in DESIGN.md.
    """

    id = "OL56"
    name = "single-unroll"
    severity = Severity.S0
    artifacts = IMPLS | {Artifact.DESIGN}
    stages = BEFORE_TUNING
    needs = frozenset({"foreign_calls"})
    MESSAGE = "`unroll_list` holds more than one value"
    FIX_HINT = (
        "write the one value that DESIGN.md section 4 chose, by default `unroll_list=[1]`; several values belong to stage 7"
    )

    VALID = [
        Valid(impl()),
        Valid(_loop("unroll_list=[1]")),
        Valid(_loop("unroll_list={4}")),
        Valid(_loop("unroll_list=UNROLL", before="UNROLL = (8,)\n")),
        Valid(_loop("unroll_list=None")),
        Valid(_loop("**OPTIONS", before='OPTIONS = {"unroll_list": [2]}\n')),
        Valid(_loop("unroll_list=[8, 4]"), stage=7),
        Valid(impl(before='"""pypto.loop(n, unroll_list=[8, 4, 2, 1])"""\n')),
        Valid("```python\nfor i in pypto.loop(n, unroll_list=[1]):\n    ...\n```\n", artifact=Artifact.DESIGN),
    ]
    INVALID = [
        Invalid(_loop("unroll_list=[8, 4, 2, 1]")),
        Invalid(_loop("unroll_list=[]")),
        Invalid(_loop("unroll_list=UNROLL", before="UNROLL = [4, 1]\n")),
        Invalid(_loop("unroll_list=[2**p for p in range(4)]")),
        Invalid(_loop("**OPTIONS", before="OPTIONS = dict(unroll_list=(4, 1))\n")),
        Invalid(_loop("unroll_list=factors()", before="def factors():\n    return [4, 2]\n")),
        Invalid(
            impl(
                BODY.replace("for i in pypto.loop(", "for i, u in pypto.loop_unroll(").replace('"i")', '"i", unroll_list=[2, 1])')
            )
        ),
        Invalid(
            impl(
                BODY.replace("for i in pypto.loop((rows + 63) // 64", "steps = pypto.loop((rows + 63) // 64").replace(
                    'idx_name="i"):', 'idx_name="i", unroll_list=[2, 1])\nfor i in steps:'
                )
            )
        ),
        Invalid(
            impl(
                "pypto.set_vec_tile_shapes(64, 128)\n_body(x, out)\n",
                before='def _body(x, out):\n    for i in pypto.loop(4, name="L", idx_name="i", unroll_list=[4, 2]):\n'
                "        out[:] = pypto.exp(x)\n",
            )
        ),
        Invalid("```python\nfor i in pypto.loop(n, unroll_list=[4, 1]):\n    ...\n```\n", artifact=Artifact.DESIGN, lines=(2,)),
        Invalid(
            "~~~\nfor i in pypto.loop(<n>, unroll_list=[4, 1]):\nfor j in pypto.loop(n, unroll_list=[4, 1]):\n~~~\n",
            artifact=Artifact.DESIGN,
            lines=(3,),
        ),
    ]

    def check_file(self) -> None:
        """Check every loop of the file or of the document's code blocks."""
        if self.unit.is_python:
            self._loops(self.facts, strict=True)
        for snippet in self.unit.snippets:
            self.in_snippet(snippet)
            self._loops(snippet.facts, strict=False)

    def _loops(self, facts: Facts, *, strict: bool) -> None:
        for _, node, callees in facts.foreign_calls:
            partial = "functools.partial" in callees and node.args and facts.ev.paths(node.args[0].value) & LOOPS
            if not (callees & LOOPS or partial):
                continue
            for where, values in _unroll_lists(facts, node):
                for problem in dict.fromkeys(_problem(value, strict) for value in values):
                    if problem:
                        self.report(where, f"`unroll_list` {problem}: each value compiles the loop's body once more")


def _unroll_lists(facts: Facts, node: cst.Call) -> list[tuple[cst.CSTNode, tuple[Value, ...]]]:
    found: list[tuple[cst.CSTNode, tuple[Value, ...]]] = []
    for arg in node.args:
        if arg.keyword is not None and arg.keyword.value == "unroll_list":
            found.append((arg.value, facts.ev.values(arg.value)))
        elif arg.star == "**":
            tables = [v for v in facts.ev.values(arg.value) if isinstance(v, Table)]
            found.extend((arg.value, t.entries["unroll_list"]) for t in tables if "unroll_list" in t.entries)
    return found


def _problem(value: Value, strict: bool) -> str:
    if isinstance(value, Seq):
        count = len(value.items)
        return "" if count == 1 else f"holds {count} values instead of one" if count else "is empty"
    if isinstance(value, Const):
        return "" if value.value is None else f"is {value.value!r} instead of a list of one value"
    return "cannot be shown to hold exactly one value" if strict else ""
