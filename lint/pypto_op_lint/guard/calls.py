"""What one program call would do: wrappers are taken off, programs that run other programs are followed."""

from __future__ import annotations

import functools
import itertools
import os
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pypto_op.bundle_files import bundle_root
from pypto_op_lint.guard.effects import Kind
from pypto_op_lint.guard.file_calls import FILE_HANDLERS
from pypto_op_lint.guard.programs import file_effects, program_table
from pypto_op_lint.guard.python_code import analyse_python
from pypto_op_lint.guard.state_calls import CALLER, action_of, note_state_call, prints_only
from pypto_op_lint.guard.words import ANY, STAR, is_known

if TYPE_CHECKING:
    from pypto_op_lint.guard.shell import Walker

Handler = Callable[["Walker", str, list[str]], None]

BUNDLE = bundle_root().resolve()
"""The bundle's root, in a checkout or a wheel. Its own scripts are trusted: the gates sit inside them."""

_COMMAND_SCRIPTS = {"verify", "benchmark", "extract_pypto_calls"}
"""Scripts of the bundle that are the commands of the same names."""
_BY_HAND = "a tool server started by hand"
_UNKNOWN_VARIABLE = "${__cannot_be_known}"


def analyse_call(walker: Walker, arguments: list[str]) -> None:
    """Note what `arguments` (program first) would do."""
    program, rest = os.path.basename(arguments[0]), arguments[1:]
    table = program_table()
    if program in walker.aliases:
        _run_text(walker, " ".join([walker.aliases.pop(program), *map(shlex.quote, rest)]))
        return
    if program in table["wrappers"]:
        inner = _unwrapped(program, rest)
        if inner:
            walker.call(inner)
        return
    handler = _HANDLERS.get(program) or FILE_HANDLERS.get(program) or _family(program)
    if handler:
        handler(walker, program, rest)
        return
    if not prints_only(program):
        unlisted = program not in table["programs"] and program not in table["without_paths"]
        note_state_call(walker, [*arguments, *([walker.stdin] if unlisted and walker.stdin else [])], loose=unlisted)
    if ANY in arguments[0] or STAR in arguments[0]:
        _unknown_program(walker, rest)
    elif program not in table["without_paths"]:
        walker.effects += file_effects(program, rest, walker.cwd, sure=walker.sure)
        if program not in table["programs"]:
            _unlisted(walker, arguments)


def _family(program: str) -> Handler | None:
    table = program_table()
    if program in table["shells"]:
        return _shell
    if program in table["pythons"] or re.fullmatch(r"python\d(\.\d+)?", program):
        return _python
    return _other_language if program in table["code_options"] else None


def _unlisted(walker: Walker, arguments: list[str]) -> None:
    """Analyse a program that no table knows: a script, or one that runs what it is given."""
    for option, text in itertools.pairwise(arguments):
        if re.fullmatch(r"-[a-zA-Z]*c|--command", option) and re.search(r"\s", text):
            _in_child(walker, [], functools.partial(_unsure, walker, functools.partial(_run_text, walker, text)))
    if arguments[0].endswith("hooks/server.sh"):
        walker.add(Kind.INSIDE, _BY_HAND, "sh")
        return
    script = walker.read_script(arguments[0]) if "/" in arguments[0] else None
    if script is None or _is_ours(walker, arguments[0]) or "\ufffd" in script[:512]:
        return
    first = script.partition("\n")[0]
    if first.startswith("#!") and "python" in first:
        _python_script(walker, arguments[0], arguments[1:])
    elif not first.startswith("#!") or re.search(r"\b(ba|da|z|k|a)?sh\b", first):
        _shell_script(walker, arguments)


# -- wrappers ------------------------------------------------------------------------------------------------


