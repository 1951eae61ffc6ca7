"""The verdict on a shell command: its effects, found by `shell`, held against the policy."""

from __future__ import annotations

import glob
import os
import re
import subprocess
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from pypto_op_lint.guard.effects import Effect, Kind
from pypto_op_lint.guard.paths import Located, Place, Surroundings
from pypto_op_lint.guard.policy import Policy, printable, refusal
from pypto_op_lint.guard.shell import ParserMissing, UnreadableCommand, effects_of
from pypto_op_lint.guard.words import ANY, STAR, is_known, pattern_regex

_ARTEFACT = re.compile(
    r"[\w]+_(?:impl|golden)\.py|\btest_\w+\.py|(?:SPEC|API_REPORT|DESIGN|MEMORY)\.md|module_interfaces\.yaml"
    r"|adversarial_(?:suite|runner)|\.orchestrator_"
)
_NAMES_KEY = re.compile(r"seal\.key|PYPTO_OP_KEY_FILE|pypto_op\.(?:proof|state)(\.| import .*)\b(key|evidence)\b")
"""Plain text that has no business in an agent's command, whatever program it stands in."""

_MAX_MATCHES = 400
_MAX_REASONS = 3
_GIT_SECONDS = 5
_TREE = (Kind.WRITE_TREE, Kind.READ_TREE)


def judge_command(policy: Policy, command: str) -> str | None:
    """Return None, or why `command` may not run in `policy.around.cwd`."""
    return CommandJudge(policy, command).verdict()


def runs_bundle(command: str, around: Surroundings) -> bool:
    """Say whether a command runs one of this bundle's own, which write operator files themselves."""
    try:
        effects = effects_of(command, str(around.cwd), str(around.home))
    except (UnreadableCommand, ParserMissing):
        return False
    return any(effect.kind in (Kind.COMMAND, Kind.STATE) for effect in effects)


