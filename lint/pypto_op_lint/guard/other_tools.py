"""Tools of other servers: judged by what their inputs name, since nobody knows what they do.

A tool whose name says that it looks is judged as a reader; any other as one that writes every file it names.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from pypto_op_lint.concerns import only_looks
from pypto_op_lint.guard.commands import judge_code, judge_command
from pypto_op_lint.guard.paths import Located, Place
from pypto_op_lint.guard.policy import Policy, printable, refusal

_MAX_PATH = 1000
_SHELL_KEY = re.compile(r"command|cmd|script|shell", re.IGNORECASE)
_CODE_KEY = re.compile(r"code|source_?code|python", re.IGNORECASE)
_PATH_KEY = re.compile(r"path|file|dir|dest|source|target|uri|output|name", re.IGNORECASE)
_FOLDER_KEY = re.compile(r"cwd|dir|directory|folder|work(?:ing)?_?dir(?:ectory)?", re.IGNORECASE)
_HISTORY = re.compile(r"git_(diff|show|log|blame|cat)")
_SEARCHES = re.compile(r"search|grep|find|query|read", re.IGNORECASE)
_WHOLE = re.compile(r"delete|remove|move|rename|rm", re.IGNORECASE)


def judge_tool(policy: Policy, tool: str, inputs: Mapping[str, str]) -> str | None:
    """Return None, or why `tool` may not run with these texts, by the dotted names of its input."""
    reads = only_looks(tool)
    if _HISTORY.search(tool) and (reason := policy.read_history("")):
        return reason
    cwd = next((text for name, text in inputs.items() if _FOLDER_KEY.fullmatch(name) and os.path.isabs(text)), None)
    for name, text in inputs.items():
        key = next((part for part in reversed(name.split(".")) if not part.isdecimal()), "")
        if _SHELL_KEY.fullmatch(key) or _CODE_KEY.fullmatch(key):
            reason = judge_command(policy, text, cwd) if _SHELL_KEY.fullmatch(key) else judge_code(policy, text, cwd)
        else:
            reason = _looked_at(policy, tool, text) if reads else _changed(policy, tool, key, text)
        if reason:
            return reason
    return None


def _looked_at(policy: Policy, tool: str, text: str) -> str | None:
    path = _path(text)
    if path is None:
        return None
    at = policy.around.locate(path)
    searches = at.path.is_dir() and _SEARCHES.search(tool)
    return policy.read_located(at) or (policy.read_below(path) if searches else None) or _from_elsewhere(policy, path)


def _from_elsewhere(policy: Policy, path: str) -> str | None:
    """Judge a relative path as one that counts from any folder: where another server stands, nobody knows."""
    end = "/" + os.path.normpath(path)
    ends = (at for at in policy.around.guarded_files if str(at.path).endswith(end))
    return next((reason for at in ends if (reason := policy.read_located(at))), None)


def _changed(policy: Policy, tool: str, key: str, text: str) -> str | None:
    path = _path(text)
    if path is None:
        return None
    at = policy.around.locate(path)
    if at.path.is_dir():
        return _folder_changed(policy, tool, at)
    if at.place in (Place.OPERATOR, Place.MACHINE, Place.SECRET):
        return policy.read_located(at) or policy.write_located(at)
    if reason := _from_elsewhere(policy, path):
        return reason
    if at.place in (Place.OUTSIDE, Place.TEMP) and _PATH_KEY.search(key) and os.path.isabs(os.path.expanduser(path)):
        return policy.write_located(at)
    return None


def _folder_changed(policy: Policy, tool: str, at: Located) -> str | None:
    """Judge a folder: most tools only work in it, some take it away with all that lies below."""
    if at.place is Place.SECRET or (re.search("copy|archive|zip", tool) and policy.around.holds_secret(at.path)):
        return policy.secret(at.path)
    below = next(policy.around.guarded_below(at.path), None)
    if below is None or not _WHOLE.search(tool):
        return None
    return refusal(f"`{printable(tool)}` would change an operator's files below it past the linter", at.path, "name single files")


def _path(text: str) -> str | None:
    """Return the path that a text could be."""
    path = text.strip().removeprefix("file://")
    return path if 0 < len(path) < _MAX_PATH and not re.search(r"[\n\0]", path) else None
