"""The command `pypto-op`: a table of subcommands, each loaded only when it is called."""

from __future__ import annotations

import contextlib
import errno
import functools
import importlib
import os
import re
import shutil
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

try:
    import click
except ModuleNotFoundError:  # without it no command is there to tell what is missing
    from pypto_op.bundle_files import extra_remedy

    sys.stderr.write(f"pypto-op: click is not installed here; {extra_remedy()}\n")
    sys.exit(3)

from pypto_op import __version__, own_python, resident, speaking
from pypto_op.errors import REMEDIES, PyptoOpError
from pypto_op.vocabulary import ExitCode

_PATHS = ("path", "file", "directory")
"""What click calls the types of paths."""
_STANDARD_OUTPUT = "standard output"

_COMMANDS: dict[str, tuple[str, str]] = {
    "new": ("pypto_op.documents.commands:new", "make an operator's folder with its documents"),
    "check": ("pypto_op.documents.commands:check", "check an operator's documents"),
    "design-params": (
        "pypto_op.documents.commands:design_params",
        "count a golden's complexity and decide on the number of modules",
    ),
    "interfaces": ("pypto_op.documents.commands:interfaces", "make or check module_interfaces.yaml"),
    "harness": ("pypto_op.generators.commands:harness", "make the inputs, the suite and the runner of an operator"),
    "memory": ("pypto_op.documents.commands:memory", "check MEMORY.md or append to it"),
    "tests": ("pypto_op.generators.commands:tests", "make the tests of an operator and of its modules"),
    "lint": ("pypto_op_lint.commands:lint", "check an operator's files against the OL rules"),
    "lsp": ("pypto_op_lint.lsp.commands:lsp", "serve the linter to an editor (language server)"),
    "cleanup": ("pypto_op.generators.commands:cleanup", "make the integrated kernel and its README from the staged files"),
    "verify": ("pypto_op.judge.commands:verify", "run a kernel and judge its numbers"),
    "verify-many": ("pypto_op.judge.many:verify_many", "verify a list of operators, side by side on a cluster"),
    "reproduce": ("pypto_op.reproduce.commands:reproduce", "say whether a kernel or its case is to blame for a near miss"),
    "mutate": ("pypto_op.mutation.commands:mutate", "measure how many planted faults a suite refuses"),
    "benchmark": ("pypto_op.perf.commands:benchmark", "time a kernel that has a PASS for exactly its bytes"),
    "tune": ("pypto_op.tuning.commands:tune", "search a faster kernel and keep it only if it is right"),
    "perf": ("pypto_op.tuning.perf_command:perf", "say what bounds a kernel, where the gap is, and what to try next"),
    "regress": ("pypto_op.tuning.regress:regress", "check a kernel after a change of speed: precision, suite, layout, time"),
    "run": ("pypto_op.runner.commands:run", "let the team work on a request without a terminal"),
    "eval": ("pypto_op.evals.commands:evaluate", "grade the team on requests whose goldens it cannot see"),
    "report": ("pypto_op.report.commands:report", "write one HTML page about an operator"),
    "demo": ("pypto_op.demo.commands:demo", "watch one operator go from request to verdict"),
    "doctor": ("pypto_op.install.doctor_command:doctor", "say what this machine can do"),
    "script": ("pypto_op.backends.commands:script", "run a Python file that was written for the device, here"),
    "extract-pypto-calls": ("pypto_op.review.commands:extract_pypto_calls", "list the pypto calls of a file in order"),
    "fill-memory": ("pypto_op.review.commands:fill_memory", "write into MEMORY.md what a kernel's file shows of itself"),
    "api": ("pypto_op.api.commands:api", "say what the installed pypto offers: signature, constraints, example"),
    "bundle": ("pypto_op.bundle.commands:bundle", "check the bundle itself: agents, skills, budgets"),
    "diagnose": ("pypto_op.diagnose.commands:diagnose", "name the known mistake that a failed run shows"),
    "triage": ("pypto_op.diagnose.commands:triage", "say which one skill goes on from a failed verdict, and why"),
    "debug": ("pypto_op.debug.commands:debug", "find what caused a failure: one command for each skill of the debugger"),
    "install": ("pypto_op.install.commands:install", "set up Claude Code or OpenCode in a workspace, or undo it"),
    "triton": ("pypto_op.triton.commands:triton", "verify and time a Triton implementation of a PyTorch task"),
    "triton tune": ("pypto_op.tuning.triton_command:tune", "search a faster launch of a Triton implementation"),
    "state": ("pypto_op.state.commands:state", "move an operator through its stages and phases"),
}
"""Where each command lies, and what it is for. `GROUP NAME` is a command that joins a group of a room below its own."""


