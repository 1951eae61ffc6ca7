"""What stands in the repository's own files about set-up: one version, true commands, no package of somebody else's."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from pypto_op import __version__
from pypto_op.backends.toolchain import INSTALL_LINE
from pypto_op.bundle_files import bundle_root, extra_of, extra_remedy
from pypto_op.cli import root as pypto_op

CHECKOUT = bundle_root()
pytestmark = pytest.mark.skipif(not (CHECKOUT / "pyproject.toml").is_file(), reason="no checkout")


def tracked_texts() -> dict[str, str]:
    done = subprocess.run(["git", "ls-files", "-z"], cwd=CHECKOUT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("no git checkout")
    names = [n for n in done.stdout.split("\0") if n and (CHECKOUT / n).is_file() and not n.endswith((".png", ".gz"))]
    return {n: (CHECKOUT / n).read_text(encoding="utf-8", errors="replace") for n in names}


def test_the_version_stands_in_one_place() -> None:
    pyproject = (CHECKOUT / "pyproject.toml").read_text(encoding="utf-8")
    assert 'dynamic = ["version"]' in pyproject
    assert not re.search(r'^version\s*=\s*"', pyproject, re.MULTILINE)
    assert f"## {__version__}" in (CHECKOUT / "CHANGELOG.md").read_text(encoding="utf-8")
    # The clients read these two as they are; they must say the same.
    plugin = json.loads((CHECKOUT / ".claude-plugin/plugin.json").read_text(encoding="utf-8"))
    market = json.loads((CHECKOUT / ".claude-plugin/marketplace.json").read_text(encoding="utf-8"))
    named = [plugin.get("version"), *(entry.get("version") for entry in market["plugins"])]
    assert {version for version in named if version is not None} <= {__version__}


_BY_NAME = re.compile(r"(?:pip|pipx|uv tool|uv pip|uvx)\s+(?:install|run)?\s*(?:--?[\w-]+\s+)*['\"]?pypto[-_]op\b(?![-_]\d)")


def test_no_text_tells_anybody_to_install_our_name_from_an_index() -> None:
    texts = tracked_texts()
    found = [name for name, text in texts.items() if _BY_NAME.search(text) and not name.startswith("tests/packaging/")]
    assert found == []
    for bad in ("pip install 'pypto-op[sim]'", "uv tool install pypto-op", "pipx install pypto_op", "pip install -U pypto-op"):
        assert _BY_NAME.search(bad), bad
    for good in (
        "pip install /x/pypto_op-0.1.0.whl",
        "pip install '/x/pypto_op-0.1.0-py3-none-any.whl[sim]'",
        "pip install -e .",
    ):
        assert not _BY_NAME.search(good), good


def test_a_checkout_is_told_to_set_up_and_each_extra_is_known() -> None:
    assert extra_remedy("sim") == f"run `make setup` in {CHECKOUT}"
    assert [extra_of(m) for m in ("torch", "numpy", "safetensors", "mpmath", "mcp", "triton")] == [
        "sim", "sim", "sim", "sim", "mcp", "triton",
    ]  # fmt: skip
    assert extra_of("no_such_module") is None and extra_of("click") is None


@pytest.mark.parametrize(
    ("mark", "command"),
    [("uv-receipt.toml", "uv tool install --force"), ("pipx_metadata.json", "pipx install --force"), ("", "pip")],
)
def test_a_broken_wheel_is_mended_by_the_tool_that_installed_it(mark: str, command: str, tmp_path: Path) -> None:
    """The hooks of a wheel whose Python is gone: what they say is true for a wheel, which has no Makefile."""
    bundle = tmp_path / "lib" / "python3.11" / "site-packages" / "pypto_op" / "_bundle"
    shutil.copytree(CHECKOUT / "hooks", bundle / "hooks")
    linter = bundle.parents[1] / "pypto_op_lint" / "client.py"
    linter.parent.mkdir()
    linter.touch()
    if mark:
        (tmp_path / mark).touch()
    tools = tmp_path / "tools"
    tools.mkdir()
    for tool in ("sh", "cat", "awk", "sed", "dirname"):
        (tools / tool).symlink_to(str(shutil.which(tool)))
    event = {"tool_name": "Write", "tool_input": {"file_path": str(tmp_path / "custom/softmax/SPEC.md"), "content": ""}}
    done = subprocess.run(
        ["sh", str(bundle / "hooks" / "hook.sh"), "pre"], input=json.dumps(event), capture_output=True, text=True, check=False,
        cwd=tmp_path, env={"PATH": str(tools), "HOME": str(tmp_path)},
    )  # fmt: skip
    said = json.loads(done.stdout)["hookSpecificOutput"]["permissionDecisionReason"]
    assert command in said and "PATH_OF_THE_WHEEL_FILE[sim,mcp]" in said and "make" not in said.split(";")[-1]


def test_set_up_installs_every_extra_that_a_cpu_can_use() -> None:
    line = re.search(r"-e '\.\[([\w,]+)\]'", (CHECKOUT / "scripts/setup.sh").read_text(encoding="utf-8"))
    assert line and set(line[1].split(",")) == {"sim", "triton", "mcp", "run", "lsp", "tune", "dev"}


def test_every_pinned_package_has_a_row_that_says_why() -> None:
    pyproject = (CHECKOUT / "pyproject.toml").read_text(encoding="utf-8")
    page = (CHECKOUT / "docs/dependencies.md").read_text(encoding="utf-8")
    pinned = set(re.findall(r'"([A-Za-z0-9_.-]+)==', pyproject)) - {"hatchling"}
    assert pinned, "no package is pinned"
    missing = [p for p in pinned if not p.startswith("types-") and not re.search(rf"\b{re.escape(p)}\b", page)]
    assert missing == []
    for row in re.findall(r"^\| `\w+` \| ([^|]+) \|", page, re.MULTILINE):
        for package in row.replace("*", "").split(","):
            assert package.strip().rstrip("-") in pyproject, f"{package} has a row and is not installed"


def test_the_container_does_what_the_readme_says() -> None:
    recipe = (CHECKOUT / ".devcontainer/Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    python = re.search(r"^FROM python:(3\.\d+)", recipe, re.MULTILINE)
    assert python and python[1] in ("3.10", "3.11", "3.12")
    runs = re.findall(r"^RUN (.+)$", recipe, re.MULTILINE)
    apt = next(r for r in runs if "apt-get install" in r)
    assert set(INSTALL_LINE.split()[3:]) <= set(apt.split()), "the C++ tools that `pypto-op doctor` asks for"
    readme = (CHECKOUT / "README.md").read_text(encoding="utf-8") + (CHECKOUT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for command in [r for r in runs if r is not apt]:
        assert f"$ {command}" in readme, command
    settings = json.loads((CHECKOUT / ".devcontainer/devcontainer.json").read_text(encoding="utf-8"))
    assert (CHECKOUT / ".devcontainer" / settings["build"]["dockerfile"]).is_file()
    ignored = (CHECKOUT / ".dockerignore").read_text(encoding="utf-8").split()
    assert {".venv", ".clients"} <= set(ignored), "a virtual environment of another machine does not start in the container"


def test_the_hook_for_pre_commit_looks_at_files_that_rules_look_at_and_at_no_others() -> None:
    (hook,) = yaml.safe_load((CHECKOUT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert hook["entry"].split()[0] == "pypto-op" and hook["entry"].split()[1] in pypto_op.list_commands(None)  # type: ignore[arg-type]
    pattern = re.compile(hook["files"])
    for name in (
        "custom/softmax/SPEC.md", "custom/softmax/softmax_impl.py", "kernels/custom/a1/a1_golden.py",
        "custom/softmax/modules/softmax_module12_impl.py", "custom/softmax/modules/test_softmax_module1.py",
        "custom/softmax/eval/module_interfaces.yaml", "custom/softmax/test_softmax.py",
    ):  # fmt: skip
        assert pattern.search(name), name
    for name in ("custom/theme/style.css", "custom/softmax/helper.py", "softmax_impl.py", "custom/softmax/_debug/x_impl.py",
                 "mycustom/softmax/softmax_impl.py", "custom/Softmax/SPEC.md"):  # fmt: skip
        assert not pattern.search(name), name


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    import shutil

    shutil.copytree(CHECKOUT / "examples/ops/softmax", tmp_path / "custom" / "softmax")
    shutil.copytree(CHECKOUT / "examples/ops/rmsnorm", tmp_path / "custom" / "rmsnorm")
    return tmp_path


def step(name: str, repository: Path, **inputs: str) -> subprocess.CompletedProcess[str]:
    """Run a step of the action as GitHub does: its script by bash -eo pipefail, inputs through its own `env`."""
    action = yaml.safe_load((CHECKOUT / "action.yml").read_text(encoding="utf-8"))
    (found,) = [s for s in action["runs"]["steps"] if s.get("name") == name]
    given = {f"${{{{ inputs.{key} }}}}": entry["default"] for key, entry in action["inputs"].items()}
    given.update({f"${{{{ inputs.{key} }}}}": value for key, value in inputs.items()})
    variables = {key: given[value] for key, value in found["env"].items()}
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", found["run"]],
        cwd=repository, capture_output=True, text=True, check=False, env={**os.environ, **variables, "PATH": path},
    )  # fmt: skip


@pytest.mark.slow
def test_the_actions_lint_step_annotates_and_fails_on_a_wrong_kernel(repository: Path) -> None:
    assert step("Lint", repository, operators="custom/softmax").returncode == 0
    impl = repository / "custom" / "softmax" / "softmax_impl.py"
    impl.write_text("from __future__ import annotations\n" + impl.read_text(encoding="utf-8"), encoding="utf-8")
    done = step("Lint", repository)
    assert done.returncode == 1
    assert "::error file=custom/softmax/softmax_impl.py,line=1,col=1,title=PX03 S1 FAIL::" in done.stdout
    assert done.stdout.count("event complete-stage") == 2, "both operators were looked at"


def test_the_action_quotes_no_input_into_a_script() -> None:
    action = yaml.safe_load((CHECKOUT / "action.yml").read_text(encoding="utf-8"))
    scripts = [s["run"] for s in action["runs"]["steps"] if "run" in s]
    assert scripts and not any("${{" in script for script in scripts)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_what_the_page_says(shell: str) -> None:
    page = (CHECKOUT / "docs/packaging.md").read_text(encoding="utf-8")
    assert f"_PYPTO_OP_COMPLETE={shell}_source pypto-op" in page
    command = [sys.executable, "-c", "from pypto_op.cli import main; main()"]
    env = {**os.environ, "_PYPTO_OP_COMPLETE": f"{shell}_source"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    assert "_PYPTO_OP_COMPLETE" in done.stdout, done.stderr
    env = {**os.environ, "_PYPTO_OP_COMPLETE": f"{shell}_complete", "COMP_WORDS": "pypto-op rep", "COMP_CWORD": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    if shell != "fish":  # fish hands the word over in another way
        assert "report" in done.stdout and "reproduce" in done.stdout, done.stderr
