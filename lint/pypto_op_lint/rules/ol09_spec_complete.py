"""OL09: SPEC.md says everything that later stages rely on."""

from pypto_op.vocabulary import Artifact, Severity
from pypto_op_lint.documents import front_matter_missing, front_matter_problems, other_operator, section_problems
from pypto_op_lint.rule import Invalid, Rule, Valid

_FRONT = """\
---
schema_version: "1.0"
op_name: demo
supported_dtypes: [float32, float16]
p0_shapes:
  - {T: 64, H: 128}
tolerance: {atol: 1.0e-3, rtol: 1.0e-3}
dynamic_axes: [T]
---
# demo
"""
_BODY = """
## 1. Formula

$$ out = exp(x) $$

## 2. Inputs and outputs

| name | shape | dtype |
|---|---|---|
| x | [T, H] | float32 |

## 3. Precision

atol 1e-3, rtol 1e-3.
"""
_CHINESE = """
## 数学公式

out = exp(x)

## 输入输出规格

shape [T, H], dtype float32

## 精度要求

atol 1e-3
"""


class SpecComplete(Rule):
    """SPEC.md lacks a part that later stages rely on.

    What it does:
        Checks that SPEC.md names the operator, has front matter that fits its schema, and has non-empty sections on the
        formula, on inputs and outputs (shape and dtype) and on precision (a tolerance). Headings may be English or Chinese.

    Why:
        Golden, design, suite and tolerance are derived from SPEC.md and from nothing else. What it leaves open is guessed
        four times, differently.

    Example:
        # softmax
        Do a softmax, please.

    Use instead:
        ---
        schema_version: "1.0"
        op_name: softmax
        ...
        ---
        ## Formula
        ...

    Known limits:
        Whether the formula is the right one, no rule can tell.
    """

    id = "OL09"
    name = "spec-complete"
    severity = Severity.S1
    artifacts = frozenset({Artifact.SPEC})
    missing_is_fault = True
    MESSAGE = "SPEC.md is incomplete"
    FIX_HINT = "complete SPEC.md: front matter, and sections on formula, inputs and outputs, and precision"

    VALID = [Valid(_FRONT + _BODY, artifact=Artifact.SPEC), Valid(_FRONT + _CHINESE, artifact=Artifact.SPEC)]
    INVALID = [
        Invalid("# demo\nDo it.\n", artifact=Artifact.SPEC),
        Invalid(_FRONT + _BODY.replace("## 3. Precision", "## 3. Speed"), artifact=Artifact.SPEC),
        Invalid(_FRONT + "```\n" + _BODY + "```\n", artifact=Artifact.SPEC),
        Invalid(_FRONT.replace("supported_dtypes: [float32, float16]\n", "") + _BODY, artifact=Artifact.SPEC),
        Invalid((_FRONT + _BODY).replace("demo", "other"), artifact=Artifact.SPEC),
    ]

    def check_file(self) -> None:
        """Report every part that is missing."""
        unit = self.unit
        if self.files.ws.name not in unit.text:
            self.report(1, f"SPEC.md does not name the operator `{self.files.ws.name}`")
        missing = front_matter_missing(unit)
        problems = [missing] if missing else list(front_matter_problems(unit))
        for line, problem in [*other_operator(unit, self.files.ws.name), *problems, *section_problems(unit)]:
            self.report(line, problem)
