"""Which configuration of an autotuned kernel a call of forward takes in the interpreter, and which were judged.

No configuration is faster than another there, and a device may choose any. So each call takes the first of those that the fewest
judged calls took.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable
from typing import Any


class Configurations:
    """The configurations of the kernels that were launched.

    Attributes:
        judges: what the present call of forward returns is judged, to the task's precision.
    """

    def __init__(self) -> None:
        self.judges = False
        self._tuners: dict[int, Any] = {}
        self._offered: dict[int, set[int]] = {}  # what pruning left, in any call
        self._used: Counter[tuple[int, int]] = Counter()  # by judged calls

    def begin(self) -> None:
        """Let tuners choose anew."""
        for tuner in self._tuners.values():
            tuner.cache.clear()

    def in_turn(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Stand for `Autotuner._bench`, which times a configuration."""

        @functools.wraps(original)
        def ranked(tuner: Any, *args: Any, config: Any, **kwargs: Any) -> list[float]:
            count, number = len(tuner.configs), tuner.configs.index(config)
            self._tuners[id(tuner)] = tuner
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
        names = {key: getattr(getattr(tuner.base_fn, "__name__", ""), "strip", str)() for key, tuner in self._tuners.items()}
        return {names[key] or "a kernel": [taken[key], len(offered)] for key, offered in self._offered.items()}
