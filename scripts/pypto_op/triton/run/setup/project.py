"""The verification folder: which file is the task, which the implementation, where results lie, what they are bound to."""

from __future__ import annotations

import difflib
import hashlib
import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from pypto_op.errors import ContractError, no_folder
from pypto_op.hashing import sha256_file
from pypto_op.triton.run.setup.results import is_sealed

DEFAULT_IMPL = "triton_ascend_impl"
_TASK = "_torch.py"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}\Z")
_DATA_NAME = re.compile(r"""["']([A-Za-z0-9_.\-]+\.jsonl?)["']""")
_RESULTS = re.compile(r"(verify|perf)_result.*\.json\Z")
_LONGEST_RESULT = 64 << 20
"""Bytes; what is longer is data, whoever wrote it."""


@dataclass(frozen=True)
class Project:
    """`{op}_torch.py` and `{op}_{impl}.py` in one folder."""

    folder: Path  # the folder, absolute
    op_name: str  # the operator
    impl_name: str  # name of the implementation without `{op}_`

    @classmethod
    def at(cls, verify_dir: Path | str, op_name: str, impl_name: str) -> Project:
        """Open a folder; raise ContractError for a name that cannot be one, or a folder that is not there."""
        for word, name in (("op_name", op_name), ("triton_impl_name", impl_name)):
            if not _NAME.match(name):
                raise ContractError(f"{name[:60]!r} cannot be {word}", remedy="use letters, digits and underscores")
        folder = Path(verify_dir).expanduser().resolve()
        if not folder.is_dir():
            raise no_folder(verify_dir, "make it and copy task and implementation there")
        return cls(folder, op_name, impl_name)

    @property
    def task(self) -> Path:
        """The reference."""
        return self.folder / f"{self.op_name}{_TASK}"

    @property
    def impl(self) -> Path:
        """The implementation under judgement."""
        return self.folder / f"{self.op_name}_{self.impl_name}.py"

    @property
    def verify_result(self) -> Path:
        """Where the verdict about this implementation lies."""
        return self.folder / f"verify_result{self._suffix}.json"

    @property
    def perf_result(self) -> Path:
        """Where its times lie unless the caller says otherwise."""
        return self.folder / f"perf_result{self._suffix}.json"

    @property
    def tuning_report(self) -> Path:
        """Where the report of a search lies."""
        return self.folder / f"{self.op_name}_tuning_report{self._suffix}.md"

    @property
    def tuning_folder(self) -> Path:
        """Where searches keep their candidates."""
        return self.folder / "_debug" / f"tuning{self._suffix}"

    @property
    def _suffix(self) -> str:
        return "" if self.impl_name == DEFAULT_IMPL else "_" + self.impl_name.removeprefix("triton_")

    def check_name(self) -> None:
        """Raise ContractError where neither task nor implementation has this operator's name: a slip, not a lost file."""
        if self.task.is_file() or self.impl.is_file():
            return
        there = sorted(path.name.removesuffix(_TASK) for path in self.folder.glob(f"?*{_TASK}"))
        meant = difflib.get_close_matches(self.op_name, there, 3) or there[:3]
        remedy = f"did you mean {' or '.join(meant)}?" if meant else f"copy {self.task.name} and {self.impl.name} there"
        raise ContractError(f"no operator is called {self.op_name}", file=self.folder, remedy=remedy)

    def check(self) -> None:
        """Raise ContractError when a file is missing."""
        self.check_name()
        for path, what in ((self.task, "task"), (self.impl, "implementation")):
            if not path.is_file():
                raise ContractError(f"the {what} is missing", file=path, remedy=f"copy it there under the name {path.name}")

    def own_files(self) -> list[Path]:
        """Return the files whose kernels may be launched: the implementation and what lies beside it, not the task."""
        beside = (path for path in sorted(self.folder.rglob("*.py")) if "_debug" not in path.parts)
        return [path for path in beside if not path.stem.endswith("_torch")]

    def data_files(self) -> list[Path]:
        """Return the task's data: the JSON files that are no results."""
        files = [*sorted(self.folder.glob("*.json")), *sorted(self.folder.glob("*.jsonl"))]
        return [path for path in files if not _is_result(path)]

    def hidden(self) -> list[Path]:
        """Return the files that the implementation may not read."""
        return [self.task, *self.folder.glob("*.json"), *self.folder.glob("*.jsonl"), self.folder / "__pycache__"]

    def hashes(self) -> dict[str, str]:
        """Return the sha256 of everything that a verdict depends on."""
        return {
            "task": sha256_file(self.task),
            "impl": sha256_file(self.impl),
            "data": _together(self.data_files()),
            "siblings": _together(self._siblings()),
        }

    def _siblings(self) -> list[Path]:
        """Return the files beside the implementation that it may load.

        Another implementation of the operator may change without harm to this verdict, unless a file that counts names it.
        """
        left = [path for path in self.own_files() if path != self.impl]
        found = [self.impl, *(path for path in left if not path.stem.startswith(f"{self.op_name}_triton_"))]
        for path in found:
            text = path.read_text(encoding="utf-8", errors="replace")
            found += [other for other in left if other not in found and other.stem in text]
        return sorted(found[1:])

    def stage_task(self, folder: Path) -> Path:
        """Lay the task out in `folder` with its data under every name that it may ask for; return the task's path there.

        Some tasks name their data file, others derive the name from their own; both must work after the renaming to
        `{op}_torch.py`.
        """
        folder.mkdir(parents=True, exist_ok=True)
        for path in sorted(self.folder.iterdir()):
            if path.name not in ("_debug", "__pycache__", self.task.name):
                (folder / path.name).symlink_to(path)
        staged = folder / self.task.name
        shutil.copyfile(self.task, staged)
        data = self.data_files()
        asked = data_names(staged.read_text(encoding="utf-8", errors="replace"))
        asked |= {f"{self.task.stem}.json", f"{self.op_name}.json"}
        usual = [path for path in data if "all_case" not in path.stem] or data
        if len(usual) == 1:
            for name in asked:
                if not (folder / name).exists():
                    (folder / name).symlink_to(usual[0])
        return staged


def data_names(text: str) -> set[str]:
    """Return the names of data files that a task's text has in quotes."""
    return set(_DATA_NAME.findall(text))


def _is_result(path: Path) -> bool:
    """Whether a file is a result of ours: by its name, by its seal where the caller named it otherwise, or still empty."""
    if _RESULTS.match(path.name):
        return True
    try:
        size = path.stat().st_size
        if not size:  # the shell has opened it for what a command is about to print
            return True
        if size > _LONGEST_RESULT:
            return False
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(found, dict) and "seal" in found and is_sealed(found)


def _together(paths: list[Path]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        digest.update(f"{path.name}\0{sha256_file(path)}\0".encode())
    return digest.hexdigest()
