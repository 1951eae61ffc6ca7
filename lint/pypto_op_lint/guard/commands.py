"""The verdict on a shell command: its effects, found by `shell`, held against the policy."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from itertools import islice
from pathlib import Path

from pypto_op_lint.guard.code import NAMES_KEY, read_code
from pypto_op_lint.guard.effects import READING, TREES, Effect, Kind
from pypto_op_lint.guard.paths import Located, Place, Surroundings
from pypto_op_lint.guard.policy import Policy, refusal
from pypto_op_lint.guard.shell import ParserMissing, UnreadableCommand, Walker, effects_of
from pypto_op_lint.guard.words import ANY, LISTED, STAR, clean, is_known, pattern_regex

_ARTEFACT = re.compile(
    r"[\w]+_(?:impl|golden)\.py|\btest_\w+\.py|(?:SPEC|API_REPORT|DESIGN|MEMORY)\.md|module_interfaces\.yaml"
    r"|adversarial_(?:suite|runner)|\.orchestrator_"
)
_MAX_MATCHES = 400
_MAX_REASONS = 3


def judge_command(policy: Policy, command: str, cwd: str | None) -> str | None:
    """Return None, or why `command` may not run in `cwd` (None: nobody knows where): up to three reasons, one a line."""
    return CommandJudge(policy, command).verdict(cwd)


def judge_code(policy: Policy, code: str, cwd: str | None) -> str | None:
    """Return None, or why a piece of Python may not run in `cwd`."""
    walker = Walker(cwd, str(policy.around.home))
    read_code(walker, clean(code), python=True)
    return CommandJudge(policy, code).of(walker.effects)


def bundle_commands(command: str, around: Surroundings) -> set[str]:
    """Return the commands of this bundle that a shell command runs: they write operator files themselves."""
    try:
        effects = effects_of(command, str(around.cwd), str(around.home))
    except (UnreadableCommand, ParserMissing):
        return set()
    return {"state" if e.kind is Kind.STATE else e.target for e in effects if e.kind in (Kind.COMMAND, Kind.STATE)}


class CommandJudge:
    """Judges one command."""

    def __init__(self, policy: Policy, command: str) -> None:
        self.policy = policy
        self.around = policy.around
        self.command = command

    def verdict(self, cwd: str | None) -> str | None:
        """Return None, or up to three reasons, one a line."""
        if self.policy.active and NAMES_KEY.search(re.sub(r"[\\'\"]", "", self.command)):
            return self.policy.secret(None)
        try:
            return self.of(effects_of(self.command, cwd, str(self.around.home)))
        except UnreadableCommand as problem:
            return self._unreadable(f"this command cannot be checked: {problem}", "write it more simply")
        except ParserMissing as problem:
            return self._unreadable("shell commands cannot be checked here", str(problem))

    def of(self, effects: list[Effect]) -> str | None:
        """Return None, or up to three reasons against these effects, one a line."""
        reasons = (reason for effect in dict.fromkeys(effects) if (reason := self._judge(effect)))
        return "\n".join(dict.fromkeys(islice(reasons, _MAX_REASONS))) or None

    def _unreadable(self, problem: str, remedy: str) -> str | None:
        if not self._mentions_operator():
            return None
        return refusal(f"{problem}, and it names an operator's files", None, remedy)

    def _mentions_operator(self) -> bool:
        """Say whether the command's text, or the folder it runs in, has to do with an operator."""
        if not self.policy.active:
            return False
        if self.around.locate(self.around.cwd / "_").op is not None:
            return True
        names = {op.name for op in self.around.operators}
        words = set(re.findall(r"\w+", self.command))
        return "custom" in words or bool(names & words) or bool(_ARTEFACT.search(self.command))

    # -- one effect ------------------------------------------------------------------------------------------

    def _judge(self, effect: Effect) -> str | None:
        if effect.kind is Kind.STATE:
            return self.policy.state_call(effect.target)
        if effect.kind is Kind.INSIDE:
            return self.policy.state_inside(effect.target)
        if effect.kind is Kind.COMMAND:
            return self.policy.command_call(effect.target)
        if effect.kind is Kind.ENDS:
            return self.policy.ends(effect.program, effect.target)
        if effect.kind is Kind.SECRET:
            return self.policy.secret(None) if self.policy.active else None
        nothing_known = not re.sub(f"[{ANY}{STAR}{LISTED}/.]", "", effect.target)
        anywhere = effect.cwd is None and ANY not in effect.target
        if nothing_known and effect.kind in READING and (LISTED in effect.target or anywhere):
            return self.policy.read_unnamed(effect.program) if self._goldens else None
        effect = replace(effect, target=effect.target.replace(LISTED, ANY))
        pattern = _absolute(effect)
        if effect.kind is Kind.HISTORY:
            return self.policy.read_history(pattern if effect.target else "")
        if is_known(pattern):
            return self._known(effect, pattern)
        if nothing_known and not effect.target.startswith("./"):
            return self._globbed(effect, pattern)
        found = (self._known(effect, str(at.path), at) for at in self._candidates(effect, pattern))
        return next((reason for reason in found if reason), None) or self._globbed(effect, pattern)

    def _known(self, effect: Effect, path: str, at: Located | None = None) -> str | None:
        at = at or self.around.locate(path)
        if effect.kind in READING:
            below = effect.kind is Kind.READ_TREE and not at.path.is_file()
            return self.policy.read_located(at) or (self.policy.read_below(path) if below else None)
        reason = self.policy.write_located(at, shell=effect.program)
        op = self.around.holds_operator(at.path) if effect.kind is Kind.WRITE_TREE and not reason else None
        if op is None or at.place is Place.SCRATCH:
            return reason
        return refusal(
            f"`{effect.program}` would change the operator `{op.name}` below it past the linter",
            at.path,
            "name the files or folders that are meant, none of them an operator's",
        )

    @cached_property
    def _goldens(self) -> list[Located]:
        """The judge's goldens that this agent may not read."""
        return [at for at in self.around.guarded_files if self.policy.read_located(at)]

    # -- targets that are known in part ----------------------------------------------------------------------

    def _candidates(self, effect: Effect, pattern: str) -> Iterator[Located]:
        regex = pattern_regex(pattern)
        for at in (*(self._goldens if effect.kind in READING else self.around.guarded_files), *self.around.secret_files):
            if regex.match(str(at.path)) or effect.kind in TREES and any(regex.match(str(folder)) for folder in _folders(at)):
                yield at

    def _globbed(self, effect: Effect, pattern: str) -> str | None:
        """Judge the paths that a glob matches now; a glob with an unknown part is not judged."""
        if ANY in pattern:
            return None
        text = "".join("*" if c == STAR else glob.escape(c) for c in pattern)
        paths = islice(glob.iglob(text, include_hidden=True), _MAX_MATCHES)
        return next((reason for path in paths if (reason := self._known(effect, path))), None)


def _absolute(effect: Effect) -> str:
    """Return the target as an absolute pattern; one that starts with ANY where its folder is unknown."""
    target = os.path.expanduser(effect.target) if effect.target.startswith("~") else effect.target
    if not target.startswith(("/", ANY)):
        target = f"{effect.cwd if effect.cwd is not None else ANY}/{target}"
    if ANY in target and ".." in target:
        head, _, tail = target.rpartition("..")
        target = ANY + tail if ANY in head else target
    return os.path.normpath(target) if target.startswith("/") else target


def _folders(at: Located) -> Iterator[Path]:
    """Yield the folders of a guarded file, up to the operator's own."""
    for folder in at.path.parents:
        yield folder
        if at.op is None or folder == at.op.root:
            return
