"""The kernels under tests/fixtures/fresh: one right, its honest rewrites (honest.md), its wrong variants (wrong.yaml)."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import click
import yaml
from tests.markdown_cases import cases

from benchmarks.process import digest_of

FIXTURES = Path(__file__).resolve().parents[1] / "tests" / "fixtures" / "fresh"


@dataclass(frozen=True)
class Kernel:
    """One kernel of an operator.

    Attributes:
        kind: "right", "honest" or "wrong".
        id: its name; unique within the kind.
        why: what it does otherwise than the right one.
        text: the file.
    """

    kind: str
    id: str
    why: str
    text: str

    @property
    def must_pass(self) -> bool:
        """Whether a suite that refuses it is wrong."""
        return self.kind != "wrong"

    @property
    def digest(self) -> str:
        """The sha256 of the file."""
        return hashlib.sha256(self.text.encode()).hexdigest()


def operators() -> list[str]:
    """Return the operators that have a right kernel there."""
    return sorted(path.parent.name for path in FIXTURES.glob("*/*_impl.py"))


def digest(op: str) -> str:
    """Return the sha256 of all of an operator's fixtures."""
    return digest_of(*sorted(path for path in (FIXTURES / op).rglob("*") if path.is_file() and path.suffix != ".pyc"))


def kernels(op: str) -> list[Kernel]:
    """Return the right kernel, the honest ones and the wrong ones, in this order.

    Raises:
        PageError: an edit of honest.md does not fit the kernel.
        click.ClickException: a replacement's old text does not occur, or changes nothing.
    """
    right = (FIXTURES / op / f"{op}_impl.py").read_text(encoding="utf-8")
    page = cases.load(FIXTURES / op / "honest.md", {"kernel": {"": right.encode()}})
    honest = [Kernel("honest", case.name, case.why, case.files[""].decode()) for case in page.cases]
    rows = yaml.safe_load((FIXTURES / op / "wrong.yaml").read_text(encoding="utf-8"))
    wrong = [Kernel("wrong", row["id"], row["why"], _replaced(op, right, row)) for row in rows]
    return [Kernel("right", op, "the kernel", right), *honest, *wrong]


def _replaced(op: str, text: str, row: dict[str, object]) -> str:
    replacements = row["replace"]
    assert isinstance(replacements, list)
    for old, new in replacements:
        if old not in text:
            raise click.ClickException(
                f"tests/fixtures/fresh/{op}/wrong.yaml: {row['id']}: not in {op}_impl.py: {old!r}; mend the old text"
            )
        if old == new:
            raise click.ClickException(f"tests/fixtures/fresh/{op}/wrong.yaml: {row['id']} replaces {old!r} by itself")
        text = text.replace(old, new)
    return text
