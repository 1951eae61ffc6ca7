"""What no plain word says beforehand, the record of changes says afterwards: hook, real command, hook."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.hooks.conftest import GOOD_IMPL, STATE, NearHarness, make_workspace
from tests.quickly import examples, read_table

from pypto_op.proof.key import KEY_ENV, load_key
from pypto_op.proof.state_seal import state_seal
from pypto_op.workspace import STATE_FILE
from pypto_op_lint.concerns import ACCOUNT_FOLDER, KEY_NAME

SEEN: list[dict[str, Any]] = read_table(Path(__file__).parent / "shell_commands.yaml")["seen"]
OP = "custom/soft"
ARCHITECT, CODER = "pypto-op:pypto-op-architect", "pypto-op:pypto-op-coder"
"""At stage 5 the architect owns no file: whatever changes is not its own."""


class Recorded:
    """A workspace whose files are put back before each command."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.harness = NearHarness(make_workspace(base, STATE), base / "cache")
        self.workspace, self.op = self.harness.workspace, self.harness.workspace / OP
        self.key = self.harness.cache / "home" / ACCOUNT_FOLDER / KEY_NAME
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(KEY_ENV, str(self.key))
            load_key()
            self.harness.env[KEY_ENV] = str(self.key)
            state = json.loads(json.dumps(STATE))
            frozen = hashlib.sha256((self.op / "SPEC.md").read_bytes()).hexdigest()
            state["artifact_hashes"] = {"spec_md": {"path": "SPEC.md", "sha256": frozen, "stage": 1}}
            state |= {"journal": {"sequence": 1}, "seal": state_seal(state, {"sequence": 1})}
            (self.op / STATE_FILE).write_text(json.dumps(state))
        commit = ["git", "-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qam", "sealed"]
        subprocess.run(commit, cwd=self.workspace, check=True)
        shutil.copytree(self.workspace, base / "kept", symlinks=True)

    def put_back(self, prepare: str = "") -> None:
        """Put every file back, run `prepare`, and let the record take note of it."""
        shutil.rmtree(self.workspace)
        shutil.copytree(self.base / "kept", self.workspace, symlinks=True)
        if prepare:
            self.run(prepare)
        self.harness.before("Bash", command="true")
        self.harness.after("Bash", command="true")

    def run(self, command: str) -> None:
        """Run a command as the harness's shell would."""
        environment = {**self.harness.environment(), "PATH": os.environ["PATH"]}
        subprocess.run(
            ["bash", "-c", command], cwd=self.workspace, env=environment, capture_output=True, timeout=120, check=False
        )

    def told(self, command: str, agent: str | None = ARCHITECT) -> str:
        """Return what the agent is told after a command that was let through."""
        answer = self.harness.before("Bash", agent, command=command)
        assert answer.out == "", answer
        self.run(command)
        return self.harness.after("Bash", agent, command=command).blocked


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    made = Recorded(tmp_path_factory.mktemp("recorded"))
    yield made
    made.harness.stop_servers()


@pytest.mark.slow  # half a second each, and sixty of them
@pytest.mark.parametrize("row", SEEN, ids=lambda row: row["run"][:60])
def test_a_write_that_nothing_announced_is_told(recorded: Recorded, row: dict[str, Any]) -> None:
    if row.get("needs") and not shutil.which(row["needs"]):
        pytest.skip(f"{row['needs']} is not installed")
    recorded.put_back(row.get("prepare", ""))
    told = recorded.told(row["run"])
    for name in row["files"]:
        lines = [line for line in told.splitlines() if line.startswith(f"[pypto-op-guard] {recorded.op / name}: this file")]
        assert lines, told
        assert row.get("says", "") in lines[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        "python3 -c \"import shutil; shutil.rmtree('custom/soft')\"",
        "python3 -c \"import os; os.rename('custom/soft', 'src/soft')\"",
        "python3 -c \"import os; os.rename('custom', 'cc')\"",
    ],
)
def test_an_operator_that_is_gone_is_told(recorded: Recorded, command: str) -> None:
    recorded.put_back()
    recorded.harness.before("Bash", ARCHITECT, command=command)
    recorded.run(command)
    answer = recorded.harness.after("Bash", ARCHITECT, command=command)
    assert f"{recorded.op / 'SPEC.md'}: this" in answer.out + answer.err and "deleted" in answer.out + answer.err, answer


def test_a_pipe_among_the_files_holds_nobody_up(recorded: Recorded) -> None:
    recorded.put_back()
    recorded.told("python3 -c \"import os; os.mkfifo('custom/soft/modules/x.py')\"")
    told = recorded.told("python3 -c \"open('custom/soft/SPEC.md', 'a').write('x')\"")
    assert f"{recorded.op / 'SPEC.md'}: this file" in told


