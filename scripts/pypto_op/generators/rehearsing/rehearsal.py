"""Tries cases on the golden before they go into a suite: a case on which the golden itself fails says nothing.

The golden and the inputs file run in the reference process, with limits. `trying` says what becomes of one case; what is left
out, and what is judged by what is natural, is told.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pypto_op.backends.base import Limits
from pypto_op.backends.reference import ReferenceSession
from pypto_op.documents.knobs import RANGE, SCALE
from pypto_op.documents.policy import Policy
from pypto_op.documents.suite import LEAST_PER_LEVEL
from pypto_op.errors import ContractError
from pypto_op.generators.cases.values import varied_floats
from pypto_op.generators.cases.whole_numbers import varied_integer
from pypto_op.generators.rehearsing import overflows, smallness
from pypto_op.generators.rehearsing.side_by_side import SideBySide
from pypto_op.generators.rehearsing.trying import Fit, Nothing, Others, rehearsed
from pypto_op.judge.cases.inputs import checks_precision
from pypto_op.judge.running.raises import faulty
from pypto_op.judge.stressing import KEY
from pypto_op.vocabulary import Level
from pypto_op.workspace import OpWorkspace

_SECONDS = 60.0
"""For one call of the golden on a machine with nothing else to do; a crowded one gets more (`_seconds`)."""
_MOST_CROWDED = 10.0
_VALUES = 2
"""Other values of a whole number that a suite has: a kernel can know one by heart."""
_MOST_SPARES = 12
"""Spare cases of one level that are tried."""
_MOST_TELLING = 24
"""Cases that are tried until one tells another value of a scalar from its default."""
Case = dict[str, Any]
Progress = Callable[[str, int, int], None]
"""Called with the case that begins, how many are done, and how many there are."""


@dataclass(frozen=True)
class Rehearsed:
    """What became of the cases.

    Attributes:
        cases: those that say something, some with another `draw_scale`.
        dropped: id -> why it was left out.
        natural: id -> how many times its tolerance honest rounding takes, where that is so much that the case got a policy.
        blind: id -> the faults that its tolerance takes for right, where the case got a policy for that.
    """

    cases: list[Case]
    dropped: dict[str, str]
    natural: dict[str, float] = field(default_factory=dict)
    blind: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def keep(self, fit: Fit) -> None:
        """Take a case over, with the reason for its policy."""
        self.cases.append(fit.case)
        if fit.blind:
            self.blind[fit.case["id"]] = fit.blind
        elif fit.natural is not None:
            self.natural[fit.case["id"]] = fit.natural


@dataclass(frozen=True)
class Offers:
    """Cases that may be tried beside those of a suite, and which of those stay.

    Attributes:
        instead: gives the cases that may stand in the place of one that says nothing; the first that says something does.
        spare: gives further cases of a level of which fewer say something than a suite needs.
        stays: whether a case with another value of a scalar stays however many there are, as one at an end of its range does.
        telling: gives the cases that may stand beside one that takes a float scalar's default for right; the first that
            tells it does.
        between: gives values of float scalars that a case has to tell from its own, as it does their defaults.
        beyond: gives the cases of a dtype that may be kept where none shows a number between that float16 does not hold.
        small: gives cases in which all tensors are small; the first that says something is kept.
    """

    instead: Callable[[Case], Iterable[Case]] = lambda _: ()
    spare: Callable[[Level], Iterable[Case]] = lambda _: ()
    stays: Callable[[Case, str], bool] = lambda case, name: False
    telling: Callable[[Case], Iterable[Case]] = lambda _: ()
    between: Callable[[Case], Mapping[str, float]] = lambda _: {}
    beyond: Callable[[str], Iterable[Case]] = lambda _: ()
    small: Callable[[], Iterable[Case]] = lambda: ()


def rehearse(
    ws: OpWorkspace,
    cases: Sequence[Case],
    policy: Policy,
    progress: Progress | None = None,
    scalars: Mapping[str, Any] | None = None,
    offers: Offers | None = None,
) -> Rehearsed:
    """Run the golden on every case.

    Args:
        ws: the operator.
        cases: of its suite.
        policy: the operator's tolerance.
        progress: called before each case.
        scalars: defaults; of the cases with another whole number, the first `_VALUES` that change the golden's answer are kept.
        offers: what may be tried beside; None: nothing.

    Raises:
        ContractError: `eval/test_inputs.py` or the golden does not work at all: no case is left.
        InfraError: the reference process cannot run on this machine.
    """
    done, offers, defaults = Rehearsed([], {}), offers or Offers(), scalars or {}
    with SideBySide(ws, policy, Limits(case_seconds=_seconds()), len(cases)) as side, ExitStack() as stack:
        stack.callback(side.keep)  # also where somebody stops it: the next run need not measure that again
        # What another case may make superfluous waits for that one.
        names = [varied_integer(case, defaults) for case in cases]
        usual = [_others(case, defaults, offers.between(case)) for case in cases]
        begun = _begun(side, [(case, own) for case, name, own in zip(cases, names, usual, strict=True) if not name])
        for number, (case, varied) in enumerate(zip(cases, names, strict=True)):
            if progress is not None:
                progress(case["id"], number, len(cases))
            others = sum(varied_integer(other, defaults) == varied for other in done.cases) if varied else 0
            if others >= _VALUES and not offers.stays(case, varied):
                continue
            told = side.do(partial(rehearsed, case=case, varied=varied)) if varied else begun[case["id"]].result()
            kept = _fitting(side, done, case, told, varied, offers)
            if kept is not None and kept.hides:
                _tell(side, done, case, offers.telling(case), usual[number])
        for case in _spares(done.cases, offers.spare):
            fit = _unless_known(side.do(partial(rehearsed, case=case)), done.cases)
            if isinstance(fit, Fit):
                done.keep(fit)
        _overflow(side, done, offers.beyond)
        _small(side, done, offers.small())
    if not done.cases:
        name, why = next(iter(done.dropped.items()))
        raise ContractError(f"no case works; {name}: {why}", file=ws.golden, remedy="mend the golden or the inputs")
    return done


def _fitting(side: SideBySide, done: Rehearsed, case: Case, told: Fit | Nothing, varied: str, offers: Offers) -> Fit | None:
    """Keep a case that says something, or the first in its place that does; return what was kept."""
    fit = _unless_known(told, done.cases)
    if isinstance(fit, str):
        done.dropped[case["id"]] = fit
        others = (side.do(partial(rehearsed, case=other, varied=varied)) for other in offers.instead(case))
        tries = (_unless_known(other, done.cases) for other in others)
        fit = next((other for other in tries if isinstance(other, Fit)), None)
    if fit is not None:
        done.keep(fit)
    return fit


def _others(case: Case, defaults: Mapping[str, Any], between: Mapping[str, float]) -> Others:
    """Return what a case has to tell its float scalars from: their defaults first, then what lies between."""
    usual = varied_floats(case, defaults)
    return {name: (default, *([between[name]] if name in between else [])) for name, default in usual.items()}


def _begun(side: SideBySide, cases: Sequence[tuple[Case, Others]]) -> dict[str, Future[Fit | Nothing]]:
    """Begin to try every case, longest first: a search that begins last leaves one reference at work and the others idle.

    Each case comes with what it has to tell its float scalars from.
    """
    ordered = sorted(cases, key=lambda one: KEY not in one[0])
    return {case["id"]: side.begin(partial(rehearsed, case=case, usual=usual)) for case, usual in ordered}


def _tell(side: SideBySide, done: Rehearsed, case: Case, others: Iterable[Case], usual: Others) -> None:
    """Keep the first of some cases that tells the scalars of `case` from their defaults; say so where none does."""
    tried = list(itertools.islice(others, _MOST_TELLING))
    for other in tried:
        fit = side.do(partial(rehearsed, case=other, usual=usual, must_tell=True))
        if isinstance(fit, Fit) and not fit.hides:
            done.keep(fit)
            return
    if tried:
        told = "the default" if all(len(values) == 1 for values in usual.values()) else "what lies between it and the default"
        done.dropped[f"{case['id']}_beside"] = f"no case was found that tells another {' or '.join(usual)} from {told}"


def _overflow(side: SideBySide, done: Rehearsed, beyond: Callable[[str], Iterable[Case]]) -> None:
    """Keep, in each dtype, a case that refuses a kernel whose numbers between are float16; say so where right ones fail on it."""
    for dtype in dict.fromkeys(case["dtype"]["default"] for case in done.cases):
        own = [case for case in done.cases if case["dtype"]["default"] == dtype and checks_precision(case)]
        if any(side.do(partial(overflows.shows, case=case)) for case in own if SCALE in case or RANGE in case):
            continue
        missed = _first_fit(side, done, overflows.overflowing, beyond(dtype))
        why = next((one.why for one in missed if one.case is not None and one.why), "")
        done.dropped.update({f"L5_overflow_{dtype}": why} if why else {})


def _small(side: SideBySide, done: Rehearsed, cases: Iterable[Case]) -> None:
    """Keep the first of some cases of small tensors that says something; say so where right kernels fail on each."""
    missed = _first_fit(side, done, smallness.told, cases)
    done.dropped.update({"L5_all_small": missed[-1].why} if missed and missed[-1].why else {})


def _first_fit(side: SideBySide, done: Rehearsed, told: Callable[..., Fit | Nothing], cases: Iterable[Case]) -> Sequence[Nothing]:
    """Keep the first of some cases that says something, and return nothing; where none does, return what became of each."""
    missed = []
    for case in cases:
        fit = side.do(partial(told, case=case))
        if isinstance(fit, Fit):
            done.keep(fit)
            return ()
        missed.append(fit)
    return missed


def _spares(kept: Sequence[Case], spare: Callable[[Level], Iterable[Case]]) -> Iterator[Case]:
    """Yield spare cases of each level that is short, as long as it is; `kept` grows meanwhile. L1 compares no numbers."""
    for level in Level if kept else ():
        for case in itertools.islice(spare(level), _MOST_SPARES):
            if sum(checks_precision(other) or level is Level.L1 for other in kept if other["level"] == level) >= LEAST_PER_LEVEL:
                break
            yield case


def drawable(ws: OpWorkspace, refused: Sequence[Case]) -> tuple[list[Case], dict[str, str]]:
    """Return the refusals of a suite (`judge.running.raises`) whose inputs can be made, and of the others why not.

    Args:
        ws: the operator; its inputs file must be there.
        refused: as the suite has them.
    """
    kept: list[Case] = []
    dropped: dict[str, str] = {}
    with ReferenceSession(ws, limits=Limits(case_seconds=_seconds())) as session:
        for told in refused:
            try:
                faulty(session.make_inputs({**told, "level": "L3"}), told)
            except ContractError as error:
                dropped[told["id"]] = f"the inputs of such a call cannot be made: {error.problem}"
            else:
                kept.append(told)
    return kept, dropped


def _unless_known(found: Fit | Nothing, kept: Sequence[Case]) -> Fit | str | None:
    """Return what a case becomes, why it says nothing, or None where another says the same."""
    if found.case is not None and _same_stress(found.case, kept):
        return None
    return found.why if isinstance(found, Nothing) else found


def _same_stress(case: Case, others: Sequence[Case]) -> bool:
    """Whether another case is about the same expression by the same recipe: the worst sum is often one that has its own."""
    same_keys = ("recipe", "expression")
    return KEY in case and any(all(case[KEY][k] == other[KEY][k] for k in same_keys) for other in others if KEY in other)


def _seconds() -> float:
    """Return the wall time of one call: where more processes want a core than there are, each gets its share of one only."""
    crowd = os.getloadavg()[0] / (os.cpu_count() or 1)  # both of the whole machine
    return _SECONDS * min(max(crowd, 1.0), _MOST_CROWDED)
