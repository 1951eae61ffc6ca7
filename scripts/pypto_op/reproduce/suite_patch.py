"""The milder case that is proposed when the kernel is innocent: smaller scales, the same tolerance, another name.

The tolerance of a case is never touched: a wider one would let wrong kernels pass, a smaller scale does not.
"""

from __future__ import annotations

import copy
import difflib
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pypto_op.documents.knobs import ALIKE, JUDGED_BY, LAGGING, LEANING, RANGE, SCALE, SET, ZONE
from pypto_op.reproduce.script import Drift

ENOUGH = 0.25
"""A milder case must leave natural rounding at most this share of the tolerance."""

_MOST_CANDIDATES = 24
_NO_KNOBS = JUDGED_BY | {"shape", "dtype", "dtype_mode", "seed", "cancellation_stress", ZONE, RANGE, SET, ALIKE, LEANING, LAGGING}
_STRESS = "cancellation_stress"
_STEP_SCALE = "scale"
"""What a step of a recipe multiplies its values with."""
_HALVES = (0.5, 0.25, 0.125, 0.0625, 0.03125)
"""Shares of an input's scale that are tried: powers of two, so that no value is rounded anew."""
_WIDEST_GAP = 0.3

Case = Mapping[str, Any]
Change = dict[str, Any]


@dataclass(frozen=True)
class Milder:
    """One candidate."""

    change: Change  # the keys of the case that get other values
    knob: str  # the knob's name, for the new id
    before: float  # its value so far
    after: float  # its new value


def candidates(case: Case, inputs: Sequence[str] = ()) -> list[Milder]:
    """Return milder versions of a case, the least change first.

    Knobs beyond 1 and scales of a recipe shrink tenfold, gaps widen tenfold, inputs that nothing enlarges are halved.

    Args:
        inputs: names that `draw_scale` may give a magnitude; none where `make_inputs` has no such knob.
    """
    series = [*_scales(case), *_recipe_scales(case), *_gaps(case), *_input_scales(case, inputs)]
    steps = max((len(one) for one in series), default=0)
    by_step = [one[i] for i in range(steps) for one in series if i < len(one)]
    return by_step[:_MOST_CANDIDATES]


def _scales(case: Case) -> Iterator[list[Milder]]:
    for key, value in case.items():
        if key in _NO_KNOBS:
            continue
        if _is_number(value):
            yield [Milder({key: new}, key, value, new) for new in _smaller(value)]
        elif isinstance(value, Mapping):
            for name, inner in value.items():
                if _is_number(inner):
                    yield [Milder({key: {**value, name: new}}, f"{key}_{name}", inner, new) for new in _smaller(inner)]


def _input_scales(case: Case, inputs: Sequence[str]) -> Iterator[list[Milder]]:
    """Yield the `draw_scale` of all inputs, then of each alone, below what the case gives them."""
    named = case.get(SCALE, 1.0)
    values = {name: named.get(name, 1.0) if isinstance(named, Mapping) else named for name in inputs}
    if not values or not all(_is_number(value) and abs(value) <= 1.0 for value in values.values()):
        return  # what the case itself enlarges comes first: `_scales`
    if not isinstance(named, Mapping):
        yield [Milder({SCALE: named * factor}, SCALE, named, named * factor) for factor in _HALVES]
    if len(values) == 1:
        return
    before = dict(named) if isinstance(named, Mapping) else {name: named for name in inputs if named != 1.0}
    for name, value in values.items():
        yield [Milder({SCALE: {**before, name: new}}, f"{SCALE}_{name}", value, new) for new in (value * f for f in _HALVES)]


def _recipe_scales(case: Case) -> Iterator[list[Milder]]:
    stress = case.get(_STRESS) or {}
    steps = stress.get("recipe") or []
    largest = max((abs(float(step.get(_STEP_SCALE, 1.0))) for step in steps), default=1.0)
    kept = {key: value for key, value in stress.items() if key != "reached"}
    found: list[Milder] = []
    for new in [*_smaller(largest), 1.0, *_HALVES[:2]] if largest > 1.0 else []:
        recipe = [
            {**step, _STEP_SCALE: min(float(step[_STEP_SCALE]), new)} if _STEP_SCALE in step else dict(step) for step in steps
        ]
        found.append(Milder({_STRESS: {**kept, "recipe": recipe}}, f"recipe_{_STEP_SCALE}", largest, new))
    if found:
        yield found


