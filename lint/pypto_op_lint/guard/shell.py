"""What a shell command would do: a walk over its tree that follows folders, variables and functions.

The tree comes from shfmt, the one parser at hand that reads all of bash. The walk runs nothing. Where it
cannot know something it says so (`words.ANY`) and lets the policy decide what that is worth.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any

from pypto_op.bundle_files import extra_remedy
from pypto_op_lint.guard.effects import Effect, Kind
from pypto_op_lint.guard.file_calls import names_listed
from pypto_op_lint.guard.state_calls import note_state_call
from pypto_op_lint.guard.words import ANY, STAR, Expander, Node, Variables, clean, is_known

MAX_COMMAND = 256 << 10
_MAX_DEPTH = 6
_MAX_ITEMS = 32
_PARSE_SECONDS = 5
_WRITING = {">", ">>", ">|", "&>", "&>>", "<>", ">&"}
_PRINTERS = {"echo", "printf", "cat"}


class UnreadableCommand(Exception):
    """The command is no bash that can be parsed, or more of it than the guard looks at."""


class ParserMissing(Exception):
    """shfmt is not installed."""


@lru_cache(maxsize=1)
def _shfmt() -> str:
    beside = Path(sys.executable).with_name("shfmt")
    found = str(beside) if beside.is_file() else shutil.which("shfmt")
    if not found:
        raise ParserMissing(f"shfmt is not installed; {extra_remedy()}")
    return found


def parse(command: str) -> Node:
    """Return the syntax tree of `command`.

    Raises:
        UnreadableCommand: it is longer than 256 KiB, nested too deep, or no bash.
        ParserMissing: there is no shfmt.
    """
    if len(command) > MAX_COMMAND:
        raise UnreadableCommand(f"it is longer than {MAX_COMMAND >> 10} KiB")
    try:
        done = subprocess.run(
            [_shfmt(), "-ln=bash", "-tojson"],
            input=command.encode("utf-8", "replace"),
            capture_output=True,
            timeout=_PARSE_SECONDS,
            check=False,
        )
        if done.returncode:
            lines = done.stderr.decode("utf-8", "replace").splitlines() or ["it cannot be parsed"]
            raise UnreadableCommand(lines[0].removeprefix("<standard input>:")[:120])
        tree: Node = json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        raise UnreadableCommand(f"it cannot be parsed within {_PARSE_SECONDS} s") from None
    except (ValueError, RecursionError):
        raise UnreadableCommand("it is nested too deep") from None
    except OSError as error:
        raise ParserMissing(f"shfmt cannot run: {error}") from None
    return tree


def effects_of(command: str, cwd: str, home: str) -> list[Effect]:
    """Return everything that `command` would do when it runs in `cwd`.

    Raises:
        UnreadableCommand, ParserMissing: see `parse`.
    """
    variables = Variables({"HOME": home, "PWD": cwd, "TMPDIR": "/tmp", "TMP": "/tmp", "TEMP": "/tmp"})
    walker = Walker(variables, cwd)
    try:
        walker.run(command)
    except RecursionError:
        raise UnreadableCommand("it is nested too deep") from None
    return walker.effects


class Walker:
    """Walks statements in the order in which the shell would run them."""

    def __init__(self, variables: Variables, cwd: str | None) -> None:
        self.variables = variables
        self.cwd = cwd
        self.effects: list[Effect] = []
        self.functions: dict[str, Node] = {}
        self.aliases: dict[str, str] = {}
        self.stdin: str | None = None
        """What the current command reads, as a pattern; None when it is not known."""
        self.listed: list[str] = []
        """The names, as patterns, that `find` or `ls` prints into the current command."""
        self.written: dict[str, str] = {}
        """Text that the command itself puts into files, by absolute path: it may run them a line later."""
        self.depth = 0
        self.sure = True
        self.expander = Expander(variables, self._substitution)

    # -- for the analysers of single programs ----------------------------------------------------------------

    def add(self, kind: Kind, target: str, program: str) -> None:
        """Note an effect in the current folder."""
        self.effects.append(Effect(kind, target, self.cwd, program, self.sure))

    def run(self, command: str) -> None:
        """Analyse a piece of shell text, such as the argument of `bash -c`."""
        if self.depth >= _MAX_DEPTH:
            raise UnreadableCommand("shells within shells, too deep")
        self.depth += 1
        self._statements(parse(clean(command)).get("Stmts") or [])
        self.depth -= 1

    def in_subshell(self, statements: list[Node]) -> None:
        """Analyse statements whose `cd` and assignments are forgotten afterwards."""
        kept = self.variables.copy(), self.cwd, dict(self.functions)
        self._statements(statements)
        self._restore(*kept)

    def change_folder(self, target: str | None) -> None:
        """Follow a `cd`; None makes the folder unknown."""
        if target is not None and is_known(target) and (self.cwd or target.startswith("/")):
            self.cwd = os.path.normpath(os.path.join(self.cwd or "/", os.path.expanduser(target)))
        else:
            self.cwd = None
        self.variables.values["PWD"] = self.cwd or ANY

    def read_script(self, target: str) -> str | None:
        """Return the text of a file that the command would execute, if it is there and not too long."""
        if not is_known(target) or (self.cwd is None and not target.startswith("/")):
            return None
        path = Path(os.path.normpath(os.path.join(self.cwd or "/", os.path.expanduser(target))))
        if str(path) in self.written:
            return self.written[str(path)]
        try:
            if not path.is_file() or path.stat().st_size > MAX_COMMAND:
                return None
            return clean(path.read_text(encoding="utf-8", errors="replace"))
        except (OSError, ValueError):
            return None

    # -- statements ------------------------------------------------------------------------------------------

    def _restore(self, variables: Variables, cwd: str | None, functions: dict[str, Node]) -> None:
        self.variables.values = variables.values
        self.variables.arguments = variables.arguments
        self.cwd, self.functions = cwd, functions

    def _statements(self, statements: list[Node]) -> None:
        for statement in statements:
            self._statement(statement)

    def _statement(self, statement: Node) -> None:
        outer = self.stdin
        for redirect in statement.get("Redirs") or []:
            self._redirect(redirect)
        command = statement.get("Cmd")
        self._remember_output(statement)
        if command:
            handler = getattr(self, "_do_" + command.get("Type", ""), self._do_other)
            handler(command)
        self.stdin = outer

    def _remember_output(self, statement: Node) -> None:
        """Keep what `cat > FILE <<EOF` or `echo ... > FILE` writes, in case FILE is run later in the command."""
        redirects = statement.get("Redirs") or []
        into = [r for r in redirects if r.get("Op") in (">", ">|")]
        if len(into) != 1 or self.cwd is None:
            return
        target = self.expander.text(into[0].get("Word"))
        output = self._output_of([{**statement, "Redirs": [r for r in redirects if r is not into[0]]}])
        if output is not None and is_known(target):
            self.written[os.path.normpath(os.path.join(self.cwd, os.path.expanduser(target)))] = output

    def _redirect(self, redirect: Node) -> None:
        operator = redirect.get("Op", "")
        if operator in ("<<", "<<-"):
            self.stdin = self.expander.here_document(redirect)
            return
        target = self.expander.text(redirect.get("Word"))
        if operator == "<<<":
            self.stdin = target
        elif operator == "<":
            self.stdin = self.read_script(target)
            self.add(Kind.READ, target, "<")
        elif operator in _WRITING and not (operator == ">&" and (target.isdecimal() or target == "-")):
            self.add(Kind.WRITE, target, operator)

    def _do_CallExpr(self, command: Node) -> None:
        words = command.get("Args") or []
        if not words:
            for assignment in command.get("Assigns") or []:
                self._assign(assignment)
            return
        values = [self.expander.text(assignment.get("Value")) for assignment in command.get("Assigns") or []]
        note_state_call(self, values)  # an editor or a pager, that the program runs
        arguments = [text for word in words for text in self.expander.fields(word)]
        if arguments:
            self.call(arguments)

    def call(self, arguments: list[str]) -> None:
        """Analyse one program call with its expanded arguments."""
        from pypto_op_lint.guard.calls import analyse_call

        function = self.functions.get(arguments[0])
        if function is None:
            analyse_call(self, arguments)
        elif self.depth < _MAX_DEPTH:
            self.depth += 1
            kept = self.variables.arguments
            self.variables.arguments = arguments[1:]
            self._statement(function)
            self.variables.arguments = kept
            self.depth -= 1
        else:
            self.add(Kind.OPAQUE, "functions call one another too deep", arguments[0])

    def _assign(self, assignment: Node) -> None:
        name = (assignment.get("Name") or {}).get("Value", "")
        array = assignment.get("Array")
        if array:
            items = [t for e in array.get("Elems") or [] for t in self.expander.fields(e.get("Value"))]
            value = "\x02".join(items)
        else:
            value = self.expander.text(assignment.get("Value")) if assignment.get("Value") else ""
        if assignment.get("Naked") or not name:
            return
        if assignment.get("Append"):
            before = self.variables.values.get(name, "")
            value = before + ("\x02" if array and before else "") + value
        self.variables.values[name] = ANY if assignment.get("Index") else value

    def _do_DeclClause(self, command: Node) -> None:
        for assignment in command.get("Args") or []:
            self._assign(assignment)

    def _do_BinaryCmd(self, command: Node) -> None:
        if command.get("Op") not in ("|", "|&"):
            self._statement(command["X"])
            self._statement(command["Y"])
            return
        kept = self.variables.copy(), self.cwd, dict(self.functions)
        self._statement(command["X"])
        self._restore(*kept)
        outer, self.stdin = self.stdin, self._output_of([command["X"]])
        kept = self.variables.copy(), self.cwd, dict(self.functions)
        words = ((command["X"].get("Cmd") or {}).get("Args") or []) if self.stdin is None else []
        self.listed = names_listed([text for word in words for text in self._quiet_fields(word)])
        self._statement(command["Y"])
        self._restore(*kept)
        self.stdin, self.listed = outer, []

    def _do_Subshell(self, command: Node) -> None:
        self.in_subshell(command.get("Stmts") or [])

    def _do_Block(self, command: Node) -> None:
        self._statements(command.get("Stmts") or [])

    def _do_IfClause(self, command: Node) -> None:
        self._statements(command.get("Cond") or [])
        before = self.variables.copy()
        self._statements(command.get("Then") or [])
        otherwise = self.variables.copy()
        self.variables.values = before.values
        if command.get("Else"):
            self._do_IfClause(command["Else"])
        self.variables.merge(otherwise)

    def _do_WhileClause(self, command: Node) -> None:
        self._statements(command.get("Cond") or [])
        before = self.variables.copy()
        self._statements(command.get("Do") or [])
        self.variables.merge(before)

    def _do_ForClause(self, command: Node) -> None:
        loop, body = command.get("Loop") or {}, command.get("Do") or []
        if loop.get("Type") != "WordIter":
            self._do_other(loop)
            self._statements(body)
            return
        name = (loop.get("Name") or {}).get("Value", "")
        items = [text for word in loop.get("Items") or [] for text in self.expander.fields(word)]
        if not loop.get("Items") and not loop.get("InPos"):
            items = list(self.variables.arguments)
        for item in items if 0 < len(items) <= _MAX_ITEMS else [ANY]:
            self.variables.values[name] = item
            self._statements(body)

    def _do_CaseClause(self, command: Node) -> None:
        self.expander.text(command.get("Word"))
        before = self.variables.copy()
        for item in command.get("Items") or []:
            self.variables.values = dict(before.values)
            self._statements(item.get("Stmts") or [])
            before.merge(self.variables)
        self.variables.values = before.values

    def _do_FuncDecl(self, command: Node) -> None:
        self.functions[(command.get("Name") or {}).get("Value", "")] = command.get("Body") or {}

    def _do_TimeClause(self, command: Node) -> None:
        if command.get("Stmt"):
            self._statement(command["Stmt"])

    def _do_CoprocClause(self, command: Node) -> None:
        self.in_subshell([command["Stmt"]] if command.get("Stmt") else [])

    def _do_other(self, node: Any) -> None:
        """Arithmetic, tests and what else there is: only the commands substituted in it matter."""
        if isinstance(node, list):
            for item in node:
                self._do_other(item)
        elif isinstance(node, dict):
            if node.get("Type") in ("CmdSubst", "ProcSubst"):
                self._substitution(node.get("Stmts") or [])
                return
            for value in node.values():
                if isinstance(value, dict | list):
                    self._do_other(value)

    # -- what a command prints -------------------------------------------------------------------------------

    def _substitution(self, statements: list[Node]) -> str:
        output = self._output_of(statements)
        outer, self.stdin = self.stdin, None
        self.in_subshell(statements)
        self.stdin = outer
        return ANY if output is None else output.rstrip("\n")

    def _output_of(self, statements: list[Node]) -> str | None:
        """Return what simple printers print (`echo x`, `cat <<EOF`, `pwd`, `dirname`), or None."""
        if len(statements) != 1 or (statements[0].get("Cmd") or {}).get("Type") != "CallExpr":
            return None
        redirects = statements[0].get("Redirs") or []
        arguments = [t for w in statements[0]["Cmd"].get("Args") or [] for t in self._quiet_fields(w)]
        program, rest = (arguments or [""])[0], arguments[1:]
        if program == "cat" and not rest and redirects and redirects[0].get("Op") in ("<<", "<<-"):
            return self.expander.here_document(redirects[0])
        if redirects:
            return None
        if program == "pwd":
            return self.cwd
        if program in ("echo", "printf"):
            return _printed(program, rest)
        plain = len(rest) == 1 and ANY not in rest[0] and STAR not in rest[0]
        if program == "dirname" and plain:
            return os.path.dirname(rest[0].rstrip("/")) or "."
        if program == "basename" and plain:
            return os.path.basename(rest[0].rstrip("/"))
        if program == "realpath" and plain and self.cwd:
            return os.path.normpath(os.path.join(self.cwd, rest[0]))
        if program == "git" and rest == ["rev-parse", "--show-toplevel"] and self.cwd:
            return next((str(p) for p in [Path(self.cwd, "_"), *Path(self.cwd, "_").parents] if (p / ".git").exists()), None)
        if program in ("which", "command") and rest and is_known(rest[-1]):
            return rest[-1]
        return None

    def _quiet_fields(self, word: Node) -> list[str]:
        """Expand a word without noting its effects a second time."""
        return Expander(self.variables, lambda statements: self._output_of(statements) or ANY).fields(word)


def _printed(program: str, arguments: list[str]) -> str:
    if program == "echo":
        while arguments and arguments[0] in ("-n", "-e", "-E", "-ne", "-en"):
            arguments = arguments[1:]
        return " ".join(arguments) + "\n"
    if not arguments:
        return ""
    if "%" not in arguments[0]:
        return arguments[0].replace("\\n", "\n")
    if arguments[0] in ("%s", "%s\\n", "%b", "%b\\n"):
        return "\n".join(arguments[1:]) + "\n"
    return ANY
