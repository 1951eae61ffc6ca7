"""Why a case did not pass: one row per reason, with the failure category that routes the debugger."""

from __future__ import annotations

import re

from pypto_op.backends.base import RunResult
from pypto_op.diagnose.log_text import parse_log
from pypto_op.diagnose.search import diagnose
from pypto_op.vocabulary import FailureCategory, Outcome, Status, Word


class Reason(Word):
    """One thing that can be wrong with a run, in order of how early it decides (the first one heads a verdict)."""

    MISSING_FILE = "missing_file"
    SYNTAX_ERROR = "syntax_error"
    IMPORT_ERROR = "import_error"
    MISSING_WRAPPER = "missing_wrapper"
    MISSING_PROBE = "missing_probe"
    INPUTS_FAILED = "inputs_failed"
    GOLDEN_FAILED = "golden_failed"
    EXCEPTION = "exception"
    EXITED = "exited"
    CRASHED = "crashed"
    OUT_OF_MEMORY = "out_of_memory"
    NO_MEMORY_LEFT = "no_memory_left"
    TIMED_OUT = "timed_out"
    FORBIDDEN = "forbidden"
    DOES_NOT_FIT = "does_not_fit"
    STALE_PROGRAM = "stale_program"
    NOT_RUN = "not_run"
    UNAVAILABLE = "unavailable"
    BAD_OUTPUT = "bad_output"
    LEAF_COUNT = "leaf_count"
    SHAPE = "shape"
    DTYPE = "dtype"
    NO_LAUNCH = "no_launch"
    NOT_FROM_KERNEL = "not_from_kernel"
    SHARED_OUTPUT = "shared_output"
    CHANGED_LATER = "changed_later"
    PREFILLED = "prefilled"
    HOST_COMPUTED = "host_computed"
    KEPT_BUFFER = "kept_buffer"
    KERNEL_UNUSED = "kernel_unused"
    SILENT_RUN_RAISES = "silent_run_raises"
    NOT_REFUSED = "not_refused"
    MUTATED_INPUT = "mutated_input"
    ALIASED_INPUT = "aliased_input"
    STALE_RESULT = "stale_result"
    UNSTABLE = "unstable"
    WRONG_WHEN_CHANGED = "wrong_when_changed"
    UNWRITTEN = "unwritten"
    NON_FINITE = "non_finite"
    MISMATCH = "mismatch"
    NO_NUMBERS = "no_numbers"

    @property
    def rank(self) -> int:
        """Position in the order above."""
        return list(Reason).index(self)


_FAIL, _ERROR, _SKIPPED = Status.FAIL, Status.ERROR, Status.SKIPPED
_STRUCTURAL, _RUNTIME = FailureCategory.STRUCTURAL, FailureCategory.RUNTIME

