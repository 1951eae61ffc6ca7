"""What a place that runs kernels must offer: the one interface behind which `sim` and `npu` lie.

A backend opens a *session* on one implementation file. A session owns one process at a time, hands it copies
of the inputs of a case, and answers with a `RunResult`. It never raises for what the candidate does: a crash,
an endless loop or a forged answer is an `Outcome`, not an exception.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypedDict, runtime_checkable

from pypto_op.vocabulary import Mode, Outcome
from pypto_op.workspace import OpWorkspace

if TYPE_CHECKING:
    import torch
    from typing_extensions import Unpack

    Value: TypeAlias = torch.Tensor | int | float | bool | None | list["Value"] | tuple["Value", ...]


@dataclass(frozen=True)
class Limits:
    """What a candidate may use before it is stopped."""

    memory_mb: int = 8192  # resident memory of the candidate's whole process group, in MiB
    case_seconds: float = 120.0  # wall time of one case
    startup_seconds: float = 120.0  # wall time of process start, import of torch and pypto, and import of the candidate
    output_bytes: int = 64 * 1024  # how much of the candidate's stdout, and of its stderr, is kept for a case


COMPILED_DIR = "cc"
"""Folder in a session's scratch folder with what its compiler remembers (native/compiler_memo.cpp)."""

DEFAULT_LIMITS = Limits()
"""Limits of a session that is opened without any."""


@dataclass(frozen=True)
class Availability:
    """What a backend can do on this machine."""

    ok: bool  # kernels can be run at all
    numeric: bool  # outputs carry numbers; False means structure only (compile, shapes and dtypes)
    reason: str  # one line that says why not, empty when everything is there
    versions: dict[str, str]  # name to version of what produced a result (python, torch, pypto, compiler, ...)
    caveats: tuple[str, ...]  # what a verdict of this backend cannot see; printed beside every verdict


@dataclass
class RunResult:
    """One case, as the judge may know it."""

    outcome: Outcome  # how the run ended; every other field is meaningful only for OK, unless said otherwise
    detail: str = ""  # one line for a person, never a tensor's values
    # the returned tensors, flattened left to right, on the CPU and contiguous; [] unless OK
    outputs: list[torch.Tensor] = field(default_factory=list)
    structure: str = ""  # what the wrapper really returned ("tensor", "tuple(2)", ...); filled for BAD_OUTPUT too
    # how many times a pypto jit entry ran to its end inside the wrapper; where the wrapper raised, how many times one was begun
    launches: int = 0
    # every output leaf's storage was an argument of one of those launches, and the host did not change its bytes after the last
    # of them
    outputs_from_kernel: bool = False
    mutated_inputs: tuple[int, ...] = ()  # positions of the inputs whose bytes changed
    aliased_inputs: tuple[int, ...] = ()  # positions of the inputs whose storage an output shares
    sentinel_left: tuple[int, ...] = ()  # per output leaf, how many elements still hold what `torch.empty` was filled with
    stdout: str = ""  # what the candidate printed during this case, capped; kept for every outcome
    stderr: str = ""  # likewise
    seconds: float = 0.0  # wall time inside the candidate's process for this case (inputs and outputs not counted)
    peak_rss_mb: float = 0.0  # highest resident memory of the process group seen so far, in MiB
    # figures of the cost model (sim) or the device profile (npu); None when not asked for
    cost: dict[str, float | int] | None = None
    numeric: bool = True  # the outputs carry numbers; False in structure-only mode, where only shape and dtype count
    # positions of the output leaves whose buffer already held varied data (neither what `torch.empty` was filled with nor one
    # repeated value) when the first kernel got it
    prefilled_outputs: tuple[int, ...] = ()
    # only with `unshown`: "launch.argument" -> hash, for each float argument of a launch that holds values of no input; and
    # numbers, in words (`Call.made`). The same on other floats: a table, a constant. Another one: torch computed it from the
    # inputs.
    host_made: dict[str, str] = field(default_factory=dict)
    # "launch.argument" of each argument of a launch that the host computed from the inputs' values, and "launch.kernel" and the
    # like for numbers that it computed, as a run on other values showed
    host_computed: tuple[str, ...] = ()
    # of a golden in float64, its outputs where values near a tie fall on another side of it
    others: list[list[torch.Tensor]] = field(default_factory=list)
    call: int = 0  # which call of its process this was, counted from 1; calls with consecutive numbers shared one
    # positions of the output leaves that lie in the memory of an earlier call's result or input
    shared_outputs: tuple[int, ...] = ()
    # positions of the output leaves of this or an earlier call that changed after it had returned
    changed_results: tuple[int, ...] = ()
    results_kept: bool = False  # somebody still holds the memory of an earlier call's result
    launched: int = 0  # kernel launches in its process so far
    # positions of the output leaves that the host changed after the last launch that got them
    changed_outputs: tuple[int, ...] = ()
    kept_outputs: tuple[int, ...] = ()  # like `prefilled_outputs`, where the buffer was a kernel's in an earlier call
    kept_arguments: tuple[str, ...] = ()  # like `host_computed`, where the argument was a kernel's in an earlier call
    unshown: bool = False  # the wrapper raises on other values, so what the host computed from them was not shown
    # the host handed something over, and the runs on other values came after the call, which a wrapper may remember
    late: bool = False