def _unwrapped(program: str, rest: list[str]) -> list[str]:
    """Return the command that a wrapper such as `env` or `timeout` runs, or an empty list."""
    row: dict[str, Any] = program_table()["wrappers"][program]
    if row.get("subcommand"):
        if row["subcommand"] not in rest:
            return []
        rest = rest[rest.index(row["subcommand"]) + 1 :]
    left, skip = list(rest), int(row.get("operands", 0))
    while left:
        token = left[0]
        if token in row.get("stop_with", ()):
            return []
        if program == "env" and token in ("-S", "--split-string") and len(left) > 1:
            left[0:2] = _split(left[1])
        elif token == "--":
            left.pop(0)
        elif token.startswith("-") and token != "-":
            del left[: 2 if token in row.get("values", ()) else 1]
        elif row.get("assignments") and re.match(r"[A-Za-z_]\w*=", token):
            left.pop(0)
        elif skip:
            skip -= 1
            left.pop(0)
        else:
            return left
    return left


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return [ANY]


# -- shells --------------------------------------------------------------------------------------------------


def _run_text(walker: Walker, text: str) -> None:
    walker.run(text.replace(ANY, _UNKNOWN_VARIABLE).replace(STAR, "*"))


def _shell(walker: Walker, program: str, rest: list[str]) -> None:
    index = 0
    while index < len(rest) and rest[index].startswith(("-", "+")) and rest[index] not in ("-", "--"):
        option = rest[index]
        if not option.startswith("--") and "c" in option[1:]:
            _shell_text(walker, rest[index + 1 :])
            return
        index += 2 if option in ("-o", "+o", "-O", "--rcfile", "--init-file") else 1
    operands = [token for token in rest[index:] if token not in ("-", "--")]
    if not operands:
        if walker.stdin is None:
            walker.add(Kind.OPAQUE, "what the shell would read is not known", program)
        else:
            text = walker.stdin
            _in_child(walker, [], lambda: _run_text(walker, text))
        return
    _shell_script(walker, operands)


def _shell_text(walker: Walker, rest: list[str]) -> None:
    """Analyse what follows `-c`: the text, the name it is given, its arguments."""
    if rest:
        _in_child(walker, rest[2:], lambda: _run_text(walker, rest[0]))


def _shell_script(walker: Walker, operands: list[str]) -> None:
    walker.add(Kind.READ, operands[0], "sh")
    if operands[0].endswith("hooks/server.sh") or (operands[0] == "server.sh" and str(walker.cwd).endswith("/hooks")):
        walker.add(Kind.INSIDE, _BY_HAND, "sh")
        return
    text = None if _is_ours(walker, operands[0]) else walker.read_script(operands[0])
    if text is not None:
        _in_child(walker, operands[1:], lambda: _unsure(walker, lambda: walker.run(text)))


def _in_child(walker: Walker, arguments: list[str], body: Callable[[], None]) -> None:
    """Run `body` as a child process would: folder and variables come back as they were."""
    kept, cwd, stdin = walker.variables.copy(), walker.cwd, walker.stdin
    walker.variables.arguments = arguments
    body()
    walker.variables.values, walker.variables.arguments = kept.values, kept.arguments
    walker.cwd, walker.stdin = cwd, stdin


def _unsure(walker: Walker, body: Callable[[], None]) -> None:
    """Analyse a script file: what it does to names that only its caller knows proves nothing."""
    from pypto_op_lint.guard.shell import UnreadableCommand

    sure, walker.sure = walker.sure, False
    try:
        body()
    except UnreadableCommand:
        pass  # the shell will say so itself; what it ran before is found by content afterwards
    finally:
        walker.sure = sure


def _is_ours(walker: Walker, script: str) -> bool:
    if not is_known(script):
        return False
    real = Path(os.path.realpath(os.path.join(walker.cwd or "/", os.path.expanduser(script))))
    return any(BUNDLE / room in real.parents for room in ("scripts", "skills", "hooks", "lint"))


def _eval(walker: Walker, program: str, rest: list[str]) -> None:
    _run_text(walker, " ".join(rest))


def _source(walker: Walker, program: str, rest: list[str]) -> None:
    text = walker.read_script(rest[0]) if rest and not _is_ours(walker, rest[0]) else None
    if text is not None:
        _unsure(walker, lambda: walker.run(text))


