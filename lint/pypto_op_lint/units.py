"""The files that rules look at, each read and parsed once per run."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from pypto_op.documents.markdown import Fence, Markdown, front_matter_lines
from pypto_op.vocabulary import Artifact
from pypto_op.workspace import OPERATORS_DIR, OpWorkspace
from pypto_op_lint.facts import Facts
from pypto_op_lint.parsing import parse_file
from pypto_op_lint.source import SourceText, UnreadableSource, check_size, normalised, read_source
from pypto_op_lint.tree import Tree


@dataclass(eq=False)
class Unit:
    """One file of an operator."""

    path: Path  # where it lies
    shown: str  # the path that findings name
    artifact: Artifact  # what it is
    phase: int | None  # the phase of the staged chain that it belongs to
    source: SourceText | None  # its text; None when it cannot be read
    problem: UnreadableSource | None = None  # why it cannot be read or parsed

    @property
    def text(self) -> str:
        """The text; empty when it cannot be read."""
        return self.source.text if self.source is not None else ""

    @property
    def is_python(self) -> bool:
        """Whether it is a Python file."""
        return self.path.suffix == ".py"

    @cached_property
    def tree(self) -> Tree | None:
        """The parsed file; None when it is no Python or does not parse, and then `problem` says why."""
        if not self.is_python or self.source is None:
            return None
        try:
            return Tree(parse_file(self.source.text))
        except UnreadableSource as problem:
            self.problem = problem
            return None

    @cached_property
    def facts(self) -> Facts:
        """Facts of a Python file; of an empty file when it does not parse."""
        return Facts(self.tree if self.tree is not None else Tree(parse_file("")))

    @cached_property
    def markdown(self) -> Markdown:
        """What follows the front matter, as Markdown."""
        front = front_matter_lines(self.text)
        return Markdown("\n".join(self.text.split("\n")[front:]), front + 1)

    @cached_property
    def data(self) -> Any:
        """The text as YAML or JSON; None when it is neither."""
        import yaml

        try:
            return yaml.load(self.text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506
        except (yaml.YAMLError, ValueError, RecursionError):
            return None

    @cached_property
    def snippets(self) -> list[Snippet]:
        """The Python blocks of a Markdown file; where a block does not parse, the parts of it that do."""
        if self.is_python:
            return []
        return [s for fence in self.markdown.fences if fence.is_python for s in _snippets(fence)]


@dataclass(eq=False)
class Snippet:
    """Python code inside a document: its facts, and how far down and right it stands."""

    facts: Facts
    lines_before: int
    columns_before: int


def _snippets(fence: Fence) -> list[Snippet]:
    """Parse a block as a whole; otherwise every maximal run of its lines that parses (prose and `...` between them)."""
    text = "\n".join(_without_prompt(line) for line in fence.text.split("\n"))
    try:
        return [Snippet(Facts(Tree(parse_file(text))), fence.line - 1, fence.columns)]
    except UnreadableSource:
        pass
    found: list[Snippet] = []
    for index, line in enumerate(text.split("\n")):
        code = line.strip()
        if code.endswith(":") and code.startswith(("for ", "while ", "with ", "def ", "if ")):
            code += " pass"
        try:
            tree = Tree(parse_file(code))
        except UnreadableSource:
            continue
        indent = len(line) - len(line.lstrip())
        found.append(Snippet(Facts(tree), fence.line - 1 + index, fence.columns + indent))
    return found


def _without_prompt(line: str) -> str:
    return line[4:] if line.startswith((">>> ", "... ")) else line


@dataclass(eq=False)
class OperatorFiles:
    """The files of one operator, as far as they were asked for."""

    ws: OpWorkspace  # where the operator's files lie
    # texts that stand in for what lies on disk (a write that is being looked at)
    texts: dict[Path, str] = field(default_factory=dict)
    read: list[str] = field(default_factory=list)  # paths that were read, as findings name them
    _units: dict[Path, Unit] = field(default_factory=dict)

    @property
    def base(self) -> Path:
        """The folder that findings name files relative to: the user's workspace."""
        root = self.ws.root
        return root.parent.parent if root.parent.name == OPERATORS_DIR else root.parent

    def shown(self, path: Path) -> str:
        """Return the name findings use: relative to the user's workspace (`custom/<op>/...`)."""
        try:
            return path.relative_to(self.base).as_posix()
        except ValueError:
            return str(path)

    def unit(self, path: Path, artifact: Artifact | None = None) -> Unit:
        """Return the file at `path`, read once; a missing file is a unit with a problem."""
        if path not in self._units:
            kind, phase = self.ws.artifact_of(path)
            unit = Unit(path, self.shown(path), artifact or kind, phase, None)
            try:
                text = self.texts.get(path)
                if text is not None:
                    check_size(path, len(text))
                unit.source = normalised(text) if text is not None else read_source(path)
                self.read.append(unit.shown)
            except UnreadableSource as problem:
                unit.problem = problem
            self._units[path] = unit
        return self._units[path]

    def existing(self, path: Path) -> Unit | None:
        """Return the file at `path` if it is there."""
        unit = self.unit(path)
        return None if unit.problem is not None and unit.problem.vanished else unit

    def units(self) -> list[Unit]:
        """Return every file of the operator that rules may look at and that exists."""
        ws = self.ws
        paths = [ws.spec, ws.api_report, ws.golden, ws.golden_perf_report, ws.design, ws.interfaces]
        paths += [ws.test_inputs, ws.suite, ws.impl, ws.test, ws.readme, ws.memory, ws.state]
        for pattern in (f"{ws.name}_module*_impl.py", f"{ws.name}_module*_golden.py", f"test_{ws.name}_module*.py"):
            paths += sorted(ws.modules_dir.glob(pattern))
        return [unit for path in paths if (unit := self.existing(path)) is not None]
