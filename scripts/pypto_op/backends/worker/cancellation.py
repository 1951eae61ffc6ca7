"""Runs the stress search and its measurement inside the reference process, where goldens may run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from pypto_op.backends.worker.doubling import Doubled, widened
from pypto_op.backends.worker.outputs import leaves_of
from pypto_op.stress.conditioning import Conditions, Site, strongest
from pypto_op.stress.patterns import stressed
from pypto_op.stress.search import Goal, Recipe, is_useful, search

CHECKED_SEEDS = 3
"""A recipe must hold for the case's seed and the next ones, since the judge also uses seeds that nobody knows."""

_MOST_SITES = 40

Make = Callable[[dict[str, Any]], dict[str, Any]]


def measured(golden: Callable[..., Any], file: Path, values: Sequence[Any]) -> tuple[list[Site], list[torch.Tensor]]:
    """Run a golden in float64 and return its sites and its outputs."""
    probe = Conditions(file)
    with Doubled(), probe, torch.no_grad():
        returned = golden(*(widened(value) for value in values))
    return probe.sites(), leaves_of(returned)


def conditions(golden: Callable[..., Any], message: Mapping[str, Any], values: Sequence[Any]) -> dict[str, Any]:
    """Answer the message `conditions`: how badly the golden's sums cancel on these inputs."""
    sites, _ = measured(golden, Path(message["file"]), values)
    quantile = float(message["quantile"])
    site, reached = strongest(sites, message["expression"], quantile)
    return {
        "reached": _number(reached),
        "expression": site.expression if site is not None else "",
        "sites": [
            {"expression": s.expression, "kind": s.kind, "condition": _number(s.condition(quantile))} for s in sites[:_MOST_SITES]
        ],
    }


def find(golden: Callable[..., Any], make: Make, order: Sequence[str], message: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the message `stress`: search for a recipe on which one expression of the golden cancels.

    Args:
        golden: the reference.
        make: `make_inputs` of the operator.
        order: names of the golden's arguments.
        message: file, case (without `cancellation_stress`), expression, quantile, condition, seed, runs, the ranges and rows that
            SPEC.md gives inputs (`patterns.within`), and the inputs that are `fixed`: no recipe touches them.
    """
    file, case = Path(message["file"]), dict(message["case"])
    expression, quantile = message["expression"], float(message["quantile"])
    seed = int(message["seed"])

    def run(recipe: Recipe, offset: int = 0) -> tuple[list[Site], list[torch.Tensor]]:
        base = make({**case, "seed": seed + offset})
        made = stressed(base, recipe, message.get("ranges"), message.get("rows"))  # type: ignore[no-untyped-call]
        return measured(golden, file, [made[name] for name in order])

    inputs = make({**case, "seed": seed})
    _, plain = run([])
    limits = [_limit(leaf, inputs) for leaf in plain]

    def score(recipe: Recipe) -> float:
        try:
            sites, outputs = run(recipe)
        except (RuntimeError, ValueError, IndexError):
            return 0.0
        return strongest(sites, expression, quantile)[1] if is_useful(outputs, plain, limits) else 0.0

    goal = Goal(float(message["condition"]), seed, int(message["runs"]))
    found = search(inputs, score, goal, message.get("fixed", ()))
    checked = [run(found.recipe, n)[0] for n in range(CHECKED_SEEDS)]
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


def _limit(leaf: torch.Tensor, inputs: Mapping[str, Any]) -> float:
    """Return the greatest value that the narrowest input dtype holds: the output may have it too."""
    dtypes = [v.dtype for v in inputs.values() if isinstance(v, torch.Tensor) and v.is_floating_point()]
    return min((torch.finfo(dtype).max for dtype in dtypes), default=torch.finfo(torch.float32).max)


def _number(value: float) -> float:
    return float(f"{value:.4g}")
