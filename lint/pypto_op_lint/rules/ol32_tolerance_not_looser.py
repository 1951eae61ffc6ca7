"""OL32: the test is not looser than SPEC.md."""

from collections.abc import Iterator

import libcst as cst

from pypto_op.vocabulary import Artifact, Severity
from pypto_op_lint.documents import front_matter
from pypto_op_lint.examples import TEST
from pypto_op_lint.facts.values import Const, Table
from pypto_op_lint.rule import TESTS, Invalid, Rule, Valid
from pypto_op_lint.tree import Site

_FACTOR = 3.0
_KEYS = ("atol", "rtol")
_SPEC = '---\nschema_version: "1.0"\nop_name: demo\nsupported_dtypes: [float32]\np0_shapes: [[64, 128]]\ntolerance: {}\n---\n'
_PLAIN = {"SPEC.md": _SPEC.format("{atol: 1.0e-3, rtol: 1.0e-3}")}


class ToleranceNotLooser(Rule):
    """The test compares with a tolerance more than three times SPEC.md's.

    What it does:
        Follows `atol=` and `rtol=` in calls of the test, also in `**TOLERANCE`, to their numbers and compares each with
        SPEC.md's tolerance (the loosest one where SPEC.md gives one per dtype).

    Why:
        SPEC.md is the only source of tolerances; a test that widens its own hides the next regression.

    Example:
        detailed_tensor_compare(out, ref, tensor_name="out", atol=0.1, rtol=0.1)

    Use instead:
        detailed_tensor_compare(out, ref, tensor_name="out", atol=1e-3, rtol=1e-3)

    Known limits:
        Numbers that are computed at run time are not seen.
    """

    id = "OL32"
    name = "tolerance-not-looser"
    severity = Severity.S2
    artifacts = TESTS
    needs = frozenset({"ev", "siblings"})
    MESSAGE = "the test's tolerance is looser than SPEC.md's"
    FIX_HINT = "use SPEC.md's tolerance; if it is wrong, go back to the planner"

    VALID = [
        Valid(TEST, artifact=Artifact.TEST, files=_PLAIN),
        Valid(TEST.replace("atol=1e-3", "atol=2e-3"), artifact=Artifact.TEST, files=_PLAIN),
        Valid(TEST + "\n# atol=0.5 would hide it\n", artifact=Artifact.TEST, files=_PLAIN),
    ]
    INVALID = [
        Invalid(TEST.replace("atol=1e-3", "atol=0.1"), artifact=Artifact.TEST, files=_PLAIN),
        Invalid(
            TEST.replace("rtol=1e-3", "rtol=LIMIT").replace("DEVICE_ID = ", "LIMIT = 1e-3 * 50\nDEVICE_ID = ", 1),
            artifact=Artifact.TEST,
            files=_PLAIN,
        ),
    ]

    def check_file(self) -> None:
        """Read SPEC.md's tolerance once."""
        data = front_matter(self.files.existing(self.files.ws.spec))
        tolerance = data.get("tolerance") if data else None
        if not isinstance(tolerance, dict):
            return
        for key in _KEYS:
            allowed = max(_numbers(tolerance, key), default=None)
            if allowed is not None:
                self._check(key, allowed)

    def _check(self, key: str, allowed: float) -> None:
        for site in self.facts.tree.sites(cst.Call):
            for number in self._given(site, key):
                if number > _FACTOR * allowed:
                    self.report(site, f"{key} is {number:g} here and {allowed:g} in SPEC.md")

    def _given(self, site: Site, key: str) -> Iterator[float]:
        node: cst.Call = site.node  # type: ignore[assignment]
        for argument in node.args:
            if argument.keyword is not None and argument.keyword.value == key:
                yield from _number(self.facts.ev.constant(argument.value))
            for table in self.facts.ev.values(argument.value) if argument.star == "**" else ():
                for value in table.entries.get(key, ()) if isinstance(table, Table) else ():
                    yield from _number(value)


def _number(value: object) -> Iterator[float]:
    if isinstance(value, Const) and isinstance(value.value, (int, float)):
        yield float(value.value)


def _numbers(tolerance: object, key: str) -> Iterator[float]:
    """Yield the numbers under `key` at any depth: SPEC.md may give one per dtype."""
    if not isinstance(tolerance, dict):
        return
    for name, value in tolerance.items():
        if name == key and isinstance(value, (int, float)) and not isinstance(value, bool):
            yield float(value)
        elif isinstance(value, dict):
            yield from _numbers(value, key)
            if name == key:
                yield from (float(v) for v in value.values() if isinstance(v, (int, float)))
