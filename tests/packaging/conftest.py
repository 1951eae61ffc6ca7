"""The wheel of this checkout, built once, and tools of uv in folders of their own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests import once

from pypto_op.bundle_files import bundle_root

CHECKOUT = bundle_root()


def run(*words: object, env: dict[str, str] | None = None, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(w) for w in words], capture_output=True, text=True, check=False, env=env, cwd=cwd)


@dataclass(frozen=True)
class Installed:
    """An installed pypto-op: its command, and the environment that it is called in (no checkout on any path)."""

    command: Path
    env: dict[str, str]

    def __call__(self, *words: object, cwd: Path | None = None, **more: str) -> subprocess.CompletedProcess[str]:
        return run(self.command, *words, env={**self.env, **more}, cwd=cwd)


@pytest.fixture(scope="session")
def uv() -> str:
    beside = Path(sys.executable).with_name("uv")
    found = str(beside) if beside.is_file() else shutil.which("uv")
    if found is None:
        pytest.skip("uv is not installed; run `make setup`")
    return found


@pytest.fixture(scope="session")
def uv_env(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """uv and pipx keep everything in a scratch folder; what pip is told about local files, uv is told too."""
    home = tmp_path_factory.mktemp("tools")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PIPX_"))}
    own = {
        "HOME": str(home), "UV_TOOL_DIR": str(home / "uv"), "UV_TOOL_BIN_DIR": str(home / "bin"), "UV_NO_PROGRESS": "1",
        "UV_PYTHON": os.path.realpath(sys.executable), "PIPX_HOME": str(home / "pipx"), "PIPX_BIN_DIR": str(home / "pipx-bin"),
        "PYPTO_OP_KEY_FILE": str(home / "seal.key"), "PRE_COMMIT_HOME": str(home / "pre-commit"),
        "PATH": f"{Path(os.path.realpath(sys.executable)).parent}:/usr/bin:/bin",
    }  # fmt: skip
    find_links = {"UV_FIND_LINKS": os.environ["PIP_FIND_LINKS"]} if "PIP_FIND_LINKS" in os.environ else {}
    return {**kept, **own, **find_links}


@pytest.fixture(scope="session")
def wheel(uv: str, uv_env: dict[str, str], tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """Build the wheel, or skip where the index that brings the build's own packages cannot be reached."""

    def build(out: Path) -> None:
        done = run(uv, "build", "--wheel", "--out-dir", out, CHECKOUT, env=uv_env)
        if done.returncode and _offline(done.stderr):
            pytest.skip("no package index can be reached")
        assert done.returncode == 0, done.stderr

    (built,) = once.folder_of(tmp_path_factory, worker_id, "wheel", build).glob("*.whl")
    return built


@pytest.fixture(scope="session")
def uv_tool(uv: str, uv_env: dict[str, str], wheel: Path) -> Installed:
    done = run(uv, "tool", "install", wheel, env=uv_env)
    assert done.returncode == 0, done.stderr
    return Installed(Path(uv_env["UV_TOOL_BIN_DIR"]) / "pypto-op", uv_env)


def _offline(said: str) -> bool:
    if os.environ.get("CI") == "true":
        return False
    return any(word in said.lower() for word in ("dns error", "connection refused", "network unreachable", "timed out"))
