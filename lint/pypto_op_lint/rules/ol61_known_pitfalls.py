"""OL61: what others tripped over was looked at, and is not in the code."""

import libcst as cst

from pypto_op.documents.markdown import Section
from pypto_op.vocabulary import Artifact, LintEvent, Severity
from pypto_op_lint.examples import impl
from pypto_op_lint.facts.dtypes import dtypes_of, named_dtypes
from pypto_op_lint.facts.values import Const, Result
from pypto_op_lint.rule import IMPLS, Invalid, Rule, Valid
from pypto_op_lint.tree import Site

_BINARY = frozenset({"pypto.add", "pypto.sub", "pypto.mul", "pypto.div"})
_ALLOCATORS = frozenset({"pypto.zeros", "pypto.ones"})
_TILES = "pypto.set_vec_tile_shapes(64, 128)\n"
_GATE: dict[str, object] = {"event": LintEvent.COMPLETE_STAGE, "stage": 5}
_MOST_ITEMS = 20
_MOST_DEPTH = 12
DIRECT_CASTS = {
    "FP16": "FP32 INT32 INT16 INT8 UINT8 INT4",
    "BF16": "FP32 INT32",
    "FP32": "BF16 FP16 INT16 INT32 INT64",
    "INT32": "FP32 INT16 INT64 FP16",
    "INT16": "FP32 FP16",
    "INT64": "FP32 INT32",
    "UINT8": "FP16",
    "INT8": "FP16",
    "INT4": "FP16",
}
"""Casts that the device does in one step; any other goes through one of these."""


_CODES = "def _codes(t):\n    return pypto.cast(t, pypto.DT_INT8)\n"


def _memory(items: str) -> str:
    return f"# Memory\n\n## Experience Preflight\n\n{items}\n"