def _gaps(case: Case) -> Iterator[list[Milder]]:
    stress = case.get(_STRESS)
    if not stress:
        return
    steps = stress.get("recipe") or []
    gaps = [float(step["gap"]) for step in steps if step.get("gap")]
    kept = {key: value for key, value in stress.items() if key != "reached"}
    if gaps:
        found: list[Milder] = []
        for new in _wider(min(gaps)):
            recipe = [{**step, "gap": max(float(step.get("gap", 0.0)), new)} for step in steps]
            # What the milder recipe reaches is measured by the next verification.
            asked = max(float(stress.get("relative_gap", new)), new)
            found.append(Milder({_STRESS: {**kept, "recipe": recipe, "relative_gap": asked}}, "gap", min(gaps), new))
        yield found
    elif _is_number(stress.get("relative_gap")):
        gap = float(stress["relative_gap"])
        yield [Milder({_STRESS: {**kept, "relative_gap": new}}, "relative_gap", gap, new) for new in _wider(gap)]


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _smaller(value: float) -> list[float]:
    """Return value / 10, / 100, ... down to a magnitude of 1."""
    found: list[float] = []
    magnitude = abs(value) / 10.0
    while magnitude >= 0.99:
        found.append(float(f"{math.copysign(magnitude, value):.6g}"))
        magnitude /= 10.0
    return found


def _wider(gap: float) -> list[float]:
    found: list[float] = []
    wide = gap * 10.0
    while 0.0 < wide < _WIDEST_GAP * 10.0 and len(found) < _MOST_CANDIDATES:
        found.append(float(f"{min(wide, _WIDEST_GAP):.6g}"))
        wide *= 10.0
    return found


def first_mild(milder: Sequence[Milder], drifts: Sequence[Drift]) -> Milder | None:
    """Return the least change on which natural rounding stays within `ENOUGH` of the tolerance, None when none does."""
    for one, drift in zip(milder, drifts, strict=True):
        violations = [entry["max_violation"] for outputs in drift.values() for entry in outputs]
        if violations and all(v is not None and v <= ENOUGH for v in violations):
            return one
    return None


def patch(suite: Mapping[str, Any], case: Case, milder: Milder) -> dict[str, Any]:
    """Return the proposal: which case, what to set, as JSON Patch (RFC 6902) and as a diff for people."""
    key = "cases" if "cases" in suite else "test_cases"
    ids = [str(other["id"]) for other in suite[key]]
    place = ids.index(str(case["id"]))
    changed = {"id": new_id(str(case["id"]), milder, ids), **copy.deepcopy(milder.change)}
    after = {**case, **changed}
    operations = [
        {"op": "replace" if name in case else "add", "path": f"/{key}/{place}/{name}", "value": value}
        for name, value in changed.items()
    ]
    return {
        "file": "eval/adversarial_suite.json",
        "case_id": str(case["id"]),
        "new_case_id": changed["id"],
        "knob": milder.knob,
        "before": milder.before,
        "after": milder.after,
        "json_patch": operations,
        "diff": _diff(case, after),
    }


def patched(suite: Mapping[str, Any], proposal: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of the suite with the proposal in it."""
    result = copy.deepcopy(dict(suite))
    for operation in proposal["json_patch"]:
        _, key, place, name = operation["path"].split("/")
        result[key][int(place)][name] = copy.deepcopy(operation["value"])
    return result


def new_id(name: str, milder: Milder, taken: Sequence[str]) -> str:
    """Return an id that tells the new magnitude: in the place of the old one where the name has it."""
    after = _text(milder.after)
    for before in _spellings(milder.before) if milder.before != 1.0 else ():  # a default; a 1 in the name is another number
        found = re.search(rf"(?<![0-9.]){re.escape(before)}(?![0-9.])", name)
        if found:
            name = f"{name[: found.start()]}{after}{name[found.end() :]}"
            break
    else:
        name = f"{name.removesuffix('_bestfound')}_{milder.knob}_{after}"
    name = re.sub(r"[^A-Za-z0-9_.:+-]", "_", name)[:120]
    unique, number = name, 2
    while unique in taken:
        unique, number = f"{name}_{number}", number + 1
    return unique


def _text(value: float) -> str:
    if value == int(value) and abs(value) < 10_000:
        return str(int(value))
    return re.sub(r"e([+-])0*(\d)", lambda m: f"e{'-' if m[1] == '-' else ''}{m[2]}", f"{value:.3g}")


def _spellings(value: float) -> list[str]:
    exponent = math.floor(math.log10(abs(value))) if value else 0
    mantissa = value / 10.0**exponent
    short = f"{mantissa:g}"
    texts = [f"{short}e{exponent}", f"{short}e+{exponent:02d}", f"{short}e{exponent:+03d}", f"{value:g}", _text(value)]
    if value == int(value):
        texts.append(str(int(value)))
    return list(dict.fromkeys(texts))


def _diff(before: Case, after: Case) -> str:
    old, new = (json.dumps(case, indent=2, ensure_ascii=False).splitlines() for case in (before, after))
    name = "eval/adversarial_suite.json"
    return "\n".join(difflib.unified_diff(old, new, f"a/{name}", f"b/{name}", lineterm="", n=1))
