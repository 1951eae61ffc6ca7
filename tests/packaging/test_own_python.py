"""Nothing that an agent leaves in the current folder runs in a process that decides."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests import program
from tests.runner.running import KEY

from pypto_op import own_python

ROOT = Path(__file__).resolve().parents[2]
SHADOWS = ("runpy", "json", "click", "yaml", "random", "tokenize", "pypto_op", "pypto_op_lint", "sitecustomize", "usercustomize")


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    """A folder whose modules, named as those of Python and of this bundle, leave a mark when they are imported."""
    folder = tmp_path / "work"
    folder.mkdir()
    for name in SHADOWS:
        (folder / f"{name}.py").write_text(f"open({str(tmp_path / 'mark')!r}, 'a').write('{name} ')\n")
    return folder


def ended(command: list[str], planted: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **variables, "PYPTO_OP_PYTHON": sys.executable}
    return subprocess.run(command, cwd=planted, env=environment, capture_output=True, text=True, check=False)


def test_a_module_of_ours_does_not_look_into_the_current_folder(planted: Path) -> None:
    done = ended(own_python.running("pypto_op.cli", "--version"), planted)
    assert done.returncode == 0 and "pypto-op" in done.stdout and not (planted.parent / "mark").exists(), done
    for name in ("sitecustomize", "usercustomize"):  # Python itself imports these before any line of ours
        (planted / f"{name}.py").unlink()
    done = ended(own_python.running("pypto_op.cli", "--version"), planted, PYTHONPATH="/opt:")
    assert done.returncode == 0 and not (planted.parent / "mark").exists(), done
    plain = ended([sys.executable, "-m", "pypto_op.cli", "--version"], planted)
    assert (planted.parent / "mark").exists() or plain.returncode, "this is what it guards against"


def test_the_launcher_for_agents_does_not_either(planted: Path) -> None:
    shell = (ROOT / "hooks" / "pypto-op").read_text(encoding="utf-8")
    begin = [line.partition("=")[2][1:-1] for line in shell.splitlines() if line.startswith("begin=")]
    assert "; ".join([begin[0], *(line.removeprefix("$begin; ") for line in begin[1:])]) == own_python.BEGIN, (
        "the shell cannot import it, so it says the same"
    )
    (planted.parent / "link").symlink_to(planted)
    lib = planted.parent / "lib"
    lib.mkdir()
    for places in ("", ":", ".", "/opt:", str(planted), str(planted.parent / "link"), f"::{lib}:../work", "work:/opt"):
        done = ended(["sh", str(ROOT / "bin" / "pypto-op"), "--version"], planted, PYTHONPATH=places)
        assert done.returncode == 0 and not (planted.parent / "mark").exists(), (places, done)
    show = f"here={ROOT}/hooks; . {ROOT}/hooks/find.sh; find_bundle; keep_safe_places; echo $PYTHONPATH"
    kept = f"{lib}:{ROOT}/scripts"
    done = ended(["sh", "-c", show], planted, PYTHONPATH=f":{kept}:{planted}:", XDG_DATA_HOME=str(planted))
    assert done.stdout.strip() == kept, "a library stays, and so does the bundle"


@pytest.mark.parametrize("how", ["module", "launcher", "script"])
def test_a_folder_that_is_named_stands_in_the_way_of_nothing(planted: Path, how: str) -> None:
    """The command `pypto-op` of an environment has begun before a line of ours runs: it begins anew, and what ran is gone."""
    away, mark = planted.parent / "away", planted.parent / "mark"
    away.mkdir()
    told = f"import sys\nif {how != 'script'} or sys.flags.ignore_environment:\n    open({str(mark)!r}, 'a').write(__name__)\n"
    for name in ("sitecustomize", "decimal", "torch", "rich", "yaml", *(("json", "random") if how != "script" else ())):
        (away / f"{name}.py").write_text(told)
    launcher = ["sh", str(ROOT / "bin" / "pypto-op")]
    script = [str(Path(sys.executable).with_name("pypto-op"))]
    begin = {"module": own_python.running("pypto_op.cli"), "launcher": launcher, "script": script}[how]
    done = ended([*begin, "doctor", "--json"], planted, PYTHONPATH=str(away), PYPTO_OP_RESIDENT="0")
    assert done.stdout.startswith("{") and not mark.exists(), (done, mark.exists() and mark.read_text())


@pytest.mark.slow
def test_the_server_of_the_tools_does_not_either(planted: Path) -> None:
    done = ended(["sh", str(ROOT / "hooks" / "server.sh")], planted, PYTHONPATH="/opt:")
    assert done.returncode == 0 and not (planted.parent / "mark").exists(), done


@pytest.mark.slow
@pytest.mark.parametrize("how", ["launcher", "script"])
def test_a_named_folder_stands_in_the_way_of_nothing_in_the_server(planted: Path, how: str) -> None:
    """A harness may also start the file with a Python of its own; that one has begun when the file begins anew."""
    away, mark = planted.parent / "away", planted.parent / "mark"
    away.mkdir()
    told = f"import sys\nif {how != 'script'} or sys.flags.ignore_environment:\n    open({str(mark)!r}, 'a').write(__name__)\n"
    for name in ("decimal", "torch", "yaml", *(("json", "random", "pathlib") if how != "script" else ("sitecustomize",))):
        (away / f"{name}.py").write_text(told)
    command = {
        "launcher": ["sh", str(ROOT / "hooks" / "server.sh")],
        "script": [sys.executable, str(ROOT / "scripts" / "mcp_server.py")],
    }[how]
    done = ended(command, planted, PYTHONPATH=str(away))
    assert done.returncode == 0 and not mark.exists(), (done, mark.exists() and mark.read_text())


@pytest.mark.slow
def test_the_second_beginning_of_a_run_does_not_either(planted: Path, tmp_path: Path) -> None:
    pytest.importorskip("anthropic")
    pytest.importorskip("mcp")
    given = {
        "ANTHROPIC_API_KEY": KEY,
        "ANTHROPIC_BASE_URL": "http://127.0.0.1:1",
        "PYPTO_OP_KEY_FILE": str(tmp_path / "seal.key"),
    }
    command = own_python.running("pypto_op.cli", "run", "an operator", "--max-minutes", "0.02")
    done = ended(command, planted, **given, HOME=str(tmp_path))
    assert done.returncode in (1, 3) and not (tmp_path / "mark").exists(), done


@pytest.mark.slow
def test_no_command_line_of_ours_names_a_module_after_m() -> None:
    found = []
    for package in (ROOT / "scripts" / "pypto_op", ROOT / "lint" / "pypto_op_lint"):
        for path in package.rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            if not re.search("-m[\"']", text):  # to parse all of them takes two seconds
                continue
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, (ast.List, ast.Tuple)):
                    words = [one.value if isinstance(one, ast.Constant) else None for one in node.elts]
                    if "-m" in words[:-1]:
                        found.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    # The server of the hooks changes to a folder of its own first; a script is the user's code, which runs in his folder.
    assert sorted(one.partition(":")[0] for one in found) == [
        "lint/pypto_op_lint/client.py",
        "scripts/pypto_op/backends/commands.py",
    ], found


ENTRIES = {
    "the command": "sys.argv = ['pypto-op', '--version']; from pypto_op.cli import main; main()",
    "a script": "sys.argv = ['verify', '--help']; from pypto_op.triton.commands import run_script; run_script('verify')",
}
COUNTING = """
import atexit, gc, sys

def collections():
    return sum(one["collections"] for one in gc.get_stats())

def at_end():
    before, kept = collections(), [[] for _ in range(50_000)]
    print(gc.get_freeze_count() > 0, collections() - before)

atexit.register(at_end)  # what is registered first is called last
"""


@pytest.mark.parametrize("entry", sorted(ENTRIES))
def test_a_command_looks_seldom_for_garbage_among_what_it_loads(entry: str) -> None:
    """Python itself would look seventy times among so many lists, and once more at the end."""
    places = [str(ROOT / "scripts"), str(ROOT / "lint")]
    answer = program.python("-E", "-c", f"{COUNTING}sys.path[:0] = {places!r}\n{ENTRIES[entry]}")
    assert answer.stdout.splitlines()[-1] in ("True 0", "True 1"), answer.stderr
