"""The faults that the debugger is measured with: tests/fixtures/failures, and the wrong numbers of tests/fixtures/faults."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.markdown_cases import cases
from tests.markdown_cases.cases import Case
from tests.markdown_cases.pages import PageError

ROOT = Path(__file__).resolve().parents[1]
FIXTURES = ROOT / "tests" / "fixtures"
NUMBERS = "numbers"
KINDS: Mapping[str, tuple[str, str, str]] = {
    "compile": ("front-end errors", "all that pypto's front end refuses", "nothing more"),
    "tile": ("tile shapes", "missing, misaligned and misfitting tiles that front end and passes refuse", "what a tile costs"),
    "memory": (
        "memory",
        "a tile over UB, L0 or L1 by its size (computed beside sim); host memory",
        "workspace and HBM at run time",
    ),
    "bounds": ("out of bounds", "views, writes and loops that leave their tensor, also inside one allocation", "nothing more"),
    "crash": ("crashes and exits", "crashes of pypto's host code", "exceptions on a core"),
    "hang": ("hangs", "a host that waits", "a core or a scheduler that waits"),
    "aicore": ("exceptions on a core", "nothing: only the words of a log are judged here", "all of them"),
    "environment": ("environment", "missing libraries and names, the device's number", "drivers, chips that are busy or lost"),
    "wrapper": ("wrapper", "wrong outputs, work on the host, changed inputs", "nothing more"),
    "unwritten": (
        "unwritten memory",
        "outputs that no write reaches; scratch and padding that nobody wrote, as NaN, where they reach an output",
        "what happens to lie there",
    ),
    "overlap": (
        "overlapping memory",
        "writes of one kernel over one another",
        "races, and buffers that passes lay over one another",
    ),
    NUMBERS: ("wrong numbers", "wrong mathematics of the tensor graph", "the device's own rounding, missing synchronisation"),
    "golden": ("the golden is wrong", "its own check fails, or its answer in float64 is another", "nothing more"),
    "framework": ("pypto is wrong", "the simulator's operations and the checked passes", "code generation, the device's library"),
}
"""Kind of fault -> its name, what `sim` sees of it, what only a device sees."""

SHOWN: Mapping[str, tuple[str, str]] = {
    "compile": ("rmsnorm/dtype_mix", ""),
    "tile": ("rmsnorm/no_tile", ""),
    "memory": ("softmax/ub_overflow", "workspace_not_enough"),
    "bounds": ("softmax/view_past_the_end", ""),
    "crash": ("softmax/state_consumed", "aicore_507015_bare"),
    "hang": ("softmax/hangs", "pypto_scheduler_timeout"),
    "aicore": ("matmul_bias_gelu/aicore_error", "mte_out_of_range"),
    "environment": ("softmax/library_missing", "device_lost"),
    "wrapper": ("rmsnorm/no_wrapper", ""),
    "unwritten": ("rmsnorm/dropped_tail", ""),
    "overlap": ("softmax/overlapping_writes", "overlap_words"),
    NUMBERS: ("rmsnorm/wrong_eps", ""),
    "golden": ("rmsnorm/golden_sum", ""),
    "framework": ("matmul_bias_gelu/sigmoid_on_a_tail", "codegen_f6"),
}
"""Kind -> the fault by which tests/debug/test_planted.py shows it in `sim`, and the log in tests/fixtures/device_logs by which
tests/diagnose/test_signatures.py shows that a device's words for it are known ("": a device says nothing of it)."""

EMPTY = frozenset(
    f"{op}/{name}"
    for op, names in {
        "softmax": ("dropped_column_tail", "dropped_row_tail", "last_row_unwritten"),
        "rmsnorm": ("dropped_tail", "last_row_unwritten", "narrow_square", "narrow_sum"),
        "matmul_bias_gelu": ("dropped_column_tail", "dropped_row_tail", "last_column_unwritten", "last_row_unwritten"),
    }.items()
    for name in names
)
"""Wrong numbers that leave elements unwritten, or overflow to zeros."""


