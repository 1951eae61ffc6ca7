"""OL40: the front matter fits its schema."""

from pypto_op.vocabulary import Artifact, Severity
from pypto_op_lint.documents import FRONT_MATTER_SCHEMAS, front_matter_problems, other_operator
from pypto_op_lint.rule import Invalid, Rule, Valid
from pypto_op_lint.rules.ol12_design_complete import DESIGN

_REPORT = '---\nschema_version: "1.0"\nop_name: demo\n---\n# demo\n'


class FrontMatterComplete(Rule):
    """A key of the front matter is missing, has the wrong type, or a value that cannot be.

    What it does:
        Checks the front matter of SPEC.md, DESIGN.md and API_REPORT.md against its schema in `schemas/`, and its op_name
        against the directory.
        `dynamic_axes: []` is the way to say that no axis is dynamic.

    Why:
        The judge takes tolerance, dtypes and shapes from there.

    Example:
        dynamic_axes: none

    Use instead:
        dynamic_axes: []

    Known limits:
        Keys that the schema does not know are allowed where the schema allows them.
    """

    id = "OL40"
    name = "front-matter-complete"
    severity = Severity.S1
    artifacts = frozenset(FRONT_MATTER_SCHEMAS)
    MESSAGE = "the front matter does not fit its schema"
    FIX_HINT = "write the key as its schema in schemas/ says"

    VALID = [
        Valid(DESIGN, artifact=Artifact.DESIGN),
        Valid(DESIGN.replace("dynamic_axes: [T]", "dynamic_axes: []"), artifact=Artifact.DESIGN),
        Valid(_REPORT, artifact=Artifact.API_REPORT),
    ]
    INVALID = [
        Invalid(DESIGN.replace("dynamic_axes: [T]\n", ""), artifact=Artifact.DESIGN),
        Invalid(DESIGN.replace("dynamic_axes: [T]", "dynamic_axes: none"), artifact=Artifact.DESIGN),
        Invalid(_REPORT.replace("op_name: demo\n", ""), artifact=Artifact.API_REPORT),
        Invalid(_REPORT.replace("op_name: demo\n", "op_name: softmax\n"), artifact=Artifact.API_REPORT),
    ]

    def check_file(self) -> None:
        """Report what the schema says, and a name that is another operator's."""
        for line, problem in [*other_operator(self.unit, self.files.ws.name), *front_matter_problems(self.unit)]:
            self.report(line, problem)