@functools.cache
def _load(name: str) -> click.Command:
    """Import the module of a row of `_COMMANDS`, and return the command."""
    module, attribute = _COMMANDS[name][0].split(":")
    command = getattr(importlib.import_module(module), attribute)
    assert isinstance(command, click.Command)
    _refuse_repeats(command)
    return command


def _refuse_repeats(command: click.Command) -> None:
    """Let a command, and those of a group, refuse an option that takes one value and is given twice, and one without a letter.

    click takes the last one without a word: `--case A --case B` would judge B alone, and look like a verdict on both. `"$X"`
    where X is not set would be the current folder, or everything: `eval --requests "$X"` would hold every trial.
    """
    if isinstance(command, click.Group):
        get_command = command.get_command

        def careful_command(ctx: click.Context, cmd_name: str) -> click.Command | None:
            inner = get_command(ctx, cmd_name)  # `state` makes its commands when they are asked for
            if inner is not None and inner.make_parser.__name__ != "careful_parser":
                _refuse_repeats(inner)
            return inner

        command.get_command = careful_command  # type: ignore[method-assign]
    make_parser = command.make_parser

    def careful_parser(ctx: click.Context) -> Any:
        parser = make_parser(ctx)
        parse_args = parser.parse_args

        def once(args: list[str]) -> Any:
            values, rest, order = parse_args(args=args)
            for option in order:
                single = isinstance(option, click.Option) and not (option.multiple or option.count or option.is_flag)
                if single and option.nargs == 1 and order.count(option) > 1:
                    raise click.UsageError(f"{option.opts[0]} is given {order.count(option)} times and takes one value", ctx)
                given = values.get(str(option.name))
                words = given if isinstance(given, (list, tuple)) else (given,)
                if option.type.name in _PATHS and "" in words:
                    raise click.UsageError(f"{option.opts[0]} is empty, which would be the current folder", ctx)
                if isinstance(option, click.Option) and any(isinstance(word, str) and not word.strip() for word in words):
                    raise click.UsageError(f"{option.opts[0]} is empty: leave it out, or give it a value", ctx)
            return values, rest, order

        parser.parse_args = once  # type: ignore[method-assign]
        return parser

    command.make_parser = careful_parser  # type: ignore[method-assign]


class _LazyGroup(click.Group):
    """A group that imports a subcommand's module when it is used, so that `pypto-op --help` stays fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(name for name in _COMMANDS if " " not in name)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        command = _load(cmd_name)
        if isinstance(command, click.Group):
            for name in _COMMANDS:
                group, _, member = name.partition(" ")
                if member and group == cmd_name:
                    command.add_command(_load(name))
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] in self.list_commands(ctx):  # here, and not where a page of all commands asks for each of them
            speaking.now(f"{args[0]} ({_COMMANDS[args[0]][1]})")
        try:
            return super().resolve_command(ctx, args)
        except click.exceptions.NoSuchCommand as error:  # click looks for near names among commands that were loaded
            known = [*self._members(ctx, args[0]), *self.list_commands(ctx)]
            raise click.exceptions.NoSuchCommand(args[0], possibilities=known, ctx=ctx) from error

    def _members(self, ctx: click.Context, word: str) -> list[str]:
        """Return the commands of groups that end in this word: `debug precision-compare`; no module of a command loads torch."""
        groups = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        return [f"{name} {word}" for name, group in groups.items() if isinstance(group, click.Group) and word in group.commands]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, _COMMANDS[name][1]) for name in self.list_commands(ctx)])


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="pypto-op")
def root() -> None:
    """Turn an operator request into a verified, fast PyPTO kernel."""


def main(argv: Sequence[str] | None = None) -> None:
    """Run `pypto-op`; a user's mistake ends in one line on stderr and its documented exit code."""
    if argv is None:
        own_python.begin_anew("pypto_op.cli", *sys.argv[1:])
    served = resident.ask(sys.argv[1:]) if argv is None else None
    if served is not None:
        sys.exit(served)
    if argv is None:
        own_python.seldom_collect()
    try:
        with speaking.aloud("at work"):
            result = root.main(args=list(argv) if argv is not None else None, prog_name="pypto-op", standalone_mode=False)
        if sys.stdout is not None:  # it was closed from the start
            sys.stdout.flush()
    except PyptoOpError as error:
        click.echo(f"pypto-op: {error.told()}", err=True)
        sys.exit(int(error.exit_code))
    except SystemExit as end:
        by_click = type(sys.stdout).__name__.endswith("PacifyFlushWrapper")
        if by_click or isinstance(end.__context__, BrokenPipeError):  # click, rich: 1 where nobody reads, which is a verdict's
            _tell_machine(BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE), _STANDARD_OUTPUT))
        raise
    except (click.Abort, KeyboardInterrupt):
        click.echo("pypto-op: interrupted", err=True)
        sys.exit(130)
    except click.ClickException as error:
        _tell_misuse(error)
    except ModuleNotFoundError as error:
        _tell_missing(error)
    except OSError as error:
        _tell_machine(error)
    except Exception as error:
        if loop := _loop_of_links(error):
            _tell_machine(loop)
        _tell_own_fault(error)
    sys.exit(result if isinstance(result, int) else 0)


