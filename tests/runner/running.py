"""`pypto-op run` in this process, against a model whose answers a test gives, in a workspace of its own."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.calling import Answer as Called
from tests.calling import command

from pypto_op.runner import journal
from pypto_op.runner.loopback import Answer, Body, served
from pypto_op.runner.surroundings import MARK

KEY = "sk-ant-test-0123456789"
Say = Callable[[int, Body, Mapping[str, str]], Answer]
"""From the number of the request, its body and its headers."""


def says(text: str) -> Answer:
    return Answer([{"type": "text", "text": text}])


def calls(*calls: tuple[str, dict[str, Any]], **more: Any) -> Answer:
    blocks = [{"type": "tool_use", "id": f"toolu_{os.urandom(4).hex()}", "name": name, "input": given} for name, given in calls]
    return Answer(blocks, **more)


def trouble(status: int, message: str = "busy", **headers: str) -> Answer:
    return Answer(status=status, error=message, headers={name.replace("_", "-"): value for name, value in headers.items()})


@dataclass
class Running:
    """A workspace, and the model that a run in it talks to."""

    workspace: Path
    patch: pytest.MonkeyPatch
    bodies: list[Body] = field(default_factory=list)
    agents: list[str] = field(default_factory=list)

    def run(self, say: Say | list[Answer], *words: object, request: str = "an operator", key: str = KEY) -> Called:
        """Run the command; a list of answers is given in its order, and its last one again and again."""

        def model(body: Body, headers: Mapping[str, str]) -> Answer:
            self.bodies.append(body)
            self.agents.append(headers.get("x-pypto-op-agent", ""))
            number = len(self.bodies) - 1
            return say(number, body, headers) if callable(say) else say[min(number, len(say) - 1)]

        self.bodies.clear()
        self.agents.clear()
        with served(model) as port:
            self.patch.setenv("ANTHROPIC_BASE_URL", f"http://127.0.0.1:{port}")
            return self.call(*([request] if request else []), *words, key=key)

    def call(self, *words: object, key: str = KEY) -> Called:
        """Run the command as its second beginning: marked, and with the key from a pipe."""
        ours, theirs = os.pipe()
        os.write(theirs, json.dumps({"ANTHROPIC_API_KEY": key} if key else {}).encode())
        os.close(theirs)
        self.patch.setenv("PYPTO_OP_RUN_PIPE", str(ours))
        self.patch.setenv(MARK, "pypto-op run")
        return command("run", *words)

    def told(self, request: int) -> str:
        """What the model was newly told in a request: the text of its last message."""
        return json.dumps(self.bodies[request]["messages"][-1]["content"], ensure_ascii=False)

    @property
    def lines(self) -> list[journal.Line]:
        return journal.read(journal.latest_session(self.workspace) / journal.TRANSCRIPT)
