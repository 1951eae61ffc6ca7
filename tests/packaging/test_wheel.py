"""The wheel: it holds what a checkout holds, installs with uv and pipx, and what it says is true without a checkout."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest
from tests.demo.outcome import assert_demo_refuses_and_passes
from tests.packaging.conftest import CHECKOUT, Installed, run
from tests.telling import told_lines

from pypto_op import __version__
from pypto_op.backends.build_cache import cache_root

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
PIPX = "pipx==1.18.4"


def tracked(*folders: str) -> set[str]:
    done = run("git", "ls-files", "-z", *folders, cwd=CHECKOUT)
    if done.returncode:
        pytest.skip("no git checkout")
    return {name for name in done.stdout.split("\0") if name and not (CHECKOUT / name).is_symlink()}


def test_the_wheel_holds_everything_once(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert len(names) == len(set(names))
    bundle = {n.removeprefix("pypto_op/_bundle/") for n in names if n.startswith("pypto_op/_bundle/")}
    wanted = tracked(".agents", ".claude-plugin", "commands", "examples", "hooks", "schemas", "skills", "scripts/mcp_server.py")
    assert bundle == wanted
    packages = {n for n in names if n.startswith(("pypto_op/", "pypto_op_lint/")) and "/_bundle/" not in n}
    sources = tracked("scripts/pypto_op", "lint/pypto_op_lint")
    assert packages == {n.split("/", 1)[1] for n in sources}
    assert wheel.stat().st_size < 5_000_000


def test_the_metadata_is_complete(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    (name,) = [n for n in archive.namelist() if n.endswith(".dist-info/METADATA")]
    about = Parser().parsestr(archive.read(name).decode())
    assert (about["Name"], about["Version"], about["License-Expression"]) == ("pypto-op", __version__, "Apache-2.0")
    assert about["Requires-Python"] and about["Summary"] and about["Author"] and about["Description-Content-Type"]
    assert "Private :: Do Not Upload" in about.get_all("Classifier", [])
    assert {"sim", "triton", "mcp", "run", "lsp", "tune", "npu"} <= set(about.get_all("Provides-Extra", []))
    assert any(n.endswith("/licenses/LICENSE") for n in archive.namelist())


def test_uv_tool_install_gives_a_command_that_works_without_a_checkout(uv_tool: Installed, tmp_path: Path) -> None:
    assert uv_tool("--version").stdout.strip().endswith(__version__)
    made = uv_tool("new", "softmax", "--dtype", "float16", "--p0", "R=64,C=1024", "--dynamic", "R", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    linted = uv_tool("lint", "--explain", "OL48")
    assert "OL48" in linted.stdout
    checked = uv_tool("check", "custom/softmax", cwd=tmp_path)
    assert "Traceback" not in checked.stderr + checked.stdout


def test_hooks_of_the_wheel_refuse_a_wrong_kernel(uv_tool: Installed, tmp_path: Path) -> None:
    python = Path(uv_tool.env["UV_TOOL_DIR"]) / "pypto-op" / "bin" / "python"
    asked = run(python, "-c", "from pypto_op.bundle_files import bundle_root; print(bundle_root())", env=uv_tool.env)
    root = Path(asked.stdout.strip())
    assert root.name == "_bundle" and CHECKOUT not in root.parents
    ours = "from pypto_op_lint.guard.calls import BUNDLE; print(BUNDLE)"
    assert run(python, "-c", ours, env=uv_tool.env).stdout.strip() == str(root), "its own scripts are trusted there too"
    impl = tmp_path / "custom" / "softmax" / "softmax_impl.py"
    impl.parent.mkdir(parents=True)
    right = (root / "examples" / "ops" / "softmax" / "softmax_impl.py").read_text(encoding="utf-8")
    impl.write_text("from __future__ import annotations\n" + right, encoding="utf-8")
    event = {
        "hook_event_name": "PostToolUse", "session_id": "s", "cwd": str(tmp_path), "tool_name": "Write",
        "tool_input": {"file_path": str(impl), "content": ""}, "tool_response": {},
    }  # fmt: skip
    done = subprocess.run(
        ["sh", str(root / "hooks" / "hook.sh"), "post"], input=json.dumps(event), capture_output=True, text=True, check=False,
        env={**uv_tool.env, "PYPTO_OP_PYTHON": str(python), "PYPTO_OP_SERVER_IDLE": "1"}, cwd=tmp_path,
    )  # fmt: skip
    assert "PX03" in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        (["verify", "OP"], "sim"), (["demo", "--out", "demo-out"], "sim"), (["api", "matmul"], "sim"), (["lsp"], "lsp"),
        (["triton", "verify", "--op_name", "softmax", "--verify_dir", "TRITON"], "sim"),
        (["install", "--harness", "claude", "--target", ".", "--files-only"], "mcp"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else value,
)  # fmt: skip
def test_what_is_missing_is_told_with_the_command_of_the_tool_that_installed(
    uv_tool: Installed, wheel: Path, tmp_path: Path, words: list[str], extra: str
) -> None:
    places = {"OP": CHECKOUT / "examples/ops/softmax", "TRITON": CHECKOUT / "examples/triton/softmax"}
    done = uv_tool(*[places.get(w, w) for w in words], cwd=tmp_path)
    assert done.returncode == 3, done.stdout + done.stderr
    wanted = shlex.quote(f"{wheel}[{extra}]")
    assert f"uv tool install --force {wanted}" in done.stderr
    assert len(told_lines(done.stderr)) == 1
    assert not (tmp_path / "demo-out").exists()


def test_the_remedy_works_and_keeps_the_extras_that_are_there(
    uv_env: dict[str, str], uv_tool: Installed, uv: str, wheel: Path
) -> None:
    said = uv_tool("lsp").stderr
    remedy = re.search(r"`(uv tool install [^`]+)`", said)
    assert remedy, said
    done = run(uv, *shlex.split(remedy[1])[1:], env=uv_env)
    assert done.returncode == 0, done.stderr
    assert uv_tool("lsp").returncode == 0, "an editor that closes stdin at once ends the server in peace"
    assert shlex.quote(f"{wheel}[lsp,sim]") in uv_tool("api", "matmul").stderr


def test_pipx_installs_it_and_its_remedy_names_pipx(uv: str, uv_env: dict[str, str], wheel: Path) -> None:
    done = run(uv, "tool", "run", PIPX, "install", wheel, env=uv_env)
    assert done.returncode == 0, done.stderr
    pipx = Installed(Path(uv_env["PIPX_BIN_DIR"]) / "pypto-op", uv_env)
    assert pipx("--version").stdout.strip().endswith(__version__)
    said = pipx("lsp").stderr
    assert f"pipx install --force {shlex.quote(f'{wheel}[lsp]')}" in said
    again = run(uv, "tool", "run", PIPX, *shlex.split(said.split("`")[1])[1:], env=uv_env)
    assert again.returncode == 0, again.stderr
    assert pipx("lsp").returncode == 0


@pytest.mark.sim
def test_the_demo_runs_from_the_wheel(uv: str, uv_env: dict[str, str], wheel: Path, tmp_path: Path) -> None:
    """The demo as a user sees it: the wheel's own code with this environment's torch and pypto.

    Installing those again would cost a gigabyte.
    """
    place = tmp_path / "venv"
    assert run(uv, "venv", place, env=uv_env).returncode == 0
    python = place / "bin" / "python"
    assert run(uv, "pip", "install", "--no-deps", "--python", python, wheel, env=uv_env).returncode == 0
    (own,) = place.glob("lib/python*/site-packages")
    _lend_packages(own)
    program = "import pypto_op, pypto_op_lint, torch; print(pypto_op.__file__, pypto_op_lint.__file__)"
    asked = run(python, "-c", program, env=uv_env)
    assert asked.stdout.count(str(own)) == 2, asked.stdout + asked.stderr
    built = {"PYPTO_OP_CACHE": str(cache_root())}  # the calculator that other tests have built
    done = run(place / "bin" / "pypto-op", "demo", "--out", tmp_path / "out", env=uv_env | built, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert_demo_refuses_and_passes(tmp_path / "out")


def _lend_packages(own: Path) -> None:
    """Link this environment's packages into another, all but pypto-op: the judge trusts only what lies in its own."""

    def link(source: str, target: str) -> None:
        try:
            os.link(source, target)
        except OSError:  # another file system
            shutil.copy2(source, target)

    for entry in Path(sysconfig.get_paths()["purelib"]).iterdir():
        if "pypto_op" in entry.name or entry.suffix == ".pth" or (own / entry.name).exists():
            continue
        if entry.is_dir():
            shutil.copytree(entry, own / entry.name, copy_function=link)
        else:
            link(str(entry), str(own / entry.name))
    link(str(Path(sys.executable).with_name("shfmt")), str(own.parents[2] / "bin" / "shfmt"))


