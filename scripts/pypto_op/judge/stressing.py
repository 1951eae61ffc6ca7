"""Makes a case on which an expression of the golden cancels, or lists such expressions, for whoever writes a suite.

    with ReferenceSession(ws) as session:
        for site in stress_sites(ws, session, case):
            made = stress_case(ws, session, case, expression=site.expression)

The case carries its recipe as data, and `eval/test_inputs.py` applies it: `patterns_source()` is the text for that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pypto_op import stress
from pypto_op.documents import interfaces as interfaces_document
from pypto_op.documents import ranges, rows
from pypto_op.documents import spec as spec_document
from pypto_op.stress.sites import normalised
from pypto_op.vocabulary import Level
from pypto_op.workspace import OpWorkspace

if TYPE_CHECKING:
    from pypto_op.backends.reference import ReferenceSession

KEY = "cancellation_stress"
"""The case's key (verifier seed, B.6)."""

QUANTILE = 0.5
"""The share of the cells that must cancel, where a case does not say."""

RELATIVE_GAP = 1e-5
"""|A - B| / max(|A|, |B|) of a cancelling pair, where a case does not say."""

SEED = 42
RUNS = 400

_COPIED = ("# --- copied from here ---\n", "# --- to here ---\n")


@dataclass(frozen=True)
class StressSite:
    """An expression of the golden that adds up."""

    expression: str  # its source text
    kind: str  # `difference`, `sum`, `matmul` or `scan`
    condition: float  # its condition number on the inputs that were asked about


@dataclass(frozen=True)
class StressCase:
    """A case that cancels."""

    case: dict[str, Any]  # the suite case, with its recipe and what it reaches under `cancellation_stress`
    reached: float  # the condition number that `quantile` of the cells reach, on each of several seeds
    wanted: float  # what `relative_gap` asks for
    plain: float  # the condition number of the case without a recipe


def stress_sites(
    ws: OpWorkspace, session: ReferenceSession, case: Mapping[str, Any], *, quantile: float = QUANTILE
) -> list[StressSite]:
    """Return every sum and difference of the golden, with its condition number on the inputs of a case.

    Raises:
        ContractError: the golden or `eval/test_inputs.py` do not run on the case.
    """
    inputs = [value for _, value in session.make_inputs(dict(case))]
    told = session.conditions(inputs, function=ws.golden_name(), file=ws.golden, quantile=quantile)
    return [StressSite(site["expression"], site["kind"], site["condition"]) for site in told["sites"]]


def stress_case(
    ws: OpWorkspace,
    session: ReferenceSession,
    case: Mapping[str, Any],
    *,
    expression: str | None = None,
    target: str = "",
    relative_gap: float = RELATIVE_GAP,
    quantile: float = QUANTILE,
    seed: int = SEED,
    runs: int = RUNS,
    searched_shape: Mapping[str, int] | None = None,
) -> StressCase | None:
    """Search for inputs on which an expression of the golden cancels.

    Args:
        ws: the operator; its golden and `eval/test_inputs.py` must be there.
        case: shape, dtype and knobs; what it has under `cancellation_stress` is replaced.
        expression: as the golden writes it; None: whichever sum of the golden can be made to cancel worst.
        target: name of the output that suffers, for people; default: what the case has there, or "out".
        relative_gap: |A - B| / max(|A|, |B|) that is wanted; the wanted condition number is its inverse.
        quantile: the share of the cells that must reach it.
        runs: most runs of the golden; one that calls thousands of operators of torch gets fewer (`worker.cancellation`).
        searched_shape: a smaller legal shape of the case, on which the recipe is searched.

    Returns:
        The case; its id ends in `_bestfound` when the best recipe misses the wanted condition number. None when no
        recipe cancels more than twice as badly as the case does without.

    Raises:
        ContractError: the golden or `eval/test_inputs.py` do not run on the case.
    """
    base = {key: value for key, value in case.items() if key != KEY}
    wanted = 1.0 / relative_gap
    named = normalised(expression) if expression is not None else None
    sought: dict[str, Any] = {"expression": named, "quantile": quantile, "condition": wanted, "seed": seed, "runs": runs}
    sought["searched_shape"] = dict(searched_shape or {})
    told = session.stress(base, function=ws.golden_name(), file=ws.golden, **sought, **_domain(ws, case))
    if not told["recipe"]:
        return None
    aimed = {
        "target": target or (case.get(KEY) or {}).get("target") or "out",
        "expression": named or told["expression"],
        "relative_gap": relative_gap,
        "quantile": quantile,
    }
    return _found(base, aimed, told, wanted, seed)


def _found(base: Mapping[str, Any], aimed: Mapping[str, Any], told: Mapping[str, Any], wanted: float, seed: int) -> StressCase:
    """Return the case that a search told of, under a name that says whether it reached what was wanted."""
    name = _named(str(base.get("id", "")), met=told["reached"] >= wanted)
    stress = {**aimed, "seed": seed, "recipe": told["recipe"], "reached": told["reached"]}
    made = {**base, "id": name, "level": str(Level.L5), "precision": True, "seed": seed, KEY: stress}
    return StressCase(made, told["reached"], wanted, told["plain"])


def patterns_source() -> str:
    """Return the plain-torch text (function `stressed(made, recipe)`) that `eval/test_inputs.py` must contain."""
    text = Path(stress.__file__).with_name("patterns.py").read_text(encoding="utf-8")
    return text.split(_COPIED[0], 1)[1].split(_COPIED[1], 1)[0].strip("\n") + "\n"


def _domain(ws: OpWorkspace, case: Mapping[str, Any]) -> dict[str, Any]:
    """Return what SPEC.md says of floating inputs on a case, their `ranges` and `rows`, which a recipe must not leave, and
    those that are `fixed`: tables, and masks of few numbers."""
    if not (ws.spec.is_file() and ws.interfaces.is_file()):
        return {"ranges": {}, "rows": {}, "fixed": []}
    spec, ports = spec_document.load(ws.spec), interfaces_document.load(ws.interfaces).primary_inputs
    sizes = {symbol: size for symbol, size in case["shape"].items() if isinstance(size, int)}
    found = {port.name: ranges.of(spec.shape_constraints, port.name, sizes) for port in ports if port.shape}
    bounded = {name: kept.ends for name, kept in found.items() if kept != ranges.Range()}
    told = {name: one.plain for name, one in spec.rows.items()}
    return {"ranges": bounded, "rows": told, "fixed": [*spec.fixed_inputs, *rows.of_few_numbers(spec.rows)]}


def _named(name: str, *, met: bool) -> str:
    name = name.removesuffix("_bestfound")
    if "cancellation_stress" not in name:
        name = f"L5_cancellation_stress_{name}" if name else "L5_cancellation_stress"
    return name if met else f"{name}_bestfound"
