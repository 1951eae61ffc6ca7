"""Where everything of an operator lies: the only module that knows paths, suffixes and file names.

Standard library only, so that the linter and the hooks can import it in a few milliseconds.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pypto_op.errors import ContractError, InfraError, near
from pypto_op.vocabulary import Artifact

OP_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}\Z")
"""An operator's name: a Python identifier in lower case, at most 64 characters."""

STATE_FILE = ".orchestrator_state.json"
JOURNAL_FILE = ".orchestrator_journal.jsonl"
PLAN_FILE = ".orchestrator_plan.json"
OPERATORS_DIR = "custom"
FAILURE_RECORD = "failure.json"
"""Who failed in a failure folder, and how (schemas/failure.schema.json)."""
FAILURE_FILES = (FAILURE_RECORD, "outcome.txt", "stdout.txt", "stderr.txt")
"""What every failure folder holds, empty or not; pypto's own logs and `program.json` lie beside them where it wrote any."""

_TOP_LEVEL = {
    "SPEC.md": Artifact.SPEC,
    "API_REPORT.md": Artifact.API_REPORT,
    "GOLDEN_PERF_REPORT.md": Artifact.GOLDEN_PERF_REPORT,
    "DESIGN.md": Artifact.DESIGN,
    "MEMORY.md": Artifact.MEMORY,
    "README.md": Artifact.README,
    STATE_FILE: Artifact.STATE,
    JOURNAL_FILE: Artifact.JOURNAL,
    PLAN_FILE: Artifact.PLAN,
}
_EVAL = {
    "module_interfaces.yaml": Artifact.INTERFACES,
    "test_inputs.py": Artifact.TEST_INPUTS,
    "adversarial_suite.json": Artifact.SUITE,
    "adversarial_runner.py": Artifact.RUNNER,
    "evaluation_report.json": Artifact.REPORT,
}
_MODULE_IMPL = re.compile(r"(?P<op>[a-z][a-z0-9_]*)_module(?P<suffix>\d+)_impl\.py\Z")
_MODULE_GOLDEN = re.compile(r"(?P<op>[a-z][a-z0-9_]*)_module(?P<suffix>\d+)_golden\.py\Z")
_MODULE_TEST = re.compile(r"test_(?P<op>[a-z][a-z0-9_]*)_module(?P<suffix>\d+)\.py\Z")


def typed(path: Path | str) -> str:
    """Return `path` as a reader may type it in a shell here: relative where it lies below the current folder, and quoted."""
    return shlex.quote(near(path))


def to_run(words: str, folder: Path) -> str:
    """Return the remedy to run a command of `pypto-op` on a folder, which a reader may type as it stands."""
    return f"run `pypto-op {words} {typed(folder)}`"


def check_op_name(name: str) -> str:
    """Return `name` if it may name an operator; raise ContractError otherwise."""
    if not OP_NAME.match(name):
        shown = name if len(name) <= 40 else name[:37] + "..."
        raise ContractError(
            f"{shown!r} cannot name an operator",
            remedy="use lower-case letters, digits and underscores, a letter first, at most 64 characters",
        )
    return name


def check_link(given: Path, root: Path) -> None:
    """Raise ContractError where a link bears the operator's name, and the folder behind it another: its files are not found."""
    if given.is_symlink() and (root / f"{given.name}_golden.py").exists() and not (root / f"{root.name}_golden.py").exists():
        raise ContractError(
            f"is a link to {root}, whose files are those of {given.name}",
            file=given,
            remedy=f"call that folder {given.name}, too",
        )


def check_runnable(root: Path) -> None:
    """Raise InfraError when no kernel below `root` could run: pypto hands the path to a shell without quotes."""
    if any(character.isspace() for character in str(root)):
        raise InfraError("pypto cannot run kernels in a path with white space", file=root, remedy="move the workspace")


