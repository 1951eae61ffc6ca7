"""What the debugger's pages tell it to run, it may run: every printed command passes the guard, as that agent."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from pypto_op_lint.guard.commands import judge_command
from pypto_op_lint.guard.paths import Surroundings
from pypto_op_lint.guard.policy import Policy

ROOT = Path(__file__).parents[2]
DEBUGGER = "pypto-op-debugger"
SKILLS = ("aicore-error-locator", "environment-setup", "general-debug", "host-stacktrace-analyzer", "machine-workspace",
          "memory-overlap-detector", "pass-error-locator", "precision-compare", "precision-debug")  # fmt: skip
PAGES = [
    ROOT / ".agents/pypto-op-debugger.md",
    *(path for skill in SKILLS for path in sorted((ROOT / "skills" / f"pypto-{skill}").rglob("*.md"))),
]
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


PRINTED = [(page, command) for page in PAGES for command in commands_of(page.read_text(encoding="utf-8"))]


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Policy:
    workspace = tmp_path_factory.mktemp("workspace")
    operator = workspace / "custom" / "soft"
    (operator / "_debug").mkdir(parents=True)
    (operator / "soft_impl.py").write_text("import pypto\n")
    return Policy(Surroundings(workspace, Path("/home/somebody"), workspace), DEBUGGER)


def test_there_are_commands_and_the_guard_is_at_work(policy: Policy) -> None:
    assert len(PRINTED) > 40 and len({page for page, _ in PRINTED}) > 8
    for denied in (
        "rm -rf ~/.cache/pypto-op",
        "addr2line -e lib.so 0x1 > custom/soft/soft_impl.py",
        "pypto-op mutate custom/soft",
    ):
        assert judge_command(policy, denied, str(policy.around.cwd)), denied


@pytest.mark.parametrize(("page", "command"), PRINTED, ids=lambda value: value.stem if isinstance(value, Path) else value[:50])
def test_a_printed_command_passes_the_guard(page: Path, command: str, policy: Policy) -> None:
    assert judge_command(policy, command, str(policy.around.cwd)) is None, f"{page.relative_to(ROOT)}: {command}"