def _tell_misuse(error: click.ClickException) -> NoReturn:
    """End with one line on what was typed wrongly, and where the right words are listed; a bare group shows its help."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()
    else:
        said = " ".join(error.format_message().split()).rstrip(".")
        for kind, word in (("integer", "a whole number"), ("float", "a number")):  # click's types are called "integer range"
            said = said.replace(f"a valid {kind} range", word).replace(f"a valid {kind}", word)
        place = context.command_path if context is not None else "pypto-op"  # an option without its value is told without a place
        click.echo(f"{place}: {said}; see `{place if context is not None else 'pypto-op COMMAND'} --help`", err=True)
    sys.exit(int(ExitCode.CONTRACT))


def _tell_missing(error: ModuleNotFoundError) -> NoReturn:
    """End with what to install where a package is missing; a module of ours or of Python itself is a fault of ours."""
    from pypto_op.bundle_files import extra_of, extra_remedy

    package = (error.name or "").split(".")[0]
    if not package or package in sys.stdlib_module_names or package.startswith("pypto_op"):
        _tell_own_fault(error)
    click.echo(f"pypto-op: {error.name} is not installed here; {extra_remedy(extra_of(package) or '')}", err=True)
    sys.exit(int(ExitCode.INFRA))


def _tell_machine(error: OSError) -> NoReturn:
    """End with the file that this machine does not let us write or open; any other error of the system is a fault of ours."""
    error = _first_of(error)
    remedy = REMEDIES.get(error.errno or 0)
    place = os.fspath(error.filename) if isinstance(error.filename, (str, os.PathLike)) else _unwritten(error)
    if remedy is None or place is None:
        _tell_own_fault(error)
    click.echo(f"pypto-op: {place}: {error.strerror}; {remedy}", err=True)
    if place == _STANDARD_OUTPUT:
        _write_no_more()
    sys.exit(int(ExitCode.INFRA))


def _first_of(error: OSError) -> OSError:
    """Return the first of the errors that `shutil.copytree` collects, which keeps their words alone; another error as it is."""
    rows = error.args[0] if isinstance(error, shutil.Error) and error.args else None
    if not isinstance(rows, list) or not rows:
        return error
    _, place, why = rows[0]
    said = re.match(r"\[Errno (\d+)\]", str(why))
    return OSError(int(said[1]), os.strerror(int(said[1])), str(place)) if said else error


def _write_no_more() -> None:
    """Let what standard output did not take go nowhere: the end of the interpreter would try again, and exit with 120."""
    with contextlib.suppress(OSError, ValueError):  # it is closed, or no file of the system
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _unwritten(error: OSError) -> str | None:
    """Return what was written to when an error names no file: standard output, or a file on a full disk; None for neither."""
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    writer = place.tb_frame.f_globals["__name__"] if place is not None else ""
    if writer == __name__ or writer.partition(".")[0] in ("click", "rich"):
        return _STANDARD_OUTPUT
    return "a file that it writes" if error.errno in (errno.ENOSPC, errno.EDQUOT) else None


def _loop_of_links(error: Exception) -> OSError | None:
    """Return what `Path.resolve` means where links lead back to themselves; before Python 3.13 it raises no OSError."""
    found = re.fullmatch(r"Symlink loop from '(.+)'", str(error), re.DOTALL) if isinstance(error, RuntimeError) else None
    return OSError(errno.ELOOP, os.strerror(errno.ELOOP), found[1]) if found else None


def _tell_own_fault(error: Exception) -> NoReturn:
    """End so that it looks neither like a verdict (exit 1) nor like the user's mistake (exit 2)."""
    if os.environ.get("PYPTO_OP_DEBUG"):
        raise error
    said = " ".join(f"{type(error).__name__}: {error}".split())[:300]
    click.echo(f"pypto-op: internal error: {said}; set PYPTO_OP_DEBUG=1 for the traceback and report it", err=True)
    sys.exit(int(ExitCode.INFRA))


if __name__ == "__main__":
    main()