def check_writable(folder: Path, remedy: str = "work in another folder") -> None:
    """Raise InfraError where nobody can write in `folder`: what is paid for by the minute must not begin there."""
    import tempfile  # a few milliseconds that hooks need not pay

    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InfraError(f"nothing can be written there ({error.strerror})", file=folder, remedy=remedy) from None


def phase_suffix(k: int) -> str:
    """Return the cumulative suffix of phase M_k: the numbers 1..k written one after another ("123" for 3)."""
    if k < 1:
        raise ContractError(f"there is no phase M{k}", remedy="phases count from M1")
    return "".join(str(i) for i in range(1, k + 1))


def suffix_phase(suffix: str) -> int:
    """Return k for a cumulative suffix; raise ContractError when `suffix` is not cumulative."""
    built, k = "", 0
    while len(built) < len(suffix):
        k += 1
        built += str(k)
    if built != suffix or not suffix:
        raise ContractError(f"{suffix!r} is not a cumulative module suffix", remedy="use 1, 12, 123, ...")
    return k


def parse_phase(text: str) -> int:
    """Return k for `M3`, `M_3` or `3`; raise ContractError for anything else, M0 included."""
    match = re.fullmatch(r"(?:M_?)?([1-9]\d{0,3})", text.strip())
    if not match:
        raise ContractError(f"{text[:40]!r} is not a phase", remedy="write M1, M2, ...")
    return int(match.group(1))


