"""Tries cases on the golden before they go into a suite: a case on which the golden itself fails says nothing.

The golden and the inputs file run in the reference process, with limits. A case whose golden overflows gets smaller
inputs, as long as that helps; one on which it raises, overflows for good or is constant is left out, and is told. A case
whose tolerance is too tight for honest rounding (`judge.natural`) is judged by what is natural instead, and is told too.
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from pypto_op.backends.base import Limits
from pypto_op.backends.reference import ReferenceSession
from pypto_op.documents.knobs import SCALE, ZONE
from pypto_op.documents.policy import Policy
from pypto_op.documents.suite import LEAST_PER_LEVEL
from pypto_op.errors import ContractError
from pypto_op.generators.first_candidate import Draw, FirstCandidate
from pypto_op.generators.indices import same
from pypto_op.generators.side_by_side import SideBySide
from pypto_op.generators.values import SEARCHED, WORST_SUM, varied_floats, varied_integer
from pypto_op.judge.inputs import DEFAULT_SEED, checks_precision, tensors_in, with_seed
from pypto_op.judge.natural import FURTHER_SEEDS, MOST, NATURAL, further_seeds
from pypto_op.judge.raises import faulty
from pypto_op.judge.stressing import KEY, stress_case
from pypto_op.vocabulary import Level, Outcome
from pypto_op.workspace import OpWorkspace

if TYPE_CHECKING:
    import torch

    from pypto_op.backends.base import RunResult, Value

_SECONDS = 60.0
"""For one call of the golden on a machine with nothing else to do; a crowded one gets more (`_seconds`)."""
_MOST_CROWDED = 10.0
_SCALES = (1.0, 1e-1, 1e-2, 3e-3)
"""What the `draw_scale` of a case is multiplied with until the golden stays finite."""
_VALUES = 2
"""Other values of a whole number that a suite has: a kernel can know one by heart."""
_MOST_SPARES = 12
"""Spare cases of one level that are tried."""
_MOST_TELLING = 24
"""Cases that are tried until one tells another value of a scalar from its default."""
_LOST = (Outcome.TIMED_OUT, Outcome.CRASHED, Outcome.OUT_OF_MEMORY)

POWER = "power"
"""Key of a case: by how many times what is allowed the least of the planted faults is refused (`harness.power`)."""

_NONE: Mapping[str, float] = {}
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

    def keep(self, fit: _Fit) -> None:
        """Take a case over, with the reason for its policy."""
        self.cases.append(fit.case)
        if fit.blind:
            self.blind[fit.case["id"]] = fit.blind
        elif fit.natural is not None:
            self.natural[fit.case["id"]] = fit.natural


def rehearse(
    ws: OpWorkspace,
    cases: Sequence[Case],
    policy: Policy,
    progress: Progress | None = None,
    scalars: Mapping[str, Any] | None = None,
    instead: Callable[[Case], Iterable[Case]] = lambda _: (),
    spare: Callable[[Level], Iterable[Case]] = lambda _: (),
    is_end: Callable[[Case, str], bool] = lambda case, name: False,
    telling: Callable[[Case], Iterable[Case]] = lambda _: (),
) -> Rehearsed:
    """Run the golden on every case.

    Args:
        ws: the operator.
        cases: of its suite.
        policy: the operator's tolerance.
        progress: called before each case.
        scalars: defaults; of the cases with another whole number, the first `_VALUES` that change the golden's answer are kept.
        instead: gives the cases that may stand in the place of one that says nothing; the first that says something does.
        spare: gives further cases of a level of which fewer say something than a suite needs.
        is_end: whether a case has a scalar at an end of its range; such a one is kept however many there are.
        telling: gives the cases that may stand beside one that takes a float scalar's default for right; the first that
            tells it does.

    Raises:
        ContractError: `eval/test_inputs.py` or the golden does not work at all: no case is left.
        InfraError: the reference process cannot run on this machine.
    """
    done = Rehearsed([], {})
    kept, dropped = done.cases, done.dropped
    with SideBySide(ws, policy, Limits(case_seconds=_seconds()), len(cases)) as side, ExitStack() as stack:
        stack.callback(side.keep)  # also where somebody stops it: the next run need not measure that again
        # What another case may make superfluous waits for that one.
        names = [varied_integer(case, scalars or {}) for case in cases]
        usual = [varied_floats(case, scalars or {}) for case in cases]
        plain = [(case, own) for case, name, own in zip(cases, names, usual, strict=True) if not name]
        begun = _begun(side, plain)
        for number, (case, varied) in enumerate(zip(cases, names, strict=True)):
            if progress is not None:
                progress(case["id"], number, len(cases))
            others = sum(varied_integer(other, scalars or {}) == varied for other in kept) if varied else 0
            if others >= _VALUES and not is_end(case, varied):
                continue
            told = side.do(partial(_rehearsed, case=case, varied=varied)) if varied else begun[case["id"]].result()
            fit = _unless_known(told, kept)
            if isinstance(fit, str):
                dropped[case["id"]] = fit
                tries = (_unless_known(side.do(partial(_rehearsed, case=other, varied=varied)), kept) for other in instead(case))
                fit = next((other for other in tries if isinstance(other, _Fit)), None)
            if isinstance(fit, _Fit):
                done.keep(fit)
                if fit.hides:
                    _tell(side, done, case, telling(case), usual[number])
        for case in _spares(kept, spare):
            fit = _unless_known(side.do(partial(_rehearsed, case=case)), kept)
            if isinstance(fit, _Fit):
                done.keep(fit)
    if not kept:
        name, why = next(iter(dropped.items()))
        raise ContractError(f"no case works; {name}: {why}", file=ws.golden, remedy="mend the golden or the inputs")
    return done


def _begun(side: SideBySide, cases: Sequence[tuple[Case, Mapping[str, float]]]) -> dict[str, Future[_Fit | _Nothing]]:
    """Begin to try every case, longest first: a search that begins last leaves one reference at work and the others idle.

    Each case comes with the defaults of the float scalars of which it has other values.
    """
    ordered = sorted(cases, key=lambda one: KEY not in one[0])
    return {case["id"]: side.begin(partial(_rehearsed, case=case, usual=usual)) for case, usual in ordered}


def _tell(side: SideBySide, done: Rehearsed, case: Case, others: Iterable[Case], usual: Mapping[str, float]) -> None:
    """Keep the first of some cases that tells the scalars of `case` from their defaults; say so where none does."""
    tried = list(itertools.islice(others, _MOST_TELLING))
    for other in tried:
        fit = side.do(partial(_rehearsed, case=other, usual=usual, must_tell=True))
        if isinstance(fit, _Fit) and not fit.hides:
            done.keep(fit)
            return
    if tried:
        done.dropped[f"{case['id']}_beside"] = f"no case was found that tells another {' or '.join(usual)} from the default"


def _spares(kept: Sequence[Case], spare: Callable[[Level], Iterable[Case]]) -> Iterator[Case]:
    """Yield spare cases of each level that is short, as long as it is; `kept` grows meanwhile. L1 compares no numbers."""
    for level in Level if kept else ():
        for case in itertools.islice(spare(level), _MOST_SPARES):
            if sum(checks_precision(other) or level is Level.L1 for other in kept if other["level"] == level) >= LEAST_PER_LEVEL:
                break
            yield case


def drawable(ws: OpWorkspace, refused: Sequence[Case]) -> tuple[list[Case], dict[str, str]]:
    """Return the refusals of a suite (`judge.raises`) whose inputs can be made, and of the others why not.

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
                dropped[told["id"]] = error.problem
            else:
                kept.append(told)
    return kept, dropped


