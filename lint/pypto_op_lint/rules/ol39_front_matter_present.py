"""OL39: the three documents have front matter."""

from pypto_op.vocabulary import Artifact, LintEvent, Severity
from pypto_op_lint.documents import FRONT_MATTER_SCHEMAS, front_matter_missing
from pypto_op_lint.rule import Invalid, Rule, Valid

_FRONT = '---\nschema_version: "1.0"\nop_name: demo\n---\n# demo\n'


class FrontMatterPresent(Rule):
    """SPEC.md, DESIGN.md or API_REPORT.md is missing or has no front matter that can be read.

    What it does:
        Asks each of the three for a YAML mapping between two `---` lines at its very beginning. At the gates of stages 5 and
        6 all three must exist.

    Why:
        Tools read the front matter, never the prose; without it the document says nothing to them.

    Example:
        # softmax
        dtype: float16

    Use instead:
        ---
        schema_version: "1.0"
        op_name: softmax
        ---
        # softmax

    Known limits:
        What the mapping holds is OL40's business.
    """

    id = "OL39"
    name = "front-matter-present"
    severity = Severity.S1
    artifacts = frozenset(FRONT_MATTER_SCHEMAS)
    MESSAGE = "the document has no front matter"
    FIX_HINT = "begin the document with `---`, the required keys as YAML, and `---`"

    VALID = [
        Valid(_FRONT, artifact=Artifact.API_REPORT),
        Valid("\ufeff" + _FRONT.replace("\n", "\r\n"), artifact=Artifact.DESIGN),
        Valid(
            _FRONT,
            artifact=Artifact.SPEC,
            files={"DESIGN.md": _FRONT, "API_REPORT.md": _FRONT},
            event=LintEvent.COMPLETE_STAGE,
            stage=5,
        ),
    ]
    INVALID = [
        Invalid("# demo\n", artifact=Artifact.SPEC),
        Invalid("---\nop_name: demo\n# never closed\n", artifact=Artifact.DESIGN),
        Invalid("---\n- a\n- list\n---\n", artifact=Artifact.API_REPORT),
        Invalid("---\nop_name: a\nop_name: b\n---\n", artifact=Artifact.SPEC),
        Invalid(_FRONT, artifact=Artifact.SPEC, event=LintEvent.COMPLETE_STAGE, stage=5),
    ]

    def check_file(self) -> None:
        """Read the front matter."""
        problem = front_matter_missing(self.unit)
        if problem is not None:
            self.report(problem[0], problem[1])

    def check_operator(self) -> None:
        """At a gate, ask for all three."""
        if self.context.event is not LintEvent.COMPLETE_STAGE:
            return
        ws = self.files.ws
        for path in (ws.spec, ws.api_report, ws.design):
            if self.files.existing(path) is None:
                self.report(None, f"{path.name} does not exist", file=self.files.shown(path))
