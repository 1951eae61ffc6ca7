"""Searches for inputs on which one expression of a golden cancels: random restarts, then coordinate by coordinate.

What is varied is a recipe (`patterns.py`), not single numbers: a few steps such as "mirror x along its last axis" make
terms cancel for every seed, they fit into a suite, and plain torch repeats them. The aim is a condition number
sum|terms| / |sum| that a chosen quantile of the cells reaches (Panchekha et al., "Automatically Improving Accuracy for
Floating Point Expressions", 2015, search single points; one bad point of a tensor would teach little).

The search is deterministic: its budget is a number of golden runs, not a time.
"""

from __future__ import annotations

import contextlib
import math
import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

Step = dict[str, Any]
Recipe = list[Step]

MOST_RUNS = 400
"""Runs of the golden that a search may cost."""

RESTARTS = 64
"""Random starts (verifier seed, B.6)."""

_GAP_STEPS = 12
_FRUITLESS = 8
"""Restarts in a row that find nothing better before the search gives up."""
_MARGIN = 1.5
"""The seed of the search is passed by so much, so that other seeds reach the goal too."""
_SCALES = (1.0, 30.0, 0.1)


@dataclass(frozen=True)
class Goal:
    """What is searched for."""

    condition: float  # the wanted condition number
    seed: int = 42  # makes the search repeatable
    runs: int = MOST_RUNS  # golden runs that it may cost


@dataclass
class Found:
    """The best recipe of a search."""

    # its steps; [] when nothing made the expression cancel more than ordinary inputs do
    recipe: Recipe = field(default_factory=list)
    reached: float = 0.0  # the condition number on the goal's seed
    plain: float = 0.0  # the condition number without a recipe
    runs: int = 0  # golden runs that it cost


Score = Callable[[Recipe], float]
"""Condition number that a recipe reaches; 0 when the golden's answer is then worth nothing."""


class _Spent(Exception):
    """The budget is used up."""


def search(inputs: Mapping[str, Any], score: Score, goal: Goal, fixed: Collection[str] = ()) -> Found:
    """Return the simplest recipe that reaches the goal, or the best one found.

    Args:
        inputs: the case's inputs without a recipe, by name; only shapes and dtypes are looked at.
        goal: when to stop.
        fixed: inputs that no step may change; others may follow them.
    """
    return _Search(inputs, score, goal, fixed).run()


def tuned(inputs: Mapping[str, Any], score: Score, goal: Goal, recipe: Recipe) -> Found:
    """Return a recipe that was found on other shapes, with the gap that these inputs need; no recipe where it does nothing here.

    Args:
        inputs, score, goal: as in `search`.
    """
    return _Search(inputs, score, goal).only_tune(recipe)