@dataclass(frozen=True)
class _Tried:
    """A case that says something, its inputs, and what the golden answered."""

    case: Case
    inputs: dict[str, Value]
    native: RunResult


def _is_idle(first: FirstCandidate, tried: _Tried, scalar: str) -> bool:
    """Whether the golden answers the same with the scalar's default."""
    usual = _answered(first, {key: value for key, value in tried.case.items() if key != scalar})
    return isinstance(usual, _Tried) and same(usual.native.outputs, tried.native.outputs)


@dataclass(frozen=True)
class _Fit:
    """A case that takes right kernels and tells wrong ones; `natural`, `blind`: see `Rehearsed`, None and () where its tolerance
    stays. `hides`: whether it takes a scalar's default for right."""

    case: Case
    natural: float | None = None
    blind: tuple[str, ...] = ()
    hides: bool = False


@dataclass(frozen=True)
class _Nothing:
    """Why a case says nothing; `case`: as it was tried, None where it was not."""

    why: str
    case: Case | None = None


def _rehearsed(
    first: FirstCandidate, case: Case, varied: str = "", usual: Mapping[str, float] = _NONE, must_tell: bool = False
) -> _Fit | _Nothing:
    """Return what a case becomes, or why it says nothing, as `must_tell` does where it takes a default in `usual` for right."""
    tried = _stressed(first, case) if KEY in case else _tried(first, case)
    if isinstance(tried, str):
        return _Nothing(tried)
    if varied and _is_idle(first, tried, varied):
        return _Nothing(f"the golden does not mind another {varied}")
    if must_tell and _hides(first, tried, usual):
        return _Nothing("it takes the default for right")
    fit = _fitted(first, tried)
    if isinstance(fit, str):
        return _Nothing(fit, tried.case)
    return replace(fit, hides=_hides(first, replace(tried, case=fit.case), usual))


