"""Which configuration of an autotuned kernel a call of forward takes, and which were judged.

In the interpreter no configuration is faster than another, and a device may choose any. So each call takes the first of those
that the fewest judged calls took. The second tuner of a file begins with its second configuration, and so on: two kernels may be
right only where both have the same block.

A device times configurations and takes the fastest, and another device or another size may choose another one. So calls that are
asked for in turn take the others, which are timed no more.

A block may be too short for the larger of two cases alone, and calls of both by turns would pair each with one configuration. So
calls on moved inputs take first what the fewest calls of these sizes took.

A configuration may be wrong for large inputs alone (a padding that none of the task's own comes near). So calls on such take
configurations in a turn of their own.

On a device the first call runs an autotuned kernel many times, in each configuration, before it launches it. What the kernel
adds up or changes in place is wrong then, and so is what a configuration with more programs leaves, unless the tuner resets or
restores it. In the interpreter some calls are judged after such trials.
"""

from __future__ import annotations

import functools
import math
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

_TRIAL_SECONDS = 2.0
"""What trials of one call may take, but for the first of each kernel."""
_MOST_TRIED = 3
"""Calls with trials: one may choose the very configuration that leaves nothing behind."""

OWN, MOVED, FAR = "own", "moved", "far"
"""What a judged call is held to: the task's precision on its own inputs, or on moved ones, or, far beyond, no gross error.

Moved inputs of one sign hide what rounds to half precision. So a configuration that met no others was not judged.
"""
_ASKED = "asked"
_MOST_CALLS = 1 << 20
"""More than any configuration is judged in: which calls of the same sizes took it counts first."""
TOLD = (
    "before this call it ran once in other configurations, as autotuning does on a device: what it adds up, changes in place or "
    "leaves in memory that others read must stand in reset_to_zero or restore_value"
)


def judged_by(move: str | None) -> str:
    """Return what a call is held to whose inputs were moved so (`skewed`), or not at all."""
    return (FAR if move == FAR else MOVED) if move else OWN


