"""Who may write, read and run what: the table `roles.yaml`, and the questions it answers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

TABLE = Path(__file__).with_name("roles.yaml")


@dataclass(frozen=True)
class WriteRule:
    """Files that a role may write; with `stages` or `active_phase`, only then.

    `files` count from the operator's directory, or, where `base` says so, from the workspace.
    """

    files: tuple[str, ...]
    stages: tuple[int, ...] = ()
    active_phase: bool = False
    base: str = "operator"


@dataclass(frozen=True)
class RolePolicy:
    """What one agent of the team may do in an operator's directory."""

    name: str
    purpose: str
    writes: tuple[WriteRule, ...]
    reads_denied: tuple[str, ...]
    runs: tuple[str, ...]

    @property
    def operator_writes(self) -> tuple[WriteRule, ...]:
        """The rules about files in an operator's directory."""
        return tuple(rule for rule in self.writes if rule.base == "operator")

    @property
    def workspace_globs(self) -> tuple[str, ...]:
        """What the role may write elsewhere in the workspace."""
        return tuple(glob for rule in self.writes if rule.base == "workspace" for glob in rule.files)


@dataclass(frozen=True)
class FrozenRule:
    """Files that are read-only once `stage` is completed, or, without one, once their phase is verified."""

    files: tuple[str, ...]
    stage: int | None


@dataclass(frozen=True)
class RoleTable:
    """The whole of `roles.yaml`."""

    machine_files: tuple[str, ...]
    scratch: tuple[str, ...]
    frozen: tuple[FrozenRule, ...]
    state_writers: tuple[str, ...]
    state_read_actions: tuple[str, ...]
    harness_files: tuple[str, ...]
    open_commands: tuple[str, ...]
    command_writes: dict[str, tuple[str, ...]]
    roles: dict[str, RolePolicy]

    def role_of(self, agent_type: str | None) -> RolePolicy | None:
        """Return the policy for an agent's name (`pypto-op:pypto-op-coder`), None for anyone else."""
        return self.roles.get((agent_type or "").rpartition(":")[2])

    def may_move_state(self, agent_type: str | None) -> bool:
        """Say whether this agent may call the state machine's writing actions."""
        return (agent_type or "").rpartition(":")[2] in self.state_writers

    def is_machine_file(self, relative: str) -> bool:
        """Say whether the state machine alone writes this file of an operator's directory."""
        return _matches_any(self.machine_files, relative, "")

    def is_scratch(self, relative: str) -> bool:
        """Say whether this path of an operator's directory is scratch."""
        return _matches_any(self.scratch, relative, "") or _matches_any(self.scratch, relative + "/", "")

    def is_work_of(self, command: str, relative: str, op: str) -> bool:
        """Say whether this command of the bundle writes this file of an operator's directory itself."""
        return _matches_any(self.command_writes.get(command, ()), relative, op)

    def writers_of(self, relative: str, op: str) -> list[str]:
        """Return the names of the roles that may write this file at some time, in the table's order."""
        return [
            role.name
            for role in self.roles.values()
            if any(_matches_any(rule.files, relative, op) for rule in role.operator_writes)
        ]


def _globs(value: Any) -> tuple[str, ...]:
    return tuple(str(item) for item in value or ())


@lru_cache(maxsize=1)
def load_roles() -> RoleTable:
    """Return the table; `schemas/roles.schema.json` describes it and a test holds it to that."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    raw = yaml.load(TABLE.read_text(encoding="utf-8"), Loader=loader)
    roles = {
        name: RolePolicy(
            name=name,
            purpose=row["purpose"],
            writes=tuple(
                WriteRule(_globs(w["files"]), tuple(w.get("stages", ())), bool(w.get("active_phase")), w.get("base", "operator"))
                for w in row["writes"]
            ),
            reads_denied=_globs(row["reads_denied"]),
            runs=_globs(row["runs"]),
        )
        for name, row in raw["roles"].items()
    }
    return RoleTable(
        machine_files=_globs(raw["machine_files"]),
        scratch=_globs(raw["scratch"]),
        frozen=tuple(FrozenRule(_globs(row["files"]), row.get("stage")) for row in raw["frozen"]),
        state_writers=_globs(raw["state_tool"]["writers"]),
        state_read_actions=_globs(raw["state_tool"]["read_actions"]),
        harness_files=_globs(raw["harness_files"]),
        open_commands=_globs(raw["open_commands"]),
        command_writes={command: _globs(globs) for command, globs in raw["command_writes"].items()},
        roles=roles,
    )


@lru_cache(maxsize=512)
def glob_regex(glob: str, op: str = "") -> re.Pattern[str]:
    """Compile a glob of the table: `*` and `?` within a folder, `**` across folders, `{op}`, `{suffix}`.

    The group `suffix` holds the module suffix where the glob has one.
    """
    out = []
    for token in re.findall(r"\*\*/|\*\*|\*|\?|\{op\}|\{suffix\}|[^*?{]+|.", glob, re.DOTALL):
        out.append(
            {
                "**/": r"(?:.*/)?",
                "**": r".*",
                "*": r"[^/]*",
                "?": r"[^/]",
                "{op}": re.escape(op) if op else r"[a-z][a-z0-9_]*?",
                "{suffix}": r"(?P<suffix>\d+)",
            }.get(token)
            or re.escape(token)
        )
    return re.compile("".join(out) + r"\Z", re.DOTALL)


def _matches_any(globs: tuple[str, ...], relative: str, op: str) -> bool:
    return any(glob_regex(glob, op).match(relative) for glob in globs)


def match_suffix(globs: tuple[str, ...], relative: str, op: str) -> tuple[bool, str | None]:
    """Say whether one of `globs` matches, and which module suffix it found."""
    for glob in globs:
        match = glob_regex(glob, op).match(relative)
        if match:
            return True, match.groupdict().get("suffix")
    return False, None