@pytest.mark.skipif(sys.platform != "linux", reason="the tools of this test are Linux's")
def test_pre_commit_runs_the_hook(uv: str, uv_env: dict[str, str], tmp_path: Path) -> None:
    repository, source = tmp_path / "kernels", tmp_path / "pypto-op"
    copied = run("git", "clone", "-q", "--no-hardlinks", CHECKOUT, source)
    if copied.returncode:
        pytest.skip("no git checkout")
    for name in tracked():  # what is not yet committed is tested too
        if (CHECKOUT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((CHECKOUT / name).read_bytes())
    git = ("git", "-c", "user.name=t", "-c", "user.email=t@t", "-c", "core.hooksPath=/dev/null")
    assert run(*git, "commit", "-qam", "now", "--allow-empty", cwd=source).returncode == 0
    op = repository / "custom" / "softmax"
    op.mkdir(parents=True)
    right = (CHECKOUT / "examples/ops/softmax/softmax_impl.py").read_text(encoding="utf-8")
    (op / "softmax_impl.py").write_text(right, encoding="utf-8")
    (op / "notes.txt").write_text("mine\n", encoding="utf-8")
    head = run("git", "rev-parse", "HEAD", cwd=source).stdout.strip()
    (repository / ".pre-commit-config.yaml").write_text(
        f"repos:\n  - repo: {source}\n    rev: {head}\n    hooks:\n      - id: pypto-op-lint\n", encoding="utf-8"
    )
    assert run("git", "init", "-q", cwd=repository).returncode == 0
    run("git", "add", "-A", cwd=repository)
    call = (uv, "tool", "run", "pre-commit==4.7.0", "run", "--all-files")
    done = run(*call, env=uv_env, cwd=repository)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Passed" in done.stdout
    (op / "softmax_impl.py").write_text("from __future__ import annotations\n" + right, encoding="utf-8")
    done = run(*call, env=uv_env, cwd=repository)
    assert done.returncode == 1
    assert "PX03" in done.stdout
