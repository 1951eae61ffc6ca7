"""Whether an event concerns an operator at all: judged by strings and a few `stat` calls, in the hook's own process.

The client imports this on every tool call: nothing here may import anything slow.
"""

import os

from pypto_op_lint import wire

PATH_TOOLS = {"Write", "Edit", "MultiEdit", "NotebookEdit"}
READ_TOOLS = {"Read", "Grep", "Glob"}
PATCHERS = {"apply_patch", "patch"}
PATH_KEYS = ("file_path", "filePath", "notebook_path", "path")
ACCOUNT_FOLDER, KEY_NAME = ".local/state/pypto-op", "seal.key"
HIDDEN_ENV = "PYPTO_OP_HIDDEN"
"""Names the folder that no agent may look at while `pypto-op eval` lets a team work: it holds the hidden goldens."""
"""Below the home folder: where the account's sealing key lies (`pypto_op.proof.key`)."""

STATE_FILES = (".orchestrator_state.json", ".orchestrator_journal.jsonl", ".orchestrator_plan.json")
_OPERATORS_DIR = "custom"
_MAX_LOOKED_INTO = 1 << 16
_LONGEST_PATH, _LONGEST_NAME = 4095, 255
"""Bytes of a path, and of a part of it, that Linux takes."""

_MARKS = ("custom", "_impl", "_golden", ".orchestrator_", "pypto", "test_")
_ROLE_PREFIXES = ("pypto-op-", "triton-op-")
_LOOKING = {"read", "get", "list", "ls", "search", "find", "grep", "glob", "stat", "info", "tree", "view", "fetch", "query",
            "show", "cat", "describe", "lint", "verify", "diagnose", "check", "api"}  # fmt: skip
_CHANGING = {"write", "edit", "create", "delete", "remove", "move", "rename", "update", "insert", "append", "put", "patch",
             "replace", "save", "apply", "execute", "exec", "run", "set", "copy", "make", "upload", "download"}  # fmt: skip


def only_looks(tool: str) -> bool:
    """Say whether a tool's name shows that the tool only looks; a tool whose name shows nothing may change things."""
    spaced = "".join(f" {c.lower()}" if c.isupper() else c if c.isalnum() else " " for c in tool)
    words = set(spaced.split())
    return bool(words & _LOOKING) and not words & _CHANGING


def impossible_path(event: dict[str, object]) -> str:
    """Return the path of an event that the system would not take, shortened: no file has it, and each question about it fails."""
    given = event.get("tool_input")
    own = event.get("tool_name") in PATH_TOOLS | READ_TOOLS and isinstance(given, dict)
    for path in (event.get("cwd"), *(given.get(key) for key in PATH_KEYS if own and isinstance(given, dict))):
        try:
            data = os.fsencode(path) if isinstance(path, str) else b""
        except UnicodeEncodeError:
            return ascii(path)[:60]
        if len(data) > _LONGEST_PATH or b"\0" in data or any(len(part) > _LONGEST_NAME for part in data.split(b"/")):
            return ascii(path)[:60]
    return ""


def workspace_of(project: str, cwd: str) -> str:
    """Return the workspace's folder, links resolved: the project's, cut off above `custom/<op>`.

    A shell that has left the project does not take the workspace along, unless it stands where operators are made.
    """
    real, here = os.path.realpath(project), os.path.realpath(cwd)
    inside = here == real or here.startswith(real.rstrip("/") + "/")
    if not inside and ("/custom/" in here + "/" or os.path.isdir(os.path.join(here, "custom"))):
        real = here
    head, custom, _ = (real + "/").partition("/custom/")
    return head or "/" if custom else real


def is_nobodys_business(request: dict[str, object]) -> bool:
    """Say whether an event concerns no operator, judged by strings and a few `stat` calls."""
    event, tool, agent = str(request["event"]), str(request["tool"]), str(request["agent"])
    workspace = str(request["workspace"])
    has_role = agent.rpartition(":")[2].startswith(_ROLE_PREFIXES)
    if event in ("Stop", "SubagentStop"):
        return not os.path.isdir(wire.run_dir(workspace, str(request["root"])))
    if tool in PATH_TOOLS or (tool in READ_TOOLS and not request["command"]):
        return _path_is_free(request, has_role)
    if tool == "Bash":
        if has_role or os.path.isdir(os.path.join(workspace, "custom")):
            return False
        text = str(request["command"]) + str(request["cwd"])
        return not any(mark in text for mark in _MARKS)
    if event == "PostToolUse" and (only_looks(tool) or tool.endswith("state_transition")):
        return True
    if tool.endswith("state_transition") or tool in PATCHERS:
        return False
    return not (has_role or os.path.isdir(os.path.join(workspace, "custom")))