@dataclass(frozen=True)
class Buffer:
    """A tensor that a run allocates for the wrapper, hands over as a keyword, and returns in the outputs' place."""

    name: str  # the keyword
    shape: tuple[int, ...]  # its sizes
    dtype: str  # a word such as "float32"


FILLINGS = ("pattern", "plausible")
"""What fresh memory holds: a pattern that no arithmetic yields, or finite numbers."""


class Wanted(TypedDict, total=False):
    """What a call may be besides plain (`Session.run`)."""

    buffer: Buffer | None
    again: bool
    guess: bool
    filling: str | None
    followed: bool
    inside: bool
    rehearsed: bool
    trial: bool


class Session(Protocol):
    """A warm process for one implementation file; a context manager that leaves nothing running."""

    def run(self, case_id: str, inputs: Sequence[Value], **wanted: Unpack[Wanted]) -> RunResult:
        """Call the wrapper with copies of `inputs`; after a crash or a time-out a new process serves on.

        With `buffer` the wrapper gets one more argument, and what it wrote there is the only output. With `again` the call
        is made in the process of the call before, where that is alive, and on its very tensors, overwritten with `inputs`.
        With `guess` the inputs may be none that the wrapper takes, so nothing is kept for a debugger when it fails. With
        `filling` (of `FILLINGS`) fresh memory holds that, and the wrapper is called as often as the outputs need, no more.
        After a call that is `followed`, the next one is made in the same process, however much that one has gathered.
        With `inside` each tensor is a contiguous part of a larger one, as a slice along the first axis is. With `rehearsed`
        the wrapper is called once before, and no kernel is built whose program a device would have. The caller of a `trial`
        heeds `RunResult.late`, so a call need not be proven that hands over what a proven one did (`worker.shown`).
        """

    others_first: bool
    """The wrapper is called on other values before a call, not behind it, to see what the host computes from them."""

    others_always: bool
    """With `others_first`: so it is before each call; otherwise a call that hands over what a proven one did goes without."""

    loaded: dict[str, dict[str, str]]
    """What the candidate loaded beside its own file, by role: absolute path -> sha256, or `absent`."""

    def close(self) -> None:
        """End the process and remove its scratch files; harmless when called twice."""

    def __enter__(self) -> Session: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None: ...


class Backend(Protocol):
    """A place that runs kernels."""

    mode: Mode

    def availability(self) -> Availability:
        """Say what this machine can do; never raises, cheap when called again."""

    def open(
        self, impl: Path, wrapper: str, workspace: OpWorkspace, *, limits: Limits = DEFAULT_LIMITS, cost_model: bool = False
    ) -> Session:
        """Open a session on `wrapper` of the file `impl`.

        A missing file, a syntax error or a missing wrapper is the outcome of `run`, not an exception.

        Raises:
            InfraError: this backend is not available here (see `availability`).
        """


@runtime_checkable
class TellsState(Protocol):
    """A back end whose hardware says of itself at what clock and temperature it runs."""

    def state(self) -> dict[str, str]:
        """Return name to value, as the hardware's own tool says them; {} where it says nothing."""


@runtime_checkable
class HasDevices(Protocol):
    """A back end that runs on devices of this machine, one session at a time on each."""

    def devices(self) -> tuple[int, ...]:
        """Return those that sessions may use, as `TILE_FWK_DEVICE_ID` names them; () where there is none."""
