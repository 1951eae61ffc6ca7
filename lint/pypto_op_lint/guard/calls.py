"""What one program call would do: wrappers are taken off, shells and what `find` and `xargs` run are followed.

What a program prints may be names that another one reads: `Walker.names`.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from pypto_op.bundle_files import bundle_root
from pypto_op_lint.guard.code import read_code
from pypto_op_lint.guard.effects import Kind
from pypto_op_lint.guard.git_calls import analyse_git
from pypto_op_lint.guard.kills import note_kill
from pypto_op_lint.guard.programs import file_effects, program_table
from pypto_op_lint.guard.state_calls import CALLER, action_of, note_state_call
from pypto_op_lint.guard.words import ANY, LISTED, STAR, is_known

if TYPE_CHECKING:
    from pypto_op_lint.guard.shell import Walker

Handler = Callable[["Walker", str, list[str]], None]

BUNDLE = bundle_root().resolve()
"""The bundle's root, in a checkout or a wheel. Its own scripts are trusted: the gates sit inside them."""

_COMMAND_SCRIPTS = {"verify", "benchmark", "extract_pypto_calls"}
"""Scripts of the bundle that are the commands of the same names."""
_BY_HAND = "a tool server started by hand"
_TAKES_A_WORD = {"-n", "-L", "-P", "-I", "-d", "-a", "-s", "-E", "-j", "--arg-file", "--max-args", "--max-procs", "--jobs"}
"""Options of `xargs` and `parallel`."""
_OTHER_ROOM = 256
_MAX_ITEMS = 32


def analyse_call(walker: Walker, arguments: list[str]) -> None:
    """Note what `arguments` (program first) would do."""
    program, rest = os.path.basename(arguments[0]), arguments[1:]
    table = program_table()
    if program == LISTED:
        walker.add(Kind.READ, LISTED, "$(...)")
    if handler := _handler(program):
        handler(walker, program, rest)
        return
    unlisted = program not in table["programs"] and program not in table["without_paths"]
    if program not in table["text_only"]:
        note_state_call(walker, [*arguments, *([walker.stdin] if unlisted and walker.stdin else [])], loose=unlisted)
    if program in table["without_paths"]:
        operands = [token for token in rest if not token.startswith("-")] or ["."] * (program in table["lists"])
        walker.names += [name for token in operands for name in (token, f"{token}/{ANY}")]
        walker.variables |= dict.fromkeys(rest[1:2] if rest[:1] == ["-v"] else [], LISTED)  # `printf -v NAME`
        return
    found = list(file_effects(program, rest, walker.cwd))
    walker.effects += found
    fed = walker.stdin is not None and not walker.names
    if found or fed or program not in table["passes_on"]:
        walker.names.append(LISTED)
    if unlisted:
        _unlisted(walker, arguments)


def _handler(program: str) -> Handler | None:
    table = program_table()
    if program in table["shells"]:
        return _shell
    if program in table["wrappers"]:
        return _wrapper
    if program in table["interpreters"] or re.fullmatch(r"python\d(\.\d+)?", program):
        return _code
    return _HANDLERS.get(program)


def is_program(word: str) -> bool:
    """Say whether a word is the name of a program that the guard knows."""
    table, name = program_table(), os.path.basename(word)
    return bool(_handler(name)) or any(name in table[key] for key in ("programs", "without_paths", "text_only"))


def _unlisted(walker: Walker, arguments: list[str]) -> None:
    """Analyse a program that no table knows: a script, or one that runs what it is given."""
    for option, text in zip(arguments, arguments[1:], strict=False):
        if re.fullmatch(r"-[a-zA-Z]*c|--command", option) and re.search(r"\s", text):
            walker.run_script(text)
    if "/" not in arguments[0]:
        return
    walker.add(Kind.READ, arguments[0], arguments[0])
    if _by_hand(walker, arguments[0]) or _is_ours(walker, arguments[0]):
        return
    script = walker.read_script(arguments[0]) or ""
    first = script.partition("\n")[0]
    if first.startswith("#!") and not re.search(r"\b(ba|da|z|k|a)?sh\b", first):
        read_code(walker, script, python="python" in first)
    elif "\ufffd" not in script[:512]:
        walker.run_script(script)


def _wrapper(walker: Walker, program: str, rest: list[str]) -> None:
    """Follow `env`, `timeout` and their like: their command starts at the first word that is a program or a path."""
    if program == "command" and {"-v", "-V"} & set(rest[:1]):
        return
    table, skip = program_table(), False
    for index, word in enumerate(rest):
        if skip or word.startswith("-") or re.match(r"[A-Za-z_]\w*=", word):
            skip = not skip and word in table["wrapper_values"]
            if word in ("-S", "--split-string") and rest[index + 1 :]:
                walker.run_script(rest[index + 1])
        elif re.search(r"\s", word):
            walker.run_script(word)
        elif "/" in word or is_program(word):
            walker.call(rest[index:])
            return
    walker.effects += file_effects(program, rest, walker.cwd)