class Place:
    """A path below the operator's directory; `{op}` in it is the operator's name."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __get__(self, ws: OpWorkspace, owner: type[OpWorkspace]) -> Path:
        return ws.root / self._path.format(op=ws.name)


@dataclass(frozen=True)
class OpWorkspace:
    """The files of one operator, `custom/<op>/` in the user's workspace."""

    root: Path  # the operator's directory, absolute
    name: str  # the operator's name

    @classmethod
    def at(cls, op_dir: Path | str) -> OpWorkspace:
        """Open an existing operator directory.

        Raises:
            ContractError: the directory is missing, or its name cannot name an operator.
        """
        remedy = "run `pypto-op new OP` first"
        try:
            root = Path(op_dir).expanduser().resolve()
            there = op_dir != "" and root.is_dir()  # no name is not the current folder
        except (OSError, ValueError, RuntimeError) as error:  # too long, NUL, a loop of links, nobody's home
            why = getattr(error, "strerror", None) or error
            raise ContractError(f"no such operator directory ({why})", file=ascii(str(op_dir))[:200], remedy=remedy) from None
        if not there:
            problem = "is no folder" if op_dir != "" and root.exists() else "no such operator directory"
            raise ContractError(problem, file=op_dir or "''", remedy=remedy)
        check_link(Path(op_dir), root)
        return cls(root, check_op_name(root.name))

    @classmethod
    def owning(cls, path: Path | str) -> OpWorkspace | None:
        """Return the operator that `path` belongs to, or None.

        A directory is an operator's when it lies directly in a folder called `custom`, when it holds a state
        file, or when it holds two of the artefacts that are named after it. The first file written into
        `custom/<op>/` therefore already belongs to an operator.
        """
        path = Path(path)
        path = path if path.is_absolute() else Path.cwd() / path
        for directory in path.parents:
            if OP_NAME.match(directory.name) and _is_operator_directory(directory):
                return cls(directory, directory.name)
        return None

    @classmethod
    def of_files(cls, op_dir: Path | str) -> OpWorkspace:
        """Open an existing operator directory that may have been renamed since: the name is that of the one golden in it.

        Raises:
            ContractError: as `at` does.
        """
        root = Path(op_dir).expanduser().resolve()
        names = [path.name.removesuffix("_golden.py") for path in root.glob("*_golden.py")]
        return cls(root, names[0]) if len(names) == 1 and OP_NAME.match(names[0]) else cls.at(op_dir)

    # -- documents ------------------------------------------------------------------------------------------

    spec = Place("SPEC.md")
    """The planner's."""
    api_report = Place("API_REPORT.md")
    """The planner's."""
    golden_perf_report = Place("GOLDEN_PERF_REPORT.md")
    """The mathematician's."""
    design = Place("DESIGN.md")
    """The architect's."""
    memory = Place("MEMORY.md")
    """The team's append-only ledger."""
    readme = Place("README.md")
    """The coder's."""
    tuning_report = Place("{op}_tuning_report.md")
    """The optimizer's."""
    # -- code -----------------------------------------------------------------------------------------------

    golden = Place("{op}_golden.py")
    """The torch reference of the whole operator."""
    impl = Place("{op}_impl.py")
    """The integrated kernel."""
    test = Place("test_{op}.py")
    """The end-to-end test."""
    modules_dir = Place("modules")
    """The staged files."""

    def module_impl(self, k: int) -> Path:
        """modules/<op>_module<suffix_k>_impl.py."""
        return self.modules_dir / f"{self.name}_module{phase_suffix(k)}_impl.py"

    def module_golden(self, k: int) -> Path:
        """modules/<op>_module<suffix_k>_golden.py."""
        return self.modules_dir / f"{self.name}_module{phase_suffix(k)}_golden.py"

    def module_test(self, k: int) -> Path:
        """modules/test_<op>_module<suffix_k>.py."""
        return self.modules_dir / f"test_{self.name}_module{phase_suffix(k)}.py"

    def wrapper_name(self, k: int | None = None) -> str:
        """Name of the host wrapper: of phase M_k, or of the integrated impl."""
        return f"{self.name}_wrapper" if k is None else f"{self.name}_module{phase_suffix(k)}_wrapper"

    def golden_name(self, k: int | None = None) -> str:
        """Name of the golden function: cumulative to M_k, or of the whole operator."""
        return f"{self.name}_golden" if k is None else f"{self.name}_module{phase_suffix(k)}_golden"

    # -- evaluation, state, scratch -------------------------------------------------------------------------

    eval_dir = Place("eval")
    """Contract, inputs, suite, runner and report."""
    interfaces = Place("eval/module_interfaces.yaml")
    """The designer's."""
    suite = Place("eval/adversarial_suite.json")
    """The cases that a verdict judges."""
    runner = Place("eval/adversarial_runner.py")
    """Generated."""
    report = Place("eval/evaluation_report.json")
    """The latest verdict."""
    perf_report = Place("eval/perf_result.json")
    """The latest benchmark."""

    # What a subclass has elsewhere, and what lies below that, are properties.

    @property
    def test_inputs(self) -> Path:
        """eval/test_inputs.py with `make_inputs(case)`."""
        return self.root / "eval" / "test_inputs.py"

    @property
    def debug_dir(self) -> Path:
        """_debug/: every scratch file, and what the runs leave behind."""
        return self.root / "_debug"

    @property
    def swimlanes(self) -> Path:
        """_debug/perf/swimlanes.json: what `pypto-op perf` drew last, for the report."""
        return self.debug_dir / "perf" / "swimlanes.json"

    def error_map(self, case_id: str) -> Path:
        """Where the latest verdict's error map of a case lies; other characters of its id become `_`."""
        return self.debug_dir / "error_maps" / (re.sub(r"[^A-Za-z0-9_.-]", "_", case_id)[:120] + ".json")

    @property
    def failures_dir(self) -> Path:
        """_debug/failures/: one folder per case whose run ended in an error."""
        return self.debug_dir / "failures"

    @staticmethod
    def root_of_failure(folder: Path) -> Path | None:
        """The operator's directory that a failure folder lies in now, None for a failure folder that lies elsewhere."""
        folder = folder.resolve()
        return folder.parents[2] if folder.parts[-3:-1] == ("_debug", "failures") else None

    def failure_dir(self, case_id: str) -> Path:
        """The failure folder of a case, with `FAILURE_FILES` in it; other characters of its id become `_`."""
        return self.failures_dir / (re.sub(r"[^A-Za-z0-9_.-]", "_", case_id)[:80] or "case")

    state = Place(STATE_FILE)
    """The state machine's file; written by the state tool only."""
    journal = Place(JOURNAL_FILE)
    """The hash-chained journal beside the state."""
    plan = Place(PLAN_FILE)
    """The frozen plan (N, module ids, hashes)."""

    def is_nobodys(self) -> bool:
        """Say whether the folder holds nothing that makes an operator: somebody else's folder, or an empty one.

        A README.md says nothing, nor does a file named like a kernel that does not speak of pypto: any project has them.
        """
        documents = (self.spec, self.api_report, self.golden_perf_report, self.design, self.memory, self.state, self.journal)
        marks = (*documents, self.golden, self.test, self.interfaces, self.test_inputs, self.suite, self.report)
        if any(path.is_file() for path in marks) or self.existing_module_phases():
            return False
        return not (self.impl.is_file() and b"pypto" in self.impl.read_bytes())

    def existing_module_phases(self) -> list[int]:
        """Return the phases k for which a module impl lies on disk, in order."""
        phases = []
        for path in sorted(self.modules_dir.glob(f"{self.name}_module*_impl.py")):
            match = _MODULE_IMPL.match(path.name)
            if match:
                try:
                    phases.append(suffix_phase(match["suffix"]))
                except ContractError:
                    continue
        return sorted(phases)

    def artifact_of(self, path: Path | str) -> tuple[Artifact, int | None]:
        """Say what `path` is and, for a file of the staged chain, which phase it belongs to.

        A module file whose suffix is not cumulative keeps its kind and has no phase.
        """
        path = Path(path)
        path = path if path.is_absolute() else Path.cwd() / path
        try:
            parts = path.relative_to(self.root).parts
        except ValueError:
            return Artifact.OTHER, None
        if not parts:
            return Artifact.OTHER, None
        if parts[0] == "_debug" or parts[:2] == ("eval", "_debug"):
            return Artifact.DEBUG, None
        if len(parts) == 1:
            return self._top_level_artifact(parts[0]), None
        if parts[0] == "eval" and len(parts) == 2:
            return _EVAL.get(parts[1], Artifact.OTHER), None
        if parts[0] == "modules" and len(parts) == 2:
            return _module_artifact(parts[1])
        return Artifact.OTHER, None

    def _top_level_artifact(self, name: str) -> Artifact:
        own = {
            self.impl.name: Artifact.IMPL,
            self.golden.name: Artifact.GOLDEN,
            self.test.name: Artifact.TEST,
            self.tuning_report.name: Artifact.TUNING_REPORT,
        }
        return own.get(name) or _TOP_LEVEL.get(name, Artifact.OTHER)


