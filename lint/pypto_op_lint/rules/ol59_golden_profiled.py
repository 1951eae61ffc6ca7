"""OL59: the golden has been profiled."""

import re

from pypto_op.vocabulary import Artifact, Severity
from pypto_op_lint.rule import Invalid, Rule, Valid

_COLUMNS = ("op", "count", "mean_duration", "total")
_NUMBER = re.compile(r"\d")
_REPORT = """\
# Golden performance

## Op Performance

| op | count | mean_duration | total |
|---|---|---|---|
| aten::exp | 1 | 12.5 us | 12.5 us |
"""


class GoldenProfiled(Rule):
    """GOLDEN_PERF_REPORT.md has no table of measured operations.

    What it does:
        Looks for a table with the columns op, count, mean_duration and total, and for at least one row with numbers.

    Why:
        The architect weighs operations by what they cost; without figures the decomposition is a guess.

    Example:
        | op | count | mean_duration | total |
        |---|---|---|---|

    Use instead:
        | op | count | mean_duration | total |
        |---|---|---|---|
        | aten::exp | 1 | 12.5 us | 12.5 us |

    Known limits:
        Whether the figures were measured it cannot tell.
    """

    id = "OL59"
    name = "golden-profiled"
    severity = Severity.S1
    artifacts = frozenset({Artifact.GOLDEN_PERF_REPORT})
    missing_is_fault = True
    MESSAGE = "GOLDEN_PERF_REPORT.md has no table op | count | mean_duration | total with a measured row"
    FIX_HINT = "profile the golden and write the table op | count | mean_duration | total"

    VALID = [
        Valid(_REPORT, artifact=Artifact.GOLDEN_PERF_REPORT),
        Valid(_REPORT.replace("| op |", "| Op |"), artifact=Artifact.GOLDEN_PERF_REPORT),
    ]
    INVALID = [
        Invalid("# Golden performance\n", artifact=Artifact.GOLDEN_PERF_REPORT),
        Invalid(_REPORT.replace("| aten::exp | 1 | 12.5 us | 12.5 us |\n", ""), artifact=Artifact.GOLDEN_PERF_REPORT),
        Invalid(_REPORT.replace("12.5 us", "TBD"), artifact=Artifact.GOLDEN_PERF_REPORT),
        Invalid("```\n" + _REPORT + "```\n", artifact=Artifact.GOLDEN_PERF_REPORT),
        Invalid(_REPORT.replace("mean_duration", "time"), artifact=Artifact.GOLDEN_PERF_REPORT),
    ]

    def check_file(self) -> None:
        """Find the table and a row with numbers."""
        for table in self.unit.markdown.tables:
            header = [re.split(r"[\s(\[]", cell.strip("`* "))[0].casefold() for cell in table.header]
            measured = any(all(_NUMBER.search(cell) for cell in cells[1:4]) for cells in table.rows)
            if header[:4] == list(_COLUMNS) and measured:
                return
        self.report(None)
