"""Edits of a text: a diff without line numbers that finds its own places.

    -old line          removed
    +new line          added
     line              context: stays
    ...                lines that stay, any number of them, until the next place
    -...               lines that go, up to and with the first line of the base that equals the next one written

The lines of a place (context and removed) must follow one another in the base, and stand there once below the place
before. A line that is empty is an empty line of context.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

KEPT = "..."
GONE = "-..."


class EditError(ValueError):
    """An edit that does not fit its base; `line` counts the edit's own lines from zero."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


@dataclass
class _Place:
    """The lines between two `...`: runs of old lines, with `-...` between two runs, and what stands there afterwards."""

    line: int
    runs: list[list[str]] = field(default_factory=lambda: [[]])
    new: list[str] = field(default_factory=list)


def apply(base: Sequence[str], edit: Sequence[str]) -> list[str]:
    """Return the lines of `base` as `edit` changes them.

    Raises:
        EditError: a line of the edit has no mark, changes nothing, or its place is missing from the base or stands there twice.
    """
    made: list[str] = []
    cursor = 0
    for place in _places(edit):
        start = _only_start(base, place, cursor)
        end = _end(base, place, start)
        made += [*base[cursor:start], *place.new]
        cursor = end
    return [*made, *base[cursor:]]


def _places(edit: Sequence[str]) -> Iterator[_Place]:
    place = _Place(0)
    changes = 0
    for number, line in enumerate(edit):
        if line == KEPT:
            yield _whole(place, changes)
            place, changes = _Place(number + 1), 0
        elif line == GONE:
            if not place.runs[-1]:
                raise EditError(number, f"`{GONE}` needs a removed line above it")
            place.runs.append([])
        elif line[:1] == "+":
            place.new.append(line[1:])
            changes += 1
        elif line[:1] in ("-", " ", ""):
            place.runs[-1].append(line[1:])
            changes += line[:1] == "-"
            place.new += [line[1:]] if line[:1] != "-" else []
        else:
            raise EditError(number, f"a line of an edit starts with `+`, `-` or a space, or is `{KEPT}`: {line!r}")
    yield _whole(place, changes)


def _whole(place: _Place, changes: int) -> _Place:
    if not changes:
        raise EditError(place.line, "nothing is added or removed here")
    if not place.runs[-1]:
        raise EditError(place.line, "an edit needs a line of the base that says where it belongs")
    return place


def _only_start(base: Sequence[str], place: _Place, cursor: int) -> int:
    run = place.runs[0]
    starts = list(_found(base, run, cursor))
    if len(starts) != 1:
        fault = "is not in the base" if not starts else f"stands {len(starts)} times in the base: write a line around it"
        raise EditError(place.line, f"{run[0]!r}{' and what follows it' if run[1:] else ''} {fault}")
    return starts[0]


def _end(base: Sequence[str], place: _Place, start: int) -> int:
    end = start + len(place.runs[0])
    for run in place.runs[1:]:
        begin = next(_found(base, run, end), None)
        if begin is None:
            raise EditError(place.line, f"{run[0]!r}, which ends `{GONE}`, is not in the base below it")
        end = begin + len(run)
    return end


def _found(base: Sequence[str], run: Sequence[str], start: int) -> Iterator[int]:
    """The indices from `start` on at which the lines of `run` stand in `base`."""
    for index in range(start, len(base) - len(run) + 1):
        if all(base[index + offset] == line for offset, line in enumerate(run)):
            yield index