def operators_in(workspace: Path) -> Iterator[OpWorkspace]:
    """Yield the operators of a user's workspace (`custom/*/`), in order of name."""
    base = workspace / OPERATORS_DIR
    if base.is_dir():
        for directory in sorted(base.iterdir()):
            if directory.is_dir() and OP_NAME.match(directory.name):
                yield OpWorkspace(directory.resolve(), directory.name)


def _module_artifact(name: str) -> tuple[Artifact, int | None]:
    for pattern, kind in (
        (_MODULE_TEST, Artifact.MODULE_TEST),
        (_MODULE_IMPL, Artifact.MODULE_IMPL),
        (_MODULE_GOLDEN, Artifact.MODULE_GOLDEN),
    ):
        match = pattern.match(name)
        if match:
            try:
                return kind, suffix_phase(match["suffix"])
            except ContractError:
                return kind, None
    return Artifact.OTHER, None


def _is_operator_directory(directory: Path) -> bool:
    if directory.parent.name == OPERATORS_DIR:
        return True
    if (directory / STATE_FILE).is_file():
        return True
    op = directory.name
    named = (f"{op}_impl.py", f"{op}_golden.py", f"test_{op}.py")
    documents = ("SPEC.md", "API_REPORT.md", "DESIGN.md")
    present = [name for name in named + documents if (directory / name).is_file()]
    return len(present) >= 2 and any(name in named for name in present)
