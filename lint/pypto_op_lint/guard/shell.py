"""What a shell command would do: a walk over its tree that follows folders, variables and functions.

The tree comes from shfmt, the one parser at hand that reads all of bash. The walk runs nothing. What it cannot
know (`words.ANY`) it does not guess: the record of changes sees it afterwards. Only names that a program prints
(`words.LISTED`) count as known: reading them leaves no trace.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any

from pypto_op.bundle_files import extra_remedy
from pypto_op_lint.guard.effects import Effect, Kind
from pypto_op_lint.guard.state_calls import note_state_call
from pypto_op_lint.guard.words import ANY, LISTED, SPLIT, STAR, Expander, Node, clean, is_known

MAX_COMMAND = 256 << 10
_MAX_DEPTH = 6
_MAX_ITEMS = 32
_PARSE_SECONDS = 5
_WRITING = {">", ">>", ">|", "&>", "&>>", "<>", ">&"}


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
    text = command.encode("utf-8", "replace")
    try:
        done = subprocess.run(
            [_shfmt(), "-ln=bash", "-tojson"], input=text, capture_output=True, timeout=_PARSE_SECONDS, check=False
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


def effects_of(command: str, cwd: str | None, home: str) -> list[Effect]:
    """Return what `command` would do when it runs in `cwd` (None: nobody knows where), as far as its words tell.

    Raises:
        UnreadableCommand, ParserMissing: see `parse`.
    """
    walker = Walker(cwd, home)
    try:
        walker.run(command)
    except RecursionError:
        raise UnreadableCommand("it is nested too deep") from None
    return walker.effects


class Walker:
    """Walks statements in the order in which the shell would run them."""

    def __init__(self, cwd: str | None, home: str) -> None:
        self.variables = {"HOME": home, "PWD": cwd or ANY, "__listed": LISTED}
        self.variables |= dict.fromkeys(("TMPDIR", "TMP", "TEMP"), "/tmp")
        self.cwd = cwd
        self.effects: list[Effect] = []
        self.functions: dict[str, Node] = {}
        self.stdin: str | None = None
        """What the current command is fed, as a pattern: LISTED when a program prints it; None when it is fed nothing."""
        self.names: list[str] = []
        """The names of files, as patterns, that the current pipeline or substitution prints."""
        self.written: dict[str, str] = {}
        """Text that the command itself puts into files, by absolute path: it may run them a line later."""
        self.words: list[Node] = []
        """The words of the current call, as the parser gives them."""
        self.depth = 0
        self.expander = Expander(self.variables, self._substitution)

    # -- for the analysers of single programs ----------------------------------------------------------------

    def add(self, kind: Kind, target: str, program: str) -> None:
        """Note an effect in the current folder."""
        self.effects.append(Effect(kind, target, self.cwd, program))

    def run(self, command: str) -> None:
        """Analyse a piece of shell text, such as the argument of `bash -c`."""
        if self.depth >= _MAX_DEPTH:
            raise UnreadableCommand("shells within shells, too deep")
        self.depth += 1
        text = command.replace(ANY, "${__cannot_be_known}").replace(LISTED, "${__listed}").replace(STAR, "*")
        self._visit(parse(clean(text)).get("Stmts") or [])
        self.depth -= 1

    def run_script(self, text: str) -> None:
        """Analyse a text that another shell process runs; one that is no bash tells nothing."""
        kept, depth = (dict(self.variables), self.cwd), self.depth
        try:
            self.run(text)
        except UnreadableCommand:
            self.depth = depth
        self._restore(*kept)

    def change_folder(self, target: str | None) -> None:
        """Follow a `cd`; None makes the folder unknown."""
        if target is not None and is_known(target) and (self.cwd or target.startswith("/")):
            self.cwd = os.path.normpath(os.path.join(self.cwd or "/", os.path.expanduser(target)))
        else:
            self.cwd = None
        self.variables["PWD"] = self.cwd or ANY

    def path_of(self, target: str) -> Path | None:
        """Return the one path that a pattern stands for here, or None."""
        if not is_known(target) or (self.cwd is None and not target.startswith("/")):
            return None
        return Path(os.path.normpath(os.path.join(self.cwd or "/", os.path.expanduser(target))))

    def read_script(self, target: str) -> str | None:
        """Return the text of a file that the command would execute, if it is there and not too long."""
        path = self.path_of(target)
        if path is None or str(path) in self.written:
            return self.written.get(str(path))
        try:
            if not path.is_file() or path.stat().st_size > MAX_COMMAND:
                return None
            return clean(path.read_text(encoding="utf-8", errors="replace"))
        except (OSError, ValueError):
            return None

    # -- the tree --------------------------------------------------------------------------------------------

    def _restore(self, variables: dict[str, str], cwd: str | None) -> None:
        self.variables.clear()
        self.variables |= variables
        self.cwd = cwd

    def _visit(self, node: Any) -> None:
        """Walk whatever lies below a node; statements and commands where they stand, in order."""
        if isinstance(node, list):
            for item in node:
                self._visit(item)
        elif isinstance(node, dict):
            kind = node.get("Type", "")
            if kind in ("CmdSubst", "ProcSubst"):
                self._substitution(node.get("Stmts") or [])
            elif "Cmd" in node or "Redirs" in node:
                self._statement(node)
            elif handler := getattr(self, "_do_" + kind, None):
                handler(node)
            else:
                self._visit([value for value in node.values() if isinstance(value, dict | list)])

    def _statement(self, statement: Node) -> None:
        outer = self.stdin
        for redirect in statement.get("Redirs") or []:
            self._redirect(redirect)
        self._remember_output(statement)
        self._visit(statement.get("Cmd"))
        self.names += [LISTED] * (statement.get("Cmd") is None)  # `$(<FILE)`
        self.stdin = outer

    def _remember_output(self, statement: Node) -> None:
        """Keep what `cat > FILE <<EOF` or `echo ... > FILE` writes, in case FILE is run later in the command."""
        redirects = statement.get("Redirs") or []
        into = [r for r in redirects if r.get("Op") in (">", ">|")]
        path = self.path_of(self.expander.text(into[0].get("Word"))) if len(into) == 1 else None
        output = self._output_of([{**statement, "Redirs": [r for r in redirects if r not in into]}]) if path else None
        if output is not None:
            self.written[str(path)] = output

    def _redirect(self, redirect: Node) -> None:
        operator = redirect.get("Op", "")
        if operator in ("<<", "<<-"):
            self.stdin = self.expander.here_document(redirect)
            return
        if operator == "<<<":
            self.stdin = self.expander.text(redirect.get("Word"))
            return
        for target in self.expander.fields(redirect.get("Word")):
            if operator == "<":
                self.stdin = self.read_script(target) or LISTED
                self.add(Kind.READ, target, "<")
            elif operator in _WRITING and not (operator == ">&" and (target.isdecimal() or target == "-")):
                self.add(Kind.WRITE, target, operator)

    def _do_CallExpr(self, command: Node) -> None:
        words, assignments = command.get("Args") or [], command.get("Assigns") or []
        if not words:
            for assignment in assignments:
                self._assign(assignment)
            return
        note_state_call(self, [self.expander.text(a.get("Value")) for a in assignments])  # an editor that the program runs
        arguments = [text for word in words for text in self.expander.fields(word)]
        if arguments:
            self.words = words
            self.call(arguments)

    def call(self, arguments: list[str]) -> None:
        """Analyse one program call with its expanded arguments."""
        from pypto_op_lint.guard.calls import analyse_call

        analyse_call(self, arguments)  # what a function is given counts as read: what `$1` is in it is not followed
        if arguments[0] in self.functions and self.depth < _MAX_DEPTH:
            self.depth += 1
            self._visit(self.functions[arguments[0]])
            self.depth -= 1

    def _assign(self, assignment: Node) -> None:
        name, array = (assignment.get("Name") or {}).get("Value", ""), assignment.get("Array")
        if array:
            value = SPLIT.join(t for e in array.get("Elems") or [] for t in self.expander.fields(e.get("Value")))
        else:
            value = self.expander.text(assignment.get("Value")) if assignment.get("Value") else ""
        if assignment.get("Naked") or not name:
            return
        before = self.variables.get(name, "") if assignment.get("Append") else ""
        between = SPLIT if array and before else ""
        self.variables[name] = ANY if assignment.get("Index") else before + between + value

    def _do_DeclClause(self, command: Node) -> None:
        for assignment in command.get("Args") or []:
            self._assign(assignment)

    def _do_BinaryCmd(self, command: Node) -> None:
        if command.get("Op") not in ("|", "|&"):
            self._visit([command["X"], command["Y"]])
            return
        outer, names, self.names = self.stdin, self.names, []
        self._do_Subshell({"Stmts": [command["X"]]})
        printed = self._output_of([command["X"]])
        self.stdin = LISTED if printed is None else printed
        self._do_Subshell({"Stmts": [command["Y"]]})
        self.stdin, self.names = outer, names + self.names

    def _do_Subshell(self, command: Node) -> None:
        kept = dict(self.variables), self.cwd
        self._visit(command.get("Stmts") or [])
        self._restore(*kept)

    def _branches(self, command: Node) -> None:
        """Walk what may run or not: what it makes of a variable is not known afterwards."""
        before = dict(self.variables)
        self._visit([value for value in command.values() if isinstance(value, dict | list)])
        changed = [name for name in {**before, **self.variables} if self.variables.get(name) != before.get(name)]
        self.variables |= dict.fromkeys(changed, ANY)

    _do_IfClause = _do_WhileClause = _do_CaseClause = _branches

    def _do_ForClause(self, command: Node) -> None:
        loop, body = command.get("Loop") or {}, command.get("Do") or []
        if loop.get("Type") != "WordIter":
            self._visit([loop, body])
            return
        name = (loop.get("Name") or {}).get("Value", "")
        items = [text for word in loop.get("Items") or [] for text in self.expander.fields(word)]
        for item in (items or [ANY]) if len(items) <= _MAX_ITEMS else [LISTED]:
            self.variables[name] = item
            self._visit(body)

    def _do_FuncDecl(self, command: Node) -> None:
        self.functions[(command.get("Name") or {}).get("Value", "")] = command.get("Body") or {}

    # -- what a command prints -------------------------------------------------------------------------------

    def _substitution(self, statements: list[Node]) -> str:
        output, outer = self._output_of(statements), (self.stdin, self.names)
        self.stdin, self.names = None, []
        self._do_Subshell({"Stmts": statements})
        names = SPLIT.join(dict.fromkeys(self.names))
        self.stdin, self.names = outer
        return output.rstrip("\n") if output is not None else names or ANY

    def _output_of(self, statements: list[Node]) -> str | None:
        """Return what simple printers print (`echo x`, `cat <<EOF`, `pwd`, `dirname`), or None."""
        if len(statements) != 1 or (statements[0].get("Cmd") or {}).get("Type") != "CallExpr":
            return None
        redirects = statements[0].get("Redirs") or []
        # Without their effects, which are noted when the statement itself is walked.
        quiet = Expander(self.variables, lambda inner: self._output_of(inner) or LISTED)
        arguments = [t for w in statements[0]["Cmd"].get("Args") or [] for t in quiet.fields(w)]
        program, rest = (arguments or [""])[0], arguments[1:]
        if program == "cat" and not rest and redirects and redirects[0].get("Op") in ("<<", "<<-"):
            return self.expander.here_document(redirects[0])
        if redirects:
            return None
        if program in ("echo", "printf"):
            return _printed(program, rest)
        if len(rest) == 1 and is_known(rest[0]) and program in ("dirname", "basename"):
            return (os.path.dirname if program == "dirname" else os.path.basename)(rest[0].rstrip("/")) or "."
        if program == "git" and rest == ["rev-parse", "--show-toplevel"] and self.cwd:
            return next((str(p) for p in [Path(self.cwd), *Path(self.cwd).parents] if (p / ".git").exists()), None)
        return self.cwd if program == "pwd" else None


def _printed(program: str, arguments: list[str]) -> str:
    if program == "echo":
        while arguments and arguments[0] in ("-n", "-e", "-E", "-ne", "-en"):
            arguments = arguments[1:]
        return " ".join(arguments) + "\n"
    if not arguments or "%" not in arguments[0]:
        return "".join(arguments[:1]).replace("\\n", "\n")
    if arguments[0] in ("%s", "%s\\n", "%b", "%b\\n"):
        return "\n".join(arguments[1:]) + "\n"
    return re.sub(r"%[^a-zA-Z%]*[a-zA-Z]", lambda field: LISTED if field.group()[-1] in "sb" else ANY, arguments[0])
