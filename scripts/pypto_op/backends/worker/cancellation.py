"""Runs the stress search and its measurement inside the reference process, where goldens may run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from pypto_op.backends.worker.doubling import Doubled, widened
from pypto_op.backends.worker.outputs import leaves_of
from pypto_op.stress.conditioning import Conditions, Site, strongest
from pypto_op.stress.patterns import stressed
from pypto_op.stress.search import Goal, Recipe, is_useful, search, tuned

CHECKED_SEEDS = 3
"""A recipe must hold for the case's seed and the next ones, since the judge also uses seeds that nobody knows."""

_MOST_SITES = 40
_MOST_CALLS = 1 << 20
"""Operators of torch that a search may cost; a golden that walks token by token has thousands a run."""
_LEAST_RUNS = 100
"""Runs that a search has all the same: each step alone, and some pairs."""

Make = Callable[[dict[str, Any]], dict[str, Any]]


@dataclass(frozen=True)
class Golden:
    """A golden that is measured."""

    function: Callable[..., Any]  # it
    file: Path  # where it is written; its expressions name what cancels
    around: AbstractContextManager[Any] = field(default_factory=nullcontext)  # is entered around each call

    def measured(self, values: Sequence[Any]) -> tuple[Conditions, list[torch.Tensor]]:
        """Run it in float64 and return what its sums did, and its outputs."""
        probe = Conditions(self.file)
        with self.around, Doubled(), probe, torch.no_grad():
            returned = self.function(*(widened(value) for value in values))
        return probe, leaves_of(returned)


def conditions(golden: Golden, message: Mapping[str, Any], values: Sequence[Any]) -> dict[str, Any]:
    """Answer the message `conditions`: how badly the golden's sums cancel on these inputs."""
    sites = golden.measured(values)[0].sites()
    quantile = float(message["quantile"])
    site, reached = strongest(sites, message["expression"], quantile)
    return {
        "reached": _number(reached),
        "expression": site.expression if site is not None else "",
        "sites": [
            {"expression": s.expression, "kind": s.kind, "condition": _number(s.condition(quantile))} for s in sites[:_MOST_SITES]
        ],
    }


@dataclass(frozen=True)
class Reading:
    """What one run of a golden says of every expression."""

    sites: list[Site]  # what cancels; of each only its condition number is kept
    useful: bool  # its answer still tells right from wrong


class Readings:
    """The runs of a golden on one case with its recipes. Each says something of every expression, so searches share them.

    Args:
        golden, make, order: the reference, `make_inputs` of the operator, the names of the golden's arguments.
        message: of `find`; what one search wants of it does not matter.
    """

    def __init__(self, golden: Golden, make: Make, order: Sequence[str], message: Mapping[str, Any]) -> None:
        self._golden, self._make, self._order, self._message = golden, make, order, message
        self._known: dict[str, Reading] = {}
        self.inputs = self._made([], 0)  # of the case without a recipe
        probe, self._plain = golden.measured([self.inputs[name] for name in order])
        self._limits = [_limit(leaf, self.inputs) for leaf in self._plain]
        self.calls = probe.calls  # operators of torch in one run

    def of(self, recipe: Recipe, offset: int = 0) -> Reading:
        """Return what a recipe does, on the case's seed or one after it."""
        key = f"{offset}{recipe!r}"
        if key not in self._known:
            self._known[key] = self._run(recipe, offset)
        return self._known[key]

    def score(self, expression: str | None) -> Callable[[Recipe], float]:
        """Return what says how badly an expression (None: the worst) cancels with a recipe; 0 where that tells nothing."""

        def reached(recipe: Recipe) -> float:
            try:
                found = self.of(recipe)
            except (RuntimeError, ValueError, IndexError):
                return 0.0
            return strongest(found.sites, expression, float(self._message["quantile"]))[1] if found.useful else 0.0

        return reached

    def _run(self, recipe: Recipe, offset: int) -> Reading:
        made, quantile = self._made(recipe, offset), float(self._message["quantile"])
        probe, outputs = self._golden.measured([made[name] for name in self._order])
        sites = [site.settled(quantile) for site in probe.sites()]
        return Reading(sites, is_useful(outputs, self._plain, self._limits))

    def _made(self, recipe: Recipe, offset: int) -> dict[str, Any]:
        message = self._message
        base = self._make({**message["case"], "seed": int(message["seed"]) + offset})
        return stressed(base, recipe, message.get("ranges"), message.get("rows"))  # type: ignore[no-untyped-call,no-any-return]


Kept = dict[str, Readings]
"""What a process has read so far, by golden, case and range."""


def find(
    golden: Golden, make: Make, order: Sequence[str], message: Mapping[str, Any], kept: Kept | None = None
) -> dict[str, Any]:
    """Answer the message `stress`: search for a recipe on which one expression of the golden cancels.

    Args:
        make: `make_inputs` of the operator.
        message: file, case (without `cancellation_stress`), expression, quantile, condition, seed, runs, the ranges and rows that
            SPEC.md gives inputs (`patterns.within`), and the inputs that are `fixed`: no recipe touches them. `searched_shape`,
            where there is one: a smaller shape, on which the recipe is searched; on the case's own its gap is tuned then.
        kept: of earlier searches, which this one adds to.
    """
    kept = {} if kept is None else kept
    expression, quantile = message["expression"], float(message["quantile"])

    def readings(case: Mapping[str, Any]) -> Readings:
        telling = {name: value for name, value in case.items() if name not in _SAYS_NOTHING}
        wanted = (message.get(name) for name in ("quantile", "seed", "ranges", "rows"))
        key = repr((id(golden.function), id(make), telling, *wanted))
        if key not in kept:
            kept[key] = Readings(golden, make, order, {**message, "case": case})
        return kept[key]

    whole = readings(message["case"])
    small = readings({**message["case"], "shape": message["searched_shape"]}) if message.get("searched_shape") else whole
    runs = min(int(message["runs"]), max(_LEAST_RUNS, _MOST_CALLS // max(small.calls, 1)))
    goal = Goal(float(message["condition"]), int(message["seed"]), runs)
    found = search(small.inputs, small.score(expression), goal, message.get("fixed", ()))
    if small is not whole:
        searched = found.runs
        found = tuned(whole.inputs, whole.score(expression), goal, found.recipe)
        found.runs += searched
    checked = [whole.of(found.recipe, n).sites for n in range(CHECKED_SEEDS)]
    # Of "whichever is worst", the one that the recipe made so: what cancels worst without it is often another.
    site, _ = strongest(checked[0], expression, quantile)
    again = [strongest(sites, site.expression if site is not None else None, quantile)[1] for sites in checked]
    return {
        "recipe": found.recipe,
        "reached": _number(min(again)),
        "plain": _number(found.plain),
        "expression": site.expression if site is not None else "",
        "runs": found.runs,
    }


_SAYS_NOTHING = ("id", "level")
"""Keys of a case that its inputs do not depend on."""


def _limit(leaf: torch.Tensor, inputs: Mapping[str, Any]) -> float:
    """Return the greatest value that the narrowest input dtype holds: the output may have it too."""
    dtypes = [v.dtype for v in inputs.values() if isinstance(v, torch.Tensor) and v.is_floating_point()]
    return min((torch.finfo(dtype).max for dtype in dtypes), default=torch.finfo(torch.float32).max)


def _number(value: float) -> float:
    return float(f"{value:.4g}")
