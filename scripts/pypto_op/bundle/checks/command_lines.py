"""Every `pypto-op ...` and `python -m ...` that a text shows: subcommand, flags and module exist."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator

import click

from pypto_op.bundle.finding import Finding
from pypto_op.bundle.texts import Text

_CALL = re.compile(r"(?<![\w./-])pypto-op(?P<rest>(?: +[^\s`|;&)]+)+)")
_FLAG = re.compile(r"(?<!\S)\[?(--[a-z][\w-]*|-[a-zA-Z])\b")
_LEVEL_1 = re.compile(r"--levels[ =]L1(?![,\w])")
_MODULE = re.compile(r"\bpython3? -m (?P<module>[\w.]+)")


def check(text: Text) -> Iterator[Finding]:
    """Yield what does not resolve in the commands of `text`."""
    for piece in text.code():
        for found in _CALL.finditer(piece.text):
            for problem in problems(found["rest"]):
                yield Finding(text.name, piece.line, problem)
        for found in _MODULE.finditer(piece.text):
            if not _module_exists(found["module"]):
                yield Finding(text.name, piece.line, f"there is no module {found['module']}")


def problems(rest: str) -> Iterator[str]:
    """Yield what is wrong with the words after `pypto-op`."""
    from pypto_op.cli import root

    words = rest.split()
    command: click.Command = root
    shown = "pypto-op"
    while isinstance(command, click.Group) and words and not words[0].startswith(("-", "<", "[", "{")):
        context = click.Context(command)
        inner = command.get_command(context, words[0].rstrip(",.:"))
        if inner is None:
            if re.fullmatch(r"[a-z][a-z-]*[,.:]?", words[0]):
                yield f"`{shown}` has no command {words[0].rstrip(',.:')!r}"
            return
        shown, command, words = f"{shown} {words[0]}", inner, words[1:]
    if command.context_settings.get("ignore_unknown_options"):
        return  # what follows belongs to another program (`pypto-op script FILE ...`)
    known = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)} | {"--help", "-h"}
    for flag in _FLAG.findall(" ".join(words).replace("|", " ")):
        if flag not in known and not (command is root and flag == "--version"):
            yield f"`{shown}` has no option {flag}"
    if shown == "pypto-op verify" and _LEVEL_1.search(" ".join(words)):
        yield "`pypto-op verify --levels L1` ends in ERROR: L1 compares no number; name L2, too"


def commands_in(text: Text) -> Iterator[tuple[int, str]]:
    """Yield line and name of each subcommand that `text` calls."""
    for piece in text.code():
        for found in _CALL.finditer(piece.text):
            word = found["rest"].split()[0].rstrip(",.:")
            if re.fullmatch(r"[a-z][a-z-]*", word):
                yield piece.line, word


def _module_exists(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False
