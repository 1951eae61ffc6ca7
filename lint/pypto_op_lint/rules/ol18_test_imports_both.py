"""OL18: a test compares the impl with its golden."""

from pypto_op.vocabulary import Artifact, Severity
from pypto_op_lint.examples import TEST
from pypto_op_lint.imports import components, imported
from pypto_op_lint.rule import TESTS, Invalid, Rule, Valid


class TestImportsBoth(Rule):
    """A test does not import both the impl and the golden that it is about.

    What it does:
        Looks for imports of `<op>_impl` and `<op>_golden`; in a module test, of the cumulative pair of its phase.

    Why:
        A test with its own copy of either compares something that does not ship.

    Example:
        from softmax_impl import softmax_wrapper
        expected = torch.softmax(x, dim=-1)

    Use instead:
        from softmax_impl import softmax_wrapper
        from softmax_golden import softmax_golden

    Known limits:
        That the imported functions are called is the business of OL19 and OL60.
    """

    __test__ = False  # pytest: a rule, not a test class

    id = "OL18"
    name = "test-imports-both"
    severity = Severity.S1
    artifacts = TESTS
    needs = frozenset({"foreign_calls"})
    MESSAGE = "the test does not import both impl and golden"
    FIX_HINT = "import the wrapper from the impl and the reference from the golden, by their own file names"

    VALID = [
        Valid(TEST, artifact=Artifact.TEST),
        Valid(TEST.replace("from demo_impl", "from custom.demo.demo_impl"), artifact=Artifact.TEST),
        Valid(
            TEST.replace("demo_impl", "demo_module12_impl").replace("demo_golden import", "demo_module12_golden import"),
            artifact=Artifact.MODULE_TEST,
            phase=2,
        ),
        Valid(TEST.replace("from demo_golden import demo_golden", "import demo_golden"), artifact=Artifact.TEST),
    ]
    INVALID = [
        Invalid(TEST.replace("from demo_golden import demo_golden\n", ""), artifact=Artifact.TEST),
        Invalid(TEST.replace("from demo_impl", "from other_impl"), artifact=Artifact.TEST),
        Invalid(TEST.replace("from demo_impl", "# from demo_impl"), artifact=Artifact.TEST),
        Invalid(TEST, artifact=Artifact.MODULE_TEST, phase=2),
    ]

    def check_file(self) -> None:
        """Compare what is imported with what the test is about."""
        ws = self.files.ws
        phase = self.unit.phase if self.unit.artifact is Artifact.MODULE_TEST else None
        if self.unit.artifact is Artifact.MODULE_TEST and phase is None:
            return
        impl = ws.impl if phase is None else ws.module_impl(phase)
        golden = ws.golden if phase is None else ws.module_golden(phase)
        names = [components(name) for _, name in imported(self.facts)]
        for wanted in (impl.stem, golden.stem):
            if not any(self._names_module(parts, wanted) for parts in names):
                self.report(None, f"the test does not import `{wanted}`")

    def _names_module(self, parts: list[str], wanted: str) -> bool:
        """Whether a dotted name names the module; in `from other_module import softmax_golden` it does not."""
        if wanted in parts[:-1]:
            return True
        return parts[-1] == wanted and (len(parts) == 1 or parts[-2] in (self.files.ws.name, "modules"))
