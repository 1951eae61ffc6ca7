"""What a coder's shell reads from a list: either the hook refuses it, or no golden comes out."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.hooks.conftest import Harness

CODER = "pypto-op-coder"
MARK = "MARK_OF_THE_GOLDEN"
PRINTERS = [
    "git ls-files | grep golden", "find . -name '*golden*'", "ls custom/soft/modules/*golden*",
    "echo custom/soft/modules/*g*", "printf '%s\\n' custom/soft/modules/*g*", "grep -rl torch custom",
    "compgen -G 'custom/soft/modules/*'", "stat -c %n custom/soft/modules/*", "du -a custom | cut -f2",
    "cat custom/soft/_debug/list", "head -1 < custom/soft/_debug/list", "git grep -l torch",
    "md5sum custom/soft/modules/* | awk '{print $2}'", "ls custom/soft/*/*.py | sort -r",
    "echo custom/soft/modules/soft_module1_impl.py | sed s/impl/golden/",
    "python3 -c \"import glob; print(*glob.glob('custom/soft/modules/*'))\"",
]  # fmt: skip
READERS = [
    "cat $({})", "({}) | xargs cat", "({}) | while read f; do cat $f; done", "for f in $({}); do cat $f; done",
    "x=$({}); cat $x", "mapfile -t a < <({}); cat \"${{a[@]}}\"", "({}) | xargs -I% cat %",
    "({}) > custom/soft/_debug/l; xargs cat < custom/soft/_debug/l", "set -- $({}); cat $1 $2 $3",
    "f() {{ cat $1 $2 $3; }}; f $({})", "read f <<< \"$({})\"; cat $f", "a=($({})); cat ${{a[0]}} ${{a[1]}}",
    "export X=\"$({})\"; sh -c 'cat $X'", "({}) | sed 's/^/cat /' | sh", "cat < $({} | tail -1)",
    "cd $(dirname $({} | tail -1)); cat *", "find $({}) -exec cat {{}} +", "printf -v f %s $({} | tail -1); cat $f",
    "eval cat $({})", "ls $({}) | xargs -n 1 cat",
]  # fmt: skip
FREE = ["ls -l $({})", "md5sum $({})", "({}) | wc -l", "for f in $({}); do echo $f; done", 'x=$({}); test -n "$x"']


@pytest.fixture(scope="module")
def marked(shared: Harness) -> Harness:
    golden = shared.workspace / "custom/soft/modules/soft_module1_golden.py"
    golden.write_text(f"import torch  # {MARK}\n")
    (shared.workspace / "custom/soft/_debug/list").write_text("custom/soft/modules/soft_module1_golden.py\n")
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@t", "-C", str(shared.workspace)]
    subprocess.run([*git, "commit", "-qam", "mark"], check=True)
    return shared


def _printed(command: str, workspace: Path) -> str:
    ran = subprocess.run(["bash", "-c", command], cwd=workspace, capture_output=True, timeout=60, check=False, text=True)
    return ran.stdout


@pytest.mark.slow
@settings(max_examples=30, suppress_health_check=list(HealthCheck))
@given(printer=st.sampled_from(PRINTERS), reader=st.sampled_from(READERS))
def test_no_list_brings_a_golden(marked: Harness, printer: str, reader: str) -> None:
    command = reader.format(printer)
    if not marked.before("Bash", CODER, command=command).denied:
        assert MARK not in _printed(command, marked.workspace), command
    assert marked.before("Bash", command=command).out == "", "nobody else is refused a list"


@pytest.mark.parametrize("reader", FREE)
def test_a_list_of_names_alone_is_free(marked: Harness, reader: str) -> None:
    assert marked.before("Bash", CODER, command=reader.format("git ls-files")).out == ""


def test_such_a_reader_would_bring_the_golden(marked: Harness) -> None:
    assert MARK in _printed(READERS[0].format(PRINTERS[0]), marked.workspace)
