"""Files of one folder that belong together, such as a suite and its inputs: readers see all old, or all new, or are told.

New texts wait in a folder of drafts until all are there. Then a mark is set, each draft takes its file's place, and the
mark goes. Whoever is killed in between leaves the mark, so `check_whole` can tell that old and new lie side by side.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from pypto_op.documents.writing import write_atomically
from pypto_op.errors import ContractError, unwritable
from pypto_op.workspace import typed

_SCRATCH = "_debug"
_DRAFTS = "drafts-"
_MARK = "replacing.json"
_LEFT_SECONDS = 3600.0
"""Drafts that are older than this were left by a process that was killed."""


@contextlib.contextmanager
def drafts(folder: Path) -> Iterator[Path]:
    """Make a folder for the drafts of files in `folder`, and remove it; those of killed processes go too.

    Raises:
        InfraError: it cannot be made.
    """
    scratch = folder / _SCRATCH
    own = scratch / f"{_DRAFTS}{os.urandom(4).hex()}"
    try:
        own.mkdir(parents=True)
    except OSError as error:
        raise unwritable(error, own) from None
    try:
        for left in scratch.glob(f"{_DRAFTS}*"):
            with contextlib.suppress(OSError):
                if time.time() - left.stat().st_mtime > _LEFT_SECONDS:
                    shutil.rmtree(left)
        yield own
    finally:
        shutil.rmtree(own, ignore_errors=True)
        with contextlib.suppress(OSError):
            scratch.rmdir()  # only when nothing else is in it


def replace_together(own: Path, texts: Mapping[Path, str], *, whole: bool) -> None:
    """Put files in their places, all of them or, for a process that is killed, some and a mark.

    Args:
        own: the folder of drafts (`drafts`).
        texts: path and whole text of each; all lie in one folder.
        whole: nothing old is left beside them, so that an earlier mark has no meaning any more.

    Raises:
        InfraError: one cannot be written.
    """
    mark = own.parent / _MARK
    settled = whole or not mark.exists()
    for path, text in texts.items():
        write_atomically(own / path.name, text)
    if len(texts) > 1:
        write_atomically(mark, json.dumps({"files": [path.name for path in texts]}) + "\n")
    for path in texts:
        try:
            (own / path.name).replace(path)
        except OSError as error:
            raise unwritable(error, path) from None
    if settled:
        mark.unlink(missing_ok=True)


def check_whole(folder: Path) -> None:
    """Raise ContractError where a process was killed while it replaced the files of a folder."""
    mark = folder / _SCRATCH / _MARK
    if mark.exists():
        raise ContractError(
            "old and new files lie side by side: `pypto-op harness new` was stopped while it replaced them",
            file=folder,
            remedy=f"run `pypto-op harness new --force {typed(folder.parent)}`; if they fit each other, remove {mark}",
        )