@dataclass(frozen=True)
class Fault:
    """One planted fault and what the debugger should say of it.

    Attributes:
        op: the example.
        name: of the fault.
        kind: a key of `KINDS`.
        why: a sentence.
        case: the case of the suite that shows it.
        category, skill: what triage must say.
        lines: lines of the changed kernel of which one must be named within 3; () where no line is to blame.
        blame: whom precision-compare must blame, "" where it is not asked.
        files: text by path in the operator's folder.
    """

    op: str
    name: str
    kind: str
    why: str
    case: str
    category: str
    skill: str
    lines: tuple[int, ...]
    blame: str
    files: Mapping[str, bytes]

    @property
    def id(self) -> str:
        """`op/name`."""
        return f"{self.op}/{self.name}"


def operators() -> list[str]:
    """Return the operators that have failures of their own."""
    return sorted((path.stem for path in (FIXTURES / "failures").glob("*.md")), reverse=True)


def failures(op: str) -> Iterator[Fault]:
    """Yield the failures of tests/fixtures/failures/<op>.md.

    Raises:
        PageError: the page is not in order, or the example moved on and an edit has no place in it any more.
    """
    files = planted_into(op)
    found = cases.load(FIXTURES / "failures" / f"{op}.md", {"example": files})
    for case in found.cases:
        keys = {"line": "", "blame": "", **found.page.front, **case.keys}
        if set(keys) != {"kind", "category", "skill", "case", "line", "blame"} or keys["kind"] not in KINDS:
            raise PageError(found.page.path, case.line, f"{case.name} has other keys than it may, or an unknown kind")
        yield _fault(op, case, files, {name: str(value) for name, value in keys.items()})


def wrong_numbers(op: str, share: int = 1) -> Iterator[Fault]:
    """Yield every `share`-th fault of tests/fixtures/faults/<op>.md, all of which are wrong numbers; none without that page."""
    if not (FIXTURES / "faults" / f"{op}.md").is_file():
        return
    files = planted_into(op)
    found = cases.load(FIXTURES / "faults" / f"{op}.md", {"example": files})
    # By the seed's table zeros, constants and unwritten elements without an error go to pypto-general-debug first.
    plain = {"kind": NUMBERS, "category": "precision", "skill": "pypto-precision-debug", "line": "", "blame": "kernel"}
    for case in found.cases[::share]:
        skill = {"kind": "unwritten", "skill": "pypto-general-debug"} if f"{op}/{case.name}" in EMPTY else {}
        if f"{op}/{case.name}" == "flash_attention_fwd/swapped_outputs":  # other shapes, which is seen before numbers are
            skill = {"kind": "wrapper", "category": "structural", "skill": "pypto-general-debug", "line": "none", "blame": ""}
        yield _fault(op, case, files, {**plain, **skill, "case": str(case.keys["case"])})


def home(op: str) -> Path:
    """Return the folder of an operator: an example, or one of tests/fixtures/fresh, which has no suite of its own."""
    example = ROOT / "examples" / "ops" / op
    return example if example.is_dir() else FIXTURES / "fresh" / op


def planted_into(op: str) -> dict[str, bytes]:
    """Return the text of the operator's files by name, without a fault."""
    return {path.name: path.read_bytes() for path in sorted(home(op).glob(f"{op}_*.py"))}


def _fault(op: str, case: Case, files: Mapping[str, bytes], keys: Mapping[str, str]) -> Fault:
    impl = f"{op}_impl.py"
    changed = {name or impl: text for name, text in case.files.items()}
    text = changed.get(impl, files[impl]).decode().splitlines()
    if keys["line"] == "none":
        lines: tuple[int, ...] = ()
    elif keys["line"]:
        lines = tuple(number for number, line in enumerate(text, 1) if keys["line"] in line)
        if not lines:
            raise ValueError(f"{op}/{case.name}: no line has the text {keys['line']!r}")
    else:
        lines = _changed(files[impl].decode().splitlines(), text)
    rest = {name: keys[name] for name in ("kind", "case", "category", "skill", "blame")}
    return Fault(op=op, name=case.name, why=case.why, lines=lines, files=changed, **rest)


def _changed(before: list[str], after: list[str]) -> tuple[int, ...]:
    """Return the lines of `after` that differ from `before`; for lines that went, those around the place."""
    found: list[int] = []
    for tag, _, _, begin, end in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "delete":
            found += [begin, begin + 1]
        elif tag != "equal":
            found += range(begin + 1, end + 1)
    return tuple(found)
