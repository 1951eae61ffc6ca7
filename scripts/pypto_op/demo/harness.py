"""A harness client in small: it writes files and calls the bundle's own hooks around each write, as Claude Code does.

The hook commands come from `hooks/hooks.json`, so the demo shows what a user's harness would really run.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pypto_op.bundle_files import bundle_root
from pypto_op.errors import InfraError

_PLUGIN = "pypto-op"
_TIMEOUT_SECONDS = 60


@dataclass(frozen=True)
class Reply:
    """What the model would be told after a tool call: `refused` and the text; empty when the hooks had nothing to say."""

    refused: bool
    text: str


class Harness:
    """Writes files for agents, through the hooks.

    Args:
        workspace: the user's workspace, the directory that holds `custom/`.
    """

    def __init__(self, workspace: Path) -> None:
        self._workspace = workspace
        self._hooks = json.loads((bundle_root() / "hooks" / "hooks.json").read_text(encoding="utf-8"))["hooks"]

    def write(self, agent: str, path: Path, text: str) -> Reply:
        """Let `agent` write `text` to `path`: guard first, then the write, then the lint.

        Like in Claude Code, a refusal by the guard keeps the file as it was; a refusal by the lint comes after
        the write, and the agent owes a mended one.
        """
        call = {"tool_name": "Write", "tool_input": {"file_path": str(path), "content": text}}
        before = self._event("PreToolUse", agent, call)
        if before.refused:
            return before
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return self._event("PostToolUse", agent, {**call, "tool_response": {"filePath": str(path)}})

    def _event(self, name: str, agent: str, call: dict[str, Any]) -> Reply:
        payload = json.dumps(
            {
                "hook_event_name": name,
                "session_id": "demo",
                "cwd": str(self._workspace),
                "agent_id": f"demo-{agent}",
                "agent_type": f"{_PLUGIN}:{agent}",
                **call,
            }
        )
        texts = []
        for entry in self._hooks.get(name, []):
            if not re.fullmatch(entry.get("matcher", "") or ".*", call["tool_name"]):
                continue
            for hook in entry["hooks"]:
                reply = self._run(hook["command"], payload)
                if reply.refused:
                    return reply
                texts.append(reply.text)
        return Reply(False, "\n".join(filter(None, texts)))

    def _run(self, command: str, payload: str) -> Reply:
        root = str(bundle_root())
        environment = {
            **os.environ,
            "CLAUDE_PLUGIN_ROOT": root,
            "CLAUDE_PROJECT_DIR": str(self._workspace),
            "PYPTO_OP_PYTHON": sys.executable,  # an installed wheel has no .venv beside its hooks
        }
        done = subprocess.run(
            ["sh", "-c", command],  # as a client does: the commands are words for a shell
            input=payload,
            capture_output=True,
            text=True,
            cwd=self._workspace,
            env=environment,
            timeout=_TIMEOUT_SECONDS,
            check=False,
        )
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
