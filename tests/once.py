"""What takes minutes to build is built once for all test processes, by whichever comes first; the others wait for it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from pypto_op.locks import Lock


def folder_of(factory: pytest.TempPathFactory, worker: str, name: str, build: Callable[[Path], object]) -> Path:
    """Return the folder `name` of this run of the tests, built.

    Args:
        factory: pytest's maker of folders.
        worker: pytest-xdist's name of this process, `master` where it is alone (the fixture `worker_id`).
        name: of the folder; one for each thing that is built.
        build: fills the empty folder; where it raises or skips, the next process tries again.
    """
    base = factory.getbasetemp()
    folder = (base if worker == "master" else base.parent) / name
    folder.parent.mkdir(parents=True, exist_ok=True)
    done = folder.with_suffix(".done")
    with Lock(folder.with_suffix(".lock"), seconds=None):
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            build(folder)
            done.touch()
    return folder
