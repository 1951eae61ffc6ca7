"""OL37: the kernel uses the design's names."""

import re

from pypto_op.vocabulary import Severity
from pypto_op_lint.examples import impl
from pypto_op_lint.rule import IMPLS, Invalid, Rule, Valid

_SPAN = re.compile(r"`([^`\n]+)`")
_NAME = re.compile(r"[A-Za-z_]\w+")
_ENOUGH = 2


class NamesTraceable(Rule):
    """The kernel shares fewer than two names with the code in DESIGN.md.

    What it does:
        Compares the names that the kernel's code binds with the identifiers in DESIGN.md's code blocks and code spans.

    Why:
        A reviewer follows the design into the kernel by its names.

    Example:
        DESIGN.md speaks of `row_max` and `row_sum`; the kernel of `a` and `b`.

    Use instead:
        row_max = pypto.amax(scores, -1, True)

    Known limits:
        A design without code is not compared.
    """

    id = "OL37"
    name = "names-traceable"
    severity = Severity.S3
    artifacts = IMPLS
    needs = frozenset({"graph_functions", "siblings"})
    MESSAGE = "the kernel shares hardly a name with DESIGN.md"
    FIX_HINT = "name tensors and loops in the kernel as DESIGN.md section 4 does"

    VALID = [
        Valid(impl(), files={"DESIGN.md": "`rows` and `tile`, walked by `i`\n"}),
        Valid(impl(), files={"DESIGN.md": "No code here.\n"}),
        Valid(impl()),
    ]
    INVALID = [
        Invalid(impl(), files={"DESIGN.md": "`row_max` and `row_sum` in `scores_loop`\n"}),
        Invalid(impl(), files={"DESIGN.md": "```python\nalpha = beta + gamma\n```\n"}),
    ]

    def check_file(self) -> None:
        """Count the names in common."""
        design = self.files.existing(self.files.ws.design)
        if design is None or not self.facts.graph_functions:
            return
        spans = [m for _, line in design.markdown.prose for m in _SPAN.findall(line)]
        blocks = [fence.text for fence in design.markdown.fences if fence.is_python]
        designed = {name for text in [*spans, *blocks] for name in _NAME.findall(text)}
        bound = {
            name
            for function in self.facts.graph_functions
            for name in (*function.scope.bindings, *(p.name for p in function.parameters))
        }
        if designed and len(designed & bound) < min(_ENOUGH, len(bound)):
            self.report(None)
