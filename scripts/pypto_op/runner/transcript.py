"""Transcripts that can be played back: the ones that runs record (JSON Lines), and ones that people write (YAML).

Both become the same: for each conversation its turns, each with the model's blocks and what is expected of their results.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pypto_op.bundle.agents import MCP_PREFIX
from pypto_op.documents import schema
from pypto_op.documents.reading import read_text, read_yaml
from pypto_op.errors import ContractError
from pypto_op.runner import journal
from pypto_op.runner.team import DISPATCH, LEADER

_BUNDLE_TOOLS = {"state_transition", "verify", "lint", "diagnose_error", "pypto_api"}
"""Tools of the bundle's server, which people write without its prefix."""

_BESIDE = ("told", "refused", "turns")
"""What stands beside the tool in a call that people write."""

_VOLATILE = ("attempt",)
"""Values under these keys differ from run to run; later turns name them as `{{attempt}}`."""


@dataclass(frozen=True)
class Expected:
    """What a call's result must be like."""

    refused: bool | None = None  # whether it is an error; None does not care
    told: tuple[str, ...] = ()  # texts that it must hold
    whole: str | None = None  # all of it, compared without numbers and places; None does not care


@dataclass(frozen=True)
class Turn:
    """One message of the model."""

    content: list[dict[str, Any]]
    expected: list[Expected]


@dataclass
class Script:
    """A whole transcript."""

    path: Path  # its file
    prompt: str  # the first message to the orchestrator
    op: str | None  # the operator's name, where the run fixed it
    workspace: str = ""  # where it was recorded; empty where people wrote it
    conversations: dict[str, tuple[str, list[Turn]]] = field(default_factory=dict)  # by name, who speaks and each turn


def load(path: Path) -> Script:
    """Read a transcript.

    Raises:
        ContractError: it cannot be read, or is none.
    """
    script = _written(path) if path.suffix in (".yaml", ".yml") else _recorded(path)
    if "main" not in script.conversations:
        raise ContractError("the transcript holds no message of the model", file=path, remedy="name another one")
    return script


# -- recorded ------------------------------------------------------------------------------------------------------


def _recorded(path: Path) -> Script:
    lines = journal.read(path)
    for number, line in enumerate(lines, 1):
        schema.check(line, "transcript_line", file=path, prefix=[f"line {number}"])
    head = next((line for line in lines if line["kind"] == "run"), None)
    if head is None:
        raise ContractError("it does not begin with a run", file=path, remedy="name a transcript of `pypto-op run`")
    script = Script(path, head["prompt"], head.get("op"), head.get("workspace", ""))
    results = {(line["conversation"], line["id"]): line for line in lines if line["kind"] == "result"}
    volatile: dict[str, str] = {}
    for line in lines:
        if line["kind"] == "result":
            for key in _VOLATILE:
                values = re.findall(rf'"{key}":\s*"([^"]+)"', line["content"])
                volatile.update(dict.fromkeys(values, f"{{{{{key}}}}}"))
        elif line["kind"] == "reply":
            name, content = line["conversation"], _without(line["content"], volatile)
            expected = [
                _expected(results.get((name, f"{line['turn']}.{index}")), block["name"])
                for index, block in enumerate(line["content"])
                if block["type"] == "tool_use"
            ]
            script.conversations.setdefault(name, (line["agent"], []))[1].append(Turn(content, expected))
    return script


def _without(content: list[dict[str, Any]], volatile: dict[str, str]) -> list[dict[str, Any]]:
    def walk(node: Any) -> Any:
        if isinstance(node, str):
            for value, name in volatile.items():
                node = node.replace(value, name)
            return node
        if isinstance(node, dict):
            return {key: walk(value) for key, value in node.items()}
        return [walk(item) for item in node] if isinstance(node, list) else node

    return [{**block, **{key: walk(block[key]) for key in ("text", "input") if key in block}} for block in content]


def _expected(line: journal.Line | None, tool: str) -> Expected:
    if line is None:
        return Expected()
    return Expected(line["is_error"], whole=None if tool == DISPATCH else line["content"])


# -- written -------------------------------------------------------------------------------------------------------


def _written(path: Path) -> Script:
    document = read_yaml(path)
    schema.check(document, "transcript", file=path)
    script = Script(path, document["request"], document.get("op"))
    files = path.parent / document.get("files", ".")
    for name, agent, place, turns in _conversations("main", LEADER, "turns", document["turns"]):
        made = [_turn(f"{name}.{number}", turn, files, _Spot(path, f"{place}[{number}]")) for number, turn in enumerate(turns)]
        script.conversations[name] = (agent, made)
    return script


@dataclass(frozen=True)
class _Spot:
    """A place in a transcript, for messages."""

    path: Path
    where: str

    def error(self, problem: str, remedy: str) -> ContractError:
        return ContractError(problem, file=self.path, where=self.where, remedy=remedy)


def _conversations(
    name: str, agent: str, place: str, turns: list[dict[str, Any]]
) -> Iterator[tuple[str, str, str, list[dict[str, Any]]]]:
    """Yield a conversation and every one that it dispatches, each with its place; a dispatch holds the turns of its agent."""
    yield name, agent, place, turns
    for number, turn in enumerate(turns):
        for index, call in enumerate(turn.get("do", [])):
            if DISPATCH in call:
                inner, within = f"{name}/{number}.{index + ('say' in turn)}", f"{place}[{number}].do[{index}].turns"
                yield from _conversations(inner, call[DISPATCH]["subagent_type"], within, call["turns"])


def _turn(name: str, turn: dict[str, Any], files: Path, spot: _Spot) -> Turn:
    content: list[dict[str, Any]] = [{"type": "text", "text": turn["say"]}] if "say" in turn else []
    expected = []
    for index, call in enumerate(turn.get("do", [])):
        here = replace(spot, where=f"{spot.where}.do[{index}]")
        tools = [key for key in call if key not in _BESIDE]
        if len(tools) != 1:
            raise here.error(f"a call names one tool, and this one names {len(tools)}", "give each call an entry of its own")
        (tool,) = tools
        given = {
            key: _filled(value, files, replace(here, where=f"{here.where}.{tool}.{key}")) for key, value in call[tool].items()
        }
        mark = re.sub(r"\W", "_", f"{name}_{index}")
        name_told = MCP_PREFIX + tool if tool in _BUNDLE_TOOLS else tool
        content.append({"type": "tool_use", "id": f"toolu_{mark}", "name": name_told, "input": given})
        told = call.get("told", ())
        expected.append(Expected(call.get("refused", False), tuple([told] if isinstance(told, str) else told)))
    return Turn(content, expected)


def _filled(value: Any, files: Path, spot: _Spot) -> Any:
    """Return a call's argument; `{file: NAME}` stands for a file's text, `{..., replace: {OLD: NEW}}` for that with changes.

    Raises:
        ContractError: there is no such file, or an OLD text does not occur exactly once: the file has changed since.
    """
    if not (isinstance(value, dict) and "file" in value):
        return value
    path = files / value["file"]
    try:
        content = read_text(path)
    except ContractError as error:
        raise spot.error(f"{path} cannot be read ({error.problem})", "name a file of the folder `files`") from None
    for old, new in value.get("replace", {}).items():
        if (count := content.count(old)) != 1:
            raise spot.error(f"{old[:60]!r} occurs {count} times in {path}", "replace a text that occurs once")
        content = content.replace(old, new)
    return content
