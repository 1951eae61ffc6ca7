"""OL13: construction ends with an impl, its test and its README."""

from typing import Any

from pypto_op.vocabulary import Artifact, LintEvent, Severity
from pypto_op_lint.examples import TEST, impl
from pypto_op_lint.rule import Invalid, Rule, Valid

_GATE: dict[str, Any] = {"event": LintEvent.COMPLETE_STAGE, "stage": 5}
_README = "# demo\n\nUse `demo_wrapper(x)`.\n"


class DeliverablesPresent(Rule):
    """The operator lacks its impl, its end-to-end test or its README, or one of them is empty.

    What it does:
        When stage 5 is completed, checks that `<op>_impl.py`, `test_<op>.py` and `README.md` exist and are not empty.

    Why:
        These three are what a user of the operator receives.

    Example:
        custom/softmax/softmax_impl.py

    Use instead:
        custom/softmax/softmax_impl.py
        custom/softmax/test_softmax.py
        custom/softmax/README.md

    Known limits:
        What they say is checked by other rules and by the judge.
    """

    id = "OL13"
    name = "deliverables-present"
    severity = Severity.S1
    artifacts = frozenset({Artifact.IMPL, Artifact.TEST, Artifact.README})
    MESSAGE = "a deliverable is missing"
    FIX_HINT = "write the missing file: the impl and README are the coder's, the test is the verifier's"

    VALID = [
        Valid(impl(), files={"test_demo.py": TEST, "README.md": _README}, **_GATE),
        Valid(impl(), files={"test_demo.py": TEST, "README.md": _README, "SPEC.md": "x"}, **_GATE),
    ]
    INVALID = [
        Invalid(impl(), files={"README.md": _README}, **_GATE),
        Invalid(impl(), files={"test_demo.py": TEST}, **_GATE),
        Invalid(impl(), files={"test_demo.py": TEST, "README.md": " \n"}, **_GATE),
    ]

    def check_operator(self) -> None:
        """Look for the three files."""
        ws = self.files.ws
        for path in (ws.impl, ws.test, ws.readme):
            unit = self.files.existing(path)
            if unit is None:
                self.report(None, f"{path.name} does not exist", file=self.files.shown(path))
            elif not unit.text.strip() and unit.problem is None:
                self.report(None, f"{path.name} is empty", file=unit.shown)
