"""Reads the launches of a finished run from its output folder; nothing is run."""

from __future__ import annotations

from pathlib import Path

from pypto_op.backends.launches import TASK_TIMES
from pypto_op.errors import ContractError
from pypto_op.perf.launches import Launch, read_launch


def launches_in(folder: Path) -> list[tuple[str, Launch]]:
    """Return the launches whose task times lie in a folder or below it, each with its place there.

    Args:
        folder: `output/` or one `output_*` of pypto's cost model, or what `pypto-op perf` kept in `_debug/perf/`.

    Raises:
        ContractError: there is no such folder, or no launch in it.
    """
    depth = len(Path(TASK_TIMES).parts)
    places = sorted(path.parents[depth - 1] for path in folder.rglob(Path(TASK_TIMES).name)) if folder.is_dir() else []
    if not places:
        raise ContractError(
            "holds no task times of the cost model",
            file=folder,
            remedy="give the output folder of a run with the cost model, or call `pypto-op perf` without --left",
        )
    return [(str(place.relative_to(folder)), read_launch(place)) for place in places]
