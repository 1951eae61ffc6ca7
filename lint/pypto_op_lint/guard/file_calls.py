"""Programs whose command line is a language of its own: find, tar, dd, patch, sed, awk, mktemp."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from pypto_op_lint.guard.effects import Kind
from pypto_op_lint.guard.git_calls import analyse_git
from pypto_op_lint.guard.patches import note_patch
from pypto_op_lint.guard.programs import file_effects, parse_command_line
from pypto_op_lint.guard.words import ANY, STAR

if TYPE_CHECKING:
    from pypto_op_lint.guard.shell import Walker

Handler = Callable[["Walker", str, list[str]], None]

_AWK_FILE = re.compile(r'>>?\s*"((?:[^"\\]|\\.)+)"')
_AWK_COMMAND = re.compile(r'system\s*\(\s*"((?:[^"\\]|\\.)*)"|\|\s*"((?:[^"\\]|\\.)*)"')
_AWK_UNKNOWN = re.compile(r"\bprintf?\b[^;}\n]*>\s*[A-Za-z_$(]|system\s*\(\s*[^\"\s]")
_SED_FILE = re.compile(r"(?:^|[;\n{}0-9$/!gIp])\s*[wW] +([^\n;}]+)")


# -- find ----------------------------------------------------------------------------------------------------


def _find(walker: Walker, program: str, rest: list[str]) -> None:
    roots, expression = _find_parts(rest)
    names = _name_patterns(expression)
    index = 0
    while index < len(expression):
        token = expression[index]
        if token == "-delete":
            for root in roots:
                _find_hit(walker, root, names, Kind.WRITE, "find -delete")
        elif token in ("-fprint", "-fprint0", "-fls", "-fprintf") and index + 1 < len(expression):
            walker.add(Kind.WRITE, expression[index + 1], "find " + token)
        elif token in ("-exec", "-execdir", "-ok", "-okdir"):
            index = _find_exec(walker, roots, names, expression, index)
        index += 1


def names_listed(arguments: list[str]) -> list[str]:
    """Return the names that a `find` or an `ls` prints, as patterns; none for another program."""
    program, rest = (arguments or [""])[0], arguments[1:]
    if program == "find":
        roots, expression = _find_parts(rest)
        names = _name_patterns(expression)
        return [_below(root, names) for root in roots]
    operands = [token for token in rest if not token.startswith("-")]
    return [name for token in operands for name in (token, f"{token}/{ANY}")] if program in ("ls", "realpath") else []


def _find_parts(rest: list[str]) -> tuple[list[str], list[str]]:
    start = 0
    while start < len(rest) and rest[start] in ("-L", "-H", "-P"):
        start += 1
    end = start
    while end < len(rest) and not rest[end].startswith("-") and rest[end] not in ("(", "!", ")"):
        end += 1
    return rest[start:end] or ["."], rest[end:]


def _name_patterns(expression: list[str]) -> list[str]:
    """Return the one `-name`/`-path` filter as a pattern; none where the expression has alternatives."""
    if any(token in ("-o", "-or", "!", "-not", ",") for token in expression):
        return []
    for test in ("-name", "-iname", "-path", "-wholename"):
        if test in expression[:-1]:
            glob = expression[expression.index(test) + 1]
            return [re.sub(r"[*?]|\[[^\]]*\]", STAR if "name" in test else ANY, glob)]
    return []


def _below(root: str, names: list[str]) -> str:
    return f"{root.rstrip('/') or '/'}/{ANY}" + (names[0] if names else "")


def _find_hit(walker: Walker, root: str, names: list[str], kind: Kind, program: str) -> None:
    if names:
        walker.add(kind, _below(root, names), program)
    else:
        walker.add(Kind.WRITE_TREE if kind is Kind.WRITE else kind, root, program)


def _find_exec(walker: Walker, roots: list[str], names: list[str], expression: list[str], index: int) -> int:
    end = index + 1
    while end < len(expression) and expression[end] not in (";", "+"):
        end += 1
    for root in roots:
        hit = _below(root, names)
        inner = [token.replace("{}", hit) for token in expression[index + 1 : end]]
        if inner:
            walker.call(inner)
    return end


# -- patches -------------------------------------------------------------------------------------------------


def _patch(walker: Walker, program: str, rest: list[str]) -> None:
    line = parse_command_line(rest, {"-p", "-i", "--input", "-d", "--directory", "-o", "--output", "-F", "-r"})
    if "--dry-run" in line.options:
        return
    cwd = walker.cwd
    for folder in line.values.get("-d", []) + line.values.get("--directory", []):
        walker.change_folder(folder)
    for target in line.operands[:1] + line.values.get("-o", []) + line.values.get("--output", []):
        walker.add(Kind.WRITE, target, program)
    if not line.operands[:1]:
        note_patch(walker, program, line.values.get("-i", []) + line.values.get("--input", []), cwd)
    walker.cwd = cwd


# -- archives, blocks, streams -------------------------------------------------------------------------------


def _tar(walker: Walker, program: str, rest: list[str]) -> None:
    if rest and not rest[0].startswith("-"):
        rest = ["-" + rest[0], *rest[1:]]
    line = parse_command_line(rest, {"-f", "--file", "-C", "--directory", "-T", "--exclude"})
    archives = line.values.get("-f", []) + line.values.get("--file", [])
    letters = "".join(option[1:] for option in line.options if not option.startswith("--"))
    if "x" in letters or "--extract" in line.options:
        for folder in line.values.get("-C", []) + line.values.get("--directory", []) or ["."]:
            walker.add(Kind.WRITE, folder, "tar")
    elif set("cru") & set(letters) or "--create" in line.options:
        for archive in archives:
            walker.add(Kind.WRITE, archive, "tar")
        folders = line.values.get("-C", []) + line.values.get("--directory", [])
        for source in line.operands:
            for folder in folders or [""]:
                walker.add(Kind.READ_TREE, os.path.join(folder, source), "tar")


def _dd(walker: Walker, program: str, rest: list[str]) -> None:
    for token in rest:
        name, _, value = token.partition("=")
        if name in ("of", "if"):
            walker.add(Kind.WRITE if name == "of" else Kind.READ, value, "dd")


def _sed(walker: Walker, program: str, rest: list[str]) -> None:
    line = parse_command_line(rest, {"-e", "-f", "--expression", "--file", "-l"})
    scripts = line.values.get("-e", []) + line.values.get("--expression", [])
    for script in scripts or line.operands[:1]:
        for target in _SED_FILE.findall(script):
            walker.add(Kind.WRITE, target.strip(), "sed")
    walker.effects += file_effects(program, rest, walker.cwd, sure=walker.sure)


def _awk(walker: Walker, program: str, rest: list[str]) -> None:
    line = parse_command_line(rest, {"-v", "-F", "-f", "-i"})
    for code in line.operands[:1]:
        for target in _AWK_FILE.findall(code):
            walker.add(Kind.WRITE, target, "awk")
        for first, second in _AWK_COMMAND.findall(code):
            walker.run((first or second).replace('\\"', '"').replace(ANY, "$__cannot_be_known"))
        if _AWK_UNKNOWN.search(code):
            walker.add(Kind.OPAQUE, "its program writes to a file that it names itself", "awk")
    walker.effects += file_effects(program, rest, walker.cwd, sure=walker.sure)


def _mktemp(walker: Walker, program: str, rest: list[str]) -> None:
    """`mktemp` picks the system's folder unless a template or `-p` says otherwise."""
    line = parse_command_line(rest, {"-p", "--tmpdir", "--suffix"})
    folders = line.values.get("-p", []) + line.values.get("--tmpdir", [])
    template = line.operands[0] if line.operands else None
    if folders:
        walker.add(Kind.WRITE, f"{folders[0]}/{ANY}", program)
    elif template and "-t" not in line.options and "--tmpdir" not in line.options:
        walker.add(Kind.WRITE, re.sub("X{3,}", ANY, template), program)
    else:
        walker.add(Kind.TEMP, "mktemp", program)


FILE_HANDLERS: dict[str, Handler] = {
    "find": _find,
    "git": analyse_git,
    "patch": _patch,
    "tar": _tar,
    "bsdtar": _tar,
    "dd": _dd,
    "sed": _sed,
    "gsed": _sed,
    "awk": _awk,
    "gawk": _awk,
    "mawk": _awk,
    "mktemp": _mktemp,
    "tempfile": _mktemp,
}
