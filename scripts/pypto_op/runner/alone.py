"""The model alone, to compare the team with: pypto's wheel, files, a shell and a probe, nothing of the bundle."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pypto_op.bundle.agents import Agent
from pypto_op.proof.key import key_file
from pypto_op.runner.hooks import Hooks, Reply
from pypto_op.runner.surroundings import agents_environment
from pypto_op.runner.team import Team

_PAGE = """
You write kernels for Ascend NPUs with pypto (`import pypto`, a package of this machine's Python; read its docstrings).
Write the operator to custom/<name>/<name>_impl.py: one file with a pypto kernel and a function <name>_wrapper, which takes torch
tensors and returns new ones. `python FILE` runs plain Python; `probe FILE` runs a file in pypto's simulator on the CPU, with
numbers: `import torch_npu` works there, and tensors live on the device "npu:0". Test your kernel against torch. There is no
device. Nobody answers; end when the kernel is right.
"""

AGENT = Agent(
    path=Path(__file__),
    name="alone",
    description="the model without the bundle",
    mode="primary",
    tools=("Bash", "Read", "Write", "Edit", "Glob", "Grep"),
    skills=(),
    on_demand=(),
    role={},
    body=_PAGE,
)


@dataclass
class Alone(Team):
    """A team of one."""

    @cached_property
    def agents(self) -> Mapping[str, Agent]:
        """The one agent."""
        return {AGENT.name: AGENT}

    def system_of(self, agent: Agent) -> list[dict[str, Any]]:
        """Return its page and where it is."""
        text = f"{agent.body}\nYou are in {self.workspace}. Paths are relative to it.\n"
        return [{"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}]


class NoHooks(Hooks):
    """Nothing is refused, nothing is linted."""

    def _event(self, name: str, agent: str, call: dict[str, Any]) -> Reply:
        return Reply(False, "")


def environment(folder: Path) -> dict[str, str]:
    """Return the environment of its commands: `python` and `probe` in a folder of the run, and no `pypto-op`.

    The run's own folder looks empty to a command.
    """
    programs = key_file().parent / "programs" / folder.name
    programs.mkdir(parents=True, exist_ok=True)
    python = shlex.quote(sys.executable)
    for name, words in {"python": "", "python3": "", "probe": " -m pypto_op.cli script"}.items():
        path = programs / name
        path.write_text(f'#!/bin/sh\nexec {python}{words} "$@"\n', encoding="utf-8")
        path.chmod(0o755)
    own = agents_environment()
    kept = [place for place in own["PATH"].split(os.pathsep) if not (Path(place) / "pypto-op").exists()]
    return {**own, "PATH": os.pathsep.join([str(programs), *kept])}
