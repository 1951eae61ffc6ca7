"""Every enumeration of the workflow, in one place. Standard library only: the linter imports this too."""

from __future__ import annotations

from enum import Enum, IntEnum


class Word(str, Enum):
    """A string enum whose `str()` is its value, so that it can be written to JSON and messages as it is."""

    def __str__(self) -> str:
        return str(self.value)


class ExitCode(IntEnum):
    """Exit codes of the judging commands."""

    OK = 0
    FAIL = 1
    CONTRACT = 2
    INFRA = 3


class Mode(Word):
    """Where a kernel runs: pypto's simulator on the CPU, or an Ascend NPU."""

    SIM = "sim"
    NPU = "npu"


class Status(Word):
    """Status of a case, of a mode and of a whole report (seed B.4).

    PARTIAL is a report's, or a mode's in it: all that was asked for passed, but it was not the operator's whole suite.
    """

    PASS = "PASS"
    PARTIAL = "PARTIAL"
    FAIL = "FAIL"
    ERROR = "ERROR"
    SKIPPED = "SKIPPED"

    @property
    def rank(self) -> int:
        """Order for aggregation: ERROR > FAIL > PARTIAL > PASS > SKIPPED."""
        return ("SKIPPED", "PASS", "PARTIAL", "FAIL", "ERROR").index(self.value)

    @property
    def passed(self) -> bool:
        """Whether everything that was asked for passed; only PASS says so of the whole."""
        return self in (Status.PASS, Status.PARTIAL)

    @classmethod
    def worst(cls, statuses: list[Status]) -> Status:
        """Return the worst of `statuses`; SKIPPED for an empty list."""
        return max(statuses, key=lambda s: s.rank, default=cls.SKIPPED)


class FailureCategory(Word):
    """What kind of failure it is; the debugger's router key (verifier seed, verdict table, and B.4)."""

    PRECISION = "precision"
    STRUCTURAL = "structural"
    RUNTIME = "runtime"
    INFRA = "infra"
    AICORE = "aicore"
    HOST_CRASH = "host_crash"
    WORKSPACE_OVERLAP = "workspace_overlap"
    OOM = "oom"
    TILE_SHAPE = "tile_shape"
    LAYOUT = "layout"
    OTHER = "other"

    @classmethod
    def parse(cls, word: str) -> FailureCategory:
        """Accept the seeds' second spelling `structure` for `structural`."""
        return cls("structural" if word == "structure" else word)


class Fingerprint(Word):
    """Cross-mode divergence pattern of a failing case (verifier seed B.4)."""

    KERNEL_OK_NPU_ONLY = "kernel_ok_npu_only"
    IR_DIVERGENCE = "ir_divergence"
    ALL_FAIL = "all_fail"


class Outcome(Word):
    """How one run of candidate code ended, before anybody looks at its numbers."""

    OK = "ok"
    MISSING_FILE = "missing_file"
    SYNTAX_ERROR = "syntax_error"
    IMPORT_ERROR = "import_error"
    MISSING_WRAPPER = "missing_wrapper"
    EXCEPTION = "exception"
    EXITED = "exited"
    CRASHED = "crashed"
    OUT_OF_MEMORY = "out_of_memory"
    TIMED_OUT = "timed_out"
    BAD_OUTPUT = "bad_output"
    FORBIDDEN = "forbidden"
    DOES_NOT_FIT = "does_not_fit"
    STALE_PROGRAM = "stale_program"
    UNAVAILABLE = "unavailable"


class Loader(Word):
    """Who loads files while an implementation is judged (`closure` of a report)."""

    CANDIDATE = "candidate"
    GOLDEN = "golden"
    INPUTS = "inputs"


class Severity(Word):
    """Severity of a lint rule; S0 and S1 block."""

    S0 = "S0"
    S1 = "S1"
    S2 = "S2"
    S3 = "S3"

    @property
    def blocks(self) -> bool:
        """Whether a FAIL of this severity refuses a write or a transition."""
        return self in (Severity.S0, Severity.S1)


class LintEvent(Word):
    """When the linter runs."""

    ON_WRITE = "on-write"
    SUBMIT_DESIGN = "submit-design"
    SUBMIT_FOR_VERIFY = "submit-for-verify"
    COMPLETE_STAGE = "complete-stage"


