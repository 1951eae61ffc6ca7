"""Tries one case on the golden: what it becomes, or why it says nothing.

A case whose golden overflows gets smaller inputs, as long as that helps; one whose tolerance is too tight for honest rounding
(`judge.cases.natural`) is judged by what is natural instead.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch

from pypto_op.documents import golden_scan, ranges
from pypto_op.documents import spec as spec_document
from pypto_op.documents.knobs import ALIKE, OFFSET, RANGE, SCALE, ZONE
from pypto_op.errors import ContractError
from pypto_op.generators.cases.values import SEARCHED, WORST_SUM
from pypto_op.generators.operator.indices import same
from pypto_op.generators.rehearsing.first_candidate import Draw, FirstCandidate
from pypto_op.generators.rehearsing.power import exchanged
from pypto_op.generators.rehearsing.shrinking import KNOBS, shrunken
from pypto_op.judge.cases.contract import policy_of_case
from pypto_op.judge.cases.inputs import DEFAULT_SEED, checks_precision, tensors_in, with_seed
from pypto_op.judge.cases.natural import FURTHER_SEEDS, MOST, NATURAL, further_seeds, share_taken
from pypto_op.judge.stressing import KEY, stress_case
from pypto_op.vocabulary import Level, Outcome

if TYPE_CHECKING:
    from pypto_op.backends.base import RunResult, Value

_SCALES = (1.0, 1e-1, 1e-2, 3e-3)
"""What the `draw_scale` of a case is multiplied with until the golden stays finite."""
_LOST = (Outcome.TIMED_OUT, Outcome.CRASHED, Outcome.OUT_OF_MEMORY)
_HOPELESS = tuple(f"the golden ended with: {outcome}" for outcome in _LOST)

_PARTED = "where tensors are alike, right kernels may differ by more than the tolerance holds, or a fault hides"
"""What is natural there says little: of numbers that cancel to nothing, a right kernel of another form keeps other bits."""

_MOVED = 2.0**-21
"""Eight roundings in float32: so far a kernel may be off in values that another one reads alike, or subtracts."""

_DEAD, _SUNK, _SHARE_DEAD = 2.0**-100, 2.0**-40, 0.1
_SHARE_NAN = 0.9
"""More of an output that is NaN says that a NaN reaches all, as one alone says too."""

POWER = "power"
"""Key of a case: by how many times what is allowed the least of the planted faults is refused (`harness.power`)."""

_CONSTANT = "the golden is constant there"
NONE: Mapping[str, float] = {}
Case = dict[str, Any]
Others = Mapping[str, tuple[float, ...]]
"""What a case has to tell its float scalars from, by name: the default first, then values between it and the case's own."""


@dataclass(frozen=True)
class Tried:
    """A case that says something, its inputs, and what the golden answered."""

    case: Case
    inputs: dict[str, Value]
    native: RunResult


def _is_idle(first: FirstCandidate, tried: Tried, scalar: str) -> bool:
    """Whether the golden answers the same with the scalar's default."""
    usual = answered(first, {key: value for key, value in tried.case.items() if key != scalar})
    return isinstance(usual, Tried) and same(usual.native.outputs, tried.native.outputs)


@dataclass(frozen=True)
class Fit:
    """A case that takes right kernels and tells wrong ones; `natural`, `blind`: see `Rehearsed`, None and () where its tolerance
    stays. `hides`: whether it takes a scalar's default for right."""

    case: Case
    natural: float | None = None
    blind: tuple[str, ...] = ()
    hides: bool = False


@dataclass(frozen=True)
class Nothing:
    """Why a case says nothing; `case`: as it was tried, None where it was not."""

    why: str
    case: Case | None = None