def _hides(first: FirstCandidate, tried: _Tried, usual: Mapping[str, float]) -> bool:
    """Whether a case takes what the golden answers with the default of a scalar for right."""
    draw = Draw(first, tried.case, tried.inputs, tried.native)
    for name in usual if checks_precision(tried.case) else ():
        plain = _answered(first, {key: value for key, value in tried.case.items() if key != name})
        if isinstance(plain, _Tried) and draw.takes(plain.native.outputs):
            return True
    return False


def _unless_known(found: _Fit | _Nothing, kept: Sequence[Case]) -> _Fit | str | None:
    """Return what a case becomes, why it says nothing, or None where another says the same."""
    if found.case is not None and _same_stress(found.case, kept):
        return None
    return found.why if isinstance(found, _Nothing) else found


def _fitted(first: FirstCandidate, tried: _Tried) -> _Fit | str:
    """Return the case under the policy that fits it, or why there is none."""
    if not checks_precision(tried.case):
        return _Fit(tried.case)
    draw = Draw(first, tried.case, tried.inputs, tried.native)
    share, near = draw.share(), draw.near()
    judged = [draw]
    # Where honest rounding takes next to nothing of the tolerance, a second further seed has nothing more to say.
    seeds = FURTHER_SEEDS if near or share > MOST / 8 else 1
    for further in itertools.islice(_further(first, tried.case), seeds):
        if isinstance(further, str):
            return further
        judged.append(Draw(first, further.case, further.inputs, further.native, near))
        share = max(share, judged[-1].share())
    if math.isinf(share):
        return "other orders of summation are not finite at the same places"
    refusal = next((found for draw in judged if (found := draw.refusal()) is not None), None)
    if refusal is not None and refusal.of_whole_numbers:
        return refusal.sentence
    blind: tuple[str, ...] = ()
    if refusal is None and share <= MOST:
        power = draw.power()
        if not power.blind:
            return _Fit(_powered(tried.case, power.margin))
        blind = power.blind
    natural = _by_nature(tried.case)
    power = Draw(first, natural, tried.inputs, tried.native).power()
    if power.blind:
        return f"it cannot tell {', '.join(power.blind[:3])}"
    return _Fit(_powered(natural, power.margin), share if refusal is None else max(share, 1.0), blind)


def _further(first: FirstCandidate, case: Case) -> Iterator[_Tried | str]:
    """Yield the case on other seeds, or why it says nothing there: the judge draws a seed that nobody has tried."""
    for seed in further_seeds(int(case.get("seed", DEFAULT_SEED))):
        found = _answered(first, with_seed(case, seed))
        yield f"with another seed, {found}" if isinstance(found, str) else found


