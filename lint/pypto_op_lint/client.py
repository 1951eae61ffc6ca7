"""The hook program: one event in on stdin, one answer out, the work done by the resident server.

It runs on every tool call, so it imports little and decides itself when a call is none of its business.
Everything else it asks the server; where none runs it starts one and hands it the question as its first, so a
cold call costs what a plain run of the linter costs. Where nothing can be asked it says so. It never stays
silent about an event that it could not judge, and never ends in a traceback.
"""

import json
import os
import select
import socket
import sys
import time

from pypto_op_lint import concerns, wire

MAX_INPUT = 64 << 20
_STDIN_SECONDS = 10.0
_ANSWER_SECONDS = 15.0

_OWN_FIELDS = {*concerns.PATH_TOOLS, *concerns.READ_TOOLS, *concerns.PATCHERS, "Bash"}
_EVENTS = {"pre": "PreToolUse", "post": "PostToolUse", "stop": "Stop"}


class Unreadable(Exception):
    """The event on stdin cannot be used; the text says why."""


class CannotCheck(Exception):
    """No Python here can run the linter; the text says what each lacks."""


_read: list[bytes] = [b""]


def last_event() -> bytes:
    """Return what was read from stdin, for whoever answers in this program's place."""
    return _read[0]


def main(argv: list[str], root: str) -> int:
    """Answer one hook event.

    Args:
        argv: the event's short name (pre, post, stop), used when stdin does not say it.

    Returns:
        The exit code: 0, or 2 when a malformed event of unknown kind must stop the tool.

    Raises:
        CannotCheck: the event concerns an operator, or a session starts, and no Python here can run the linter.
    """
    if argv[:1] == ["start"]:
        return _check_set_up(root)
    hint = _EVENTS.get(argv[0] if argv else "", "")
    try:
        event = read_event()
    except Unreadable as problem:
        return _answer_unreadable(hint, str(problem), root)
    name = _text(event, "hook_event_name") or hint
    if name not in ("PreToolUse", "PostToolUse", "Stop", "SubagentStop"):
        return 0 if hint and name else _answer_unreadable(hint, "it does not say which event it is", root)
    if name == "PreToolUse" and not _text(event, "tool_name"):
        return _answer_unreadable(name, "it does not say which tool is called", root)
    if no_file := concerns.impossible_path(event):
        return _answer_unreadable(name, f"no file can have its path {no_file}", root)
    request = request_of(event, name, root)
    if concerns.is_nobodys_business(request):
        return 0
    return _print(ask(request, root))


# -- reading -------------------------------------------------------------------------------------------------


def read_event() -> dict[str, object]:
    """Read one JSON object from stdin, up to its end or until the time is up.

    Raises:
        Unreadable: nothing came, not all of it came in time, it is too long, or it is no JSON object.
    """
    raw, complete = _read_stdin(_seconds("PYPTO_OP_HOOK_STDIN_SECONDS", _STDIN_SECONDS))
    late = "" if complete else f" (it was still open after {_seconds('PYPTO_OP_HOOK_STDIN_SECONDS', _STDIN_SECONDS):g} s)"
    _read[0] = raw
    if not raw.strip():
        raise Unreadable(f"stdin was empty{late}")
    if len(raw) > MAX_INPUT:
        raise Unreadable(f"stdin holds more than {MAX_INPUT >> 20} MiB")
    try:
        text = raw.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise Unreadable(f"stdin is not UTF-8 (byte {error.start})") from None
    try:
        event = json.loads(text)
    except RecursionError:
        raise Unreadable("its JSON is nested too deep") from None
    except ValueError as error:
        raise Unreadable(f"stdin is no JSON: {str(error)[:100]}{late}") from None
    if not isinstance(event, dict):
        raise Unreadable("its JSON is no object")
    return event


def _read_stdin(seconds: float) -> tuple[bytes, bool]:
    """Return what came on stdin, and whether its end was seen."""
    end, chunks, size = time.monotonic() + seconds, list[bytes](), 0
    poll = select.poll()
    poll.register(0, select.POLLIN | select.POLLHUP)
    while size <= MAX_INPUT:
        left = end - time.monotonic()
        if left <= 0 or not poll.poll(left * 1000):
            return b"".join(chunks), False
        try:
            chunk = os.read(0, 1 << 20)
        except OSError:  # stdin is closed
            return b"".join(chunks), True
        if not chunk:
            return b"".join(chunks), True
        chunks.append(chunk)
        size += len(chunk)
    return b"".join(chunks), True


