"""The seconds of `--budget`: what the search may take, so that the judge is done in time too."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

_VERDICTS = 3.0
"""A survivor costs so many verdicts: its own, the planted faults, and the last one in the kernel's place."""
_LEAST_SEARCH = 0.5


@dataclass(frozen=True)
class Budget:
    """Seconds of a whole tuning, counted from when it is made."""

    seconds: float  # of all
    verdict_seconds: float  # what the judge took for the kernel
    begun: float = field(default_factory=time.monotonic)  # when, on the monotonic clock

    @property
    def judging(self) -> float:
        """Seconds that judging a survivor is expected to take."""
        return _VERDICTS * self.verdict_seconds

    @property
    def search(self) -> float:
        """Seconds until the search ends: what judging is expected to leave, half of all at the least."""
        return max(_LEAST_SEARCH * self.seconds, self.seconds - self.judging)

    @property
    def spent(self) -> float:
        """Seconds since it was made."""
        return time.monotonic() - self.begun

    @property
    def late(self) -> bool:
        """Whether no more is left than the verdict in the kernel's place takes."""
        return self.spent >= self.seconds - self.verdict_seconds

    def told(self) -> str:
        """Return the plan in words."""
        late = self.search + self.judging - self.seconds
        plan = f"{self.search:.0f} of {self.seconds:.0f} s to prepare and search, then about {self.judging:.0f} s to judge"
        return plan + (f", {late:.0f} s more than the budget has" if late >= 1 else "")
