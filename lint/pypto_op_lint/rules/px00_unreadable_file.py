"""PX00: a file that cannot be read cannot be judged, and must not pass for that."""

import libcst as cst

from pypto_op.vocabulary import Artifact, Severity
from pypto_op_lint.examples import impl
from pypto_op_lint.rule import GOLDENS, IMPLS, TESTS, Invalid, Rule, Valid


class UnreadableFile(Rule):
    """The file is not text, not Python, nested too deeply, too big, or empty.

    What it does:
        Reports Python files that the parser refuses or that hold no statement, and any file of the operator that is binary,
        in an encoding it does not declare, or larger than 512 KiB (documents: 4 MiB).

    Why:
        Every other rule is silent about a file that it cannot read; without this one a syntax error would pass the gate.

    Example:
        def softmax_wrapper(x:
            return x

    Use instead:
        def softmax_wrapper(x):
            return x

    Known limits:
        Python 2 and syntax newer than the running interpreter count as unreadable.
    """

    id = "PX00"
    name = "unreadable-file"
    severity = Severity.S0
    artifacts = IMPLS | GOLDENS | TESTS | {
        Artifact.TEST_INPUTS, Artifact.RUNNER, Artifact.SPEC, Artifact.API_REPORT, Artifact.DESIGN,
        Artifact.GOLDEN_PERF_REPORT, Artifact.INTERFACES, Artifact.SUITE, Artifact.MEMORY, Artifact.README,
    }  # fmt: skip
    reads_broken_files = True
    MESSAGE = "the file cannot be read"
    FIX_HINT = "write the whole file again as valid Python (or text) in UTF-8"

    VALID = [
        Valid(impl()),
        Valid("\ufeff" + impl().replace("\n", "\r\n")),
        Valid("import torch\n", artifact=Artifact.MODULE_GOLDEN),
        Valid("# -*- coding: latin-1 -*-\nx = 1\n", artifact=Artifact.TEST),
    ]
    INVALID = [
        Invalid("def demo_wrapper(x:\n    return x\n", lines=(1,)),
        Invalid("x = 1\n  y = 2\n", lines=(2,)),
        Invalid(""),
        Invalid("# only a comment\n"),
        Invalid('"""Only a docstring."""\n\npass\n'),
        Invalid("import torch\nx = = 1\n", artifact=Artifact.MODULE_GOLDEN, lines=(2,)),
        Invalid("def test_a(:\n", artifact=Artifact.MODULE_TEST, lines=(1,)),
        Invalid("x = " + "[" * 250 + "1" + "]" * 250),
        Invalid("x = " + "-" * 3000 + "1\n"),
        Invalid("x = '\0'\n"),
        Invalid("# Design\n\0\n", artifact=Artifact.DESIGN),
    ]

    def check_file(self) -> None:
        """Say what the reader said."""
        unit = self.unit
        if unit.problem is not None:
            line, column = unit.problem.line, unit.problem.column
            place = f" (column {column})" if column else ""
            self.report(line, f"the file {unit.problem.problem}{place}: nothing in it could be checked")
        elif unit.is_python and unit.tree is not None and not any(_does_something(s) for s in unit.tree.body):
            self.report(None, "the file holds no code", hint="write the file's content")


def _does_something(statement: cst.CSTNode) -> bool:
    """Whether a statement is more than a docstring, `...` or `pass`."""
    if not isinstance(statement, cst.SimpleStatementLine):
        return True
    idle = (cst.SimpleString, cst.ConcatenatedString, cst.Ellipsis)
    return not all(isinstance(s, cst.Pass) or (isinstance(s, cst.Expr) and isinstance(s.value, idle)) for s in statement.body)
