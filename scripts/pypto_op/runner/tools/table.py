"""One table of the tools: what the model is told of each, what it does, and whether a repetition would do harm."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pypto_op.errors import PyptoOpError

MOST_CHARACTERS = 30_000


class CallFailed(Exception):
    """The tool could not do what was asked; the text tells the model why."""


@dataclass(frozen=True)
class Place:
    """Where tools work."""

    workspace: Path  # the folder that holds `custom/`
    environment: Mapping[str, str]  # what a shell gets
    ends_at: float = float("inf")  # until when a call may last, by `time.monotonic()`
    hidden: Sequence[str] = ()  # folders that look empty to a shell, where the machine allows that

    def path(self, text: str) -> Path:
        """Return the absolute path of a file that a call names."""
        return (self.workspace / Path(text).expanduser()).absolute()

    def seconds(self, wanted: float) -> float:
        """Return how long a call may take that wants `wanted` seconds."""
        return max(0.1, min(wanted, self.ends_at - time.monotonic()))


@functools.cache
def _proc() -> int:
    """Return the device of /proc; -1 where the machine has none."""
    try:
        return Path("/proc").stat().st_dev
    except OSError:
        return -1


def shows_a_process(path: Path) -> bool:
    """Whether an existing file lies in /proc: tools work in the runner's own process, whose environment is nobody's to read."""
    return path.stat().st_dev == _proc()


@dataclass(frozen=True)
class Tool:
    """One tool."""

    name: str  # its name on the agents' pages
    description: str  # what the model is told
    schema: dict[str, Any]  # JSON Schema of its input
    work: Callable[[Place, dict[str, Any]], str]  # takes the place and the input, returns the text of the result
    effects: bool  # whether a call changes something, so that it must not be repeated unseen

    @property
    def definition(self) -> dict[str, Any]:
        """What the Messages API takes."""
        return {"name": self.name, "description": self.description, "input_schema": self.schema}

    def check(self, given: object) -> None:
        """Raise CallFailed when the input is not what the tool takes."""
        import jsonschema

        for error in jsonschema.Draft202012Validator(self.schema).iter_errors(given):
            where = ".".join(str(part) for part in error.path)
            raise CallFailed(f"{self.name}: {where + ': ' if where else ''}{error.message[:300]}")

    def call(self, place: Place, given: dict[str, Any]) -> str:
        """Do the work; raise CallFailed when it cannot be done."""
        try:
            return clipped(self.work(place, given))
        except CallFailed as error:
            raise CallFailed(clipped(str(error))) from None
        except PyptoOpError as error:
            raise CallFailed(error.one_line()) from None
        except (OSError, ValueError) as error:  # an unreadable file, a NUL in a path
            raise CallFailed(f"{type(error).__name__}: {error}"[:500]) from None


def object_of(required: str, **properties: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an object with these properties; `required` names some of them."""
    return {"type": "object", "properties": properties, "required": required.split(), "additionalProperties": False}


def text(description: str) -> dict[str, Any]:
    """Return the schema of a text."""
    return {"type": "string", "description": description}


def number(description: str, least: int = 0) -> dict[str, Any]:
    """Return the schema of a whole number."""
    return {"type": "integer", "minimum": least, "description": description}


def clipped(said: str) -> str:
    """Return a text with its middle left out where it is too long for a conversation."""
    if len(said) <= MOST_CHARACTERS:
        return said
    half = MOST_CHARACTERS // 2
    return f"{said[:half]}\n... [{len(said) - 2 * half} characters left out] ...\n{said[-half:]}"