HIDDEN = {
    "reversed": lambda path: f"{path[::-1]!r}[::-1]",
    "base64": lambda path: f"__import__('base64').b64decode({base64.b64encode(path.encode())!r}).decode()",
    "numbers": lambda path: f"bytes({list(path.encode())}).decode()",
    "joined": lambda path: f"'/'.join({path.split('/')!r})",
    "plain": repr,
}
WRITERS = {
    "alias": "w = open; w({}, 'w').write('x')",
    "descriptor": "import os; os.write(os.open({}, os.O_WRONLY | os.O_TRUNC), b'x')",
    "pathlib": "import pathlib; getattr(pathlib.Path({}), 'write_' + 'text')('x')",
    "shutil": "import shutil; getattr(shutil, 'copyfile')('src/a.py', {})",
    "child": "import subprocess; subprocess.run(['sh', '-c', 'echo x > $1', '_', {}])",
    "gone": "import os; os.unlink({})",
}
CARRIERS = {
    "option": "python3 -c {quoted}",
    "stdin": "python3 - <<'END'\n{code}\nEND",
    "script": "cat > custom/soft/_debug/w.py <<'END'\n{code}\nEND\npython3 custom/soft/_debug/w.py",
    "pipe": "echo {encoded} | base64 -d | python3",
    "perl": "perl -e 'exec qw(python3 -c), pack(q(H*), q({hexed}))'",
}


@settings(max_examples=examples(15), suppress_health_check=list(HealthCheck))
@given(
    name=st.sampled_from(["SPEC.md", "test_soft.py", "soft_impl.py", "modules/soft_module1_golden.py", STATE_FILE]),
    hide=st.sampled_from(sorted(HIDDEN)),
    writer=st.sampled_from(sorted(WRITERS)),
    carrier=st.sampled_from(sorted(CARRIERS)),
)
@pytest.mark.slow
def test_no_way_of_writing_is_unseen(recorded: Recorded, name: str, hide: str, writer: str, carrier: str) -> None:
    code = WRITERS[writer].format(HIDDEN[hide](f"{OP}/{name}"))
    raw = code.encode()
    quoted = "'" + code.replace("'", "'\\''") + "'"
    command = CARRIERS[carrier].format(code=code, quoted=quoted, encoded=base64.b64encode(raw).decode(), hexed=raw.hex())
    recorded.put_back()
    assert f"{recorded.op / name}: this file" in recorded.told(command), command


def test_a_background_process_is_told_at_the_next_look(recorded: Recorded) -> None:
    recorded.put_back()
    go = recorded.op / "_debug/go"
    go.unlink(missing_ok=True)
    code = "w = open; w('custom/soft/test_soft.py', 'w')"
    command = f'(until [ -e custom/soft/_debug/go ]; do sleep 0.05; done; python3 -c "{code}") > /dev/null 2>&1 &'
    assert recorded.told(command, CODER) == ""
    go.touch()
    deadline = time.monotonic() + 60
    while (recorded.op / "test_soft.py").stat().st_size and time.monotonic() < deadline:
        time.sleep(0.05)
    told = recorded.harness.event("SubagentStop", agent_type=CODER, stop_hook_active=False).blocked
    assert "test_soft.py: this file was changed: pypto-op-coder does not own it" in told


def test_a_session_without_a_role_hears_of_frozen_files_and_of_bad_kernels(recorded: Recorded) -> None:
    recorded.put_back()
    told = recorded.told("python3 -c \"w = open; w('custom/soft/SPEC.md', 'w'); w('custom/soft/soft_impl.py', 'w')\"", None)
    assert "though it is frozen: stage 1 is completed" in told
    assert "[pypto-op-lint]" in told


def test_a_wrong_kernel_of_one_s_own_is_linted_whatever_wrote_it(recorded: Recorded) -> None:
    recorded.put_back()
    (recorded.op / "_debug/next.py").write_text(GOOD_IMPL.replace("import pypto\n", "import pypto as p\n"))
    told = recorded.told("python3 -c \"import os; os.replace('custom/soft/_debug/next.py', 'custom/soft/soft_impl.py')\"", CODER)
    assert "blocking_rules:" in told
    assert "does not own it" not in told


def test_the_work_of_a_command_of_this_bundle_is_its_own_and_excuses_nothing_else(recorded: Recorded) -> None:
    recorded.put_back()
    code = "w = open; w('custom/soft/MEMORY.md', 'w'); w('custom/soft/test_soft.py', 'w')"
    command = f'pypto-op memory check custom/soft; python3 -c "{code}"'
    told = recorded.told(command)
    assert "test_soft.py: this file was changed by a shell command: pypto-op-architect does not own it" in told
    assert "MEMORY.md: this file" not in told


def test_what_the_state_machine_writes_is_no_change_by_hand(recorded: Recorded) -> None:
    recorded.put_back()
    state = json.loads((recorded.op / STATE_FILE).read_text())
    position = {"sequence": 2}
    body = {key: value for key, value in state.items() if key not in ("seal", "journal")} | {"current_stage": 6}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(KEY_ENV, str(recorded.key))
        sealed = {**body, "journal": position, "seal": state_seal(body, position)}
    (recorded.workspace / "src/state").write_text(json.dumps(sealed))
    assert recorded.told(f"python3 -c \"import shutil; shutil.copy('src/state', '{OP}/{STATE_FILE}')\"") == ""


def test_a_changed_key_is_told(recorded: Recorded) -> None:
    recorded.put_back()
    old = recorded.key.read_bytes()
    folder = "os.path.expanduser('~'), '.local', 'state', 'pypto-op', '*'"
    try:
        code = f"import glob, os\nopen(glob.glob(os.path.join({folder}))[0], 'ab').write(b'x')\n"
        (recorded.workspace / "src/w.py").write_text(code)
        assert recorded.harness.before("Bash", command="python3 src/run.py").out == ""
        recorded.run("python3 src/w.py")
        assert "sealing key" in recorded.harness.after("Bash", command="python3 src/run.py").blocked
        assert recorded.key.read_bytes() != old
    finally:
        recorded.key.write_bytes(old)
