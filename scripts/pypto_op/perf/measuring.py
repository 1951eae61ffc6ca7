"""Times a kernel, and notes the hardware and the load of the machine that did."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pypto_op.backends.base import Availability, Backend, Limits, TellsState
from pypto_op.backends.registry import get_backend
from pypto_op.errors import ContractError
from pypto_op.judge.answers.plan import Plan
from pypto_op.judge.cases.contract import Contract
from pypto_op.judge.cases.inputs import checks_precision, fresh_seed
from pypto_op.judge.cases.subject import Subject, resolve
from pypto_op.judge.findings.records import CaseRecord
from pypto_op.judge.running.runner import run_cases
from pypto_op.perf.samples import Against, Samples
from pypto_op.proof.closure import Loaded
from pypto_op.vocabulary import Mode

Hear = Callable[[CaseRecord], None]


@dataclass(frozen=True)
class Request:
    """What is to be timed."""

    modes: Sequence[Mode] = tuple(Mode)  # where
    # levels of the suite whose shapes are taken; default: L2 and L4, the ordinary and the long ones
    levels: Sequence[str] = ("L2", "L4")
    # how often each input is run, each time in a process of its own; one of a shape's two inputs has values that nobody has seen,
    # and every run is checked against the golden
    repeats: int = 1
    base: Path | None = None  # a kernel to compare with, which has a PASS too; None: nothing is compared
    limits: Limits = field(default_factory=Limits)  # what the candidate may use


@dataclass(frozen=True)
class Measured:
    """What a machine says of a kernel's speed."""

    samples: Samples  # of the kernel
    base: Samples | None  # of the kernel that it is compared with; None: there is none
    # before and after: what each mode's hardware said of itself
    states: tuple[Mapping[Mode, dict[str, str]], Mapping[Mode, dict[str, str]]]
    loads: tuple[float | None, float | None]  # before and after: the machine's load
    cores: int  # how many it has
    loaded: Mapping[str, Mapping[str, str]]  # see `Loaded.files`


def measure(contract: Contract, request: Request, available: Mapping[Mode, Availability], hear: Hear | None) -> Measured:
    """Time the kernel that lies in the contract's workspace, and the one that it is compared with, in turns.

    Args:
        hear: called with each case's record as it is ready.

    Raises:
        ContractError: no case of these levels compares numbers.
    """
    subject = resolve(contract.workspace, contract.total_modules)
    usable = {mode: get_backend(mode) for mode, told in available.items() if told.ok}
    load, state, loaded = _load(), _states(usable), Loaded()
    cases, seed, samples = timed_cases(contract, request), fresh_seed(), Samples()
    against = Against.of(subject, request.base) if request.base is not None else None
    for turn in range(request.repeats):
        order = [(subject, samples)] if against is None else against.order(subject, samples, turn)
        for one, into in order:
            _time(one, contract, cases, usable, available, request, seed, into, hear, loaded)
    base = None if against is None else against.samples
    return Measured(samples, base, (state, _states(usable)), (load, _load()), os.cpu_count() or 1, loaded.files())


def timed_cases(contract: Contract, request: Request) -> list[Mapping[str, Any]]:
    """Return the first case of each shape and dtype whose numbers are compared, small shapes first.

    Raises:
        ContractError: no case of these levels compares numbers.
    """
    chosen: dict[str, Mapping[str, Any]] = {}
    for case in contract.select(request.levels, None):
        if checks_precision(case):
            chosen.setdefault(label_of(case), case)
    if not chosen:
        raise ContractError("no case of these levels compares numbers", remedy="name other --levels")
    return sorted(chosen.values(), key=_size)


def _size(case: Mapping[str, Any]) -> int:
    product = 1
    for value in (case.get("shape") or {}).values():
        product *= value if isinstance(value, int) else 1
    return product


def label_of(case: Mapping[str, Any]) -> str:
    """Return shape and dtype of a case in words."""
    dtype = case.get("dtype", "")
    word = dtype.get("default", "") if isinstance(dtype, Mapping) else dtype
    shape = ", ".join(f"{name}={value}" for name, value in (case.get("shape") or {}).items())
    return f"{shape} {word}".strip()


def _time(
    subject: Subject,
    contract: Contract,
    cases: Sequence[Mapping[str, Any]],
    backends: Mapping[Mode, Backend],
    available: Mapping[Mode, Availability],
    request: Request,
    seed: int,
    into: Samples,
    hear: Hear | None,
    loaded: Loaded,
) -> None:
    """Run every case once on each of its inputs, in fresh processes, and note what each run took."""
    plan = Plan(
        subject=subject,
        cases=cases,
        backends=backends,
        available=available,
        policy_for=contract.policy_for,
        leaf_names=contract.leaf_names(subject.phase),
        input_names=contract.input_names,
        extra_seed=seed,
        limits=request.limits,
        cost_model=True,
        further=False,
        loaded=loaded,
    )
    for record in run_cases(plan, hear):
        into.note(record)


def _states(backends: Mapping[Mode, Backend]) -> dict[Mode, dict[str, str]]:
    """Return what hardware says of its clock, temperature and power: a ratio of two clocks is no gain."""
    return {mode: backend.state() for mode, backend in backends.items() if isinstance(backend, TellsState)}


def _load() -> float | None:
    try:
        return round(os.getloadavg()[0], 2)
    except OSError:
        return None