class Configurations:
    """The configurations of the kernels that were launched.

    Attributes:
        judges: `OWN`, `MOVED` or `FAR` where what the present call of forward returns is judged, else "".
        tries: each of its autotuned kernels runs once in each configuration before the first choice, while there is time.
        tried: names of those that did.
        turns: calls take configurations in turn on a device, too.
    """

    def __init__(self) -> None:
        self.judges = ""
        self.tries = self.turns = False
        self._always = False  # take them in turn
        self.tried: set[str] = set()
        self._trials: set[tuple[int, int]] = set()  # of this call
        self._spent = 0.0  # by them, in seconds
        self._calls_tried = 0
        self._chooses_anew = False
        self._tuners: dict[int, Any] = {}
        self._runs: dict[int, dict[int, bool]] = {}  # of what pruning left, in any call: whether the device runs it
        self._used: Counter[tuple[str, int, int]] = Counter()  # by judged calls
        self._of_size: Counter[tuple[int, int, Any]] = Counter()  # of them, by calls of the same sizes
        self._sizes: dict[int, Any] = {}  # of what each tuner was given last

    def begin(self) -> None:
        """Let tuners choose anew where calls choose in turn, and in the first call after such."""
        turns = self.turns or self._always
        if turns or self._chooses_anew:
            for tuner in self._tuners.values():
                tuner.cache.clear()
        self._chooses_anew = turns
        self._calls_tried += bool(self._trials)
        self._trials, self._spent = set(), 0.0

    def by_time(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Stand for `Autotuner._bench` on a device; `original` times a configuration, and gives infinity where none can run."""

        @functools.wraps(original)
        def timed(tuner: Any, *args: Any, config: Any, **kwargs: Any) -> Any:
            number = tuner.configs.index(config)
            self._tuners[id(tuner)] = tuner
            known, found = self._runs.setdefault(id(tuner), {}), [math.inf] * 3
            if not self.turns or number not in known:
                found = original(tuner, *args, config=config, **kwargs)
                known[number] = min(found) < math.inf if isinstance(found, (list, tuple)) else found < math.inf
            return self._rank(tuner, number) if self.turns and known[number] else found

        return timed

    def in_turn(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Stand for `Autotuner._bench`, which times a configuration; `original` runs it with the tuner's hooks."""
        self._always = True

        @functools.wraps(original)
        def ranked(tuner: Any, *args: Any, config: Any, **kwargs: Any) -> list[float]:
            number = tuner.configs.index(config)
            self._tuners[id(tuner)] = tuner
            if self.tries:
                self._try(original, tuner, number, *args, config=config, **kwargs)
            self._runs.setdefault(id(tuner), {})[number] = True
            self._sizes[id(tuner)] = _sizes(args, kwargs)
            return self._rank(tuner, number)

        return ranked

    def _try(self, original: Callable[..., Any], tuner: Any, number: int, *args: Any, **kwargs: Any) -> None:
        """Run a configuration once in this call, where there is time; the first of each kernel always."""
        if self._calls_tried >= _MOST_TRIED:
            return
        if _name_of(tuner) in self.tried and ((id(tuner), number) in self._trials or self._spent >= _TRIAL_SECONDS):
            return
        self.tried.add(_name_of(tuner))
        self._trials.add((id(tuner), number))
        begin = time.monotonic()
        _once(original, tuner, *args, **kwargs)
        self._spent += time.monotonic() - begin

    def _rank(self, tuner: Any, number: int) -> list[float]:
        used, count = self._used[self._turn(), id(tuner), number], len(tuner.configs)
        place = list(self._tuners).index(id(tuner)) * (used + 1)  # each round pairs the tuners otherwise
        here = self._of_size[id(tuner), number, self._sizes.get(id(tuner))] if self.judges == MOVED else 0
        return [float((here * _MOST_CALLS + used) * count + (number - place) % count)] * 3

    def _turn(self) -> str:
        """Return which calls take turns: on a device those that were asked for, since what is fastest pairs the tuners alike."""
        return _ASKED if self.turns and not self._always and len(self._tuners) > 1 else self.judges or OWN

    def chosen(self, tuner: Any) -> None:
        """Note what an autotuned launch took."""
        if self.judges and id(tuner) in self._tuners:
            for turn in {self.judges, self._turn()}:
                self._used[turn, id(tuner), tuner.configs.index(tuner.best_config)] += 1
            self._of_size[id(tuner), tuner.configs.index(tuner.best_config), self._sizes.get(id(tuner))] += 1

    def facts(self) -> dict[str, list[int]]:
        """Return, by kernel, how many configurations judged calls took, how many there are, and how many far ones took."""

        def taken(judges: str, key: int) -> int:
            return sum(runs and self._used[judges, key, number] > 0 for number, runs in self._runs[key].items())

        return {
            _name_of(self._tuners[key]): [taken(OWN, key), sum(known.values()), taken(FAR, key)]
            for key, known in self._runs.items()
        }


def _sizes(args: Any, kwargs: Any) -> Any:
    """Return the shapes of the tensors and the whole numbers that a kernel is given."""
    given = [*args, *(kwargs[name] for name in sorted(kwargs))]
    return tuple(tuple(getattr(value, "shape", ())) or (value if isinstance(value, int) else None) for value in given)


def _name_of(tuner: Any) -> str:
    return getattr(getattr(tuner.base_fn, "__name__", ""), "strip", str)() or "a kernel"


def _once(original: Callable[..., Any], tuner: Any, *args: Any, **kwargs: Any) -> None:
    """Run a configuration once where the tuner would time it."""
    kept = tuner._do_bench
    tuner._do_bench = lambda call, **_: [call()] * 3
    try:
        original(tuner, *args, **kwargs)
    finally:
        tuner._do_bench = kept
