"""The logs under `tests/fixtures/device_logs/`: what each is expected to be, and its words."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "fixtures" / "device_logs"


@dataclass(frozen=True)
class DeviceLog:
    """One log.

    Attributes:
        name: of its file.
        source: where its words come from.
        expect: the entry that must come first.
        category: its failure category.
        skill: the sub-skill that goes on.
        text: the log itself.
    """

    name: str
    source: str
    expect: str
    category: str
    skill: str
    text: str


def all_logs() -> list[DeviceLog]:
    """Return every log, in order of name."""
    return [_read(path) for path in sorted(FOLDER.glob("*.log"))]


def _read(path: Path) -> DeviceLog:
    head, _, text = path.read_text(encoding="utf-8").partition("\n---\n")
    told = dict(line.removeprefix("# ").split(": ", 1) for line in head.splitlines())
    return DeviceLog(path.stem, told["source"], told["expect"], told["category"], told["skill"], text)