class KnownPitfalls(Rule):
    """The kernel does one of four things that are known to fail, or the preflight list in MEMORY.md is not worked off.

    What it does:
        In graph code: a number as the first argument of pypto.add, sub, mul or div; a `pypto.Element(...)` as an operand of
        one of these; a cast that the device cannot do in one step (where the dtype of its source is known); pypto.zeros or
        ones with the dtype by position. In
        MEMORY.md, where there is a section `Experience Preflight`: a checklist (no table) of at most 20 items, a note on every
        `[-]`; when stages 5 and 6 are completed the section must exist and no `[-]` or `[ ]` may be left.

    Why:
        Each of these cost somebody a day, and the message pypto gives does not lead to it.

    Example:
        y = pypto.sub(1.0, x)

    Use instead:
        y = pypto.add(pypto.mul(x, -1.0), 1.0)

    Known limits:
        The table of direct casts is taken from experience, not from the framework.
    """

    id = "OL61"
    name = "known-pitfalls"
    severity = Severity.S1
    artifacts = IMPLS | {Artifact.MEMORY}
    needs = frozenset({"foreign_calls", "kernels", "tensors", "calls"})
    MESSAGE = "a known pitfall"
    FIX_HINT = "see the message: it names the form that works"

    VALID = [
        Valid(impl(_TILES + "out[:] = pypto.mul(x, 2.0)\n")),
        Valid(impl(_TILES + "z = pypto.zeros([64, 128], dtype=pypto.DT_FP32)\nout[:] = x + z\n")),
        Valid(impl(_TILES + "out[:] = pypto.exp(pypto.cast(pypto.cast(x, pypto.DT_FP16), pypto.DT_FP32))\n")),
        Valid(impl(_TILES + "out[:] = pypto.exp(_codes(pypto.cast(x, pypto.DT_FP16)))\n", before=_CODES)),
        Valid(_memory("- [x] ragged tail: valid_shape on the views"), artifact=Artifact.MEMORY),
        Valid(_memory("- [-] topk ties: pending, no ties in the suite"), artifact=Artifact.MEMORY),
        Valid("# Memory\n", artifact=Artifact.MEMORY),
    ]
    INVALID = [
        Invalid(impl(_TILES + "out[:] = pypto.sub(1.0, x)\n")),
        Invalid(impl(_TILES + "out[:] = pypto.mul(input=2.0, other=x)\n")),
        Invalid(impl(_TILES + "out[:] = pypto.mul(SCALE, x)\n", before="SCALE = 0.5\n")),
        Invalid(impl(_TILES + "out[:] = pypto.add(x, pypto.Element(pypto.DT_FP32, 1.0))\n")),
        Invalid(impl(_TILES + "one = pypto.Element(pypto.DT_FP32, 1.0)\nout[:] = pypto.add(x, one)\n")),
        Invalid(impl(_TILES + "out[:] = pypto.cast(x, pypto.DT_INT8)\n")),
        Invalid(impl(_TILES + "out[:] = pypto.cast(x, dtype=pypto.DT_INT8)\n")),
        Invalid(impl(_TILES + "out[:] = pypto.cast(dtype=pypto.DT_INT8, input=x)\n")),
        Invalid(impl(_TILES + "out[:] = _codes(x * 2.0)\n", before=_CODES)),
        Invalid(impl(_TILES + "z = pypto.zeros([64, 128], pypto.DT_FP32)\nout[:] = x + z\n")),
        Invalid(_memory("| item | done |\n|---|---|\n| tail | yes |"), artifact=Artifact.MEMORY),
        Invalid(_memory("- [-] x"), artifact=Artifact.MEMORY),
        Invalid(_memory("\n".join(f"- [x] item {n}" for n in range(21))), artifact=Artifact.MEMORY),
        Invalid(_memory("- [-] topk ties: pending"), artifact=Artifact.MEMORY, **_GATE),  # type: ignore[arg-type]
        Invalid("# Memory\n", artifact=Artifact.MEMORY, **_GATE),  # type: ignore[arg-type]
    ]

    def check_file(self) -> None:
        """Look at the kernel or at the list."""
        if self.unit.artifact is Artifact.MEMORY:
            self._memory()
            return
        graph = {id(s) for s in self.facts.graph_sites(cst.Call)}
        for site, node, names in self.facts.foreign_calls:
            if id(site) in graph:
                self._call(site, node, names)

    # -- code -----------------------------------------------------------------------------------------------

    def _call(self, site: Site, node: cst.Call, names: frozenset[str]) -> None:
        plain = [a.value for a in node.args if a.keyword is None and not a.star]
        named = {a.keyword.value: a.value for a in node.args if a.keyword is not None}
        first = plain[:1] or [value for word, value in named.items() if word == "input"]
        if names & _BINARY and first and self._is_number(first[0]):
            self.report(
                site,
                f"`{self.code(node)}` has a number as its first operand, which must be a tensor",
                hint="put the tensor first: `pypto.mul(x, 2.0)`; for `1 - x` write `pypto.add(pypto.mul(x, -1.0), 1.0)`",
            )
        if names & _BINARY:
            for argument in node.args:
                if any(isinstance(v, Result) and v.callee == "pypto.Element" for v in self.facts.ev.values(argument.value)):
                    self.report(argument, "`pypto.Element(...)` is an operand", hint="pass the plain number")
        if names & _ALLOCATORS and any(self._is_dtype(value) for value in plain):
            self.report(site, f"`{self.code(node)}` takes the dtype for a size", hint="write dtype=...")
        if "pypto.cast" in names and first:
            target = plain[1] if len(plain) > 1 else named.get("dtype")
            if target is not None:
                self._cast(site, first[0], target)

    def _is_number(self, node: cst.BaseExpression) -> bool:
        values = self.facts.ev.values(node)
        return bool(values) and all(isinstance(v, Const) and v.kind in ("int", "float") for v in values)

    def _is_dtype(self, node: cst.BaseExpression) -> bool:
        return any(name.startswith("pypto.DT_") for name in self.facts.ev.paths(node))

    def _cast(self, site: Site, source: cst.BaseExpression, target: cst.BaseExpression) -> None:
        have, want = dtypes_of(self.facts, source), named_dtypes(self.facts, target)
        if len(have) != 1 or len(want) != 1:
            return
        start, end = have.pop(), want.pop()
        if start != end and start in DIRECT_CASTS and end not in DIRECT_CASTS[start].split():
            through = [m for m in DIRECT_CASTS[start].split() if end in DIRECT_CASTS.get(m, "").split()]
            self.report(
                site,
                f"{start} is not cast to {end} in one step",
                hint=f"cast through {through[0]}" if through else f"{start} casts to {DIRECT_CASTS[start]}",
            )

    # -- MEMORY.md ------------------------------------------------------------------------------------------

    def _memory(self) -> None:
        section = self.unit.markdown.section("Experience Preflight")
        final = self.context.event is LintEvent.COMPLETE_STAGE
        if section is None:
            if final:
                self.report(
                    None, "MEMORY.md has no section `## Experience Preflight`", hint="add it as a checklist of `- [x]` items"
                )
            return
        self._items(section, final)

    def _items(self, section: Section, final: bool) -> None:
        items = section.checklist
        if section.tables:
            self.report(section.line, "the preflight is a table", hint="write it as a checklist: `- [x] ...`")
        elif not items:
            self.report(section.line, "the preflight has no item", hint="write it as a checklist: `- [x] ...`")
        if len(items) > _MOST_ITEMS:
            self.report(
                section.line, f"the preflight has {len(items)} items, at most {_MOST_ITEMS} are read", hint="keep what applies"
            )
        for item in items:
            if item.mark == "-" and len(item.text.split()) < 3:
                self.report(item.line, "a pending item has no note", hint="say what is pending and why")
            elif final and not item.ticked:
                self.report(item.line, f"an item of the preflight is open: {item.text[:60]}", hint="resolve it and tick it")