_TABLE: dict[Reason, tuple[Status, FailureCategory, str]] = {
    Reason.MISSING_FILE: (_ERROR, _STRUCTURAL, "the implementation file is missing"),
    Reason.SYNTAX_ERROR: (_ERROR, _STRUCTURAL, "the implementation does not parse"),
    Reason.IMPORT_ERROR: (_ERROR, _RUNTIME, "importing the implementation failed"),
    Reason.MISSING_WRAPPER: (_ERROR, _STRUCTURAL, "the implementation has no such wrapper"),
    Reason.MISSING_PROBE: (_ERROR, _STRUCTURAL, "the wrapper takes no such inspection buffer"),
    Reason.INPUTS_FAILED: (_ERROR, _STRUCTURAL, "eval/test_inputs.py did not make the inputs"),
    Reason.GOLDEN_FAILED: (_ERROR, _STRUCTURAL, "the golden gave no reference"),
    Reason.EXCEPTION: (_ERROR, _RUNTIME, "the wrapper raised"),
    Reason.EXITED: (_ERROR, _RUNTIME, "the candidate ended its own process instead of returning"),
    Reason.CRASHED: (_ERROR, FailureCategory.HOST_CRASH, "the candidate's process was killed by a signal"),
    Reason.OUT_OF_MEMORY: (_ERROR, FailureCategory.OOM, "the candidate used more memory than it may"),
    Reason.NO_MEMORY_LEFT: (_ERROR, FailureCategory.INFRA, "the machine has too little memory"),
    Reason.TIMED_OUT: (_ERROR, _RUNTIME, "the candidate did not end in time"),
    Reason.FORBIDDEN: (_ERROR, _STRUCTURAL, "the candidate did what it may not"),
    Reason.DOES_NOT_FIT: (_FAIL, FailureCategory.TILE_SHAPE, "a tile does not fit the chip, which sim does not see"),
    Reason.STALE_PROGRAM: (_FAIL, _STRUCTURAL, "a device would run the program that it compiled for an earlier call"),
    Reason.NOT_RUN: (_ERROR, _RUNTIME, "not run, since the candidate's process was lost too often before"),
    Reason.UNAVAILABLE: (_SKIPPED, FailureCategory.INFRA, "the mode is not available on this machine"),
    Reason.BAD_OUTPUT: (_FAIL, _STRUCTURAL, "the wrapper returned something that is no tensor or tuple of them"),
    Reason.LEAF_COUNT: (_FAIL, _STRUCTURAL, "wrong number of outputs"),
    Reason.SHAPE: (_FAIL, _STRUCTURAL, "wrong shape"),
    Reason.DTYPE: (_FAIL, _STRUCTURAL, "wrong dtype"),
    Reason.NO_LAUNCH: (_FAIL, _STRUCTURAL, "the wrapper launched no pypto kernel"),
    Reason.NOT_FROM_KERNEL: (_FAIL, _STRUCTURAL, "an output's memory was never given to a kernel"),
    Reason.SHARED_OUTPUT: (_FAIL, _STRUCTURAL, "an output lies in the memory of an earlier call's result or input"),
    Reason.CHANGED_LATER: (_FAIL, _STRUCTURAL, "a result changed after it had been returned"),
    Reason.PREFILLED: (_FAIL, _STRUCTURAL, "an output held computed data before any kernel got it"),
    Reason.HOST_COMPUTED: (
        _FAIL,
        _STRUCTURAL,
        "the host computed from the inputs' values what a kernel was given; the kernel must compute it",
    ),
    Reason.KEPT_BUFFER: (_FAIL, _STRUCTURAL, "a kernel was given memory that an earlier call left; allocate it in each call"),
    Reason.SILENT_RUN_RAISES: (
        _FAIL,
        _STRUCTURAL,
        "the wrapper raises in every case when the kernel computes nothing, so nothing shows that the kernel is used",
    ),
    Reason.KERNEL_UNUSED: (_FAIL, _STRUCTURAL, "right although the kernel computed nothing; something else makes the output"),
    Reason.NOT_REFUSED: (_FAIL, _STRUCTURAL, "SPEC.md says that the wrapper raises ValueError here, before any launch"),
    Reason.MUTATED_INPUT: (_FAIL, _STRUCTURAL, "an input was changed"),
    Reason.ALIASED_INPUT: (_FAIL, _STRUCTURAL, "an output shares memory with an input"),
    Reason.STALE_RESULT: (_FAIL, _STRUCTURAL, "computed from what an earlier call was given"),
    Reason.UNSTABLE: (_FAIL, _STRUCTURAL, "right at first, and wrong when called again with the same inputs"),
    Reason.WRONG_WHEN_CHANGED: (_FAIL, FailureCategory.PRECISION, "wrong for inputs that differ a little from a case's"),
    Reason.UNWRITTEN: (_FAIL, FailureCategory.PRECISION, "elements of an output were never written"),
    Reason.NON_FINITE: (_FAIL, FailureCategory.PRECISION, "NaN or Inf where the reference has none, or none where it has"),
    Reason.MISMATCH: (_FAIL, FailureCategory.PRECISION, "values outside the tolerance"),
    Reason.NO_NUMBERS: (_SKIPPED, FailureCategory.INFRA, "this machine can check structure only, not numbers"),
}

SEEN_BY_CALLER = frozenset(
    {Reason.EXCEPTION, Reason.CRASHED, Reason.OUT_OF_MEMORY, Reason.NO_MEMORY_LEFT, Reason.TIMED_OUT, Reason.DOES_NOT_FIT}
)
"""Reasons that end a call without a result, so that nobody goes on with wrong numbers."""

LOAD_FAILURES = frozenset(
    {Reason.MISSING_FILE, Reason.SYNTAX_ERROR, Reason.IMPORT_ERROR, Reason.MISSING_WRAPPER, Reason.MISSING_PROBE}
)
"""Reasons that hold for every case and every mode: the file could not be loaded at all."""

NOT_LOADED = frozenset(
    {Outcome.MISSING_FILE, Outcome.SYNTAX_ERROR, Outcome.IMPORT_ERROR, Outcome.MISSING_WRAPPER, Outcome.UNAVAILABLE}
)
"""Outcomes of a candidate that never ran, so that no golden is needed to judge it."""

WORKSPACE_FAULTS = frozenset({Reason.INPUTS_FAILED, Reason.GOLDEN_FAILED, Reason.MISSING_FILE})
"""Reasons that are not the candidate's: whoever called the judge has to act (exit 2)."""

PROCESS_LOSSES = frozenset({Reason.EXITED, Reason.CRASHED, Reason.OUT_OF_MEMORY, Reason.TIMED_OUT})
"""Reasons after which the candidate needs a new process."""