def _path_is_free(request: dict[str, object], has_role: bool) -> bool:
    if has_role:
        return False
    if str(request["tool"]) in READ_TOOLS:
        return not _near_secret(request)
    path = str(request["path"])
    if not path or "\0" in path:
        return False
    real, workspace = os.path.realpath(path), str(request["workspace"])
    if _may_be_operators(real):
        return False
    inside = real.startswith(workspace.rstrip("/") + "/")
    after = request["event"] == "PostToolUse"
    return after or inside or not os.path.isdir(os.path.join(workspace, "custom"))


def _near_secret(request: dict[str, object]) -> bool:
    """Say whether a path is one of the account's secrets, or a folder above one, or may be one for the process that reads it."""
    if depends_on_process(os.path.join(str(request["cwd"]), str(request["path"]))):
        return True
    real = os.path.realpath(str(request["path"] or request["cwd"]).replace("\0", "")).rstrip("/")
    secrets = [os.path.join(str(request["home"]), ACCOUNT_FOLDER), str(request["key"]), str(request.get("hidden", ""))]
    roots = [os.path.realpath(secret) for secret in secrets if secret]
    return any(root == real or root.startswith(real + "/") or real.startswith(root + "/") for root in roots)


def depends_on_process(path: str, depth: int = 8) -> bool:
    """Say whether a path leads through /proc to what a process has open: for the one that asks it is another file than for us."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if path.startswith("/") and parts[:1] == ["proc"] and len(parts) > 2 and _is_process(parts[1]):
        return parts[4 if parts[2] == "task" else 2 : 5][:1] in (["cwd"], ["root"], ["fd"], ["map_files"])
    place = ""
    for part in path.split("/"):
        place = place + "/" + part if part else place
        link = os.readlink(place) if depth and part and os.path.islink(place) else ""
        if link and depends_on_process(os.path.join(os.path.dirname(place), link), depth - 1):
            return True
    return False


def _is_process(name: str) -> bool:
    return name in ("self", "thread-self") or name.isdigit()


def is_operator(folder: str) -> bool:
    """Say whether a folder is an operator's: it holds a SPEC.md or a state file, or what a team makes there.

    The name `custom` alone makes no operator: a web project may keep its themes in such a folder. Below `custom/` one
    document or file of an operator's own name is enough, elsewhere a state file, or two of them.
    """
    name = os.path.basename(folder)
    if not _can_name_operator(name):
        return False
    if any(os.path.isfile(os.path.join(folder, file)) for file in STATE_FILES):
        return True
    golden = os.path.isfile(os.path.join(folder, name + "_golden.py"))
    if os.path.basename(os.path.dirname(folder)) == _OPERATORS_DIR:
        spec, contract = (os.path.isfile(os.path.join(folder, file)) for file in ("SPEC.md", "eval/module_interfaces.yaml"))
        return spec or contract or golden or _is_kernel(os.path.join(folder, name + "_impl.py"))
    documents = sum(os.path.isfile(os.path.join(folder, file)) for file in ("SPEC.md", "API_REPORT.md", "DESIGN.md"))
    kernel = _is_kernel(os.path.join(folder, name + "_impl.py"))
    named = golden + kernel + os.path.isfile(os.path.join(folder, "test_" + name + ".py"))
    return (golden or kernel) and documents + named >= 2


def makes_operator(folder: str, relative: str) -> bool:
    """Say whether a file of this name would make `folder`, directly below a `custom/`, an operator's."""
    first = relative.partition("/")[0]
    return first == "SPEC.md" or first.startswith(".orchestrator_") or relative == os.path.basename(folder) + "_golden.py"


def operator_candidate(path: str) -> tuple[str, str] | None:
    """Return the folder directly below the innermost `custom/` above `path`, and the rest of the path."""
    parts = path.split("/")
    for index in range(len(parts) - 2, -1, -1):
        if parts[index] == _OPERATORS_DIR and _can_name_operator(parts[index + 1]):
            return "/".join(parts[: index + 2]), "/".join(parts[index + 2 :])
    return None


def _can_name_operator(name: str) -> bool:
    plain = name.isascii() and name[:1].isalpha() and name == name.lower() and len(name) <= 64
    return plain and name.replace("_", "a").isalnum()


def _is_kernel(path: str) -> bool:
    """Say whether a file is there and speaks of pypto: other projects have files named `..._impl.py` too."""
    try:
        if not os.path.isfile(path):
            return False
        with open(path, "rb") as file:
            return b"pypto" in file.read(_MAX_LOOKED_INTO)
    except OSError:
        return False


def _may_be_operators(real: str) -> bool:
    """Say whether a path may lie in an operator's directory; the server decides it for certain."""
    if "/custom/" in real:
        return True
    folder = os.path.dirname(real)
    for _ in range(4):
        if is_operator(folder):
            return True
        folder = os.path.dirname(folder)
    return os.path.basename(real).endswith(("_impl.py", "_golden.py"))