def rehearsed(
    first: FirstCandidate, case: Case, varied: str = "", usual: Others | None = None, must_tell: bool = False
) -> Fit | Nothing:
    """Return what a case becomes, or why it says nothing, as `must_tell` does where it takes a value in `usual` for right."""
    usual = usual or {}
    tried = _stressed(first, case) if KEY in case else try_case(first, case)
    if isinstance(tried, str):
        return Nothing(tried)
    if varied and _is_idle(first, tried, varied):
        return Nothing(f"the golden does not mind another {varied}")
    if must_tell and _hides(first, tried, usual):
        return Nothing("it takes the default for right")
    # A long row drowns a number that stands beside its sum, such as a sink, and no other case has room for it.
    fit = fitted(first, tried, drowned=case["level"] == str(Level.L4))
    if isinstance(fit, str):
        return Nothing(fit, tried.case)
    if ALIKE in case and _may_differ(tried.inputs, case[ALIKE]) and parts(first, tried, fit, case[ALIKE]):
        return Nothing(_PARTED, tried.case)
    if fit.natural is not None and (name := _mixed_by(first, case)):
        return Nothing(f"right kernels may differ by more than is natural where {name} is next to an end", tried.case)
    for scalar, (default, *_) in usual.items():
        if case[scalar] == 0.0 and _guards(first, tried, scalar, default):
            return Nothing(f"{scalar} is a guard of zeros, and SPEC.md names no range of it that holds 0", tried.case)
    for scalar in _mixing_zeros(first, case):
        if parts(first, tried, fit, tried.inputs, {scalar: _MOVED}):
            return Nothing(f"right kernels may differ by more than the tolerance holds where {scalar} is 0", tried.case)
    return replace(fit, hides=_hides(first, replace(tried, case=fit.case), usual))


def _may_differ(inputs: Mapping[str, Value], alike: Mapping[str, str]) -> bool:
    """Whether a golden may subtract tensors that are alike: of another shape they meet in products alone."""
    return any(getattr(inputs[one], "shape", None) == getattr(inputs[two], "shape", None) for one, two in alike.items())


def _mixed_by(first: FirstCandidate, case: Case) -> str:
    """Return the tensor that a case draws next to 0 or 1 and by which the golden mixes two values, or "".

    `y + (1 - k) * (x - y)` loses there what `k * y + (1 - k) * x` keeps, where x is far smaller: in any element, by chance.
    """
    near = case[OFFSET] if isinstance(case.get(OFFSET), Mapping) else {}
    shares = golden_scan.shares(first.ws.golden, first.ws.golden_name()) if near else ()
    return next((name for name in near if name in shares), "")


def _mixing_zeros(first: FirstCandidate, case: Case) -> list[str]:
    """Return the scalars of a case that are 0 and by which the golden mixes two values.

    `v + (1 - beta) * (x - v)` loses there what `beta * v + (1 - beta) * x` keeps: as much as a beta off by some roundings.
    """
    zeros = [name for name, value in case.items() if isinstance(value, float) and value == 0.0]
    shares = golden_scan.shares(first.ws.golden, first.ws.golden_name()) if zeros else ()
    return [name for name in zeros if name in shares]


def _guards(first: FirstCandidate, tried: Tried, scalar: str, default: float) -> bool:
    """Whether a scalar of which SPEC.md names no range keeps the golden finite among zeros, as an eps does: a wrapper may refuse
    a guard of 0."""
    spec = first.ws.spec
    if scalar in spec_document.unlimited(spec) or ranges.of(spec_document.load(spec).shape_constraints, scalar) != ranges.Range():
        return False
    values = {name: _zeroed(value) for name, value in tried.inputs.items()}
    there, taken = (first.golden(list({**values, scalar: number}.values())) for number in (default, 0.0))
    return there.outcome is Outcome.OK and _all_finite(there) and not (taken.outcome is Outcome.OK and _all_finite(taken))


def _zeroed(value: Value) -> Value:
    return torch.zeros_like(value) if isinstance(value, torch.Tensor) and value.is_floating_point() else value


def _all_finite(answer: RunResult) -> bool:
    return all(bool(output.isfinite().all()) for output in answer.outputs)


def parts(first: FirstCandidate, tried: Tried, fit: Fit, names: Iterable[str], scalars: Mapping[str, float] = NONE) -> bool:
    """Whether right kernels of other forms may part from the golden on a case by more than its tolerance.

    Such a kernel is as near as if some inputs were off by what it may round of each, and scalars were others.
    """
    return fit.natural is not None or _moved_share(first, replace(tried, case=fit.case), names, scalars) > 1.0


