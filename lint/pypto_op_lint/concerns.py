"""Whether an event concerns an operator at all: judged by strings and a few `stat` calls, in the hook's own process.

The client imports this on every tool call: nothing here may import anything slow.
"""

import os

from pypto_op_lint import wire

PATH_TOOLS = {"Write", "Edit", "MultiEdit", "NotebookEdit"}
READ_TOOLS = {"Read", "Grep", "Glob"}
PATCHERS = {"apply_patch", "patch"}
ACCOUNT_FOLDER, KEY_NAME = ".local/state/pypto-op", "seal.key"
"""Below the home folder: where the account's sealing key lies (`pypto_op.state.key`)."""

_MARKS = ("custom", "_impl", "_golden", ".orchestrator_", "pypto", "test_")
_ROLE_PREFIXES = ("pypto-op-", "triton-op-")
_LOOKING = {"read", "get", "list", "ls", "search", "find", "grep", "glob", "stat", "info", "tree", "view", "fetch", "query",
            "show", "cat", "describe", "lint", "verify", "diagnose", "check", "api"}  # fmt: skip
_CHANGING = {"write", "edit", "create", "delete", "remove", "move", "rename", "update", "insert", "append", "put", "patch",
             "replace", "save", "apply", "execute", "exec", "run", "set", "copy", "make", "upload", "download"}  # fmt: skip


def only_looks(tool: str) -> bool:
    """Say whether the name of some server's tool says that it changes nothing; one that says neither may change things."""
    spaced = "".join(f" {c.lower()}" if c.isupper() else c if c.isalnum() else " " for c in tool)
    words = set(spaced.split())
    return bool(words & _LOOKING) and not words & _CHANGING


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
    """Say whether a path is one of the account's secrets, or a folder above one."""
    real = os.path.realpath(str(request["path"] or request["cwd"]).replace("\0", "")).rstrip("/")
    secrets = [os.path.join(str(request["home"]), ACCOUNT_FOLDER), str(request["key"])]
    roots = [os.path.realpath(secret) for secret in secrets if secret]
    return any(root == real or root.startswith(real + "/") or real.startswith(root + "/") for root in roots)


def _may_be_operators(real: str) -> bool:
    """Say whether a path may lie in an operator's directory; the server decides it for certain."""
    if "/custom/" in real:
        return True
    folder = os.path.dirname(real)
    for _ in range(4):
        name = os.path.basename(folder)
        for mark in (
            ".orchestrator_state.json",
            name + "_impl.py",
            name + "_golden.py",
            "test_" + name + ".py",
        ):
            if name and os.path.exists(os.path.join(folder, mark)):
                return True
        folder = os.path.dirname(folder)
    return os.path.basename(real).endswith(("_impl.py", "_golden.py"))