class _Search:
    def __init__(self, inputs: Mapping[str, Any], score: Score, goal: Goal, fixed: Collection[str] = ()) -> None:
        self._score, self._goal = score, goal
        self._random = random.Random(goal.seed)
        self._narrowest = max((torch.finfo(t.dtype).eps for t in _floats(inputs).values()), default=2.0**-23)
        # Inputs of a narrow dtype differ by an epsilon or not at all, which bounds what their differences can reach.
        self._wanted = _MARGIN * min(goal.condition, 0.5 / self._narrowest)
        self._budget = goal.runs
        # Below a few steps of the dtype mirrored values become exact negatives, which cancel without a rest.
        self._gap = max(1.0 / goal.condition, 4.0 * self._narrowest)
        every = _choices(_floats(inputs), self._gap)
        self._choices = {name: steps for name, steps in every.items() if name not in fixed}
        self._known: dict[str, float] = {}
        self._runs = 0
        self._best: tuple[float, Recipe] = (0.0, [])

    def run(self) -> Found:
        plain = self._value([])
        with contextlib.suppress(_Spent):
            self._singles()
            self._restart()
        self._budget += self._goal.runs // 4  # what was found is worth making simple
        with contextlib.suppress(_Spent):
            self._prune()
            self._tune()
        return self._found(plain)

    def only_tune(self, recipe: Recipe) -> Found:
        plain = self._value([])
        with contextlib.suppress(_Spent):
            self._best = (self._value(recipe), recipe)
            self._tune()
        return self._found(plain)

    def _found(self, plain: float) -> Found:
        reached, recipe = self._best
        if reached <= 2.0 * plain or not recipe:
            return Found([], plain, plain, self._runs)
        return Found(recipe, reached, plain, self._runs)

    def _restart(self) -> None:
        fruitless = 0
        for _ in range(RESTARTS):
            if self._best[0] >= self._wanted or fruitless == _FRUITLESS:
                return
            before = self._best[0]
            self._climb(self._start())
            fruitless = 0 if self._best[0] > 1.05 * before else fruitless + 1

    # -- moves ------------------------------------------------------------------------------------------------

    def _singles(self) -> None:
        """Try every step alone: most expressions need one input to change, or two partners."""
        for name in self._choices:
            for step in self._choices[name]:
                self._value([step])

    def _start(self) -> Recipe:
        """Return a random recipe, every other time one that contains the best so far."""
        recipe = list(self._best[1]) if self._random.random() < 0.5 else []
        taken = {step["input"] for step in recipe}
        for name, steps in self._choices.items():
            if name not in taken and self._random.random() < 0.6:
                recipe.append(dict(self._random.choice(steps)))
        return recipe

    def _climb(self, recipe: Recipe) -> None:
        """Change one input's step at a time for the better, until none helps."""
        current = self._value(recipe)
        improved = True
        while improved:
            improved = False
            for name in self._random.sample(list(self._choices), len(self._choices)):
                others = [step for step in recipe if step["input"] != name]
                options = [others, *([*others, step] for step in self._choices[name])]
                value, chosen = max(((self._value(option), option) for option in options), key=lambda pair: pair[0])
                if value > current * 1.05:
                    current, recipe, improved = value, chosen, True

    def _prune(self) -> None:
        """Drop steps that the goal, or the best value, does not need."""
        value, recipe = self._best
        needed = min(value * 0.9, self._wanted)
        for step in list(recipe):
            shorter = [other for other in recipe if other is not step]
            if self._value(shorter) >= needed:
                recipe = shorter
        self._best = (self._value(recipe), recipe)

    def _tune(self) -> None:
        """Choose the gap for which the goal is reached and not much passed: more would drown every honest kernel."""
        value, recipe = self._best
        if not recipe:
            return
        low, high = math.log(2.0 * self._narrowest), math.log(0.5)
        best_over, best_under = (math.inf, recipe), (value if value < self._wanted else 0.0, recipe)
        for _ in range(_GAP_STEPS):
            middle = (low + high) / 2.0
            tried = [{**step, "gap": float(f"{math.exp(middle):.3g}")} for step in recipe]
            value = self._value(tried)
            if value >= self._wanted:
                best_over, low = min(best_over, (value, tried), key=lambda pair: pair[0]), middle
            else:
                best_under, high = max(best_under, (value, tried), key=lambda pair: pair[0]), middle
        if best_over[0] < math.inf:
            self._best = best_over
        elif best_under[0] >= self._best[0]:
            self._best = best_under

    def _value(self, recipe: Recipe) -> float:
        key = repr(recipe)
        if key not in self._known:
            if self._runs >= self._budget:
                raise _Spent
            self._runs += 1
            self._known[key] = self._score(recipe)
            if self._known[key] > self._best[0]:
                self._best = (self._known[key], [dict(step) for step in recipe])
        return self._known[key]


def _floats(inputs: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    return {
        name: value
        for name, value in inputs.items()
        if isinstance(value, torch.Tensor) and value.is_floating_point() and value.dim() and value.numel() > 1
    }


def _choices(tensors: Mapping[str, torch.Tensor], gap: float) -> dict[str, list[Step]]:
    """Return, for each input, the steps that a recipe may contain, likeliest first."""
    gap = float(f"{gap:.3g}")
    choices: dict[str, list[Step]] = {}
    for name, tensor in tensors.items():
        steps: list[Step] = []
        for axis in reversed(range(tensor.dim())):
            if tensor.shape[axis] < 2:
                continue
            place = {"input": name, "axis": axis - tensor.dim(), "gap": gap}
            steps += [{**place, "pattern": "plateau"}, {**place, "pattern": "mirror"}, {**place, "pattern": "repeat"}]
            steps += [{**place, "pattern": "plateau", "scale": scale} for scale in _SCALES if scale != 1.0]
        steps += [
            {"input": name, "pattern": "follow", "of": other, "sign": sign, "gap": gap}
            for other, partner in tensors.items()
            if other != name and partner.shape == tensor.shape
            for sign in (1.0, -1.0)
        ]
        if steps:
            choices[name] = steps
    return choices


def is_useful(outputs: Sequence[torch.Tensor], plain: Sequence[torch.Tensor], limits: Sequence[float]) -> bool:
    """Whether a golden's float64 answer still tells right from wrong: finite where it was, in range, and varied.

    Args:
        outputs: the answer with a recipe.
        plain: the answer without one.
        limits: greatest finite value of each output's own dtype.
    """
    for output, before, limit in zip(outputs, plain, limits, strict=True):
        if not output.is_floating_point() or not output.numel():
            continue
        finite = torch.isfinite(output)
        if int(finite.sum()) < int(torch.isfinite(before).sum()):
            return False
        values = output[finite]
        if values.numel() and float(values.abs().max()) > 0.5 * limit:
            return False
        if values.numel() > 1 and bool((values == values[0]).all()) and not bool((before == before.reshape(-1)[0]).all()):
            return False
    return True
