"""Files that a generator owns until somebody edits them.

Each generated file carries the sha256 of the rest of its text. As long as it fits, the file is still the
generator's and may be written again; otherwise somebody's work is in it, and only `--force` replaces that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from pypto_op.documents import together
from pypto_op.documents.reading import read_text
from pypto_op.documents.stamps import is_untouched
from pypto_op.documents.writing import write_atomically
from pypto_op.errors import ContractError
from pypto_op.vocabulary import Word


class Fate(Word):
    """What became of a file."""

    WRITTEN = "written"
    UNCHANGED = "unchanged"
    REPLACED = "replaced"
    KEPT = "kept"


@dataclass(frozen=True)
class Outcome:
    """One file after a generator ran.

    Attributes:
        path: the file.
        fate: `kept` means that it was edited by somebody and was not touched.
    """

    path: Path
    fate: Fate


def render(template: str, context: Mapping[str, Any]) -> str:
    """Return a template of this room, filled in."""
    folder = Path(__file__).with_name("templates")
    # Python and Markdown, not HTML: what goes in was checked by the documents' schemas, and goes through `repr`.
    environment = Environment(  # noqa: S701
        loader=FileSystemLoader(folder), undefined=StrictUndefined, keep_trailing_newline=True, trim_blocks=True
    )
    environment.filters["repr"] = repr
    return environment.get_template(template).render(**context)


def write(files: Sequence[tuple[Path, str]], *, force: bool = False) -> list[Outcome]:
    """Write generated files, but never over somebody's work.

    Args:
        files: path and whole text of each.
        force: replace edited files too.

    Raises:
        ContractError: a path is taken by something that is no file.
        InfraError: a file cannot be written.
    """
    outcomes = []
    for path, text in files:
        fate = fate_of(path, text, force=force)
        if fate in _NEW:
            write_atomically(path, text)
        outcomes.append(Outcome(path, fate))
    return outcomes


def write_together(own: Path, texts: Mapping[Path, str], *, force: bool = False, whole: bool = True) -> list[Outcome]:
    """Write generated files of one folder as `write` does, all at once (`documents.together`).

    Args:
        own: the folder of drafts.
        texts: path and whole text of each.
        force: replace edited files too.
        whole: no other file belongs to them.

    Raises:
        ContractError: a path is taken by something that is no file.
        InfraError: a file cannot be written.
    """
    fates = {path: fate_of(path, text, force=force) for path, text in texts.items()}
    new = {path: text for path, text in texts.items() if fates[path] in _NEW}
    together.replace_together(own, new, whole=whole and Fate.KEPT not in fates.values())
    return [Outcome(path, fate) for path, fate in fates.items()]


def fate_of(path: Path, text: str, *, force: bool) -> Fate:
    """Return what becomes of a file when `text` is to be its own.

    Raises:
        ContractError: the path is taken by something that is no file.
    """
    if not path.exists() and not path.is_symlink():
        return Fate.WRITTEN
    if path.is_symlink() or not path.is_file():
        raise ContractError("is no regular file", file=path, remedy="move it away")
    present = read_text(path)
    if present == text:
        return Fate.UNCHANGED
    if not force and not is_untouched(present):
        return Fate.KEPT
    return Fate.REPLACED


_NEW = (Fate.WRITTEN, Fate.REPLACED)
