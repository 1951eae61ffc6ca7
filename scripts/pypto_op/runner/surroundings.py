"""What surrounds the agents: the environment of what they start, and a process that does not show them the key."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from pypto_op import own_python
from pypto_op.backends import processes
from pypto_op.backends.worker import linux
from pypto_op.errors import InfraError
from pypto_op.runner import address
from pypto_op.runner.journal import sessions_folder
from pypto_op_lint.concerns import HIDDEN_ENV

SECRETS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")
MARK = "AI_AGENT"
"""The state tool takes what runs below a process with this mark for an agent (`state/callers.py`)."""

_CREDENTIAL = re.compile(r"token|secret|passw|credential|api_?key|access_?key|custom_headers|authorization", re.IGNORECASE)
_IN_ADDRESS = re.compile(r"^\w+://[^/@\s]*:[^/@\s]+@")
"""An address with a password in it."""
_PIPE = "PYPTO_OP_RUN_PIPE"


def enter() -> Mapping[str, str]:
    """Return the secrets of the environment; from here on no environment of this process, first or later, shows them.

    The process begins once more, marked, and gets the secrets through a pipe: an agent's command could read
    the first environment of the processes above it.
    """
    if _PIPE not in os.environ:
        _begin_again()
    with os.fdopen(int(os.environ.pop(_PIPE)), encoding="utf-8") as pipe:
        found: Mapping[str, str] = json.load(pipe)
    return found


def check_access() -> None:
    """Refuse a run without a way to the model before anything is loaded or begun.

    Raises:
        InfraError: the environment names no key; the second beginning was asked already.
        ContractError: the service's address is none.
    """
    if _PIPE not in os.environ and not any(os.environ.get(name) for name in SECRETS):
        raise InfraError("there is no key for the model", remedy="set ANTHROPIC_API_KEY, or replay a transcript with --replay")
    address.check()


def check_keys() -> None:
    """Raise InfraError for a secret that no header can hold: the service's library would show it in its error."""
    if name := next((name for name in SECRETS if not os.environ.get(name, "").isprintable()), ""):
        raise InfraError(f"{name} holds a character that no key has, such as a line break", remedy=f"set {name} without it")


def _begin_again() -> None:
    secrets = {name: os.environ[name] for name in SECRETS if os.environ.get(name)}
    ours, theirs = os.pipe()
    os.write(theirs, json.dumps(secrets).encode())  # far less than a pipe holds
    os.close(theirs)
    os.set_inheritable(ours, True)
    environment = {name: value for name, value in os.environ.items() if name not in SECRETS}
    environment |= {MARK: "pypto-op run", _PIPE: str(ours)}
    linux.adopt_orphans()
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(sys.executable, own_python.running("pypto_op.cli", *sys.argv[1:]), environment)


def end_what_is_left() -> None:
    """End every process below this one where it is a run's own: its orphans came here, whatever they did to get away."""
    if linux.adopts_orphans():
        processes.kill_below()


def hooks_environment() -> dict[str, str]:
    """Return the environment of the hooks: that of the agents, and which folder of an evaluation is hidden from them."""
    hidden = {HIDDEN_ENV: os.environ[HIDDEN_ENV]} if HIDDEN_ENV in os.environ else {}
    return {**agents_environment(), **hidden}


def hidden_from_commands(workspace: Path) -> list[str]:
    """Return the folders that look empty to a command: the runs of this account, and what an evaluation hides."""
    return [str(sessions_folder(workspace).parent), *filter(None, [os.environ.get(HIDDEN_ENV)])]


def _is_credential(name: str, value: str) -> bool:
    """Whether a variable is somebody's password, such as GITHUB_TOKEN: no kernel needs one, and a model should see none."""
    return bool(_CREDENTIAL.search(name)) or bool(_IN_ADDRESS.search(value))


def agents_environment() -> dict[str, str]:
    """Return the environment of commands: this one, with this installation's `pypto-op` first on PATH."""
    own = str(Path(sys.executable).parent)
    left_out = (*SECRETS, "PYPTO_OP_TOKEN", HIDDEN_ENV)
    kept = {name: value for name, value in os.environ.items() if name not in left_out and not _is_credential(name, value)}
    paths = [own, *(path for path in kept.get("PATH", os.defpath).split(os.pathsep) if path != own)]
    return {**kept, "PATH": os.pathsep.join(paths), "PYPTO_OP_PYTHON": sys.executable}
