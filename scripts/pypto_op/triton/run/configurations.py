"""Which configuration of an autotuned kernel a call of forward takes in the interpreter, and which were judged.

No configuration is faster than another there, and a device may choose any. So each call takes the first of those that the fewest
judged calls took.

On a device the first call runs an autotuned kernel many times before it launches it, and what the kernel adds up or changes in
place is wrong then, unless the tuner resets or restores it. Some calls are judged after one such trial.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable
from typing import Any

TOLD = (
    "before this call it ran once more, as autotuning does on a device: what it adds up or changes in place must stand in "
    "reset_to_zero or restore_value"
)


class Configurations:
    """The configurations of the kernels that were launched.

    Attributes:
        judges: what the present call of forward returns is judged, to the task's precision.
        tries: each of its autotuned kernels runs once before the first choice.
        tried: names of those that did.
    """

    def __init__(self) -> None:
        self.judges = self.tries = False
        self.tried: set[str] = set()
        self._tuners: dict[int, Any] = {}
        self._offered: dict[int, set[int]] = {}  # what pruning left, in any call
        self._used: Counter[tuple[int, int]] = Counter()  # by judged calls

    def begin(self) -> None:
        """Let tuners choose anew."""
        for tuner in self._tuners.values():
            tuner.cache.clear()

    def in_turn(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Stand for `Autotuner._bench`, which times a configuration; `original` runs it with the tuner's hooks."""

        @functools.wraps(original)
        def ranked(tuner: Any, *args: Any, config: Any, **kwargs: Any) -> list[float]:
            count, number = len(tuner.configs), tuner.configs.index(config)
            self._tuners[id(tuner)] = tuner
            if self.tries and _name_of(tuner) not in self.tried:
                self.tried.add(_name_of(tuner))
                _once(original, tuner, *args, config=config, **kwargs)
            self._offered.setdefault(id(tuner), set()).add(number)
            return [float(self._used[id(tuner), number] * count + number)] * 3

        return ranked

    def chosen(self, tuner: Any) -> None:
        """Note what an autotuned launch took."""
        if self.judges and id(tuner) in self._tuners:
            self._used[id(tuner), tuner.configs.index(tuner.best_config)] += 1

    def facts(self) -> dict[str, list[int]]:
        """Return, by kernel, how many configurations judged calls took, and how many there are."""
        taken = {key: sum(self._used[key, number] > 0 for number in offered) for key, offered in self._offered.items()}
        return {_name_of(self._tuners[key]): [taken[key], len(offered)] for key, offered in self._offered.items()}


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