def _moved_share(first: FirstCandidate, tried: Tried, names: Iterable[str], scalars: Mapping[str, float]) -> float:
    """Return how much of the tolerance it takes where some inputs differ by what a kernel may round of each; scalars get others.

    The honest orders add up tensors that are alike in one way, so what is left of their difference is the same in each: nothing.
    Nor is any of them another form of a difference, which may lose as much as such inputs do.
    """
    policy, luck = policy_of_case(first.policy, tried.case), torch.Generator().manual_seed(DEFAULT_SEED)
    if policy.needs_twins:  # there is no tolerance, and 0 is the natural error of what cancels to nothing
        return math.inf
    moved = {**tried.inputs, **scalars}
    for name in names:
        if isinstance(value := moved[name], torch.Tensor) and value.is_floating_point():
            luck_of_each = 2.0 * torch.rand(value.shape, generator=luck, dtype=torch.float64) - 1.0
            moved[name] = value.double() * (1.0 + _MOVED * luck_of_each)
    return share_taken([first.golden(list(moved.values()), float64=True)], tried.native, policy)


def _hides(first: FirstCandidate, tried: Tried, usual: Others) -> bool:
    """Whether a case takes what the golden answers with another value of a scalar for right, such as its default."""
    draw = Draw(first, tried.case, tried.inputs, tried.native)
    others = [(name, value) for name, values in usual.items() for value in values] if checks_precision(tried.case) else []
    for name, value in others:
        plain = answered(first, {**tried.case, name: value})
        if isinstance(plain, Tried) and draw.takes(plain.native.outputs):
            return True
    return False


def fitted(first: FirstCandidate, tried: Tried, *, drowned: bool = False) -> Fit | str:
    """Return the case under the policy that fits it, or why there is none; `drowned`: zeros may stand for some inputs there."""
    if not checks_precision(tried.case):
        return Fit(tried.case)
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
    if _chooses_nothing(tried.case) and _is_constant(tried.native.outputs):  # no fault of an input shows in it
        return Fit(tried.case) if refusal is None and share <= MOST else _CONSTANT
    tolerant = draw.power().without(_exchanges_of_followers(tried.case)) if refusal is None and share <= MOST else None
    if tolerant is not None and not tolerant.blind:
        return Fit(_powered(tried.case, tolerant.margin))
    if draw.is_lost():
        return "no digit of the golden is right there: numbers on its way leave their format"
    natural = _by_nature(tried.case)
    by_nature = [one.under(natural) for one in judged]
    power = by_nature[0].power()
    alike = power.symmetries | (power.drowned if drowned else frozenset())
    power = power.without(alike)
    if power.blind:
        return f"a wrong kernel would pass it ({', '.join(power.blind[:3])})"
    if tolerant is not None and not (tolerant := tolerant.without(alike)).blind:
        return Fit(_powered(tried.case, tolerant.margin))
    if tolerant is not None and (fit := _by_size(first, tried, judged, alike)) is not None:
        return fit
    # What is natural there may refuse the golden, too.
    refused = next((found for one in by_nature if (found := one.refusal()) is not None), None)
    if refused is not None:
        return refused.sentence
    blind = () if tolerant is None else tolerant.blind
    return Fit(_powered(natural, power.margin), share if refusal is None else max(share, 1.0), blind)


def _by_size(first: FirstCandidate, tried: Tried, judged: Sequence[Draw], alike: frozenset[str]) -> Fit | None:
    """Return the case under a tolerance as much smaller as its outputs are, None where that says nothing, or too much."""
    if not any(knob in tried.case for knob in KNOBS):
        return None
    usual = answered(first, {key: value for key, value in tried.case.items() if key not in KNOBS})
    case = shrunken(tried.case, tried.native.outputs, usual.native.outputs) if isinstance(usual, Tried) else None
    draws = [] if case is None else [one.under(case) for one in judged]
    if case is None or any(one.share() > MOST or one.refusal() is not None for one in draws):
        return None
    power = draws[0].power().without(alike)
    return None if power.blind else Fit(_powered(case, power.margin))


def _exchanges_of_followers(case: Case) -> list[str]:
    """Return the exchanges of two inputs of which the case's recipe makes one nearly the other: so small is no fault.

    What is natural would tell them apart, and refuse a kernel that takes another difference first.
    """
    steps = case[KEY].get("recipe", ()) if KEY in case else ()
    pairs = [(step["input"], step["of"]) for step in steps if step["pattern"] == "follow" and float(step.get("sign", 1.0)) > 0.0]
    return [exchanged(*names) for one, two in pairs for names in ((one, two), (two, one))]


def _further(first: FirstCandidate, case: Case) -> Iterator[Tried | str]:
    """Yield the case on other seeds, or why it says nothing there: the judge draws a seed that nobody has tried."""
    for seed in further_seeds(int(case.get("seed", DEFAULT_SEED))):
        found = answered(first, with_seed(case, seed))
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


