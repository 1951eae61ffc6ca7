"""The requests of `evals/requests`, read and checked; their hidden goldens never leave that folder but for a grader's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pypto_op.bundle_files import bundle_root
from pypto_op.documents import schema
from pypto_op.documents.reading import read_yaml
from pypto_op.errors import ContractError
from pypto_op.hashing import sha256_file, sha256_json

QUESTION = "QUESTION.md"
"""Where a team leaves what only a person can settle, in its workspace."""

DRAWS = "draws.py"
"""In the evaluations' folder: makes the inputs of all cases."""

CANARY = "Hidden golden"
"""The first words of every hidden golden; who shows them has read one."""


@dataclass(frozen=True)
class Request:
    """One request."""

    id: str  # the name of its folder
    folder: Path  # holds `request.yaml` and, where a kernel may solve it, `golden.py`
    data: Mapping[str, Any]  # `request.yaml`, as `schemas/eval_request.schema.json` describes it

    @property
    def op(self) -> str:
        """The operator's name."""
        return str(self.data["op"])

    @property
    def golden(self) -> Path:
        """The hidden golden."""
        return self.folder / "golden.py"

    def digest(self) -> str:
        """Return the sha256 of what is asked and by what it is graded: the request's files, and the inputs that they draw."""
        files = [path for path in sorted(self.folder.rglob("*")) if path.is_file() and "__pycache__" not in path.parts]
        held = {path.relative_to(self.folder).as_posix(): sha256_file(path) for path in files}
        return sha256_json({**held, DRAWS: sha256_file(folder() / DRAWS)})

    @property
    def transcript(self) -> Path | None:
        """What `--runner replay` plays, or None."""
        named = self.data.get("transcript")
        return bundle_root() / named if named else None

    @property
    def prompt(self) -> str:
        """What the team is told: the words, the wrapper's arguments in order, and where a question goes."""
        lines = [self.data["words"].strip()]
        if "inputs" in self.data:
            names = ", ".join(entry["name"] for entry in self.data["inputs"])
            lines.append(f"The wrapper is {self.op}_wrapper({names}) in custom/{self.op}/{self.op}_impl.py.")
        lines.append(
            f"If only a person can settle something without which no right kernel is possible, write the question into "
            f"{QUESTION} in this folder, and end without a kernel."
        )
        return "\n".join(lines)


def folder() -> Path:
    """Return the folder of the evaluations, which no team may look at.

    Raises:
        ContractError: this is an installed wheel, which has none.
    """
    found = bundle_root() / "evals"
    if not (found / "requests").is_dir():
        raise ContractError("the requests are not here", file=found, remedy="run `pypto-op eval` from a checkout of the bundle")
    return found


def load(names: Iterable[str] = ()) -> list[Request]:
    """Return the named requests, or all, in order of name.

    Raises:
        ContractError: one is unknown, or its data break the schema.
    """
    paths = {path.parent.name: path for path in sorted((folder() / "requests").glob("*/request.yaml"))}
    wanted = set(names)
    unknown = sorted(wanted - set(paths))
    if unknown:
        raise ContractError(f"there is no request {unknown[0][:60]!r}", remedy=f"choose from {', '.join(paths)}")
    return [_load(paths[name]) for name in sorted(wanted or paths)]


def at(place: Path) -> Request:
    """Return the request of a folder, in the evaluations' own or elsewhere.

    Raises:
        ContractError: there is none, or its data break the schema.
    """
    path = place.resolve() / "request.yaml"
    if not path.is_file():
        raise ContractError("no such file", file=path, remedy="write it, or name a request's folder, as evals/requests/rmsnorm")
    return _load(path)


def _load(path: Path) -> Request:
    data = read_yaml(path)
    schema.check(data, "eval_request", file=path)
    request = Request(path.parent.name, path.parent, data)
    if "cases" in data and not request.golden.is_file():
        raise ContractError("a request with cases has no golden", file=request.golden, remedy="write it")
    return request