class Level(Word):
    """Level of a suite case: L1 runs at all, L2 ordinary shapes, L3 boundaries, L4 long and many, L5 unkind values."""

    L1 = "L1"
    L2 = "L2"
    L3 = "L3"
    L4 = "L4"
    L5 = "L5"

    @classmethod
    def parse(cls, value: object) -> Level:
        """Accept `1`, `"1"` and `"L1"`; raise ValueError otherwise."""
        text = str(value).strip().upper()
        return cls(text if text.startswith("L") else f"L{text}")


class Conclusion(Word):
    """What the CPU reproducer concludes about a failing case (debugger seed)."""

    KERNEL_INNOCENT = "kernel_innocent"
    KERNEL_SUSPECT = "kernel_suspect"


class Stage(IntEnum):
    """The seven stages of the workflow."""

    PLANNING = 1
    GOLDEN = 2
    ARCHITECTURE = 3
    DESIGN = 4
    CONSTRUCTION = 5
    FINAL_E2E = 6
    OPTIMISATION = 7


class StageStatus(Word):
    """Status of a stage in the state file."""

    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    FAILED = "failed"
    BLOCKED = "blocked"


class PhaseStatus(Word):
    """Status of a construction phase M_k."""

    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    AWAITING_VERIFY = "awaiting_verify"
    IN_DEBUG = "in_debug"
    VERIFIED = "verified"
    BLOCKED = "blocked"


class Decomposition(Word):
    """Decomposition path: one kernel at once, or the staged chain of cumulative modules."""

    SINGLE = "single"
    STAGED = "staged"

    @classmethod
    def parse(cls, word: str) -> Decomposition:
        """Accept the seeds' words L0 (single) and L1 (staged)."""
        return cls({"L0": "single", "L1": "staged"}.get(word.strip(), word.strip()))


class Role(Word):
    """The nine agents of the team, and the one that makes Triton kernels on its own."""

    ORCHESTRATOR = "pypto-op-orchestrator"
    PLANNER = "pypto-op-planner"
    MATHEMATICIAN = "pypto-op-mathematician"
    ARCHITECT = "pypto-op-architect"
    DESIGNER = "pypto-op-designer"
    CODER = "pypto-op-coder"
    VERIFIER = "pypto-op-verifier"
    DEBUGGER = "pypto-op-debugger"
    OPTIMIZER = "pypto-op-optimizer"
    TRITON_KERNELGEN = "triton-op-kernelgen"


class Artifact(Word):
    """What a file in an operator's directory is; `workspace.OpWorkspace.artifact_of` decides it."""

    SPEC = "spec"
    API_REPORT = "api_report"
    GOLDEN = "golden"
    GOLDEN_PERF_REPORT = "golden_perf_report"
    DESIGN = "design"
    INTERFACES = "interfaces"
    TEST_INPUTS = "test_inputs"
    SUITE = "suite"
    RUNNER = "runner"
    REPORT = "report"
    IMPL = "impl"
    MODULE_IMPL = "module_impl"
    MODULE_GOLDEN = "module_golden"
    MODULE_TEST = "module_test"
    TEST = "test"
    README = "readme"
    MEMORY = "memory"
    TUNING_REPORT = "tuning_report"
    STATE = "state"
    JOURNAL = "journal"
    PLAN = "plan"
    DEBUG = "debug"
    OTHER = "other"


DTYPES = ("float32", "float16", "bfloat16", "int32", "int64", "int8", "uint8", "bool", "int")
"""Dtype words that module_interfaces.yaml and the suite may use. The seed's seven, plus int8 and uint8."""

DTYPE_ALIASES = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16", "half": "float16", "float": "float32"}
"""Short words that SPEC.md and people use, and the word they stand for."""

HEAVY_OPS = ("matmul", "cross_tile_reduce", "softmax", "scan", "recurrence", "outer_product")
"""Operations that carry a module (construct seed, R2); a qualifier may stand before or after (`online_softmax`, `matmul_qk`)."""

LEAST_CU, MOST_CU = 0.5, 1.5
"""Complexity units of one module of several (construct seed, R6): outside it the architect cuts anew. Wanted: 0.7 to 1.3."""