# -- shells --------------------------------------------------------------------------------------------------


def _shell(walker: Walker, program: str, rest: list[str]) -> None:
    """Follow the text of `-c`, of a script or of stdin; what it is given as `$1` counts as read."""
    index = 0
    while index < len(rest) and rest[index].startswith(("-", "+")) and rest[index] not in ("-", "--"):
        if not rest[index].startswith("--") and "c" in rest[index][1:]:
            walker.run_script("".join(rest[index + 1 : index + 2]))
            walker.effects += file_effects(program, rest[index + 2 :], walker.cwd)
            return
        index += 2 if rest[index] in ("-o", "+o", "-O", "--rcfile", "--init-file") else 1
    operands = [token for token in rest[index:] if token not in ("-", "--")]
    if not operands or operands[0].startswith("/dev/") or any(re.fullmatch(r"-\w*s\w*", word) for word in rest[:index]):
        _fed(walker, program)
        walker.run_script(walker.stdin or "")
        return
    walker.effects += file_effects(program, operands, walker.cwd)
    if not _by_hand(walker, operands[0]) and not _is_ours(walker, operands[0]):
        walker.run_script(walker.read_script(operands[0]) or "")


def _fed(walker: Walker, program: str) -> None:
    """Note that what a program prints is run: it may read any file."""
    if walker.stdin and walker.stdin.strip() == LISTED:
        walker.add(Kind.READ, LISTED, program)


def _by_hand(walker: Walker, script: str) -> bool:
    """Say whether a script is the one that starts the tool server, and note it."""
    found = script.endswith("hooks/server.sh") or (script == "server.sh" and str(walker.cwd).endswith("/hooks"))
    if found:
        walker.add(Kind.INSIDE, _BY_HAND, "sh")
    return found


def _is_ours(walker: Walker, script: str) -> bool:
    path = walker.path_of(script)
    real = Path(os.path.realpath(path)) if path else Path("/")
    return any(BUNDLE / room in real.parents for room in ("scripts", "skills", "hooks", "lint"))


def _eval(walker: Walker, program: str, rest: list[str]) -> None:
    words = rest[:1] if program == "trap" else rest
    walker.run(" ".join(words))


def _source(walker: Walker, program: str, rest: list[str]) -> None:
    if rest and rest[0].startswith("/dev/"):
        _shell(walker, program, [])
    elif rest and not _is_ours(walker, rest[0]):
        walker.add(Kind.READ, rest[0], program)
        walker.run(walker.read_script(rest[0]) or "")


# -- the shell's own state -----------------------------------------------------------------------------------


def _cd(walker: Walker, program: str, rest: list[str]) -> None:
    operands = [token for token in rest if not re.fullmatch(r"-[LPe@]+|--", token)]
    target = operands[0] if operands else walker.variables.get("HOME", ANY)
    # Of several words the shell refuses all, since a path fell into pieces; where it stands then nobody knows.
    walker.change_folder(None if len(operands) > 1 or target == "-" or program == "popd" else target)


def _read(walker: Walker, program: str, rest: list[str]) -> None:
    """`read`, `mapfile`: the named variables hold the one name that the pipeline prints, or one of a list."""
    value = walker.names[0] if len(walker.names) == 1 else LISTED
    walker.variables |= dict.fromkeys((name for name in [*rest, "REPLY", "MAPFILE"] if name.isidentifier()), value)


# -- programs that name files for others ---------------------------------------------------------------------


def _find(walker: Walker, program: str, rest: list[str]) -> None:
    """Note what the programs behind `-exec` read; what they or `-delete` change, nobody says beforehand."""
    start = next((i for i, word in enumerate(rest) if word not in ("-L", "-H", "-P")), 0)
    end = next((i for i in range(start, len(rest)) if rest[i].startswith("-") or rest[i] in ("(", "!", ")")), len(rest))
    roots, expression = rest[start:end] or ["."], rest[end:]
    name = ""
    tests = [i for i, word in enumerate(expression[:-1]) if word in ("-name", "-iname", "-path", "-wholename")]
    if len(tests) == 1 and not {"-o", "-or", "!", "-not", ","} & set(expression):
        wild = STAR if expression[tests[0]].endswith("name") and "whole" not in expression[tests[0]] else ANY
        name = re.sub(r"[*?]|\[[^\]]*\]", wild, expression[tests[0] + 1])
    hits = [f"{root.rstrip('/') or '/'}/{ANY}{name}" for root in roots]
    hits += [root for root in roots if (path := walker.path_of(root)) is None or not path.is_dir()]
    walker.names += hits
    for i, word in enumerate(expression[:-1]):
        if word in ("-exec", "-execdir", "-ok", "-okdir"):
            inner = expression[i + 1 :]
            stop = next((n for n, token in enumerate(inner) if token in (";", "+")), len(inner))
            _run_on(walker, inner[:stop], [] if "{}" in " ".join(inner[:stop]) else hits, hits)


