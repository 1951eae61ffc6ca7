"""What the hook client and its server agree on: frames, the private folder, last words.

The client imports this on every tool call: nothing here may import anything slow.
"""

import hashlib
import json
import os
import sys

PROTOCOL = 1
SOCKET_NAME = "server.sock"
MAX_FRAME = 32 << 20
SERVER_NEEDS = ("yaml", "libcst")
"""What the server imports besides the standard library."""
_PASSED_ON = (
    "PATH", "HOME", "USER", "LANG", "LC_ALL", "LC_CTYPE", "XDG_CACHE_HOME", "XDG_STATE_HOME",
    "XDG_RUNTIME_DIR", "LD_LIBRARY_PATH", "PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX",
)  # fmt: skip


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
    name = "".join(c if c.isalnum() or c in "-_" else "_" for c in os.path.basename(workspace))[:40]
    return os.path.join(cache_home(), "pypto-op", "run", f"{name}-{hashlib.sha256(key).hexdigest()[:16]}")


def interpreters(root: str) -> list[str]:
    """Return the Pythons that could run the server, best first, each once."""
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
    decision = {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": reason}
    return answer({"hookSpecificOutput": decision})


def block(reason: str) -> bytes:
    """Return the answer that says what is wrong after a tool has run, or that it is too early to stop."""
    return answer({"decision": "block", "reason": reason})


def answer(output: dict[str, object] | None = None, code: int = 0) -> bytes:
    """Return an answer's payload: `A`, the exit code's digit, the JSON for stdout."""
    text = json.dumps(output, ensure_ascii=False) if output else ""
    return b"A%d" % code + text.encode("utf-8", "replace")
