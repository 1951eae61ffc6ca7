"""OL12: DESIGN.md has what the coder copies from."""

from pypto_op.vocabulary import Artifact, Severity
from pypto_op_lint.documents import section_problems
from pypto_op_lint.rule import Invalid, Rule, Valid

DESIGN = """\
---
schema_version: "2.1"
op_name: demo
status: final
compute_kind: vector
dtypes: [float32]
dynamic_axes: [T]
precision: {rtol: 1.0e-3, atol: 1.0e-3}
---
# Design of demo

## 0. Complexity

### 0.3 Decision

Decision: module_count = 1, decomposition_level = L0

## 1. Computation graph

One exp.

## 3. Tiling

[64, 128]

## 6. Verification plan

L1 to L5.

## Numerical Stability Profile

No subtraction.
"""


class DesignComplete(Rule):
    """DESIGN.md lacks a section that the coder or the verifier works from.

    What it does:
        Checks for non-empty sections on the computation graph or API mapping, tiling, the verification plan, the complexity
        decision and numerical stability, and that no TODO is left. Headings may be English or Chinese; text in a code fence
        is no heading.

    Why:
        The coder copies tile sizes and loop structure from here and may not invent them.

    Example:
        ## Tiling

        TODO

    Use instead:
        ## Tiling

        pypto.set_vec_tile_shapes(64, 128): 3 tensors of 32 KiB fit the unified buffer of 192 KiB.

    Known limits:
        It cannot tell whether the numbers are good.
    """

    id = "OL12"
    name = "design-complete"
    severity = Severity.S1
    artifacts = frozenset({Artifact.DESIGN})
    missing_is_fault = True
    MESSAGE = "DESIGN.md is incomplete"
    FIX_HINT = "add the missing section to DESIGN.md and fill what is left open"

    VALID = [
        Valid(DESIGN, artifact=Artifact.DESIGN),
        Valid(
            DESIGN.replace("Computation graph", "计算图").replace("Tiling", "数据切分").replace("Verification plan", "验证方案"),
            artifact=Artifact.DESIGN,
        ),
    ]
    INVALID = [
        Invalid(DESIGN.replace("## 3. Tiling\n\n[64, 128]\n", ""), artifact=Artifact.DESIGN),
        Invalid(DESIGN.replace("[64, 128]\n", ""), artifact=Artifact.DESIGN),
        Invalid(DESIGN.replace("L1 to L5.", "TODO"), artifact=Artifact.DESIGN),
        Invalid(DESIGN.replace("## 1.", "```\n## 1.").replace("One exp.", "One exp.\n```"), artifact=Artifact.DESIGN),
    ]

    def check_file(self) -> None:
        """Report sections."""
        for line, problem in section_problems(self.unit):
            self.report(line, problem)