def _powered(case: Case, margin: float) -> Case:
    """Return the case with what it can tell apart; without, where every planted fault leaves its outputs as they are."""
    return {**case, POWER: _short(margin)} if margin > 0.0 else case


def _short(number: float) -> float:
    return float(f"{min(number, 1e6):.3g}")


def _by_nature(case: Case) -> Case:
    """Return a case that is judged by what error is natural, in the place of its tolerance.

    Smaller inputs would leave room for honest rounding too, but sink the outputs towards `atol`, where zeros pass.
    """
    return {**{key: value for key, value in case.items() if key not in ("atol", "rtol")}, "policy": NATURAL.id}


def _stressed(first: FirstCandidate, case: Case) -> _Tried | str:
    """Search for inputs on which the case's expression cancels; without such the case would be an ordinary one."""
    case, shape = {key: value for key, value in case.items() if key != SEARCHED}, case.get(SEARCHED)
    stress = case[KEY]
    expression = None if stress["expression"] == WORST_SUM else stress["expression"]
    try:
        wanted = {"expression": expression, "target": stress["target"], "searched_shape": shape}
        found = stress_case(first.ws, first.session, case, **wanted)
    except ContractError as error:
        return error.problem
    if found is None:
        return f"no inputs were found on which {expression or 'any sum'} cancels"
    return _tried(first, found.case)


def _same_stress(case: Case, others: Sequence[Case]) -> bool:
    """Whether another case is about the same expression by the same recipe: the worst sum is often one that has its own."""
    same_keys = ("recipe", "expression")
    return KEY in case and any(all(case[KEY][k] == other[KEY][k] for k in same_keys) for other in others if KEY in other)


def _tried(first: FirstCandidate, case: Case) -> _Tried | str:
    """Return the case with the golden's answer, or why it says nothing."""
    found: _Tried | str = ""
    for factor in _SCALES if SCALE in case else (1.0,):
        attempt = {**case, SCALE: _times(case[SCALE], factor)} if SCALE in case else case
        found = _answered(first, attempt)
        if isinstance(found, _Tried) or found.startswith(_HOPELESS):
            break
    return found


def _times(scale: Any, factor: float) -> Any:
    return {name: one * factor for name, one in scale.items()} if isinstance(scale, Mapping) else scale * factor


_HOPELESS = tuple(f"the golden ended with: {outcome}" for outcome in _LOST)


def _seconds() -> float:
    """Return the wall time of one call: where more processes want a core than there are, each gets its share of one only."""
    crowd = os.getloadavg()[0] / (os.cpu_count() or 1)
    return _SECONDS * min(max(crowd, 1.0), _MOST_CROWDED)


def _answered(first: FirstCandidate, case: Case) -> _Tried | str:
    """Return what the golden answers, or why the case says nothing."""
    try:
        inputs = dict(first.session.make_inputs(case))
    except ContractError as error:
        return f"make_inputs: {error.problem}"
    native = first.golden(list(inputs.values()))
    if native.outcome is not Outcome.OK:
        # Its own words help who has to mend it; what they show of tensors goes, since cases are told to everybody.
        words = first.redactor.clean(native.detail, tensors_in(list(inputs.values())))
        return f"the golden ended with: {native.outcome}" + (f" ({words})" if words else "")
    if native.mutated_inputs:
        return "the golden changes its inputs"
    zone = str(case.get(ZONE))
    may_be_nan = any(word in zone for word in ("one_nan", "one_inf", "closed"))
    empty = "" if may_be_nan else _empty_of_meaning(native.outputs, masked="masked" in zone)
    return empty or _Tried(case, inputs, native)


def _empty_of_meaning(outputs: Sequence[torch.Tensor], *, masked: bool) -> str:
    """Say why outputs tell nothing, or ""; where inputs are -inf, outputs may be infinite too."""
    for output in outputs:
        if output.is_floating_point() and output.numel() and bool((output.isnan() if masked else ~output.isfinite()).any()):
            return "the golden is not finite there"
    told = [output for output in outputs if output.numel() > 1]
    if told and all(bool((output == output.reshape(-1)[0]).all()) for output in told):
        return "the golden is constant there"
    return ""
