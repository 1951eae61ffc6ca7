"""The verdict of the guard: may this agent's tool touch these paths, or run this command?

Every method returns None (go ahead) or the reason for a refusal: what would happen, to which path, and what
to do instead. The refusal is what the model reads, so it stands on its own.
"""

from __future__ import annotations

import re
from pathlib import Path

from pypto_op.errors import ContractError
from pypto_op.workspace import OpWorkspace, suffix_phase
from pypto_op_lint.guard.frozen import OpState, read_state
from pypto_op_lint.guard.paths import Located, Place, Surroundings
from pypto_op_lint.guard.roles import RolePolicy, load_roles, match_suffix
from pypto_op_lint.guard.words import is_known

TAG = "[pypto-op-guard]"


class Policy:
    """Judges one request: one agent, one workspace."""

    def __init__(self, surroundings: Surroundings, agent_type: str | None) -> None:
        self.around = surroundings
        self.agent_type = agent_type
        self.roles = load_roles()
        self.role: RolePolicy | None = self.roles.role_of(agent_type)
        self.active = self.role is not None or surroundings.has_operators
        """Whether paths outside the workspace are the guard's business: only where operators are made."""
        self._states: dict[Path, OpState] = {}

    # -- tools that name a path ------------------------------------------------------------------------------

    def write(self, path: str) -> str | None:
        """Judge a write to `path` by an edit tool."""
        if "\0" in path or not path.strip():
            return refusal("the path is empty or holds a NUL character", path, "name one file")
        return self.write_located(self.around.locate(path))

    def write_located(self, at: Located, *, shell: str | None = None) -> str | None:
        """Judge a write to a path whose place is known; `shell` names the program where no edit tool writes it."""
        if at.place in (Place.DEVICE, Place.SCRATCH):
            return None
        if at.place is Place.SECRET:
            return self.secret(at.path)
        if at.place is Place.MACHINE:
            return refusal(
                "this file belongs to the state machine and no tool may write it",
                at.path,
                "read it if you like; the orchestrator changes it with state_transition",
            )
        if at.place is Place.OPERATOR:
            return self._write_operator_file(at, shell)
        if at.place is Place.WORKSPACE or (at.place is Place.HARNESS and self.role is None):
            return self._role_refusal_outside(at) if self.role else None
        return self._outside(at) if self.active else None

    def notebook(self, path: str) -> str | None:
        """Judge an edit of a notebook's cells: no rule reads a notebook, so none may lie among an operator's files."""
        at = self.around.locate(path)
        if at.place is not Place.OPERATOR:
            return None
        return refusal("an operator has no notebooks, since no rule reads them", at.path, "write a .py file with Write or Edit")

    def read(self, path: str) -> str | None:
        """Judge a read of `path`: the information barrier."""
        return self.read_located(self.around.locate(path)) if "\0" not in path else None

    def read_located(self, at: Located) -> str | None:
        """Judge a read of a path whose place is known."""
        if at.place is Place.SECRET:
            return self.secret(at.path)
        if self.role and self.role.reads_denied and {".git", "objects"} <= set(at.path.parts):
            return self.read_history("")
        if not self.role or not at.op:
            return None
        hit, _ = match_suffix(self.role.reads_denied, _source_of(at.relative), at.op.name)
        if not hit:
            return None
        return refusal(
            f"{self.role.name} may not read the judge's goldens (information barrier)",
            at.path,
            "work from eval/evaluation_report.json, the interfaces and your own impl",
        )

    def read_below(self, folder: str) -> str | None:
        """Judge a search through everything below `folder`."""
        if self.around.holds_secret(Path(self.around.cwd, folder)):
            return self.secret(folder)
        if not self.role or not self.role.reads_denied:
            return None
        if ".git" in Path(self.around.cwd, folder).parts:
            return self.read_history("")
        for located in self.around.guarded_below(Path(self.around.cwd, folder)):
            if self.read_located(located):
                return refusal(
                    f"{self.role.name} may not search a folder that holds the judge's goldens",
                    located.path,
                    "name the files to search instead of the folder",
                )
        return None

    def names_below(self, folder: str) -> str | None:
        """Judge a list of the files below `folder`: names of goldens are free, those of what no agent may look at are not."""
        return self.secret(folder) if self.around.holds_secret(Path(self.around.cwd, folder)) else None

    def read_unnamed(self, program: str) -> str | None:
        """Judge a read of files that another program names, beside goldens."""
        who = self.role.name if self.role else ""
        return refusal(
            f"`{program}` would read whatever is named to it while it runs, and {who} may not read the judge's goldens",
            None,
            "write the names or a pattern that fits no golden (`custom/<op>/*_impl.py`); run code from a file that lies there",
        )

    def secret(self, path: Path | str | None) -> str:
        """Return the refusal of whatever touches the account's sealing key."""
        return refusal(
            "the account's sealing key, or an evaluation's hidden golden, lies there, and no agent may touch it",
            path,
            "name the files you mean; whether a seal holds, `pypto-op state audit` says",
        )

    def read_history(self, path: str) -> str | None:
        """Judge a look at what git keeps of `path` (a pattern); an empty one is all of it."""
        if not self.role or not self.role.reads_denied:
            return None
        remedy = "name the files, each in full: `git diff -- custom/<op>/<op>_impl.py`, `git log -p -- FILE`"
        if not path or not is_known(path):
            return refusal(f"{self.role.name} may not look through history that holds the judge's goldens", None, remedy)
        at = self.around.locate(path)
        if reason := self.read_located(at):
            return reason
        if at.op is None:
            covers = at.path in self.around.operators_folder.parents or at.path == self.around.operators_folder
        else:
            folders = (glob.split("*")[0].rpartition("/")[0] for glob in self.role.reads_denied)
            covers = any(f"{folder}/".startswith(f"{at.relative}/" if at.relative != "." else "") for folder in folders)
        if not covers:
            return None
        return refusal(f"{self.role.name} may not look through the history of a folder with the judge's goldens", at.path, remedy)

    def state_call(self, action: str) -> str | None:
        """Judge a call of the state tool."""
        if action in self.roles.state_read_actions or self.roles.may_move_state(self.agent_type):
            return None
        writer = self.roles.state_writers[0]
        who = self.role.name if self.role else (self.agent_type or "this session (it has no agent name)")
        return refusal(
            f"only {writer} may move the state machine, and {who} asked for {action or 'an action'!r}",
            None,
            f"return your result to the orchestrator; a session of its own starts with "
            f"`claude --agent pypto-op:{writer}`, and a person can run `pypto-op state` in a terminal",
        )

    def state_inside(self, what: str) -> str:
        """Return the refusal of a way into the state machine that is neither its tool nor its command."""
        return refusal(f"{what} goes around the state machine's own checks", None, "use state_transition or `pypto-op state`")

    def command_call(self, command: str) -> str | None:
        """Judge a call of `pypto-op COMMAND`; who is no agent of the team may call all of them."""
        if self.role is None or not is_known(command) or command in (*self.roles.open_commands, *self.role.runs):
            return None
        owners = [role.name for role in self.roles.roles.values() if command in role.runs]
        if not owners:
            return None
        return refusal(
            f"{self.role.name} does not run `pypto-op {command}`",
            None,
            f"return to the orchestrator; it is the work of {', '.join(owners)}",
        )

    def ends(self, program: str, whom: str) -> str | None:
        """Judge the end of a process that is no job of the agent's own shell; who is no agent of the team may end all."""
        if self.role is None:
            return None
        return refusal(
            f"`{program}` would end {whom}: what leads this team, not what {self.role.name} has started",
            None,
            "end your own work by `kill $!`, `kill %1` or `timeout SECONDS COMMAND`; what a call leaves running ends with it",
        )

    # -- an operator's files ---------------------------------------------------------------------------------

    def state_of(self, op: OpWorkspace) -> OpState:
        """Return what the operator's state file says, read once per request."""
        if op.root not in self._states:
            self._states[op.root] = read_state(op.root)
        return self._states[op.root]

    def _write_operator_file(self, at: Located, shell: str | None) -> str | None:
        assert at.op is not None
        if shell:
            return refusal(
                f"`{shell}` would change an operator's file past the linter",
                at.path,
                f"use the Write or Edit tool on this path; scratch goes under custom/{at.op.name}/_debug/, reading is free",
            )
        why = self.why_not(at)
        return refusal(why[0], at.path, why[1]) if why else None

    def why_not(self, at: Located) -> tuple[str, str] | None:
        """Return why this agent may not write an operator's file, and what to do instead; None where it may."""
        assert at.op is not None
        state = self.state_of(at.op)
        because = state.frozen_because(at.relative, at.op.name)
        if because:
            remedy = "leave it as it is; if it must change, the orchestrator goes back with rollback_to_stage (or reopen_phase)"
            return f"this file is frozen: {because}", remedy
        why = self._not_its_file(at, state) if self.role else None
        return (why, "return to the orchestrator and say what you need") if why else None

    def _not_its_file(self, at: Located, state: OpState) -> str | None:
        assert self.role is not None
        assert at.op is not None
        op, why = at.op.name, ""
        for rule in self.role.operator_writes:
            hit, suffix = match_suffix(rule.files, at.relative, op)
            if not hit:
                continue
            if rule.stages and state.stage is not None and state.stage not in rule.stages:
                stages = " or ".join(str(n) for n in rule.stages)
                why = f"{self.role.name} writes it in stage {stages} only, and this is stage {state.stage}"
            elif rule.active_phase and suffix and (problem := _phase_problem(suffix, state)):
                why = problem
            else:
                return None
        if not why:
            owners = ", ".join(self.roles.writers_of(at.relative, op)) or "nobody on the team"
            why = f"{self.role.name} does not own it; it belongs to {owners}"
        return why

    def _role_refusal_outside(self, at: Located) -> str | None:
        assert self.role is not None
        globs = self.role.workspace_globs
        if not globs:
            return refusal(
                f"{self.role.name} writes inside custom/<op>/ only", at.path, "put scratch files under custom/<op>/_debug/"
            )
        workspace = self.around.workspace
        if at.path.is_relative_to(workspace) and match_suffix(globs, at.path.relative_to(workspace).as_posix(), "")[0]:
            return None
        allowed = ", ".join(globs).replace("{op}", "<op>")
        return refusal(f"{self.role.name} writes {allowed} only", at.path, "put scratch files there too")

    def _outside(self, at: Located) -> str:
        temporary = ", in the system's temporary folder" if at.place is Place.TEMP else ""
        return refusal(
            f"this path is outside the workspace{temporary}",
            at.path,
            f"keep every file under {self.around.workspace}; scratch goes to custom/<op>/_debug/",
        )


def _source_of(relative: str) -> str:
    """Return the Python file that a compiled one was made from, and any other path as it is."""
    return re.sub(r"__pycache__/([^/]+?)\.[^/]*\.pyc\Z", r"\1.py", relative)


def refusal(problem: str, path: Path | str | None, remedy: str) -> str:
    """Return one line: tag, path, problem, remedy."""
    place = f"{printable(str(path))}: " if path else ""
    return f"{TAG} {place}{problem}; {remedy}"


def printable(text: str) -> str:
    """Return a path or name so that it cannot break the line it stands in."""
    shown = "".join(c if c.isprintable() else "?" for c in text)
    return shown if len(shown) <= 300 else f"{shown[:150]}...{shown[-140:]}"


def _phase_problem(suffix: str, state: OpState) -> str | None:
    try:
        phase = suffix_phase(suffix)
    except ContractError:
        return f"{suffix!r} is no cumulative module suffix (1, 12, 123, ...)"
    if state.active_phase is not None and state.active_phase != phase:
        return f"it is the file of phase M{phase}, and the active phase is M{state.active_phase}"
    return None