def _seconds(variable: str, default: float) -> float:
    try:
        return float(os.environ[variable])
    except (KeyError, ValueError):
        return default


def _texts(value: object, name: str) -> dict[str, object]:
    """Return every text of a tool's input under its dotted name: what another server's tool is judged by."""
    if isinstance(value, str):
        return {name: value}
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return {key: text for inner, item in items for key, text in _texts(item, f"{name}.{inner}".lstrip(".")).items()}


def _text(table: object, key: str) -> str:
    value = table.get(key) if isinstance(table, dict) else None
    return value if isinstance(value, str) else ""


# -- what is asked -------------------------------------------------------------------------------------------


def request_of(event: dict[str, object], name: str, root: str) -> dict[str, object]:
    """Return the part of an event that the server needs, with its paths made absolute."""
    tool_input = event.get("tool_input")
    cwd = _text(event, "cwd") or os.getcwd()
    tool = _text(event, "tool_name")
    path = ""
    for key in reversed(concerns.PATH_KEYS[:3]) if tool == "NotebookEdit" else concerns.PATH_KEYS:
        path = path or _text(tool_input, key)
    if path and "\0" not in path:
        path = os.path.join(cwd, os.path.expanduser(path))
    if tool == "Glob":
        path = _glob_root(path or cwd, _text(tool_input, "pattern"))
    duration = event.get("duration_ms")
    return {
        "protocol": wire.PROTOCOL,
        "event": name,
        "tool": tool,
        "path": path,
        "command": _text(tool_input, "command"),
        "patch": _text(tool_input, "patchText"),
        "action": _text(tool_input, "action"),
        "inputs": {} if tool in _OWN_FIELDS else _texts(tool_input, ""),
        "key": os.environ.get("PYPTO_OP_KEY_FILE", ""),
        "hidden": os.environ.get(concerns.HIDDEN_ENV, ""),
        "agent": _text(event, "agent_type"),
        "session": _text(event, "session_id"),
        "agent_id": _text(event, "agent_id"),
        "cwd": cwd,
        "workspace": concerns.workspace_of(os.environ.get("CLAUDE_PROJECT_DIR") or cwd, cwd),
        "home": os.path.expanduser("~"),
        "stop_hook_active": event.get("stop_hook_active") is True,
        "duration_ms": duration if isinstance(duration, int) else 0,
        "problem": "",
        "root": root,
    }


def _glob_root(folder: str, pattern: str) -> str:
    """Return the folder that a pattern looks through: its part before the first wild card counts from `folder`."""
    if "\0" in pattern:
        return folder
    plain = pattern
    for wild in "*?[{":
        plain = plain.partition(wild)[0]
    return os.path.normpath(os.path.join(folder, os.path.expanduser(plain[: plain.rfind("/") + 1])))


# -- asking --------------------------------------------------------------------------------------------------


def ask(request: dict[str, object], root: str) -> bytes:
    """Return the server's answer frame, from the one that runs or from one started for the purpose."""
    end = time.monotonic() + _seconds("PYPTO_OP_HOOK_SECONDS", _ANSWER_SECONDS)
    frame = wire.frame(json.dumps(request).encode("utf-8", "surrogatepass"))
    folder = wire.run_dir(str(request["workspace"]), root)
    usable = _private(folder)
    why = "no Python with the linter was found"
    for start in [_connect, *_starters(request, root, folder if usable else "")]:
        if start is _connect and not (usable and _resident()):
            continue
        connection = start(folder) if start is _connect else start("")
        if connection is None:
            continue
        answer = _exchange(connection, frame, end)
        if answer[:1] == b"A":
            return answer
        if time.monotonic() >= end:
            return wire.local_answer(request, "late", "the check did not end in time")
        if answer[:1] == b"E":
            why = answer[1:].decode("utf-8", "replace")
    raise CannotCheck(why)


