"""OL21: a test has a small and a full level."""

import re
from collections.abc import Iterator

import libcst as cst

from pypto_op.vocabulary import Artifact, Severity
from pypto_op_lint.examples import TEST
from pypto_op_lint.rule import TESTS, Invalid, Rule, Valid

_SMALL = re.compile(r"(?:\A|_)(?:l0|level_?0|smoke)(?:_|\Z)", re.I)
_FULL = re.compile(r"(?:\A|_)(?:l1|level_?1|p0)(?:_|\Z)", re.I)


class TwoTestLevels(Rule):
    """A test lacks the level with small shapes, or the one with the P0 shapes.

    What it does:
        Looks for functions called `..._l0` and `..._l1` (or `level0`, `level1`, `p0`), or for these words as parameters of a
        parametrised test.

    Why:
        The small level fails in seconds while one works; the full one shows that it works where it must.

    Example:
        def test_softmax(): ...

    Use instead:
        def test_softmax_l0(): ...
        def test_softmax_l1(): ...

    Known limits:
        It goes by the names.
    """

    id = "OL21"
    name = "two-test-levels"
    severity = Severity.S2
    artifacts = TESTS
    needs = frozenset({"tree"})
    MESSAGE = "the test has only one level"
    FIX_HINT = "write test_..._l0 with the smallest legal shapes and test_..._l1 with SPEC.md's P0 shapes"

    VALID = [
        Valid(TEST, artifact=Artifact.TEST),
        Valid(TEST.replace("demo_l0", "demo_level0").replace("demo_l1", "demo_p0"), artifact=Artifact.TEST),
        Valid(
            TEST.replace("def test_demo_l0():", '@pytest.mark.parametrize("level", ["l0", "l1"])\ndef test_demo(level):')
            .replace("def test_demo_l1():", "def _unused():")
            .replace("import torch\n", "import pytest\nimport torch\n", 1),
            artifact=Artifact.MODULE_TEST,
            phase=1,
        ),
    ]
    INVALID = [
        Invalid(TEST.replace("demo_l1", "demo_more"), artifact=Artifact.TEST),
        Invalid(TEST.replace("demo_l0", "demo_a").replace("demo_l1", "demo_b") + "\n# l0 l1\n", artifact=Artifact.TEST),
    ]

    def check_file(self) -> None:
        """Look for both names."""
        names = list(self._names())
        for pattern, what in ((_SMALL, "small level (l0)"), (_FULL, "full level (l1)")):
            if not any(pattern.search(name) for name in names):
                self.report(None, f"the test has no {what}")

    def _names(self) -> Iterator[str]:
        for function in self.facts.tree.functions:
            yield function.name
        for site in self.facts.tree.sites(cst.SimpleString):
            if isinstance(site.parent.node if site.parent else None, (cst.Element, cst.Arg)):
                text = site.node.evaluated_value  # type: ignore[attr-defined]
                if isinstance(text, str) and len(text) < 20:
                    yield text