def _trap(walker: Walker, program: str, rest: list[str]) -> None:
    if len(rest) > 1 and not rest[0].startswith("-"):
        _run_text(walker, rest[0])


# -- the shell's own state -----------------------------------------------------------------------------------


def _cd(walker: Walker, program: str, rest: list[str]) -> None:
    operands = [token for token in rest if not re.fullmatch(r"-[LPe@]+|--", token)]
    target = operands[0] if operands else walker.variables.values.get("HOME", ANY)
    if len(operands) > 1:  # the shell refuses, since a path fell into words; where it stands then nobody knows
        target = "-"
    walker.change_folder(None if target == "-" or program == "popd" else target)


def _alias(walker: Walker, program: str, rest: list[str]) -> None:
    for token in rest:
        name, equals, text = token.partition("=")
        if equals:
            walker.aliases[name] = text


def _set(walker: Walker, program: str, rest: list[str]) -> None:
    if "--" in rest:
        walker.variables.arguments = rest[rest.index("--") + 1 :]


def _shift(walker: Walker, program: str, rest: list[str]) -> None:
    count = int(rest[0]) if rest and rest[0].isdecimal() else 1
    walker.variables.arguments = walker.variables.arguments[count:]


def _forget(walker: Walker, program: str, rest: list[str]) -> None:
    """`read`, `mapfile`, `unset`: the named variables hold what nobody knows."""
    for name in rest:
        if re.fullmatch(r"[A-Za-z_]\w*", name):
            walker.variables.values[name] = ANY


# -- programs that run programs ------------------------------------------------------------------------------


def _unknown_program(walker: Walker, rest: list[str]) -> None:
    walker.add(Kind.OPAQUE, "the program's name is not known", " ".join(t for t in rest if is_known(t))[:80])


def _xargs(walker: Walker, program: str, rest: list[str]) -> None:
    valued = {"-n", "-P", "-d", "-L", "-s", "-a", "-E", "-I", "--max-args", "--delimiter", "--arg-file", "-j"}
    index, placeholder = 0, None
    while index < len(rest) and rest[index].startswith("-"):
        token = rest[index]
        if token.startswith("-I"):
            placeholder = token[2:] or (rest[index + 1] if index + 1 < len(rest) else "{}")
        elif token in ("-i", "--replace"):
            placeholder = "{}"
        index += 2 if token in valued else 1
    inner = rest[index:] or ["echo"]
    if ":::" in inner:
        inner = [token for token in inner if token != ":::"]
    items = _split(walker.stdin) if walker.stdin and is_known(walker.stdin) else [ANY]
    if program == "parallel" and placeholder is None and "{}" in inner:
        placeholder = "{}"
    if placeholder is None:
        walker.call([*inner, *items])
        if walker.listed:
            walker.call([*inner, *walker.listed])
        return
    for item in items[:32]:
        walker.call([token.replace(placeholder, item) for token in inner])


def _other_language(walker: Walker, program: str, rest: list[str]) -> None:
    table = program_table()
    options = table["code_options"][program]
    code = [rest[i + 1] for i, token in enumerate(rest[:-1]) if _holds_code(token, options)]
    if not code and walker.stdin is not None and not [t for t in rest if not t.startswith("-")]:
        code = [walker.stdin]
    note_state_call(walker, code)
    if any(re.search(table["code_that_writes"], text) for text in code):
        walker.add(Kind.OPAQUE, "its code writes files or runs programs", program)
    if program in table["programs"]:
        walker.effects += file_effects(program, rest, walker.cwd, sure=walker.sure)


def _holds_code(token: str, options: list[str]) -> bool:
    return token in options or ("-e" in options and re.fullmatch(r"-[a-zA-Z0-9]*[eE]", token) is not None)


# -- python and the bundle's own commands --------------------------------------------------------------------


