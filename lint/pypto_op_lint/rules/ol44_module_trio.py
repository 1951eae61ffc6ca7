"""OL44: every phase has its three files."""

from typing import Any

from pypto_op.vocabulary import Artifact, LintEvent, Severity
from pypto_op_lint.documents import declared_modules
from pypto_op_lint.examples import GOLDEN, TEST, impl
from pypto_op_lint.rule import Invalid, Rule, Valid

_GATE: dict[str, Any] = {"event": LintEvent.COMPLETE_STAGE, "stage": 5}
_TWO = "schema_version: 1\nop: demo\nmodules:\n  - {id: 1, name: a}\n  - {id: 2, name: b}\n"
_ONE = "schema_version: 1\nop: demo\nmodules:\n  - {id: 1, name: a}\n"
_TRIOS = {
    f"modules/{name}": text
    for suffix in ("1", "12")
    for name, text in (
        (f"demo_module{suffix}_impl.py", impl()),
        (f"demo_module{suffix}_golden.py", GOLDEN),
        (f"test_demo_module{suffix}.py", TEST),
    )
}


class ModuleTrio(Rule):
    """A phase of the staged path lacks its impl, its golden or its test.

    What it does:
        When stage 5 is completed, asks for the three non-empty files of every phase M1..MN; N comes from
        `eval/module_interfaces.yaml`, else from DESIGN.md. When a module test is written, its impl and golden must be there
        already. An operator with one module is exempt.

    Why:
        A phase without its own golden was never judged on its own, so the first wrong boundary is not known.

    Example:
        modules/demo_module12_impl.py

    Use instead:
        modules/demo_module12_impl.py
        modules/demo_module12_golden.py
        modules/test_demo_module12.py

    Known limits:
        Whether the three agree is for the judge.
    """

    id = "OL44"
    name = "module-trio"
    severity = Severity.S1
    artifacts = frozenset({Artifact.MODULE_IMPL, Artifact.MODULE_GOLDEN, Artifact.MODULE_TEST})
    MESSAGE = "a phase lacks one of its three files"
    FIX_HINT = "write the missing file: the impl is the coder's, golden and test are the verifier's"

    VALID = [
        Valid(impl(), files={"eval/module_interfaces.yaml": _TWO, **_TRIOS}, **_GATE),
        Valid(impl(), files={"eval/module_interfaces.yaml": _ONE}, **_GATE),
        Valid(
            TEST,
            artifact=Artifact.MODULE_TEST,
            phase=1,
            files={"eval/module_interfaces.yaml": _TWO, **{k: v for k, v in _TRIOS.items() if "test_" not in k}},
        ),
    ]
    INVALID = [
        Invalid(
            impl(),
            files={
                "eval/module_interfaces.yaml": _TWO,
                **{k: v for k, v in _TRIOS.items() if k != "modules/demo_module12_golden.py"},
            },
            **_GATE,
        ),
        Invalid(impl(), files={"DESIGN.md": "**Decision**: module_count = 2\n"}, **_GATE),
        Invalid(impl(), files={"eval/module_interfaces.yaml": _TWO, **_TRIOS, "modules/demo_module1_impl.py": "\n"}, **_GATE),
        Invalid(TEST, artifact=Artifact.MODULE_TEST, phase=1),
    ]

    def check_file(self) -> None:
        """A module test needs what it imports."""
        unit, ws = self.unit, self.files.ws
        if self.context.event is not LintEvent.ON_WRITE or unit.artifact is not Artifact.MODULE_TEST or unit.phase is None:
            return
        for path in (ws.module_impl(unit.phase), ws.module_golden(unit.phase)):
            if self.files.existing(path) is None:
                self.report(1, f"the test of M{unit.phase} needs modules/{path.name}, which does not exist")

    def check_operator(self) -> None:
        """At the gate, count the files of every phase."""
        total = declared_modules(self.files) if self.context.event is not LintEvent.ON_WRITE else None
        if total is None or total < 2:
            return
        ws = self.files.ws
        for k in range(1, total + 1):
            for path in (ws.module_impl(k), ws.module_golden(k), ws.module_test(k)):
                unit = self.files.existing(path)
                if unit is None or (unit.problem is None and not unit.text.strip()):
                    word = "does not exist" if unit is None else "is empty"
                    self.report(None, f"M{k}: modules/{path.name} {word}", file=self.files.shown(path))
