"""Says which candidate is tried next: rules of thumb, then by turns a step away from the best ones and Optuna's model."""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from pypto_op.tuning import thumb as rules_of_thumb
from pypto_op.tuning.choice import Assignment, Choice, Kind

if TYPE_CHECKING:
    import optuna

THUMB, NEIGHBOUR, MODEL = "rule of thumb", "neighbour", "model"
_TRIES = 200
_BEST = 3
_HOPELESS = 2
"""An option that so many candidates had and none of them was right is not stepped to any more."""
_FAILED = 8.0
"""What the model is told of a candidate that is no right kernel, in the place of its ratio."""
_FAR, _FEW = 0.35, 4
"""Share of steps that jump to any option, not to the next one; all do where there are so few."""
_JOIN, _PARTNERS = 0.3, 8
"""Share of steps that join two good candidates, and from how many of the best the second comes."""
_NO_GAIN = 0.995
"""A candidate at so much of the kernel's time is no faster."""
_FOLLOW = 0.5
"""Share of steps of rows that the tiles follow which say the same number."""


class Space(Protocol):
    """What a proposer asks of a kernel."""

    choices: dict[str, Choice]

    def essence(self, assignment: Assignment) -> dict[str, str]:
        """Return the choices of an assignment that have an effect and differ from the kernel's."""

    def counts(self, key: str, assignment: Assignment) -> bool:
        """Say whether a choice matters under an assignment."""

    def faults(self, assignment: Assignment) -> list[str]:
        """Return what the limits do not allow."""


@dataclass
class Proposal:
    """A candidate that is to be tried."""

    assignment: dict[str, str]  # what differs from the kernel
    origin: str  # who proposed it
    trial: optuna.trial.Trial  # Optuna's; what becomes of it is told to the study