def _python(walker: Walker, program: str, rest: list[str]) -> None:
    index = 0
    while index < len(rest) and rest[index].startswith("-") and rest[index] != "-":
        option = rest[index]
        if not option.startswith("--") and option.endswith("c") and index + 1 < len(rest):
            analyse_python(walker, rest[index + 1], ["-c", *rest[index + 2 :]])
            return
        if not option.startswith("--") and option.endswith("m") and index + 1 < len(rest):
            _python_module(walker, rest[index + 1], rest[index + 2 :])
            return
        index += 2 if option in ("-X", "-W", "--check-hash-based-pycs") else 1
    if index >= len(rest) or rest[index] in ("-", "/dev/stdin"):
        if walker.stdin is not None:
            analyse_python(walker, walker.stdin, rest[index:] or ["-"])
        return
    _python_script(walker, rest[index], rest[index + 1 :])


def _python_module(walker: Walker, module: str, rest: list[str]) -> None:
    if CALLER.fullmatch(module):
        _pypto_op(walker, "pypto-op", rest)
    elif re.match(r"pypto_op\.(state|mcp)\b", module):
        walker.add(Kind.INSIDE, f"`python -m {module}`", "python")
    elif module == "pypto_op.backends.hostshim" and rest:
        _python_script(walker, rest[0], rest[1:])
    else:
        for name in (token.rpartition(".")[2] for token in rest):
            if name.endswith("_golden"):  # pydoc and inspect take a module's name
                walker.add(Kind.READ, f"{ANY}/{name}.py", "python")
        walker.call([module, *rest])


def _python_script(walker: Walker, script: str, rest: list[str]) -> None:
    walker.add(Kind.READ, script, "python")
    note_state_call(walker, rest)
    if CALLER.fullmatch(script):
        _pypto_op(walker, "pypto-op", rest)
        return
    if _is_ours(walker, script):
        stem = Path(script).stem
        if stem == "mcp_server":
            walker.add(Kind.INSIDE, _BY_HAND, "python")
        elif stem in _COMMAND_SCRIPTS:
            walker.add(Kind.COMMAND, stem.replace("_", "-"), "python")
        return
    text = walker.read_script(script)
    if text is not None:
        is_test = os.path.basename(script).startswith("test_") and "_debug" not in script
        _unsure(walker, lambda: analyse_python(walker, text, [script, *rest], mentions=not is_test))


def _pypto_op(walker: Walker, program: str, rest: list[str]) -> None:
    operands = [token for token in rest if not token.startswith("-")]
    if operands and operands[0] != "state" and not {"-h", "--help"} & set(rest):
        walker.add(Kind.COMMAND, operands[0], "pypto-op")
    if operands and (operands[0] == "state" or not is_known(operands[0])):
        action = action_of(rest[rest.index(operands[0]) + 1 :])
        if action:
            walker.add(Kind.STATE, action, "pypto-op state")
    elif operands[:1] == ["script"] and len(operands) > 1:
        _python_script(walker, operands[1], rest[rest.index(operands[1]) + 1 :])


_HANDLERS: dict[str, Handler] = {
    "eval": _eval,
    "source": _source,
    ".": _source,
    "trap": _trap,
    "alias": _alias,
    "cd": _cd,
    "pushd": _cd,
    "popd": _cd,
    "set": _set,
    "shift": _shift,
    "read": _forget,
    "mapfile": _forget,
    "readarray": _forget,
    "unset": _forget,
    "xargs": _xargs,
    "parallel": _xargs,
    "pypto-op": _pypto_op,
    "ruff": lambda walker, program, rest: _ruff(walker, rest),
}


def _ruff(walker: Walker, rest: list[str]) -> None:
    """`ruff format` and `ruff check --fix` write; everything else of ruff reads."""
    operands = [token for token in rest if not token.startswith("-")]
    writes = (operands[:1] == ["format"] and not {"--check", "--diff"} & set(rest)) or (
        operands[:1] == ["check"] and bool({"--fix", "--unsafe-fixes", "--add-noqa"} & set(rest))
    )
    for target in operands[1:] or ["."]:
        walker.add(Kind.WRITE_TREE if writes else Kind.READ, target, "ruff")
