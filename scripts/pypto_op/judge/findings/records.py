"""What the runner finds out: plain records, from one run of one trial up to a case in all modes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pypto_op.judge.cases.variety import Variety
from pypto_op.judge.findings.reasons import SEEN_BY_CALLER, WORKSPACE_FAULTS, Reason
from pypto_op.vocabulary import FailureCategory, Mode, Status


@dataclass
class TrialVerdict:
    """One run of one mode on the inputs of one seed."""

    seed: int  # the seed that the inputs were made with
    status: Status  # PASS, FAIL, ERROR or SKIPPED
    reasons: tuple[Reason, ...] = ()  # everything that is wrong, the deciding reason first; empty for PASS
    category: FailureCategory | None = None  # for the debugger; None for PASS
    summary: str = ""  # one sentence, no tensor values
    # metrics per output leaf, as the report carries them; [] where nothing was compared
    per_tensor: list[dict[str, Any]] = field(default_factory=list)
    precision_checked: bool = False  # numbers were compared, not only shapes and dtypes
    bad_outputs: tuple[str, ...] = ()  # names of every leaf that is wrong, in order
    near_miss: bool = False  # the failure looks like natural rounding rather than a defect
    # stdout, stderr: the candidate's own words, behind the barrier
    stdout: str = ""
    stderr: str = ""
    per_iter: list[dict[str, Any]] = field(default_factory=list)  # with an inspection probe, the comparison of each iteration
    seconds: float = 0.0  # wall time inside the candidate
    peak_rss_mb: float = 0.0  # of the candidate's process group
    launches: int = 0  # kernel launches that were seen
    cost: Mapping[str, float | int] | None = None  # figures of the cost model or the profiler
    host_made: Mapping[str, str] = field(default_factory=dict)  # see `RunResult.host_made`
    unshown: tuple[str, ...] = ()  # what could not be shown of this run, each as a clause

    @property
    def log(self) -> str:
        """Everything that the candidate printed."""
        return "\n".join(part for part in (self.stdout, self.stderr) if part)


@dataclass
class ModeRecord:
    """One case in one mode: as many trials as were needed for a verdict."""

    mode: Mode
    trials: list[TrialVerdict] = field(default_factory=list)
    silent_runs: list[bool] = field(default_factory=list)
    """Whether the wrapper returned, of each run without kernels (`sabotage`)."""

    @property
    def status(self) -> Status:
        """The worst trial; a case that was judged in part only (some trials SKIPPED) is SKIPPED."""
        statuses = [trial.status for trial in self.trials]
        worst = Status.worst(statuses)
        return Status.SKIPPED if worst is Status.PASS and Status.SKIPPED in statuses else worst

    @property
    def deciding(self) -> TrialVerdict | None:
        """The trial that decided the status: the first that has it."""
        return next((trial for trial in self.trials if trial.status is self.status), None)

    @property
    def workspace_fault(self) -> bool:
        """Whether the case could not be judged for a reason that is not the candidate's."""
        trial = self.deciding
        return bool(trial and trial.reasons and trial.reasons[0] in WORKSPACE_FAULTS)


@dataclass
class Further:
    """The further calls of one case in one mode (`repeats`)."""

    calls: int = 0  # how many
    varied: list[str] = field(default_factory=list)  # names of the scalar inputs that were changed alone
    not_shown: list[str] = field(default_factory=list)  # what could not be tried, a sentence each
    planted: list[str] = field(default_factory=list)  # what was planted where the golden reads nothing


@dataclass
class CaseRecord:
    """One case of the suite in every mode that was asked for."""

    case: Mapping[str, Any]
    seeds: tuple[int, ...]
    modes: dict[Mode, ModeRecord]
    seconds: float = 0.0
    conditions: list[float] = field(default_factory=list)
    """How badly the golden's sums cancelled on the inputs of each trial; for cases of `cancellation_stress`."""
    variety: Variety = field(default_factory=Variety)
    """What the inputs of its seeds have in common."""
    left_draws: list[int] = field(default_factory=list)
    """Seeds in whose place another was drawn, since sums happened to cancel there (`redraw`)."""
    alike_draws: list[int] = field(default_factory=list)
    """Seeds in whose place another was drawn, since a small input was by chance that of the case's own seed (`redraw`)."""
    further: dict[Mode, Further] = field(default_factory=dict)
    """The further calls, for the case of its lane that they are made on."""

    @property
    def id(self) -> str:
        """The case's id."""
        return str(self.case["id"])

    @property
    def status(self) -> Status:
        """The worst mode; SKIPPED only when no mode judged the case."""
        return Status.worst([record.status for record in self.modes.values()])

    @property
    def lack_of_memory(self) -> Reason | None:
        """Why the simulator had too little memory for the case; None where that is not why it failed."""
        trial = self.modes[Mode.SIM].deciding if Mode.SIM in self.modes else None
        reason = trial.reasons[0] if trial and trial.reasons else None
        return reason if reason in (Reason.OUT_OF_MEMORY, Reason.NO_MEMORY_LEFT) else None

    @property
    def only_ended(self) -> list[TrialVerdict]:
        """The trials that decide against the candidate, where it gave no result in any; [] where one gave a wrong one."""
        bad = [cell for cell in self.modes.values() if cell.status in (Status.FAIL, Status.ERROR)]
        trials = [trial for cell in bad if (trial := cell.deciding) and trial.reasons]
        return trials if all(trial.reasons[0] in SEEN_BY_CALLER for trial in trials) else []