def _stressed(first: FirstCandidate, case: Case) -> Tried | str:
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
    return try_case(first, found.case)


def try_case(first: FirstCandidate, case: Case) -> Tried | str:
    """Return the case with the golden's answer, or why it says nothing."""
    found: Tried | str = ""
    for factor in _SCALES if SCALE in case else (1.0,):
        attempt = {**case, SCALE: _times(case[SCALE], factor)} if SCALE in case else case
        found = answered(first, attempt)
        if isinstance(found, Tried) or found.startswith(_HOPELESS):
            break
    return found


def _times(scale: Any, factor: float) -> Any:
    return {name: one * factor for name, one in scale.items()} if isinstance(scale, Mapping) else scale * factor


def answered(first: FirstCandidate, case: Case) -> Tried | str:
    """Return what the golden answers, or why the case says nothing."""
    try:
        inputs = dict(first.session.make_inputs(case))
    except ContractError as error:
        return f"make_inputs: {error.problem}"
    if misfit := first.misfit(case, inputs):
        return f"it would draw what SPEC.md rules out: {misfit}"
    native = first.golden(list(inputs.values()))
    if native.outcome is not Outcome.OK:
        # Its own words help who has to mend it; what they show of tensors goes, since cases are told to everybody.
        words = first.redactor.clean(native.detail, tensors_in(list(inputs.values())))
        return f"the golden ended with: {native.outcome}" + (f" ({words})" if words else "")
    if native.mutated_inputs:
        return "the golden changes its inputs"
    first.must_have_shapes(case, native)
    zone = str(case.get(ZONE))
    may_be_nan = any(word in zone for word in ("one_nan", "some_nan", "one_inf", "closed"))
    empty = "" if may_be_nan else _empty_of_meaning(native.outputs, masked="masked" in zone)
    if empty == _CONSTANT and _chooses_nothing(case):
        return Tried(case, inputs, native)
    if not empty and OFFSET in case and _die_out(native.outputs):
        return "the golden's numbers die out there"
    if "some_nan" in zone and all(bool(output.isnan().double().mean() > _SHARE_NAN) for output in native.outputs):
        return "next to nothing of the golden is left beside NaN"
    return empty or Tried(case, inputs, native)


def _die_out(outputs: Sequence[torch.Tensor]) -> bool:
    """Whether a tenth of an output is 0 or next to it: shares at the end that keeps nothing.

    Honest kernels differ by any factor among numbers that leave a format below. Some zeros beside which none has sunk far were
    chosen: a row that counts nothing.
    """
    floating = [output for output in outputs if output.is_floating_point() and output.numel() > 1]
    return any(_share_dead(output) > (_SHARE_DEAD if _sinks(output) else 0.5) for output in floating)


def _share_dead(output: torch.Tensor) -> float:
    return float((output.abs() < _DEAD).double().mean())


def _sinks(output: torch.Tensor) -> bool:
    """Whether numbers of an output come near the least that its format holds."""
    return bool(((output != 0) & (output.abs() < max(_SUNK, torch.finfo(output.dtype).tiny))).any())


def _empty_of_meaning(outputs: Sequence[torch.Tensor], *, masked: bool) -> str:
    """Say why outputs tell nothing, or ""; where inputs are -inf, outputs may be infinite too."""
    for output in outputs:
        if output.is_floating_point() and output.numel() and bool((output.isnan() if masked else ~output.isfinite()).any()):
            return "the golden is not finite there"
    return _CONSTANT if _is_constant(outputs) else ""


def _is_constant(outputs: Sequence[torch.Tensor]) -> bool:
    told = [output for output in outputs if output.numel() > 1]
    return bool(told) and all(bool((output == output.reshape(-1)[0]).all()) for output in told)


def _chooses_nothing(case: Case) -> bool:
    """Whether flags choose nothing, or whole numbers are all one, such as counts of 0.

    A constant golden still tells a division of 0 by 0 there, and memory left as it was.
    """
    zone, drawn = case.get(ZONE), case.get(RANGE)
    flags = isinstance(zone, Mapping) and not {"none", "one_row_none"}.isdisjoint(zone.values())
    return flags or (isinstance(drawn, Mapping) and any(high - low == 1 for low, high in drawn.values()))
