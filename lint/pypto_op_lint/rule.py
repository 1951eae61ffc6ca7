"""What a rule is.

A rule is one class in one file of `rules/`. It says on the class what it is (id, severity, files, stages), what it reads
(`needs`), what it tells the user (`MESSAGE`, `FIX_HINT`), and carries the examples that are its tests. It looks at a file through
`visit_<NodeType>(site)` methods, called in the engine's one pass, or through `check_file()`, called after it; a rule about the
operator as a whole has `check_operator()`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import libcst as cst

from pypto_op.vocabulary import Artifact, LintEvent, Severity
from pypto_op_lint.facts import Facts
from pypto_op_lint.findings import FAIL, INFO, STATUS_WORDS, WARN, Edit, Finding
from pypto_op_lint.tree import Site, Tree
from pypto_op_lint.units import OperatorFiles, Snippet, Unit

IMPLS = frozenset({Artifact.IMPL, Artifact.MODULE_IMPL})
GOLDENS = frozenset({Artifact.GOLDEN, Artifact.MODULE_GOLDEN})
TESTS = frozenset({Artifact.TEST, Artifact.MODULE_TEST})
ALL_STAGES = frozenset(range(1, 8))
BEFORE_TUNING = frozenset(range(1, 7))

_STATUS_BY_SEVERITY = {Severity.S0: FAIL, Severity.S1: FAIL, Severity.S2: WARN, Severity.S3: INFO}


@dataclass(frozen=True)
class Valid:
    """An example on which the rule must be silent."""

    text: str  # the file's text
    artifact: Artifact = Artifact.IMPL  # what the file is
    # other files of the operator, by path inside its directory; the operator is called `demo`
    files: Mapping[str, str] = field(default_factory=dict)
    event: LintEvent = LintEvent.ON_WRITE  # the event it is linted at
    stage: int | None = None  # the stage the operator is in
    phase: int | None = None  # the phase it is in


@dataclass(frozen=True)
class Invalid(Valid):
    """An example on which the rule must report."""

    lines: tuple[int, ...] | None = None  # the lines it must report, where that matters
    status: str | None = None  # the status word it must report with, where it is not the severity's own
    replacement: str | None = None  # the text after `--fix`, where the rule offers one


@dataclass(eq=False)
class LintContext:
    """What surrounds a file while it is linted."""

    operator: OperatorFiles
    event: LintEvent
    stage: int | None
    phase: int | None


class Rule:
    """Base of all rules. Subclasses carry a docstring with the headings What it does, Why, Example, Use instead, Known limits."""

    id: ClassVar[str]
    name: ClassVar[str]
    severity: ClassVar[Severity]
    artifacts: ClassVar[frozenset[Artifact]] = IMPLS
    stages: ClassVar[frozenset[int]] = ALL_STAGES
    """Stages in which it holds. An operator whose stage is not known is taken to be in one of them."""
    needs: ClassVar[frozenset[str]] = frozenset()
    """Properties of `Facts` that it reads, and "siblings" when it reads other files of the operator."""
    reads_broken_files: ClassVar[bool] = False
    """Also called for a file that cannot be read or parsed."""
    missing_is_fault: ClassVar[bool] = False
    """At a gate, the absence of every file in `artifacts` is a finding."""
    MESSAGE: ClassVar[str]
    FIX_HINT: ClassVar[str]
    VALID: ClassVar[list[Valid]] = []
    INVALID: ClassVar[list[Invalid]] = []

    def __init__(self, context: LintContext, unit: Unit | None) -> None:
        self.context = context
        self._unit = unit
        self.findings: list[Finding] = []
        self._tree: Tree | None = None
        self._shift = (0, 0)

    # -- to be written by rules -----------------------------------------------------------------------------

    def check_file(self) -> None:
        """Look at `self.unit` as a whole, after the pass over its tree."""

    def check_operator(self) -> None:
        """Look at the operator; called once per run, whatever file the run is about."""

    # -- for use by rules -----------------------------------------------------------------------------------

    @property
    def unit(self) -> Unit:
        """The file being linted."""
        assert self._unit is not None, "an operator rule has no file"
        return self._unit

    @property
    def facts(self) -> Facts:
        """Facts of the Python file being linted."""
        return self.unit.facts

    @property
    def files(self) -> OperatorFiles:
        """The operator's other files."""
        return self.context.operator

    def report(
        self,
        where: Site | cst.CSTNode | int | None,
        message: str | None = None,
        *,
        hint: str | None = None,
        status: str | None = None,
        edit: Edit | None = None,
        file: str | None = None,
    ) -> None:
        """Record a finding.

        Args:
            where: a site or node of the file, a line number, or None when something is missing.
            message: what was seen; `MESSAGE` when left out.
            hint: what to do; `FIX_HINT` when left out.
            status: FAIL, WARN or INFO; by the rule's severity when left out.
            edit: a safe repair.
            file: the path to name, when it is not the file being linted.
        """
        line, column = self._place(where)
        word = status or _STATUS_BY_SEVERITY[self.severity]
        assert word in STATUS_WORDS
        self.findings.append(
            Finding(
                rule_id=self.id,
                severity=self.severity,
                status=word,
                file=file or (self._unit.shown if self._unit is not None else ""),
                line=line,
                column=column,
                message=" ".join((message or self.MESSAGE).split()),
                fix_hint=" ".join((hint or self.FIX_HINT).split()),
                fix=edit,
            )
        )

    def replace(self, node: cst.CSTNode, text: str) -> Edit:
        """Return the edit that puts `text` in the place of `node`."""
        tree = self._tree or self.unit.tree
        assert tree is not None
        line, column, end_line, end_column = tree.position(node)
        return Edit(line, column, end_line, end_column, text)

    def code(self, node: cst.CSTNode, limit: int = 60) -> str:
        """Return the source of `node` on one line, shortened, for a message."""
        text = " ".join(cst.Module(body=[]).code_for_node(node).split())
        return text if len(text) <= limit else text[: limit - 3] + "..."

    def in_snippet(self, snippet: Snippet) -> None:
        """Let `report` place nodes of a code block of a document."""
        self._tree = snippet.facts.tree
        self._shift = (snippet.lines_before, snippet.columns_before)

    def _place(self, where: Site | cst.CSTNode | int | None) -> tuple[int | None, int | None]:
        if where is None or isinstance(where, int):
            return where, None
        node = where.node if isinstance(where, Site) else where
        tree = self._tree if self._tree is not None else self._unit.tree if self._unit is not None else None
        assert tree is not None
        line, column, _, _ = tree.position(node)
        return line + self._shift[0], column + self._shift[1] + 1
