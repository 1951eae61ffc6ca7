"""OL41: the linter's output is not part of the product."""

import re

from pypto_op.vocabulary import Artifact, Severity
from pypto_op_lint.examples import GOLDEN, impl
from pypto_op_lint.rule import GOLDENS, IMPLS, TESTS, Invalid, Rule, Valid

_PREFIX = r"^[\s#>*|`'\"-]*"
_PASTED = (
    re.compile(_PREFIX + r"\[(?:OL|PX)\d\d\]\[S[0-3]\]"),
    re.compile(_PREFIX + r"\[pypto-op-lint\]\s*\S"),
    re.compile(_PREFIX + r"blocking_rules:\s*(?:OL|PX)\d\d", re.IGNORECASE),
    re.compile(_PREFIX + r"docs_ref:\s*(?:OL|PX)\d\d", re.IGNORECASE),
    re.compile(_PREFIX + r"-\s*(?:OL|PX)\d\d:\s+\S"),
)
_MENTIONS = re.compile(r"(?:OL|PX)\d\d|\[pypto-op-lint\]", re.IGNORECASE)
"""Stands in each of them."""
_QUOTED_BANNER = re.compile(r"`\[pypto-op-lint\][^`]*`")


class NoLintOutput(Rule):
    """A piece of the linter's output was pasted into a file of the product.

    What it does:
        Looks, in comments and text too, for lines in the form of the linter's own: `[OL48][S0] file:line ...`, the banner at
        the beginning of a line, `blocking_rules: OL48`, a hint line `- OL48: ...`. A sentence that explains the format, with
        `OLxx` or in code quotes, is no output.

    Why:
        Agents look for the banner in what tools tell them; in a file it makes them answer a refusal that does not exist.

    Example:
        # [OL48][S0] softmax_impl.py:31:5 a tile size is not known

    Use instead:
        # tile sizes are literals: pypto needs them when it compiles

    Known limits:
        Output that was rephrased is not recognised. MEMORY.md may quote rule ids.
    """

    id = "OL41"
    name = "no-lint-output"
    severity = Severity.S1
    artifacts = IMPLS | GOLDENS | TESTS | {Artifact.README}
    reads_broken_files = True
    MESSAGE = "output of the linter stands in the file"
    FIX_HINT = "delete the pasted lines"

    VALID = [
        Valid(impl()),
        Valid("# demo\n\nA refusal ends with `fix_hints:` and names its rules.\n", artifact=Artifact.README),
        Valid(
            "The banner is `[pypto-op-lint] 产物写入后即时门禁未通过(S0/S1)`; findings read `[OLxx][Sx] file:line message`.\n",
            artifact=Artifact.README,
        ),
        Valid(impl(before="# tile sizes are literals, see OL48\nTILE = 64\n")),
    ]
    INVALID = [
        Invalid(impl(after="# [OL48][S0] demo_impl.py:31 a tile size is not known\n")),
        Invalid(GOLDEN + "\n# blocking_rules: OL15, OL41\n", artifact=Artifact.GOLDEN),
        Invalid("[pypto-op-lint] 产物写入后即时门禁未通过(S0/S1)\n", artifact=Artifact.README, lines=(1,)),
        Invalid("# demo\n\n```\n  [OL01][S0] demo_impl.py no kernel\n```\n", artifact=Artifact.README, lines=(4,)),
    ]

    def check_file(self) -> None:
        """Look at every line."""
        if not _MENTIONS.search(self.unit.text):
            return
        for number, line in enumerate(self.unit.text.split("\n"), 1):
            shown = _QUOTED_BANNER.sub("", line)
            if any(pattern.search(shown) for pattern in _PASTED):
                self.report(number)
