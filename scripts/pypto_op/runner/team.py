"""The agents as data: what each is told at the start, and which tools it holds, from its page in `.agents/`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pypto_op.bundle.agents import Agent, load_agents
from pypto_op.runner.tools import bundle_tools, files, search, shell, skills
from pypto_op.runner.tools.table import Tool, object_of, text
from pypto_op.vocabulary import Role

DISPATCH = "Agent"
LEADER = str(Role.ORCHESTRATOR)

_SURROUNDINGS = """
# Where you are

You are {name}, started by `pypto-op run` in the workspace {workspace}. Paths are relative to it. There is no terminal and nobody
answers: take the defaults that the request allows and say which. A question that only a person can settle ends the run: make
it your last message. What hooks refuse comes back as a tool's result, with the remedy. A result may show `{{{{token.1}}}}` in
place of a secret: write the same text where the secret is needed.
"""


@dataclass
class Team:
    """Every agent of the bundle, ready to be asked."""

    workspace: Path  # named to the agents; the same for all of a run, so that their prompts can be cached

    @cached_property
    def agents(self) -> Mapping[str, Agent]:
        """The agents by name."""
        return {agent.name: agent for agent in load_agents()}

    @cached_property
    def _tools(self) -> Mapping[str, Tool]:
        every = [*files.TOOLS, *search.TOOLS, *shell.TOOLS, *bundle_tools.bundle_tools(), self._dispatch_tool()]
        return {tool.name: tool for tool in every}

    def named(self, name: str) -> Agent | None:
        """Return an agent by its name, with or without the plugin's prefix."""
        return self.agents.get(name.removeprefix("pypto-op:"))

    def tools_of(self, agent: Agent) -> dict[str, Tool]:
        """Return the tools of an agent's page, and no others."""
        skill = skills.skill_tool((*agent.skills, *agent.on_demand))
        return {name: skill if name == "Skill" else self._tools[name] for name in agent.tools}

    def system_of(self, agent: Agent) -> list[dict[str, Any]]:
        """Return the system prompt: page, skills that are loaded before the start, surroundings; cached as a whole."""
        parts = [agent.body, *map(skills.skill_text, agent.skills)]
        parts.append(_SURROUNDINGS.format(name=agent.name, workspace=self.workspace))
        return [{"type": "text", "text": "\n".join(parts), "cache_control": {"type": "ephemeral"}}]

    def _dispatch_tool(self) -> Tool:
        others = [agent for agent in self.agents.values() if agent.mode == "subagent"]
        said = "\n".join(f"- {agent.name}: {agent.description}" for agent in others)
        return Tool(
            DISPATCH,
            f"Dispatch an agent; its last message is the result. Several calls at once run side by side.\n{said}",
            object_of(
                "subagent_type prompt",
                subagent_type=text("The agent's name."),
                prompt=text("Its task, in the dispatch format."),
                description=text("The task in a few words."),
            ),
            lambda place, given: "",  # the conversation dispatches: it knows who asks
            effects=False,
        )
