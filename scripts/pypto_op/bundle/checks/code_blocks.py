"""Code in the texts and beside them: it parses, and the pypto names in it exist."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import yaml

from pypto_op.bundle.finding import Finding
from pypto_op.bundle.texts import Text
from pypto_op.documents.markdown import Fence
from pypto_op_lint import pypto_names

LANGUAGES = frozenset({"", "text", "python", "py", "console", "sh", "bash", "json", "yaml"})
_PYPTO = re.compile(r"\bpypto\.[a-zA-Z_][\w.]*")


def check(text: Text) -> Iterator[Finding]:
    """Yield the blocks of `text` that do not parse. What a block calls is checked with the other references."""
    for block in () if text.shows_mistakes else text.markdown.fences:
        problem = _problem(block)
        if problem:
            yield Finding(text.name, block.line, problem)


def check_files(root: Path) -> Iterator[Finding]:
    """Yield the Python and shell files of the skills that do not parse or name what pypto has not."""
    names = pypto_names.names()
    for path in sorted((root / "skills").rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        name = path.relative_to(root).as_posix()
        problem = _python_problem(source)
        if problem:
            yield Finding(name, 0, problem)
        for number, line in enumerate(source.split("\n"), 1):
            code = line.partition("#")[0]
            unknown = next((u for found in _PYPTO.findall(code) if (u := names.first_unknown(found.rstrip(".")))), None)
            if unknown:
                yield Finding(name, number, f"pypto {names.version} has no {unknown}")
    for path in sorted((root / "skills").rglob("*.sh")):
        problem = _shell_problem(path.read_text(encoding="utf-8"))
        if problem:
            yield Finding(path.relative_to(root).as_posix(), 0, problem)


def _problem(block: Fence) -> str | None:
    if block.language not in LANGUAGES:
        return f"blocks of language {block.language!r} are not checked; use {', '.join(sorted(LANGUAGES - {''}))}, or none"
    if block.language in ("python", "py"):
        return _python_problem(block.text)
    if block.language in ("sh", "bash"):
        return _shell_problem(block.text)
    if block.language == "console":
        lines = [line[2:] for line in block.text.split("\n") if line.startswith("$ ")]
        return _shell_problem("\n".join(lines)) if lines else "a console block shows commands after `$ `"
    if block.language == "json":
        return _parses(json.loads, block.text)
    if block.language == "yaml":
        return _parses(yaml.safe_load, block.text)
    return None


def _parses(parse: object, text: str) -> str | None:
    try:
        assert callable(parse)
        parse(text)
    except (ValueError, yaml.YAMLError) as error:
        return f"the block does not parse: {' '.join(str(error).split())[:120]}"
    return None


def _python_problem(source: str) -> str | None:
    try:
        compile(source, "<block>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        return f"the Python does not parse: {' '.join(str(error).split())[:120]}"
    return None


def _shell_problem(source: str) -> str | None:
    plain = re.sub(r"<[^<>\n]+>", "X", source)  # placeholders would be redirections
    done = subprocess.run(["bash", "-n"], input=plain, capture_output=True, text=True, timeout=20, check=False)
    return f"the shell does not parse: {done.stderr.strip().splitlines()[-1][:120]}" if done.returncode else None
