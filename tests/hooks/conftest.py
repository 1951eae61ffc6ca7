"""A workspace with an operator, and the real hook program to send events to."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from pypto_op_lint import client

ROOT = Path(__file__).resolve().parents[2]
HOOK = ROOT / "hooks" / "hook.sh"

GOOD_IMPL = (ROOT / "examples/ops/softmax/softmax_impl.py").read_text(encoding="utf-8").replace("softmax", "soft")
BAD_IMPL = GOOD_IMPL.replace("@pypto.frontend.jit", "@p.frontend.jit").replace("import pypto\n", "import pypto as p\n")


@dataclass
class Answer:
    """What the hook program said."""

    code: int
    out: str
    err: str
    seconds: float

    @property
    def json(self) -> dict[str, Any]:
        return json.loads(self.out) if self.out.strip() else {}

    @property
    def denied(self) -> str:
        """Reason of a PreToolUse refusal, or an empty string."""
        decision = self.json.get("hookSpecificOutput", {})
        return decision["permissionDecisionReason"] if decision.get("permissionDecision") == "deny" else ""

    @property
    def blocked(self) -> str:
        """Reason of a PostToolUse or Stop refusal, or an empty string."""
        return self.json["reason"] if self.json.get("decision") == "block" else ""

    @property
    def context(self) -> str:
        return self.json.get("hookSpecificOutput", {}).get("additionalContext", "")


@dataclass
class Harness:
    """Sends events to the real program the way a harness does."""

    workspace: Path
    cache: Path
    env: dict[str, str] = field(default_factory=dict)
    session: str = "s1"

    def environment(self, **more: str) -> dict[str, str]:
        base = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        return {
            **base,
            "HOME": str(self.cache / "home"),
            "XDG_CACHE_HOME": str(self.cache),
            "CLAUDE_PROJECT_DIR": str(self.workspace),
            "PYPTO_OP_SERVER_IDLE": "60",
            **self.env,
            **more,
        }

    def raw(self, kind: str, stdin: bytes, **env: str) -> Answer:
        began = time.perf_counter()
        done = subprocess.run(
            ["sh", str(HOOK), *([kind] if kind else [])],
            input=stdin,
            capture_output=True,
            cwd=self.workspace,
            env=self.environment(**env),
            check=False,
        )
        return Answer(done.returncode, done.stdout.decode(), done.stderr.decode(), time.perf_counter() - began)

    def ask(self, kind: str, stdin: bytes) -> Answer:
        """Send an event that is in order."""
        return self.raw(kind, stdin)

    def event(self, name: str, **fields: Any) -> Answer:
        kind = {"PreToolUse": "pre", "PostToolUse": "post"}.get(name, "stop")
        event = {"hook_event_name": name, "session_id": self.session, "cwd": str(self.workspace), **fields}
        answer = self.ask(kind, json.dumps(event).encode())
        assert answer.code == 0, answer
        assert "Traceback" not in answer.out + answer.err
        return answer

    def before(self, tool: str, agent: str | None = None, cwd: Path | None = None, **tool_input: Any) -> Answer:
        fields: dict[str, Any] = {"tool_name": tool, "tool_input": tool_input}
        if agent:
            fields["agent_type"] = agent
        if cwd:
            fields["cwd"] = str(cwd)
        return self.event("PreToolUse", **fields)

    def after(self, tool: str, agent: str | None = None, **tool_input: Any) -> Answer:
        fields: dict[str, Any] = {"tool_name": tool, "tool_input": tool_input, "tool_response": {}}
        if agent:
            fields["agent_type"] = agent
        return self.event("PostToolUse", **fields)

    def write(self, relative: str, text: str, agent: str | None = None) -> Answer:
        """Write a file as the Write tool does, then send its PostToolUse."""
        path = self.workspace / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return self.after("Write", agent, file_path=str(path), content=text)

    @property
    def run_dir(self) -> Path:
        """The private folder, once a hook has made it."""
        found = list((self.cache / "pypto-op" / "run").iterdir())
        assert len(found) == 1, found
        return found[0]

    @property
    def server_pid(self) -> int:
        return int((self.run_dir / "server.pid").read_text())

    def await_server(self) -> int:
        """Wait until the resident server listens; return its process id."""
        for _ in range(6000):  # two minutes: a busy machine starts a Python in ten seconds
            if (self.run_dir / "server.sock").exists() and (self.run_dir / "server.pid").exists():
                return self.server_pid
            time.sleep(0.02)
        raise AssertionError("no server came up")

    def stop_servers(self) -> None:
        for pid_file in (self.cache / "pypto-op").glob("run/*/server.pid"):
            try:
                os.kill(int(pid_file.read_text()), signal.SIGKILL)
            except (OSError, ValueError):
                continue


@dataclass
class NearHarness(Harness):
    """Sends events to the resident server from this process: the program's own client, without a shell and a Python each time.

    Events go through the program until one has started the server (not every kind does); so does everything that is no event.
    """

    def ask(self, kind: str, stdin: bytes) -> Answer:
        if not list(self.cache.glob("pypto-op/run/*/server.sock")):
            answer = self.raw(kind, stdin)
            if list(self.cache.glob("pypto-op/run/*")):
                self.await_server()
            return answer
        began, said = time.perf_counter(), io.BytesIO()
        with self._as_the_program(stdin), io.TextIOWrapper(said) as out, redirect_stdout(out):
            code = client.main([kind], str(ROOT))
            text = said.getvalue().decode()
        return Answer(code, text, "", time.perf_counter() - began)

    @contextmanager
    def _as_the_program(self, stdin: bytes) -> Iterator[None]:
        """Standard input, environment and working folder are what the program would have."""
        own, here = os.dup(0), Path.cwd()
        try:
            with tempfile.TemporaryFile() as event, mock.patch.dict(os.environ, self.environment(), clear=True):
                event.write(stdin)
                event.seek(0)
                os.dup2(event.fileno(), 0)
                os.chdir(self.workspace)
                yield
        finally:
            os.chdir(here)
            os.dup2(own, 0)
            os.close(own)


STATE = {
    "schema_version": "3.0",
    "operator_name": "soft",
    "current_stage": 5,
    "max_stage": 7,
    "stage_status": {
        "1": "completed",
        "2": "completed",
        "3": "completed",
        "4": "completed",
        "5": "in_progress",
    },
    "stage5_phases": {"active_phase": "M1", "phase_status": {"M1": {"status": "in_progress"}}},
    "artifact_hashes": {},
}


def make_operator(op: Path, state: dict[str, Any] | None) -> None:
    """Fill an operator's directory with the files of stage 5."""
    name = op.name
    files = {
        "SPEC.md": "# spec\n",
        "API_REPORT.md": "# api\n",
        "DESIGN.md": "# design\n",
        "MEMORY.md": "# memory\n",
        "README.md": "# readme\n",
        f"{name}_impl.py": GOOD_IMPL,
        f"{name}_golden.py": "import torch\n",
        f"test_{name}.py": "import torch\n",
        "eval/module_interfaces.yaml": "schema_version: 1\n",
        "eval/test_inputs.py": "import torch\n",
        f"modules/{name}_module1_impl.py": "import pypto\n",
        f"modules/{name}_module1_golden.py": "import torch\n",
        f"modules/test_{name}_module1.py": "import torch\n",
        "_debug/log.txt": "1 2\n",
    }
    for relative, text in files.items():
        path = op / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    if state is not None:
        (op / ".orchestrator_state.json").write_text(json.dumps(state), encoding="utf-8")