def _run_on(walker: Walker, inner: list[str], appended: list[str], hits: list[str]) -> None:
    """Note what a program reads that is run on `hits`, in the place of `{}` or appended."""
    before = len(walker.effects)
    for hit in hits:  # a part of a path is a name that may have lost its folder
        words = [token.replace("{}", hit if token == "{}" or re.search(r"\s", token) else ANY) for token in inner]
        walker.call([*words, *appended])
    writes = (Kind.WRITE, Kind.WRITE_TREE)
    walker.effects[before:] = [e for e in walker.effects[before:] if e.kind not in writes or is_known(e.target)]


def _xargs(walker: Walker, program: str, rest: list[str]) -> None:
    words = [token for token in rest if token != ":::"]
    at = next((i for i, token in enumerate(words) if token.startswith(("-I", "-i", "--replace"))), None)
    if at is not None and words[at] == "-I":
        words = [token.replace("".join(words[at + 1 : at + 2]) or "{}", "{}") for token in words]
    start = 0
    while words[start:] and words[start].startswith("-"):
        start += 2 if words[start] in _TAKES_A_WORD else 1
    inner = words[start:] or ["echo"]
    known = _split(walker.stdin) if walker.stdin and is_known(walker.stdin) else []
    items = list(dict.fromkeys([*known[:_MAX_ITEMS], *walker.names])) or [LISTED]
    placed = "{}" in " ".join(inner)
    _run_on(walker, inner, [] if placed else items, items if placed else [""])


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def _dd(walker: Walker, program: str, rest: list[str]) -> None:
    for name, _, value in (token.partition("=") for token in rest):
        if name in ("of", "if"):
            walker.add(Kind.WRITE if name == "of" else Kind.READ, value, program)


# -- code, and the bundle's own commands ---------------------------------------------------------------------


def _code(walker: Walker, program: str, rest: list[str]) -> None:
    """Look at what an interpreter is given: its words, the files that they name, what it reads."""
    python = program.startswith(("py", "ipy"))
    note_state_call(walker, rest)
    for index, word in enumerate(rest):
        if python and rest[index - 1 : index] == ["-m"]:
            walker.call(["pypto-op" if CALLER.fullmatch(word) else word, *rest[index + 1 :]])
            if CALLER.fullmatch(word):
                return
        if _script(walker, word, rest[index + 1 :], python=python):
            return
        read_code(walker, word, python=python and rest[index - 1 : index] == ["-c"])
    if walker.stdin is not None:
        if all(word.startswith(("-", "/dev/")) for word in rest) or "-" in rest:
            _fed(walker, program)
        read_code(walker, walker.stdin, python=python)
    walker.effects += file_effects(program, rest, walker.cwd)


def _script(walker: Walker, word: str, rest: list[str], *, python: bool) -> bool:
    """Look into a file that an interpreter is given; say whether it was one of this bundle's own."""
    if python and CALLER.fullmatch(word):
        _pypto_op(walker, "pypto-op", rest)
        return True
    if _is_ours(walker, word):
        stem = Path(word).stem
        if stem == "mcp_server":
            walker.add(Kind.INSIDE, _BY_HAND, "python")
        elif stem in _COMMAND_SCRIPTS:
            walker.add(Kind.COMMAND, stem.replace("_", "-"), "python")
        return True
    text = walker.read_script(word) if len(word) < _OTHER_ROOM else None
    judges_test = os.path.basename(word).startswith("test_") and "_debug" not in word
    if text is not None and not judges_test:
        read_code(walker, text, python=python)
    return False


def _pypto_op(walker: Walker, program: str, rest: list[str]) -> None:
    operands = [token for token in rest if not token.startswith("-")]
    if operands and operands[0] != "state" and not {"-h", "--help"} & set(rest):
        walker.add(Kind.COMMAND, operands[0], "pypto-op")
    if operands and (operands[0] == "state" or not is_known(operands[0])):
        action = action_of(rest[rest.index(operands[0]) + 1 :])
        if action:
            walker.add(Kind.STATE, action, "pypto-op state")
    elif operands[:1] in (["script"], ["run-on"]):
        _code(walker, "python", rest[rest.index(operands[0]) + 1 :])


_HANDLERS: dict[str, Handler] = {
    "eval": _eval,
    "trap": _eval,
    "source": _source,
    ".": _source,
    "cd": _cd,
    "pushd": _cd,
    "popd": _cd,
    "read": _read,
    "mapfile": _read,
    "readarray": _read,
    "find": _find,
    "xargs": _xargs,
    "parallel": _xargs,
    "dd": _dd,
    "git": analyse_git,
    "pypto-op": _pypto_op,
    "kill": note_kill,
    "pkill": note_kill,
    "killall": note_kill,
}
