"""OL10: API_REPORT.md maps every step to an API."""

from pypto_op.vocabulary import Artifact, Severity
from pypto_op_lint.documents import rows_under, section_problems
from pypto_op_lint.rule import Invalid, Rule, Valid

_REPORT = """\
---
schema_version: "1.0"
op_name: demo
---
# API report

## API mapping

| step | expression | PyPTO API | level | constraint ok |
|---|---|---|---|---|
| 1 | exp(x) | pypto.exp | direct | yes |

## Constraints

Rank 2.

## Tiling

[64, 128]
"""
_ROW = "| 1 | exp(x) | pypto.exp | direct | yes |"
_UNSUPPORTED = ("unsupported", "不支持")
_WAY_OUT = ("workaround", "substitute", "rewrite", "instead", "via ", "host", "替代", "绕过", "改写")


class ApiReportComplete(Rule):
    """API_REPORT.md lacks the mapping, the constraints or the tiling needs, or leaves a step without an API.

    What it does:
        Checks for non-empty sections on API mapping, constraints and tiling, and that each row of the mapping that says
        `unsupported` also names a workaround.

    Why:
        A step without an API is found out by the coder, three stages later.

    Example:
        | 3 | erfc(x) | - | unsupported | |

    Use instead:
        | 3 | erfc(x) | pypto.exp | unsupported | workaround: rational approximation from exp |

    Known limits:
        Whether the named workaround works is the judge's business.
    """

    id = "OL10"
    name = "api-report-complete"
    severity = Severity.S1
    artifacts = frozenset({Artifact.API_REPORT})
    missing_is_fault = True
    MESSAGE = "API_REPORT.md is incomplete"
    FIX_HINT = "add the sections API mapping, Constraints and Tiling; give each unsupported step a workaround"

    VALID = [
        Valid(_REPORT, artifact=Artifact.API_REPORT),
        Valid(_REPORT.replace("API mapping", "API 映射").replace("Constraints", "约束条件"), artifact=Artifact.API_REPORT),
        Valid(
            _REPORT.replace(_ROW, "| 1 | erfc(x) | - | unsupported | workaround: series of exp |"),
            artifact=Artifact.API_REPORT,
        ),
    ]
    INVALID = [
        Invalid("# report\n", artifact=Artifact.API_REPORT),
        Invalid(_REPORT.replace("## Tiling\n\n[64, 128]\n", ""), artifact=Artifact.API_REPORT),
        Invalid(_REPORT.replace("Rank 2.\n", ""), artifact=Artifact.API_REPORT),
        Invalid(_REPORT.replace(_ROW, "| 1 | erfc(x) | - | unsupported | |"), artifact=Artifact.API_REPORT, lines=(11,)),
    ]

    def check_file(self) -> None:
        """Report sections and rows."""
        for line, problem in section_problems(self.unit):
            self.report(line, problem)
        _, rows = rows_under(self.unit, "API mapping", "API 映射", "API映射")
        for line, cells in rows:
            text = " ".join(cells).casefold()
            if any(word in text for word in _UNSUPPORTED) and not any(word in text for word in _WAY_OUT):
                self.report(line, "a step is unsupported and has no workaround", hint="name the workaround in its row")
