"""What a search is asked for, and what it refuses before torch is imported and anything slow begins."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pypto_op.errors import ContractError, InfraError
from pypto_op.judge.cases.contract import Contract, load_contract
from pypto_op.modes import REGISTRY
from pypto_op.perf.admission import numeric_mode, whole_pass
from pypto_op.pool.pool import Pool
from pypto_op.tuning import ledger as ledgers
from pypto_op.vocabulary import Mode
from pypto_op.workspace import OpWorkspace, to_run

_TUNING_STAGE = 7


@dataclass(frozen=True)
class Request:
    """What a caller wants."""

    seconds: float  # of search and judging together (`Budget`)
    trials: int  # the most candidates
    target_us: float | None = None  # for the largest P0 shape; None: as fast as can be
    resume: bool = False  # go on with an earlier search of the same kernel
    mode: Mode | None = None  # where; None: the device where there is one, else the simulator
    jobs: int = 1  # candidates at once
    mutants: int = 8  # on how many planted faults the mutation score is compared
    seed: int = 11  # of the search
    write: bool = True  # put the best candidate in the kernel's place
    # where candidates are timed; None: on this machine. A cluster is for `sim` alone: two devices are two clocks.
    pool: Pool | None = None


@dataclass(frozen=True)
class Admitted:
    """An operator whose kernel may be tuned now."""

    ws: OpWorkspace  # the operator
    contract: Contract  # its documents
    mode: Mode  # where it is timed
    verdict: Mapping[str, Any]  # the sealed PASS for exactly the kernel's bytes
    begun: float  # when it was asked, on the monotonic clock


@contextmanager
def admitted(ws: OpWorkspace, request: Request) -> Iterator[Admitted]:
    """Say whether a kernel may be tuned, and keep other searches of it away meanwhile.

    Raises:
        ContractError: no PASS for exactly these bytes, no budget, nothing to resume, or another stage.
        InfraError: the mode is not available, the folder cannot be written, or another search of this operator is running.
    """
    begun = time.monotonic()
    need_budget(request.seconds, request.trials)
    if request.target_us is not None and not request.target_us > 0:
        raise ContractError(f"{request.target_us} us is no target", remedy="give --target-us a number above 0")
    mode = numeric_mode(request.mode)
    if request.pool is not None and request.pool.away and REGISTRY[mode].on_device:
        raise ContractError("a search on a device is timed by that device alone", remedy="use --pool local, or --mode sim")
    contract = load_contract(ws)
    verdict = whole_pass(ws, contract, mode)
    _require_stage(ws)
    room = ws.debug_dir / ledgers.ROOM
    if request.resume and not ledgers.any_in(room):
        raise ContractError("there is no earlier search of this kernel", file=ws.impl, remedy="leave --resume out")
    _require_writable(ws)
    room.mkdir(parents=True, exist_ok=True)
    with ledgers.alone(room):
        yield Admitted(ws, contract, mode, verdict, begun)


def need_budget(seconds: float, trials: int) -> None:
    """Raise ContractError for a search that could not find anything."""
    if not (seconds > 0 and trials > 0):
        raise ContractError("a search without time or trials finds nothing", remedy="give --budget and --trials more than 0")


def _require_writable(ws: OpWorkspace) -> None:
    """Refuse a folder that neither kernel nor report could be written to."""
    for folder in (ws.root, ws.eval_dir):
        if not os.access(folder, os.W_OK):
            raise InfraError("cannot be written, and the tuned kernel belongs there", file=folder, remedy="work on a copy")


def _require_stage(ws: OpWorkspace) -> None:
    """Refuse an operator whose state says that its kernel is not to be tuned now."""
    if not ws.state.is_file():
        return
    from pypto_op.state import store

    state = store.load(ws).state
    stage = _TUNING_STAGE if state is None else state["current_stage"]
    if stage != _TUNING_STAGE:
        raise ContractError(
            f"is in stage {stage}; a kernel is tuned in stage {_TUNING_STAGE}",
            file=ws.state,
            remedy=f"{to_run('state status --op-dir', ws.root)} to see what comes before it",
        )