_LINE = re.compile(r"([A-Za-z_]\w{0,99}\.py:\d+): ")
_NAME = r"[A-Za-z_][\w.]{0,99}"
_MISSING = re.compile(rf"No module named '{_NAME}'|cannot import name '{_NAME}' from '{_NAME}'")

_RETURNED = re.compile(r" returned (None|bool|complex|dict|float|int|ndarray|set|str)(?:,| where a tensor belongs)")
_TOO_LARGE = re.compile(r"MemoryError|can't allocate memory|not enough memory|[Ss]torage size calculation overflowed")

_TEXT_DECIDES = frozenset({Reason.EXCEPTION, Reason.IMPORT_ERROR, Reason.EXITED, Reason.CRASHED})


def reason_of(outcome: Outcome) -> Reason | None:
    """Return the reason that an outcome stands for, which has the same word; None for OK."""
    return None if outcome is Outcome.OK else Reason(outcome)


def status_of(reason: Reason) -> Status:
    """Return the status that `reason` gives a case in a mode."""
    return _TABLE[reason][0]


def sentence_of(reason: Reason) -> str:
    """Return what `reason` means, without a full stop."""
    return _TABLE[reason][2]


def category_of(reason: Reason, run: RunResult | None = None) -> FailureCategory:
    """Return the failure category; where a run ended in an error, its own words refine it.

    What pypto says only because the recording had broken off before ("tile shape not set") is no word of it. The words only
    steer the debugger: none can turn a run that failed into one that passed.
    """
    if run is not None and reason in _TEXT_DECIDES:
        hits = diagnose(parse_log("\n".join((run.detail, run.stdout, run.stderr)))).hits
        crashed = reason is Reason.CRASHED  # pypto prints a C++ stack for what it merely raises, too
        found = [hit.entry.category for hit in hits if crashed or hit.entry.category is not FailureCategory.HOST_CRASH]
        category = next(iter(found), None)
        if category is FailureCategory.PRECISION:  # on a device; here it raised, and no number was compared
            return FailureCategory.RUNTIME
        if category is not None:
            return category
    return _TABLE[reason][1]


def place_in(detail: str) -> str:
    """Return of the words of a file that failed only what can hold no value: its line, a missing module, too little memory.

    Args:
        detail: `RunResult.detail` of a golden or of the inputs file, such as "x_golden.py:3: ModuleNotFoundError: ...".
    """
    line, module, returned = _LINE.match(detail), _MISSING.search(detail), _RETURNED.search(detail)
    parts = [line[1] if line else "", f"{module[0]}; it must be installed, or left out" if module else ""]
    parts += [f"it returned {returned[1]}; {_OURS[Outcome.BAD_OUTPUT]}"] if returned else []
    parts += ["it asks for more memory than there is; make the case smaller"] * bool(_TOO_LARGE.search(detail))
    return ": ".join(part for part in parts if part)


_OURS = {
    Outcome.MISSING_WRAPPER: "its file defines no function of that name",
    Outcome.BAD_OUTPUT: "it must return a tensor, or a tuple of tensors",
}
"""What is said of an outcome that has no line."""


def ended_with(run: RunResult) -> str:
    """Return how a golden that gave no answer ended: the outcome and its place, in words that hold no value."""
    said = place_in(run.detail) or _OURS.get(run.outcome, "")
    return f"ended with: {run.outcome}" + (f", {said}" if said else "")


CHANGED_LATER = "the host changed an output after the last kernel that got it"
"""The sentence of NOT_FROM_KERNEL for an output that was a kernel's."""

RAISES_ON_OTHERS = "whether the host computes what the kernel is given: the wrapper raises on other values"
"""What was not shown of a run."""

ANOTHER_ALGORITHM = (
    "SPEC.md's tolerance holds here: where another algorithm rounds so and is as right, the golden's other form says so "
    "(docs/adversarial-inputs.md#another-algorithm)"
)
"""What is said of an output that is near enough for SPEC.md, and off by more than orders of the golden's sums are."""


def argument_words(key: str) -> str:
    """Return "launch.argument" (`RunResult.host_made`) in words."""
    launch, _, place = key.partition("@")[0].partition(".")
    if not place:
        return "how many kernels are launched"
    what = _NUMBERS.get(place) or f"tensor {int(place) + 1} of"
    return f"{what} launch {int(launch) + 1}"


_NUMBERS = {
    "arguments": "a number given to",
    "shapes": "the shape of a tensor given to",
    "memory": "which memory, or which part of it, is given to",
    "kernel": "a number or an operator that the host built into the kernel of",
    "returned": "which part of the kernels' memory is returned after",
}