def make_workspace(base: Path, state: dict[str, Any] | None) -> Path:
    """Return a workspace with the operator custom/soft, a folder src/ and a git repository."""
    workspace = base / "a workspace"
    make_operator(workspace / "custom" / "soft", state)
    source = workspace / "src"
    source.mkdir()
    (source / "a.py").write_text("a = 1\n")
    (source / "writer.py").write_text("open('custom/soft/soft_impl.py', 'w').write('')\n")
    (source / "fix.patch").write_text("--- a/custom/soft/soft_impl.py\n+++ b/custom/soft/soft_impl.py\n@@ -1 +1 @@\n-a\n+b\n")
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@t", "-C", str(workspace)]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "start"], check=True)
    (workspace / "untracked.txt").write_text("x")
    (workspace / "custom/soft/README.txt").write_text("untracked")
    return workspace


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[Harness]:
    """A fresh workspace whose operator is in stage 5."""
    made = Harness(make_workspace(tmp_path, STATE), tmp_path / "cache")
    made.cache.mkdir()
    yield made
    made.stop_servers()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harness]:
    """The same for tests that only ask and change nothing."""
    base = tmp_path_factory.mktemp("shared")
    made = NearHarness(make_workspace(base, STATE), base / "cache")
    made.cache.mkdir()
    yield made
    made.stop_servers()
