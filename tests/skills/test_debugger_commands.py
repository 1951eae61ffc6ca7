"""What an agent's pages tell it to run, it may run: each printed command passes the guard as that agent, and click reads it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from pypto_op import cli
from pypto_op.bundle.agents import Agent, load_agents
from pypto_op_lint.guard.commands import judge_command
from pypto_op_lint.guard.paths import Surroundings
from pypto_op_lint.guard.policy import Policy

ROOT = Path(__file__).parents[2]
DEBUGGER = "pypto-op-debugger"
AGENTS = [agent for agent in load_agents() if agent.name.startswith("pypto-op-")]
SKILLS = ("aicore-error-locator", "environment-setup", "general-debug", "host-stacktrace-analyzer", "machine-workspace",
          "memory-overlap-detector", "pass-error-locator", "precision-compare", "precision-debug")  # fmt: skip


def pages_of(agent: Agent) -> Iterator[Path]:
    """Yield an agent's own page and those of its skills; the debugger's router sends it to more of them."""
    yield agent.path
    routed = [f"pypto-{skill}" for skill in SKILLS] if agent.name == DEBUGGER else []
    for skill in dict.fromkeys([*agent.skills, *agent.on_demand, *routed]):
        yield from sorted((ROOT / "skills" / skill).rglob("*.md"))


PROGRAMS = (
    r"pypto-op|grep|find|rm|mv|cp|mkdir|cat|sort|head|c\+\+filt|addr2line|gdb|nm|source|export|command|env|npu-smi|python3?|make"
)
INLINE = re.compile(rf"`((?:[A-Z_]+=\S+ )*(?:{PROGRAMS}) [^`\n]+)`")
BLOCK = re.compile(r"```(?:bash|sh)\n(.*?)```", re.DOTALL)
STAND_FOR = [
    (re.compile(r"<op>|\bOP\b"), "soft"),
    (re.compile(r"<case>|\bCASE\b|\bID\b"), "L2_tile"),
    (re.compile(r"<copy>"), "copy"),
    (re.compile(r"\bFILE\b"), "custom/soft/soft_impl.py"),
    (re.compile(r"\bLIBRARY\b"), "/opt/lib/libtile_fwk_interface.so"),
    (re.compile(r"\bADDRESS\b"), "0x108a"),
    (re.compile(r"<[^>\n]*>"), "something"),
]


def commands_of(text: str) -> Iterator[str]:
    """Yield the commands of a page, with names in the place of its placeholders."""
    blocks = BLOCK.findall(text)
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines() if line.strip() and line[0] != "#"]
    for command in [*lines, *INLINE.findall(BLOCK.sub("", text))]:
        for pattern, by in STAND_FOR:
            command = pattern.sub(by, command)
        yield command.strip()


READERS: dict[Path, list[str]] = {}
for agent in AGENTS:
    for page in pages_of(agent):
        READERS.setdefault(page, []).append(agent.name)
PRINTED = [
    (page, command)
    for page in READERS
    if not {"templates", "lint-rules"} & {*page.parts}  # they tell what ran, and when a rule speaks
    for command in dict.fromkeys(commands_of(page.read_text(encoding="utf-8")))
    if not re.fullmatch(r"pypto-op [a-z -]+", command)  # a command's name, without what it works on
]
OWN = sorted({command for _, command in PRINTED if re.match(r"pypto-op (?:debug|diagnose|triage) ", command)})


@pytest.fixture(scope="module")
def surroundings(tmp_path_factory: pytest.TempPathFactory) -> Surroundings:
    workspace = tmp_path_factory.mktemp("workspace")
    operator = workspace / "custom" / "soft"
    (operator / "_debug").mkdir(parents=True)
    (operator / "soft_impl.py").write_text("import pypto\n")
    return Surroundings(workspace, Path("/home/somebody"), workspace)


def test_there_are_commands_and_the_guard_is_at_work(surroundings: Surroundings) -> None:
    assert len(PRINTED) > 120 and {DEBUGGER, "pypto-op-coder", "pypto-op-verifier"} <= {READERS[page][0] for page, _ in PRINTED}
    for denied in (
        "rm -rf ~/.cache/pypto-op",
        "addr2line -e lib.so 0x1 > custom/soft/soft_impl.py",
        "pypto-op mutate custom/soft",
    ):
        assert judge_command(Policy(surroundings, DEBUGGER), denied, str(surroundings.cwd)), denied


@pytest.mark.parametrize(("page", "command"), PRINTED, ids=lambda value: value.stem if isinstance(value, Path) else value[:50])
def test_a_printed_command_passes_the_guard(page: Path, command: str, surroundings: Surroundings) -> None:
    """Of several readers one must be allowed it, and the debugger all that is printed in a skill of its router."""
    readers = READERS[page]
    strict = [DEBUGGER] if DEBUGGER in readers and page.relative_to(ROOT).parts[1].removeprefix("pypto-") in SKILLS else readers
    said = [judge_command(Policy(surroundings, agent), command, str(surroundings.cwd)) for agent in strict]
    assert None in said, f"{page.relative_to(ROOT)}: {command}: {said}"


@pytest.mark.parametrize("line", OWN)
def test_a_printed_command_is_read_as_it_stands(line: str, surroundings: Surroundings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names of commands and options, how many arguments, which values: all that click knows before it runs."""
    monkeypatch.chdir(surroundings.workspace)
    words = shlex.split(line.partition(" | ")[0].partition(" && ")[0], comments=True)[1:]
    command: click.Command = cli.root
    context = click.Context(command)
    while isinstance(command, click.Group) and words:
        inner = command.get_command(context, words[0])
        assert inner is not None, line
        command, words = inner, words[1:]
    command.make_context(command.name, words)
