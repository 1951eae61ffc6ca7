"""OL30: every supported dtype is tested."""

from collections.abc import Iterable, Iterator
from typing import Any

import libcst as cst

from pypto_op.vocabulary import DTYPE_ALIASES, Artifact, Severity
from pypto_op_lint.documents import front_matter, suite_words
from pypto_op_lint.examples import TEST
from pypto_op_lint.facts.values import Const, Path
from pypto_op_lint.rule import TESTS, Invalid, Rule, Valid

_SPEC = (
    '---\nschema_version: "1.0"\nop_name: demo\nsupported_dtypes: [{}]\np0_shapes: [[64, 128]]\n'
    "tolerance: {{atol: 1.0e-3, rtol: 1.0e-3}}\n---\n"
)
_SUITE = (
    '{"schema_version": 1, "op": "demo", "total_modules": 1, '
    '"cases": [{"id": "a", "level": "L1", "dtype": {"default": "bfloat16"}}]}'
)


class DtypesTested(Rule):
    """A dtype that SPEC.md supports occurs in no test.

    What it does:
        Looks for each of `supported_dtypes` in the code of the test (a torch dtype or a string) and in the cases of the
        suite. Comments do not count.

    Why:
        Kernels are built per dtype; one that no test builds is not known to compile.

    Example:
        supported_dtypes: [float32, bfloat16]      # SPEC.md
        _run_and_check(64, torch.float32)          # the only test

    Use instead:
        for dtype in (torch.float32, torch.bfloat16):
            _run_and_check(64, dtype)

    Known limits:
        A dtype that is named and not used counts as tested.
    """

    id = "OL30"
    name = "dtypes-tested"
    severity = Severity.S2
    artifacts = TESTS
    needs = frozenset({"ev", "siblings"})
    MESSAGE = "a supported dtype is not tested"
    FIX_HINT = "add a case of that dtype to the test or the suite, or take the dtype out of SPEC.md"

    VALID = [
        Valid(TEST, artifact=Artifact.TEST, files={"SPEC.md": _SPEC.format("fp32")}),
        Valid(
            TEST,
            artifact=Artifact.TEST,
            files={"SPEC.md": _SPEC.format("float32, bfloat16"), "eval/adversarial_suite.json": _SUITE},
        ),
        Valid(TEST, artifact=Artifact.TEST),
    ]
    INVALID = [
        Invalid(TEST, artifact=Artifact.TEST, files={"SPEC.md": _SPEC.format("float32, float16")}),
        Invalid(TEST + "\n# torch.bfloat16\n", artifact=Artifact.TEST, files={"SPEC.md": _SPEC.format("float32, bf16")}),
    ]

    def check_file(self) -> None:
        """Compare SPEC.md with the test and the suite."""
        data = front_matter(self.files.existing(self.files.ws.spec))
        wanted = data.get("supported_dtypes") if data else None
        if not isinstance(wanted, list):
            return
        tested = set(self._in_code()) | {_canonical(w) for case in suite_words(self.files) for w in _words(case)}
        for word in wanted:
            if isinstance(word, str) and _canonical(word) not in tested:
                self.report(None, f"SPEC.md supports {word}, and no test and no case of the suite uses it")

    def _in_code(self) -> Iterator[str]:
        ev = self.facts.ev
        for site in self.facts.tree.sites(cst.Attribute, cst.Name, cst.SimpleString):
            for value in ev.values(site.node):
                if isinstance(value, Path) and value.name.startswith("torch."):
                    yield _canonical(value.name.removeprefix("torch."))
                elif isinstance(value, Const) and isinstance(value.value, str):
                    yield _canonical(value.value)


def _canonical(word: str) -> str:
    word = word.removeprefix("torch.")
    return DTYPE_ALIASES.get(word, word)


def _words(case: dict[str, Any]) -> Iterable[str]:
    dtype = case.get("dtype")
    values = dtype.values() if isinstance(dtype, dict) else [dtype]
    return [value for value in values if isinstance(value, str)]
