"""What README and docs print as a command exists with its flags; what the README's table prints runs as printed."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from tests.calling import Answer, command

from pypto_op.bundle.command_page import leaves
from pypto_op.cli import root

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "README.zh.md",
    *sorted(ROOT.glob("docs/*.md")),
    *ROOT.glob("*.md"),
    *ROOT.glob("commands/*.md"),
]
PRINTED = re.compile(r"`(pypto-op [^`]+)`|^(?:\$ |    ?)(pypto-op [a-z].*)$", re.MULTILINE)
LEAVES = dict(leaves(root))
GROUPS = {words.split()[0] for words in LEAVES if " " in words}


def printed(page: Path) -> list[str]:
    """Return the commands of a page."""
    return commands_in(page.read_text(encoding="utf-8"))


def commands_in(text: str) -> list[str]:
    """Return the commands of a text, without comments and line ends."""
    return [re.split(r"\s{2,}#|\s&&\s", one or two)[0].strip() for one, two in PRINTED.findall(text)]


@pytest.mark.parametrize("page", sorted(set(PAGES)), ids=lambda page: str(page.relative_to(ROOT)))
def test_each_printed_command_exists_with_its_flags(page: Path) -> None:
    for line in printed(page):
        words = [word for word in line.split()[1:] if word not in ("...", "…")]
        name = " ".join(words[:2]) if words[0] in GROUPS and len(words) > 1 else words[0]
        if not words[0].islower() or words[0].startswith("-") or name in GROUPS or name.split()[-1].isupper():
            continue  # `pypto-op COMMAND --help`, `pypto-op --version`, `pypto-op state ACTION`
        known_command = LEAVES.get(name)
        assert known_command is not None, f"{page.name}: `{line}` names no command"
        known = {flag for option in known_command.params if isinstance(option, click.Option) for flag in option.opts}
        flags = {word.strip("[]").split("=")[0] for word in words if word.strip("[]").startswith("--")}
        assert flags - {"--help"} <= known, f"{page.name}: `{line}`: {sorted(flags - known)}"


STAND_FOR = {"FILE": "custom/softmax/softmax_impl.py", "CASE": "L2_two_by_two_fp32"}
LESS = {"mutate": ["--limit", "1", "--seconds", "1"]}
"""Added to what takes minutes as printed."""
PROCESSES = {"script", "lsp"}
"""One becomes the script that it starts, the other reads standard input; the rest share this process's warm simulator."""
OTHER_ENDS = {"diagnose": {3}, "triage": {2}, "reproduce": {2}, "verify": {0}, "check": {0, 1}}
"""Exit codes beside 0 that are right here: an implementation is no log, and no case failed."""


@pytest.mark.slow
@pytest.mark.sim
@pytest.mark.timeout(1800)
def test_the_table_of_the_readme_runs_as_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lines of the table; a sentence may name a command alone, without the arguments that it needs."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    cells = [line for row in text.splitlines() if row.startswith("|") for line in commands_in(row)]
    rows = [line for line in cells if line.split()[1] not in ("install", "triton")]
    assert len(rows) >= 15
    monkeypatch.chdir(tmp_path)
    for line in rows:
        words = [STAND_FOR.get(word, word) for word in shlex.split(line)[1:]]
        name = words[0]
        done = _as_process(words) if name in PROCESSES else command(*words, *LESS.get(name, []))
        assert done.code in {0, *OTHER_ENDS.get(name, ())}, f"{line}: {done.code}\n{done.stdout}{done.stderr}"
        if name == "new":
            shutil.copytree(ROOT / "examples/ops/softmax", tmp_path / "custom/softmax", dirs_exist_ok=True)
            (tmp_path / "custom/softmax/eval/module_interfaces.yaml").unlink()
            _shorten(tmp_path / "custom/softmax/eval/adversarial_suite.json")
        if line.endswith("interfaces new custom/softmax"):
            shutil.copy(ROOT / "examples/ops/softmax/eval/module_interfaces.yaml", tmp_path / "custom/softmax/eval")


def _shorten(suite: Path) -> None:
    """Keep the last two cases of each level, and CASE: the commands are what is tried here, not the kernel."""
    document = json.loads(suite.read_text(encoding="utf-8"))
    levels: dict[str, list[dict[str, object]]] = {}
    for case in sorted(document["cases"], key=lambda case: case["id"] == STAND_FOR["CASE"]):
        levels.setdefault(case["level"], []).append(case)
    document["cases"] = [case for cases in levels.values() for case in cases[-2:]]
    suite.write_text(json.dumps(document), encoding="utf-8")


def _as_process(words: list[str]) -> Answer:
    line = [sys.executable, "-m", "pypto_op.cli", *words]
    done = subprocess.run(line, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    return Answer(done.returncode, done.stdout, done.stderr)
