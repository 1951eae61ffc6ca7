"""Formats times, ages and numbers for the HTML pages."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any


def duration(seconds: float) -> str:
    """Return a span of `seconds` in at most two units: "0.4 s", "48 s", "12 min 5 s", "3 h 20 min", "2 d 3 h"."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    for size, name, smaller, smaller_name in ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= size:
            rest = whole % size // smaller
            return f"{whole // size} {name}" + (f" {rest} {smaller_name}" if rest else "")
    return f"{whole} s"


def moment(text: str | None) -> datetime | None:
    """Return the time that an artefact names (ISO 8601, UTC where it names no zone); None for anything else."""
    try:
        when = datetime.fromisoformat(str(text).replace("Z", "+00:00"))
    except ValueError:
        return None
    return when if when.tzinfo else when.replace(tzinfo=timezone.utc)


def date(when: datetime) -> str:
    """Return a time as "2026-11-22 15:38 UTC"."""
    return when.astimezone(timezone.utc).strftime("%Y-%m-%d %H:%M UTC")


def age(when: datetime, now: datetime) -> str:
    """Return how long ago `when` was: "just now", "5 min ago", "3 d 2 h ago"."""
    seconds = (now - when).total_seconds()
    return "just now" if seconds < 60 else f"{duration(seconds // 60 * 60)} ago"


def number(value: Any) -> str:
    """Return a number with three significant digits, "" for None and any other value as it is."""
    return "" if value is None else f"{value:.3g}" if isinstance(value, (int, float)) else str(value)
