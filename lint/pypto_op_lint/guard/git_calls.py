"""Git: what of the history a command shows. What it changes, the record of changes sees."""

from __future__ import annotations

import fnmatch
import os
import re
import subprocess
from typing import TYPE_CHECKING, Any

from pypto_op_lint.guard.effects import Kind
from pypto_op_lint.guard.programs import parse_command_line, program_table
from pypto_op_lint.guard.state_calls import note_state_call
from pypto_op_lint.guard.words import LISTED, STAR, is_known

if TYPE_CHECKING:
    from pypto_op_lint.guard.shell import Walker

_SECONDS = 5
_PATTERN = re.compile(r"[*?\[\\]|^:")
_GLOBAL_VALUES = ("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env", "--exec-path")


def analyse_git(walker: Walker, program: str, rest: list[str]) -> None:
    """Note what a git command would do."""
    kept, start = (walker.cwd, walker.variables.get("PWD", "")), 0
    while start < len(rest) and rest[start].startswith("-"):
        if rest[start] == "-C" and start + 1 < len(rest):
            walker.change_folder(rest[start + 1])
        start += 2 if rest[start] in _GLOBAL_VALUES else 1
    before, name, rest = rest[:start], "".join(rest[start : start + 1]), rest[start + 1 :]
    settings = [*before, *(rest if name == "config" else [])]
    note_state_call(walker, settings)
    for token in settings:
        if "!" in token:  # an alias that is a shell command
            walker.run_script(token.partition("!")[2])
    if any(token.startswith(("--work-tree", "--git-dir")) for token in before):
        walker.add(Kind.HISTORY, "", "git")
    if name:
        _history(walker, name, rest)
        walker.names.append(LISTED)
    walker.cwd, walker.variables["PWD"] = kept


def _history(walker: Walker, name: str, rest: list[str]) -> None:
    """Note the files whose kept contents a subcommand prints or copies; an empty name stands for all of them."""
    table = program_table()["git"]
    row: dict[str, Any] | None = table["shows"].get(name)
    if row is None and name in table["quiet"]:
        return
    if row is not None:
        line = parse_command_line(rest, set(row.get("values", ())))
        words = [*line.options, *line.operands[:1]]
        prints = _any_fits(words, row.get("prints", []))
        always = "silent" in row or "prints" not in row
        if not prints and (not always or _any_fits(words, row.get("silent", []))):
            return
    targets = _pathspecs(walker, rest) if row and row.get("files") else []
    if name == "diff" and walker.cwd and all(token.startswith("-") or token == "HEAD" for token in rest):
        targets = _changed(walker.cwd)
    elif not targets:
        targets = [""]
    for target in targets:
        walker.add(Kind.HISTORY, target, f"git {name}")


def _any_fits(words: list[str], patterns: list[str]) -> bool:
    return any(fnmatch.fnmatchcase(word, pattern) for word in words for pattern in patterns)


def _pathspecs(walker: Walker, rest: list[str]) -> list[str]:
    """Return the files that limit what is shown; none where anything else could be shown too."""
    folder = walker.cwd
    split = rest.index("--") if "--" in rest else len(rest)
    paths, revisions = rest[split + 1 :], []
    for token in rest[:split]:
        if token.startswith("-"):
            continue
        revision, colon, path = token.partition(":")
        if colon and revision:
            paths.append(path if folder is None or path.startswith("./") else _from_top(folder, path))
        elif folder and is_known(token) and os.path.lexists(os.path.join(folder, token)):
            paths.append(token)
        else:
            revisions += re.split(r"\.{2,3}", token)
    if any(_PATTERN.search(path) or STAR in path for path in paths) or not _all_commits(folder, revisions):
        return []
    return paths


def _changed(folder: str) -> list[str]:
    """Return the files, as absolute paths, of which a `git diff` without names can show anything; an empty name for all."""
    if not _ask(folder, ["rev-parse", "--verify", "HEAD"]):
        return [""]
    return [_from_top(folder, path) for path in _ask(folder, ["diff", "--name-only", "-z", "HEAD"]).split("\0") if path]


def _from_top(folder: str, path: str) -> str:
    """Return `REV:path`'s path, which counts from the repository's folder, as an absolute one."""
    top = _ask(folder, ["rev-parse", "--show-toplevel"])
    return os.path.join(top.strip(), path) if top else path


def _all_commits(folder: str | None, revisions: list[str]) -> bool:
    """Say whether each revision is a commit: the name of a blob shows a file, whatever path stands beside it."""
    names = [name for name in revisions if name]
    if not names:
        return True
    if folder is None or not all(is_known(name) for name in names):
        return False
    asked = "".join(f"{name}^{{}}\n" for name in names)
    kinds = _ask(folder, ["cat-file", "--batch-check=%(objecttype)"], asked).split("\n")
    return "blob" not in kinds and "tree" not in kinds


def _ask(folder: str, arguments: list[str], text: str = "") -> str:
    command = ["git", "-C", folder, *arguments]
    try:
        return subprocess.run(command, input=text, capture_output=True, text=True, timeout=_SECONDS, check=False).stdout
    except (OSError, subprocess.TimeoutExpired, UnicodeError):
        return ""