class Proposer:
    """Proposes candidates, each essence once.

    Args:
        seed: makes the same proposals after the same answers.
        thumb: assignments that come first.
    """

    def __init__(self, kernel: Space, seed: int, thumb: Iterator[dict[str, str]]) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # multivariate and group are called experimental
            sampler = optuna.samplers.TPESampler(seed=seed, multivariate=True, group=True, n_startup_trials=8, constant_liar=True)
        self._study = optuna.create_study(direction="minimize", sampler=sampler)
        self._kernel, self._random, self._thumb = kernel, random.Random(seed), thumb
        self._seen: set[frozenset[tuple[str, str]]] = {frozenset()}
        self._ranking: list[tuple[float, dict[str, str]]] = [(1.0, {})]
        self._tally: dict[tuple[str, str], tuple[int, int]] = {}
        self._vain: list[Mapping[str, str]] = []
        self._turn = 0
        self.refused = 0

    def next(self) -> Proposal | None:
        """Return a candidate that the limits allow and that was not proposed before; None when none is found any more."""
        for assignment in self._thumb:
            essence = self._kernel.essence(assignment)
            if not self._leads_nowhere(essence) and self._is_new(essence):
                return self._proposal(essence, THUMB)
        self._turn += 1
        for attempt in range(_TRIES):
            by_model = (self._turn + attempt // (_TRIES // 2)) % 2 == 0
            if not by_model:
                essence = self._kernel.essence(self._step())
                if self._is_new(essence):
                    return self._proposal(essence, NEIGHBOUR)
            elif (proposal := self._asked()) is not None:
                return proposal
        return None

    def tell(self, proposal: Proposal, ratio: float | None) -> None:
        """Say what became of a candidate.

        Args:
            ratio: its time over the baseline's; None where it is no kernel, or a wrong one.
        """
        for item in proposal.assignment.items():
            right, wrong = self._tally.get(item, (0, 0))
            self._tally[item] = (right, wrong + 1) if ratio is None else (right + 1, wrong)
        if ratio is None or ratio >= _NO_GAIN:
            self._vain.append(proposal.assignment)
        self._study.tell(proposal.trial, _FAILED if ratio is None else min(ratio, _FAILED))
        if ratio is None:
            return
        self._ranking.append((ratio, proposal.assignment))
        self._ranking.sort(key=lambda row: row[0])
        del self._ranking[20:]

    def importance(self) -> dict[str, float]:
        """Return how much of the differences between candidates each choice explains, most first; {} with too few."""
        import optuna

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = optuna.importance.get_param_importances(
                    self._study, evaluator=optuna.importance.PedAnovaImportanceEvaluator()
                )
        except (ValueError, RuntimeError):
            return {}
        return {key: float(share) for key, share in found.items() if share > 0}

    def _leads_nowhere(self, essence: Mapping[str, str]) -> bool:
        """Say whether a shorter way in the same direction was no gain: the same numbers, nearer to the kernel's."""
        return any(
            tried.keys() == essence.keys()
            and all(_within(self._kernel.choices[key].now, tried[key], option) for key, option in essence.items())
            for tried in self._vain
        )

    def _is_new(self, essence: Mapping[str, str]) -> bool:
        mark = frozenset(essence.items())
        if mark in self._seen:
            return False
        self._seen.add(mark)
        if self._kernel.faults(essence):
            self.refused += 1
            return False
        return True

    def _proposal(self, essence: dict[str, str], origin: str) -> Proposal:
        self._study.enqueue_trial(self._whole(essence))
        return Proposal(essence, origin, self._ask()[0])

    def _asked(self) -> Proposal | None:
        """Return what Optuna's model proposes, None where that is old or against the limits."""
        import optuna

        trial, assignment = self._ask()
        essence = self._kernel.essence(assignment)
        if self._is_new(essence):
            return Proposal(essence, MODEL, trial)
        self._study.tell(trial, state=optuna.trial.TrialState.FAIL)
        return None

    def _ask(self) -> tuple[Any, dict[str, str]]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            trial = self._study.ask()
            assignment: dict[str, str] = {}
            for key, choice in self._kernel.choices.items():
                if self._kernel.counts(key, assignment):
                    assignment[key] = str(trial.suggest_categorical(key, choice.options))
        return trial, assignment

    def _whole(self, essence: Mapping[str, str]) -> dict[str, str]:
        """Return an assignment with every choice that counts under it."""
        choices = self._kernel.choices
        return {key: choices[key].taken(essence) for key in choices if self._kernel.counts(key, essence)}

    def _step(self) -> dict[str, str]:
        """Return one of the best candidates with one choice changed, at times two or three; or two good ones joined."""
        good = [assignment for ratio, assignment in self._ranking[:_PARTNERS] if ratio < 1.0]
        if len(good) > 1 and self._random.random() < _JOIN:
            return {**self._random.choice(good[1:]), **good[0]}
        best = self._ranking[: _BEST if self._random.random() < 0.4 else 1]
        assignment = dict(self._random.choice(best)[1])
        steps = 1 + (self._random.random() < 0.4) + (self._random.random() < 0.15)
        for _ in range(steps):
            open_now = [choice for key, choice in self._kernel.choices.items() if self._kernel.counts(key, assignment)]
            choice = self._random.choice(open_now)
            step = {choice.key: self._other(choice, choice.taken(assignment))}
            if choice.kind is Kind.ROWS and self._random.random() < _FOLLOW:
                step |= rules_of_thumb.follow(self._kernel.choices, step, assignment)
            assignment |= step
        return assignment

    def _other(self, choice: Choice, now: str) -> str:
        """Return another option: mostly the next larger or smaller number."""
        others: Sequence[str] = [option for option in choice.options if option != now and not self._hopeless(choice, option)]
        if not others:
            return now
        if now.isdigit() and len(choice.options) > _FEW and self._random.random() >= _FAR:
            numbers = sorted(int(option) for option in choice.options if option.isdigit())
            place = numbers.index(int(now))
            near = [str(numbers[i]) for i in (place - 1, place + 1) if 0 <= i < len(numbers)]
            others = [option for option in near if option in others] or others
        return self._random.choice(list(others))

    def _hopeless(self, choice: Choice, option: str) -> bool:
        right, wrong = self._tally.get((choice.key, option), (0, 0))
        return not right and wrong >= _HOPELESS


def _within(now: str, near: str, far: str) -> bool:
    """Say whether `near` lies on the way from `now` to `far`; all are numbers."""
    if not (now.isdigit() and near.isdigit() and far.isdigit()):
        return False
    return int(now) < int(near) <= int(far) or int(far) <= int(near) < int(now)
