"""What each hook event means: guard before a tool, lint after it, a last look at the end of a turn."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

from pypto_op_lint import wire
from pypto_op_lint.changes import ContentIndex
from pypto_op_lint.concerns import PATCHERS, PATH_TOOLS, READ_TOOLS
from pypto_op_lint.event_log import log_event
from pypto_op_lint.guard.commands import judge_command
from pypto_op_lint.guard.other_tools import judge_tool
from pypto_op_lint.guard.paths import Surroundings
from pypto_op_lint.guard.policy import Policy, refusal
from pypto_op_lint.guard.roles import load_roles
from pypto_op_lint.post_lint import PostLint

_SLACK_SECONDS = 5.0
_PATCHED = re.compile(r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.+?)\s*$", re.MULTILINE)
"""The files that a patch of the `apply_patch` format of some models names."""


class HookEvents:
    """Answers the events of one workspace; the resident server keeps one of these.

    Args:
        folder: the workspace's private folder; None when there is none to be had.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self.index = ContentIndex(folder)

    def answer(self, request: dict[str, Any]) -> bytes:
        """Return the answer frame's payload for one request of the client."""
        began, cpu = time.perf_counter(), time.process_time()
        key = Path(request["key"]) if request["key"] else None
        around = Surroundings(
            Path(request["workspace"]),
            Path(request["home"]),
            Path(request["cwd"]),
            key,
            Path(hidden) if (hidden := request.get("hidden")) else None,
            team=load_roles().role_of(request["agent"]) is not None,
            known=frozenset(self.index.operators),
        )
        self.index.know(op.root for op in around.operators)
        handler = {
            "PreToolUse": self._before,
            "PostToolUse": self._after,
            "Stop": self._stop,
            "SubagentStop": self._stop,
        }[request["event"]]
        verdict = handler(request, around)
        self.index.save()
        log_event(
            self.folder,
            event=request["event"],
            tool=request["tool"],
            agent=request["agent"],
            path=request["path"],
            verdict="allow" if verdict == wire.answer() else "refuse",
            milliseconds=round((time.perf_counter() - began) * 1e3, 1),
            cpu_milliseconds=round((time.process_time() - cpu) * 1e3, 1),
        )
        return verdict

    # -- before a tool ---------------------------------------------------------------------------------------

    def _before(self, request: dict[str, Any], around: Surroundings) -> bytes:
        self.index.begin(around)
        self.index.meet_records(around)
        reason = self._refusal(request, Policy(around, request["agent"]))
        if not reason:
            targets = announced(request)
            self.index.expect(targets)
            if around.team:
                self.index.know(at.op.root for at in map(around.locate, targets) if at.op)
        return wire.deny(reason) if reason else wire.answer()

    def _refusal(self, request: dict[str, Any], policy: Policy) -> str | None:
        tool, path = str(request["tool"]), str(request["path"])
        if tool.endswith("state_transition"):
            return policy.state_call(str(request["action"]))
        if tool == "Bash":
            return judge_command(policy, str(request["command"]), str(request["cwd"]))
        if tool in READ_TOOLS:
            target = path or request["cwd"]
            below = {"Grep": policy.read_below, "Glob": policy.names_below}.get(tool)
            return policy.read(target) or (below(target) if below else None)
        if tool in PATCHERS:
            return self._patch_refusal(request, policy)
        if tool not in PATH_TOOLS:
            return judge_tool(policy, tool, request["inputs"])
        if not path:
            return refusal(f"{tool} names no file", None, "give file_path")
        return policy.write(path) or (policy.notebook(path) if tool == "NotebookEdit" else None)

    def _patch_refusal(self, request: dict[str, Any], policy: Policy) -> str | None:
        targets = patch_targets(request)
        if not targets:
            return refusal("the patch names no file that can be recognised", None, "use *** Update File: PATH")
        reasons = [reason for target in targets if (reason := policy.write(target))]
        return "\n".join(dict.fromkeys(reasons)) or None

    # -- after a tool ----------------------------------------------------------------------------------------

    def _after(self, request: dict[str, Any], around: Surroundings) -> bytes:
        lint = PostLint(self.index, around, request)
        if request["problem"]:
            found = lint.changed_files()
            note = f"[pypto-op] this call was not checked as such: {request['problem']}."
            return wire.block("\n".join([note, *found.reasons]))
        targets = announced(request)
        if targets:
            found = lint.files(targets)
        else:
            seconds = request["duration_ms"] / 1e3 + _SLACK_SECONDS
            found = lint.changed_files(newer_than=time.time() - seconds)
        self.index.arrived(targets)
        self.index.begin(around)
        if found.reasons:
            return wire.block("\n".join(found.reasons))
        if found.notes:
            context = {"hookEventName": "PostToolUse", "additionalContext": "\n".join(found.notes)}
            return wire.answer({"hookSpecificOutput": context})
        return wire.answer()

    # -- at the end of a turn --------------------------------------------------------------------------------

    def _stop(self, request: dict[str, Any], around: Surroundings) -> bytes:
        found = PostLint(self.index, around, request).before_stopping()
        if not found.reasons:
            return wire.answer()
        text = "\n".join(found.reasons)
        if request["stop_hook_active"]:
            # Refused once already: a second refusal could repeat for ever. The person is told; the gates
            # hold.
            return wire.answer({"systemMessage": f"pypto-op: the turn ends with blocking lint findings.\n{text}"})
        return wire.block(text)


def announced(request: dict[str, Any]) -> list[Path]:
    """Return the files that an edit tool says it writes."""
    if request["tool"] in PATCHERS:
        return [Path(target) for target in patch_targets(request)]
    return [Path(request["path"])] if request["tool"] in PATH_TOOLS and request["path"] else []


def patch_targets(request: dict[str, Any]) -> list[str]:
    """Return the absolute paths that an `apply_patch` call names."""
    names = list(dict.fromkeys(_PATCHED.findall(str(request["patch"]))))
    names += [str(request["path"])] if request["path"] else []
    return [str(Path(request["cwd"], name)) for name in names]
