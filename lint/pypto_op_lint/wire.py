"""What the hook client and its server agree on: frames, JSON, the private folder, last words.

The client imports this on every tool call: nothing here may import anything slow.
"""

import os

try:  # the C scanner itself: the json package costs 15 ms of regular expressions that are not needed here
    import _json

    _quote_ascii, _quote_text = _json.encode_basestring_ascii, _json.encode_basestring
    _make_scanner = _json.make_scanner
except (ImportError, AttributeError):  # another Python than CPython
    _make_scanner = None  # type: ignore[assignment,misc]

PROTOCOL = 1
SOCKET_NAME = "server.sock"
MAX_FRAME = 32 << 20
SERVER_NEEDS = ("yaml", "libcst")
"""What the server imports besides the standard library."""
_SPACE = " \t\n\r"
_PASSED_ON = (
    "PATH", "HOME", "USER", "LANG", "LC_ALL", "LC_CTYPE", "XDG_CACHE_HOME", "XDG_STATE_HOME",
    "XDG_RUNTIME_DIR", "LD_LIBRARY_PATH", "PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX",
)  # fmt: skip


class _Scanner:
    """The settings that the C scanner wants to read from its owner."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": -float("inf")}.__getitem__
    memo: dict[str, str] = {}


def loads(text: str) -> object:
    """Parse JSON; raise ValueError for anything that is not exactly one value."""
    start = 0
    while start < len(text) and text[start] in _SPACE:
        start += 1
    if _make_scanner is not None:
        try:
            value, end = _make_scanner(_Scanner())(text, start)  # type: ignore[arg-type]
            if not text[end:].strip(_SPACE):
                return value
        except (StopIteration, ValueError, SystemError):
            pass  # the scanner cannot word its complaint without the json package
    import json

    return json.loads(text)


def dumps(value: object, *, readable: bool = False) -> str:
    """Write a tree of dict, str, int, bool and None as JSON."""
    if isinstance(value, str):
        return quote(value, readable=readable)
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, dict):
        items = (quote(str(k)) + ": " + dumps(v, readable=readable) for k, v in value.items())
        return "{" + ", ".join(items) + "}"
    return str(int(value))  # type: ignore[call-overload]


def quote(text: str, *, readable: bool = False) -> str:
    """Return `text` as a JSON string: in ASCII, or as a person would read it."""
    if _make_scanner is None:
        import json

        return json.dumps(text, ensure_ascii=not readable)
    return _quote_text(text) if readable else _quote_ascii(text)


def frame(payload: bytes) -> bytes:
    """Return a payload with its length in front."""
    return b"%010d" % len(payload) + payload


def unframe(data: bytes) -> bytes | None:
    """Return the payload of a complete frame, or None while it is incomplete (or no frame at all)."""
    head = data[:10]
    if len(head) < 10 or not head.isdigit():
        return None
    size = int(head)
    return data[10 : 10 + size] if len(data) >= 10 + size else None


def cache_home() -> str:
    """Return the folder for caches: $XDG_CACHE_HOME or ~/.cache."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    return given if given.startswith("/") else os.path.join(os.path.expanduser("~"), ".cache")


def run_dir(workspace: str, root: str) -> str:
    """Return the private folder of a workspace: its socket, its index of contents, its log of events."""
    key = (workspace + "\0" + root).encode("utf-8", "surrogateescape")
    try:
        from _sha1 import sha1  # type: ignore[import-not-found]  # hashlib would load OpenSSL
    except ImportError:
        from hashlib import sha1
    name = "".join(c if c.isalnum() or c in "-_" else "_" for c in os.path.basename(workspace))[:40]
    return os.path.join(cache_home(), "pypto-op", "run", f"{name}-{sha1(key).hexdigest()[:16]}")


def interpreters(root: str) -> list[str]:
    """Return the Pythons that could run the server, best first, each once."""
    import sys

    found = [os.environ.get("PYPTO_OP_PYTHON", ""), os.path.join(root, ".venv", "bin", "python")]
    for folder in os.environ.get("PATH", "").split(":"):
        script = os.path.join(folder, "pypto-op")
        if folder and os.path.isfile(script):
            found.append(_shebang(script))
            break
    found.append(sys.executable)
    return list(dict.fromkeys(p for p in found if p and os.path.isabs(p) and os.access(p, os.X_OK)))


def _shebang(script: str) -> str:
    try:
        with open(script, "rb") as file:
            line = file.readline(400)
    except OSError:
        return ""
    return os.fsdecode(line[2:].strip()) if line.startswith(b"#!") and b" " not in line.strip() else ""


def server_environment(root: str) -> dict[str, str]:
    """Return the environment of the server: what it needs to find itself and its caches."""
    environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    environment.update({k: v for k, v in os.environ.items() if k.startswith("PYPTO_OP_")})
    rooms = [os.path.join(root, room) for room in ("lint", "scripts")]
    environment["PYTHONPATH"] = ":".join(room for room in rooms if os.path.isdir(room))
    return environment


# -- answers without a server --------------------------------------------------------------------------------


def local_answer(request: dict[str, object], cause: str, problem: str) -> bytes:
    """Return the answer for an event that nothing could judge.

    `cause` is unreadable, late or internal. Before a tool, what could not be read or judged in time is refused; after
    it, the model is told that the file is unchecked; at the end of a turn only the person is told, since a refusal
    could repeat for ever.
    """
    event = str(request["event"])
    remedy = {
        "unreadable": "issue the call again",
        "internal": "this is a fault of pypto-op: try it another way, or run `pypto-op lint` on the file",
        "late": "issue the call again; if it persists, run `pypto-op lint` on the file",
    }[cause]
    text = f"[pypto-op] this call was not checked: {problem}; {remedy}."
    if event == "PreToolUse":
        return deny(text)
    if event == "PostToolUse":
        return block(text)
    return answer({"systemMessage": text})


def deny(reason: str) -> bytes:
    """Return the answer that keeps a tool from running."""
    decision = {
        "hookEventName": "PreToolUse",
        "permissionDecision": "deny",
        "permissionDecisionReason": reason,
    }
    return answer({"hookSpecificOutput": decision})


def block(reason: str) -> bytes:
    """Return the answer that says what is wrong after a tool has run, or that it is too early to stop."""
    return answer({"decision": "block", "reason": reason})


def answer(output: dict[str, object] | None = None, code: int = 0) -> bytes:
    """Return an answer's payload: `A`, the exit code's digit, the JSON for stdout."""
    text = dumps(output, readable=True) if output else ""
    return b"A%d" % code + text.encode("utf-8", "replace")
