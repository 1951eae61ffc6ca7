"""OL22: a test is repeatable."""

import libcst as cst

from pypto_op.vocabulary import Artifact, Severity
from pypto_op_lint.examples import TEST
from pypto_op_lint.import_statements import dotted
from pypto_op_lint.rule import TESTS, Invalid, Rule, Valid
from pypto_op_lint.testcode import live_sites

_SEEDERS = ("manual_seed", "manual_seed_all", "seed_everything")


class TestSeeded(Rule):
    """A test does not seed torch's random numbers.

    What it does:
        Looks for a call of `manual_seed` in live code.

    Why:
        A failure that cannot be repeated cannot be debugged.

    Example:
        x = torch.randn(64, 128)

    Use instead:
        torch.manual_seed(42)
        x = torch.randn(64, 128)

    Known limits:
        A seed inside an imported helper is not seen.
    """

    __test__ = False  # pytest: a rule, not a test class

    id = "OL22"
    name = "test-seeded"
    severity = Severity.S2
    artifacts = TESTS
    needs = frozenset({"calls"})
    MESSAGE = "the test never calls torch.manual_seed"
    FIX_HINT = "call torch.manual_seed(42) before the inputs are made"

    VALID = [
        Valid(TEST, artifact=Artifact.TEST),
        Valid(
            TEST.replace("torch.manual_seed(42)", "generator = torch.Generator().manual_seed(42)"),
            artifact=Artifact.MODULE_TEST,
            phase=1,
        ),
    ]
    INVALID = [
        Invalid(TEST.replace("    torch.manual_seed(42)\n", ""), artifact=Artifact.TEST),
        Invalid(TEST.replace("torch.manual_seed(42)", "pass  # torch.manual_seed(42)"), artifact=Artifact.TEST),
    ]

    def check_file(self) -> None:
        """Look for the call."""
        for site in live_sites(self.facts):
            node = site.node
            if not isinstance(node, cst.Call):
                continue
            name = node.func.attr.value if isinstance(node.func, cst.Attribute) else dotted(node.func)
            if name in _SEEDERS:
                return
        self.report(None)
