"""One thing that is wrong in the bundle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, order=True)
class Finding:
    """A reference that leads nowhere, a broken rule of form, or a budget that is exceeded."""

    file: str  # path relative to the bundle
    line: int  # line in it, 0 for the whole file
    problem: str  # what is wrong and what to do, one sentence without a full stop

    def one_line(self) -> str:
        """Return `file:line: problem`."""
        return f"{self.file}:{self.line}: {self.problem}" if self.line else f"{self.file}: {self.problem}"

    def as_dict(self) -> dict[str, Any]:
        """Return the finding as JSON data."""
        return {"file": self.file, "line": self.line or None, "problem": self.problem}
