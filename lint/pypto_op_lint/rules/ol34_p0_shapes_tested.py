"""OL34: the shapes that must work are tested."""

from collections.abc import Iterator
from typing import Any

import libcst as cst

from pypto_op.vocabulary import Artifact, Severity
from pypto_op_lint.documents import front_matter, mapping, mappings, suite_words
from pypto_op_lint.examples import TEST
from pypto_op_lint.facts.values import Const
from pypto_op_lint.findings import WARN
from pypto_op_lint.rule import Invalid, Rule, Valid

_SPEC = (
    '---\nschema_version: "1.0"\nop_name: demo\nsupported_dtypes: [float32]\np0_shapes: {}\n'
    "tolerance: {{atol: 1.0e-3, rtol: 1.0e-3}}\n---\n"
)
_SUITE = (
    '{"schema_version": 1, "op": "demo", "total_modules": 1, '
    '"cases": [{"id": "a", "level": "L4", "shape": {"T": 4096, "H": 512}}]}'
)


class P0ShapesTested(Rule):
    """SPEC.md has no usable P0 shape, or the test covers none of its sizes.

    What it does:
        Without a P0 shape in SPEC.md it fails. Otherwise it looks for the sizes of each P0 shape among the numbers in the
        code of the test and the shapes of the suite's cases, and warns about a shape that neither has. Sizes that
        module_interfaces.yaml fixes need not be there.

    Why:
        P0 shapes are what the user asked for; a kernel that passes on 16 x 16 alone was not tested on them.

    Example:
        p0_shapes: [[4096, 5120]]     # SPEC.md
        _run_and_check(16, 16)        # the only test

    Use instead:
        _run_and_check(4096, 5120)

    Known limits:
        It compares numbers, not which axis they belong to.
    """

    id = "OL34"
    name = "p0-shapes-tested"
    severity = Severity.S1
    artifacts = frozenset({Artifact.TEST})
    needs = frozenset({"ev", "siblings"})
    MESSAGE = "a P0 shape is not tested"
    FIX_HINT = "add the P0 shapes of SPEC.md to the test or to level L4 of the suite"

    VALID = [
        Valid(TEST, artifact=Artifact.TEST, files={"SPEC.md": _SPEC.format("[[1000, 128]]")}),
        Valid(
            TEST,
            artifact=Artifact.TEST,
            files={"SPEC.md": _SPEC.format("[{T: 4096, H: 512}]"), "eval/adversarial_suite.json": _SUITE},
        ),
        Valid(TEST, artifact=Artifact.TEST),
    ]
    INVALID = [
        Invalid(TEST, artifact=Artifact.TEST, files={"SPEC.md": _SPEC.format("[]")}),
        Invalid(TEST, artifact=Artifact.TEST, files={"SPEC.md": _SPEC.format("soon")}),
        Invalid(
            TEST + "\n# 4096, 512\n", artifact=Artifact.TEST, files={"SPEC.md": _SPEC.format("[[4096, 512]]")}, status="WARN"
        ),
    ]

    def check_file(self) -> None:
        """Compare SPEC.md's shapes with the numbers of the tests."""
        data = front_matter(self.files.existing(self.files.ws.spec))
        if data is None:
            return
        shapes = data.get("p0_shapes")
        sizes = [s for s in (set(_sizes(shape)) for shape in shapes) if s] if isinstance(shapes, list) else []
        if not sizes:
            self.report(None, "SPEC.md has no usable p0_shapes", hint="write p0_shapes in SPEC.md: symbol -> size, or lists")
            return
        numbers = self._numbers()
        fixed = set(self._fixed_sizes())
        cases = [set(_sizes(case.get("shape"))) for case in suite_words(self.files)]
        for shape in ((s - fixed or s) for s in sizes):
            if not shape <= numbers and not any(shape <= case for case in cases):
                self.report(None, f"no test has the P0 shape with sizes {sorted(shape)}", status=WARN)

    def _fixed_sizes(self) -> Iterator[int]:
        """The sizes that the contract fixes: no case has to say them."""
        data = mapping(self.files.existing(self.files.ws.interfaces)) or {}
        for given in mappings(data.get("primary_inputs")):
            yield from _sizes(given.get("shape"))

    def _numbers(self) -> set[int]:
        found: set[int] = set()
        for site in self.facts.tree.sites(cst.Integer, cst.Name, cst.BinaryOperation):
            for value in self.facts.ev.values(site.node):
                if isinstance(value, Const) and type(value.value) is int:
                    found.add(value.value)
        return found


def _sizes(shape: Any) -> Iterator[int]:
    """Yield the sizes in a P0 shape: a list, symbol -> size, or input -> list."""
    if isinstance(shape, dict):
        shape = list(shape.values())
    if isinstance(shape, list):
        for item in shape:
            if type(item) is int:
                yield item
            else:
                yield from _sizes(item)
