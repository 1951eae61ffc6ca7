"""The bundle's own hooks around each tool call, run as Claude Code runs them: the commands come from `hooks/hooks.json`.

So what a call may do is decided by the same programs in a harness, in `pypto-op run` and in the demo.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pypto_op.bundle_files import bundle_root
from pypto_op.errors import InfraError

_PLUGIN = "pypto-op"
_TIMEOUT_SECONDS = 120


@dataclass(frozen=True)
class Reply:
    """What the model would be told after a tool call: `refused` and the text; empty when the hooks had nothing to say."""

    refused: bool
    text: str


@dataclass
class Hooks:
    """Runs the hooks of one workspace."""

    workspace: Path  # the user's workspace, the directory that holds `custom/`
    session: str = "demo"  # the session's name, for the hooks' own log
    environment: dict[str, str] | None = None  # what the hooks' processes get; default: this process's

    def before(self, agent: str, tool: str, tool_input: dict[str, Any]) -> Reply:
        """Ask the guard whether `agent` may make a call."""
        return self._event("PreToolUse", agent, {"tool_name": tool, "tool_input": tool_input})

    def after(self, agent: str, tool: str, tool_input: dict[str, Any], response: object, began: float) -> Reply:
        """Let the linter look at what a call changed; `began` is the `time.monotonic()` of its start."""
        took = round((time.monotonic() - began) * 1e3)
        call = {"tool_name": tool, "tool_input": tool_input, "tool_response": response, "duration_ms": took}
        return self._event("PostToolUse", agent, call)

    def stop(self, agent: str, *, main: bool, again: bool) -> Reply:
        """Ask whether `agent` may end its turn; `again` after a refusal, which is the last one."""
        return self._event("Stop" if main else "SubagentStop", agent, {"stop_hook_active": again})

    def write(self, agent: str, path: Path, text: str) -> Reply:
        """Let `agent` write `text` to `path`: guard first, then the write, then the lint.

        Like in Claude Code, a refusal by the guard keeps the file as it was; a refusal by the lint comes after
        the write, and the agent owes a mended one.
        """
        tool_input, began = {"file_path": str(path), "content": text}, time.monotonic()
        before = self.before(agent, "Write", tool_input)
        if before.refused:
            return before
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return self.after(agent, "Write", tool_input, {"filePath": str(path)}, began)

    @cached_property
    def _table(self) -> dict[str, list[dict[str, Any]]]:
        table: dict[str, list[dict[str, Any]]] = json.loads((bundle_root() / "hooks/hooks.json").read_text(encoding="utf-8"))[
            "hooks"
        ]
        return table

    def _event(self, name: str, agent: str, call: dict[str, Any]) -> Reply:
        texts = []
        for entry in self._table.get(name, []):
            if "tool_name" in call and not re.fullmatch(entry.get("matcher", "") or ".*", call["tool_name"]):
                continue
            event = {
                "hook_event_name": name,
                "session_id": self.session,
                "cwd": str(self.workspace),
                "agent_id": f"{self.session}-{agent}",
                "agent_type": f"{_PLUGIN}:{agent}",
                **call,
            }
            for hook in entry["hooks"]:
                reply = self._run(hook["command"], json.dumps(event))
                if reply.refused:
                    return reply
                texts.append(reply.text)
        return Reply(False, "\n".join(filter(None, texts)))

    def _run(self, command: str, payload: str) -> Reply:
        environment = {
            **(os.environ if self.environment is None else self.environment),
            "CLAUDE_PLUGIN_ROOT": str(bundle_root()),
            "CLAUDE_PROJECT_DIR": str(self.workspace),
            "PYPTO_OP_PYTHON": sys.executable,  # an installed wheel has no .venv beside its hooks
        }
        try:
            done = subprocess.run(
                ["sh", "-c", command],  # as a client does: the commands are words for a shell
                input=payload,
                capture_output=True,
                text=True,
                cwd=self.workspace,
                env=environment,
                timeout=_TIMEOUT_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise InfraError(
                f"a hook gave no answer within {_TIMEOUT_SECONDS} s", file="hooks/hooks.json", remedy="run `pypto-op doctor`"
            ) from None
        if done.returncode == 2:
            return Reply(True, done.stderr.strip())
        if done.returncode != 0:
            raise InfraError(
                f"a hook ended with exit code {done.returncode}: {done.stderr.strip()[-200:]}",
                file="hooks/hooks.json",
                remedy="run `pypto-op doctor`",
            )
        return _reply(done.stdout)


def _reply(stdout: str) -> Reply:
    """Read a hook's answer in the shape that Claude Code reads it."""
    if not stdout.strip():
        return Reply(False, "")
    answer = json.loads(stdout)
    specific = answer.get("hookSpecificOutput", {})
    if answer.get("decision") == "block":
        return Reply(True, str(answer.get("reason", "")))
    if specific.get("permissionDecision") == "deny":
        return Reply(True, str(specific.get("permissionDecisionReason", "")))
    return Reply(False, str(specific.get("additionalContext", "")))