class CommandJudge:
    """Judges one command."""

    def __init__(self, policy: Policy, command: str) -> None:
        self.policy = policy
        self.around = policy.around
        self.command = command

    def verdict(self) -> str | None:
        """Return None, or up to three reasons, one a line."""
        if self.policy.active and _NAMES_KEY.search(re.sub(r"[\\'\"]", "", self.command)):
            return self.policy.secret(None)
        try:
            effects = effects_of(self.command, str(self.around.cwd), str(self.around.home))
        except UnreadableCommand as problem:
            return self._unreadable(f"this command cannot be checked: {problem}", "write it more simply")
        except ParserMissing as problem:
            return self._unreadable("shell commands cannot be checked here", str(problem))
        reasons: dict[str, None] = {}
        for effect in effects:
            reason = self._judge(effect)
            if reason:
                reasons[reason] = None
            if len(reasons) >= _MAX_REASONS:
                break
        return "\n".join(reasons) or None

    def _unreadable(self, problem: str, remedy: str) -> str | None:
        if not self.mentions_operator():
            return None
        return refusal(f"{problem}, and it names an operator's files", None, remedy)

    def mentions_operator(self) -> bool:
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
        if effect.kind is Kind.HISTORY:
            return self._history(effect)
        if effect.kind is Kind.COMMAND:
            return self.policy.command_call(effect.target)
        if effect.kind is Kind.TEMP:
            return self._temp(effect) if self.policy.active else None
        if effect.kind is Kind.OPAQUE:
            return self._opaque(effect)
        if effect.kind in (Kind.GIT_TREE, Kind.GIT_CLEAN):
            return self._git(effect)
        pattern = _absolute(effect)
        if is_known(pattern):
            return self._known(effect, pattern)
        if ANY not in pattern:
            reading = effect.kind in (Kind.READ, Kind.READ_TREE)
            reasons = (self.policy.read_located(at) for at in self._candidates(effect, pattern)) if reading else iter(())
            for reason in (*reasons, *(self._known(effect, path) for path in _globbed(pattern))):
                if reason:
                    return reason
            return None
        return self._unknown(effect, pattern)

    def _history(self, effect: Effect) -> str | None:
        return self.policy.read_history(_absolute(effect) if effect.target else "")

    def _temp(self, effect: Effect) -> str:
        return refusal(
            f"`{effect.target}` picks a temporary file outside the workspace",
            None,
            "name a file under custom/<op>/_debug/ instead",
        )

    def _opaque(self, effect: Effect) -> str | None:
        if not effect.sure or not self.mentions_operator():
            return None
        return refusal(
            f"`{printable(effect.program)}`: {effect.target}, and the command names an operator's files",
            None,
            "use Write or Edit for operator files; otherwise let the command name its targets",
        )

    def _known(self, effect: Effect, path: str) -> str | None:
        at = self.around.locate(path)
        if effect.kind is Kind.READ:
            return self.policy.read_located(at)
        if effect.kind is Kind.READ_TREE:
            return self.policy.read_located(at) or self.policy.read_below(path)
        if effect.kind is Kind.LINK:
            return self._link(effect, at)
        if effect.kind is Kind.MAKE_FOLDER and at.place not in (Place.OUTSIDE, Place.TEMP):
            return None
        reason = self.policy.write_located(at, shell=effect.program)
        if reason or effect.kind is not Kind.WRITE_TREE:
            return reason
        return self._tree(effect, at)

    def _tree(self, effect: Effect, at: Located) -> str | None:
        op = self.around.holds_operator(at.path)
        if at.place is Place.SCRATCH or op is None:
            return None
        return refusal(
            f"`{effect.program}` would change the operator `{op.name}` below it past the linter",
            at.path,
            "name the files or folders that are meant, none of them an operator's",
        )

    def _link(self, effect: Effect, at: Located) -> str | None:
        if at.place is Place.SECRET or self.around.holds_secret(at.path):
            return self.policy.secret(at.path)
        if at.place not in (Place.OPERATOR, Place.MACHINE):
            return None
        return refusal(
            f"`{effect.program}` would give an operator's file a second name that escapes the linter",
            at.path,
            "use the file under its own path",
        )

    # -- targets that are known in part
    # ------------------------------------------------------------------------

    def _unknown(self, effect: Effect, pattern: str) -> str | None:
        reading = effect.kind in (Kind.READ, Kind.READ_TREE)
        prefix = re.split(f"[{ANY}{STAR}]", pattern, maxsplit=1)[0]
        wholly_unknown = not prefix.rpartition("/")[0] and not re.sub(f"[{ANY}{STAR}/.]", "", pattern)
        if wholly_unknown:
            return None if reading else self._unnamed(effect)
        for at in self._candidates(effect, pattern):
            reason = self.policy.read_located(at) if reading else self._known(effect, str(at.path))
            if reason:
                return reason
        if reading or not effect.sure:
            return None
        return self._by_prefix(effect, pattern, prefix) if prefix.startswith("/") else self._unnamed(effect)

    def _candidates(self, effect: Effect, pattern: str) -> Iterator[Located]:
        regex = pattern_regex(pattern)
        for at in (*self.around.guarded_files, *self.around.secret_files):
            if regex.match(str(at.path)) or effect.kind in _TREE and any(regex.match(str(folder)) for folder in _folders(at)):
                yield at

    def _by_prefix(self, effect: Effect, pattern: str, prefix: str) -> str | None:
        """Judge by the folder that is known for certain, unless a later part leads into scratch."""
        folder = prefix.rpartition("/")[0] or "/"
        if "/_debug/" in pattern[len(prefix) :]:
            return None
        at = self.around.locate(folder)
        if effect.kind is Kind.MAKE_FOLDER and at.place not in (Place.OUTSIDE, Place.TEMP):
            return None
        return self.policy.write_located(at, shell=effect.program)

    def _unnamed(self, effect: Effect) -> str | None:
        if not effect.sure or "/_debug/" in effect.target or not self.mentions_operator():
            return None
        return refusal(
            f"what `{printable(effect.program)}` would change cannot be known beforehand, and the command "
            "names an operator's files",
            None,
            "use Write or Edit for operator files; otherwise name the target in full",
        )

    # -- git -------------------------------------------------------------------------------------------------

    def _git(self, effect: Effect) -> str | None:
        pattern = _absolute(effect)
        folder = pattern if is_known(pattern) else str(self.around.cwd)
        if is_known(pattern) and not os.path.isdir(pattern):
            return self._known(Effect(Kind.WRITE, pattern, None, effect.program), pattern)
        below = [at for at in self.around.guarded_files if effect.target == "." or Path(folder) in at.path.parents]
        untracked = effect.kind is Kind.GIT_CLEAN
        hit = _first_tracked(folder, [at.path for at in below], untracked=untracked)
        if hit is None:
            return None
        return refusal(
            f"`{effect.program}` would change an operator's file past the linter",
            hit,
            "restrict it to paths outside custom/, or use Write or Edit on the file",
        )


def _absolute(effect: Effect) -> str:
    """Return the target as an absolute pattern; one that starts with ANY where its folder is unknown."""
    target = effect.target
    if target.startswith("~"):
        target = os.path.expanduser(target)
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


def _globbed(pattern: str) -> list[str]:
    text = "".join("*" if c == STAR else glob.escape(c) for c in pattern)
    return list(islice(glob.iglob(text, include_hidden=True), _MAX_MATCHES))


def _first_tracked(folder: str, guarded: list[Path], *, untracked: bool) -> Path | None:
    """Return the first guarded file that git tracks (or does not, for `untracked`), if there is one."""
    if not guarded:
        return None
    options = ["--others"] if untracked else ["--cached"]
    try:
        done = subprocess.run(
            ["git", "-C", folder, "ls-files", "-z", "--full-name", *options, "--", ":/"],
            capture_output=True,
            timeout=_GIT_SECONDS,
            check=False,
        )
        top = subprocess.run(
            ["git", "-C", folder, "rev-parse", "--show-toplevel"],
            capture_output=True,
            timeout=_GIT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return guarded[0]
    if done.returncode or top.returncode:
        return None
    root = os.path.realpath(os.fsdecode(top.stdout.rstrip(b"\n")))
    listed = {os.path.join(root, os.fsdecode(name)) for name in done.stdout.split(b"\0") if name}
    return next((path for path in guarded if str(path) in listed), None)