def _check_set_up(root: str) -> int:
    """Say nothing when some Python has what the server imports; otherwise the session must hear of it.

    Raises:
        CannotCheck: none has.
    """
    code = "import sys, " + ", ".join(wire.SERVER_NEEDS)
    why = "no Python with the linter was found"
    import subprocess

    for python in wire.interpreters(root):
        try:
            done = subprocess.run([python, "-s", "-c", code], capture_output=True, timeout=20, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            why = f"{python}: {type(error).__name__}"
            continue
        if done.returncode == 0:
            return 0
        said = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
        why = f"{python}: {said or 'does not run'}"
    raise CannotCheck(why)


def _resident() -> bool:
    return os.environ.get("PYPTO_OP_NO_SERVER", "") in ("", "0")


def _private(folder: str) -> bool:
    """Make the workspace's private folder; say whether it is ours alone."""
    try:
        os.makedirs(folder, 0o700, exist_ok=True)
        facts = os.lstat(folder)
        if facts.st_uid != os.getuid() or (facts.st_mode & 0o170000) != 0o040000:
            return False
        if facts.st_mode & 0o077:
            os.chmod(folder, 0o700)
        return True
    except OSError:
        return False


def _connect(folder: str) -> socket.socket | None:
    """Connect to the resident server. It enters the folder first: a socket's path is 107 bytes at most."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        here = os.open(".", os.O_RDONLY)
    except OSError:
        here = -1
    try:
        os.chdir(folder)
        connection.settimeout(1.0)
        connection.connect(wire.SOCKET_NAME)
    except OSError:
        connection.close()
        return None
    finally:
        if here >= 0:
            os.fchdir(here)
            os.close(here)
    return connection


def _starters(request: dict[str, object], root: str, folder: str) -> list:  # type: ignore[type-arg]
    """Return one function per interpreter that could run the server, each starting it when called."""
    return [(lambda _, python=python: _start(python, request, root, folder)) for python in wire.interpreters(root)]


def _start(python: str, request: dict[str, object], root: str, folder: str) -> socket.socket | None:
    """Start a server whose first question comes over the returned connection."""
    try:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        child = os.fork()
    except OSError:
        return None
    if child:
        theirs.close()
        return ours
    try:
        _become_server(python, theirs.fileno(), request, root, folder)
    finally:
        os._exit(127)


def _become_server(python: str, fd: int, request: dict[str, object], root: str, folder: str) -> None:
    """Turn this forked process into a server that has nothing to do with the harness any more."""
    os.setsid()
    os.umask(0o077)
    keep = os.dup(fd) if fd <= 3 else fd
    null = os.open(os.devnull, os.O_RDWR)
    log = null
    if folder:
        try:
            log = os.open(os.path.join(folder, "server.log"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        except OSError:
            log = null
    for source, target in ((null, 0), (null, 1), (log, 2), (keep, 3)):
        os.dup2(source, target)
    os.set_inheritable(3, True)
    os.closerange(4, 1024)
    os.chdir(folder or "/")
    resident = folder if _resident() else ""
    arguments = [python, "-s", "-m", "pypto_op_lint.server", str(request["workspace"]), root, resident, folder]
    os.execve(python, arguments, wire.server_environment(root))


def _exchange(connection: socket.socket, frame: bytes, end: float) -> bytes:
    """Send a question and return the answer's payload; empty when the server went away or the time is up."""
    chunks = b""
    try:
        connection.settimeout(max(0.01, end - time.monotonic()))
        connection.sendall(frame)
        while True:
            left = end - time.monotonic()
            if left <= 0:
                return b""
            connection.settimeout(left)
            chunk = connection.recv(1 << 16)
            if not chunk:
                return wire.unframe(chunks) or b""
            chunks += chunk
            payload = wire.unframe(chunks)
            if payload is not None:
                return payload
    except OSError:
        return b""
    finally:
        connection.close()


# -- answering -----------------------------------------------------------------------------------------------


def _answer_unreadable(hint: str, problem: str, root: str) -> int:
    """Answer an event that cannot be read: refuse before a tool, look at the files themselves after one."""
    if not hint:
        sys.stderr.write(f"pypto-op hook: {problem}; nothing was checked\n")
        return 2
    request = request_of({}, hint, root)
    request["problem"] = problem
    concerned = hint == "PostToolUse" and os.path.isdir(os.path.join(str(request["workspace"]), "custom"))
    if concerned:
        return _print(ask(request, root))
    return _print(wire.local_answer(request, "unreadable", problem))


def _print(answer: bytes) -> int:
    """Write an answer (`A`, exit code digit, text) to stdout and return the exit code."""
    code, text = int(answer[1:2]), answer[2:]
    try:
        if text:
            sys.stdout.buffer.write(text + b"\n")
            sys.stdout.flush()
    except OSError:
        pass  # the harness has gone; nobody is left to tell
    return code
