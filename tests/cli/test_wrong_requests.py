"""A wrong path or request ends before torch is imported and before anything is started."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import click
import pytest
from tests import program
from tests.calling import command

from pypto_op import cli
from pypto_op.bundle import command_page

OPERATOR = str(Path(__file__).parents[2] / "examples" / "ops" / "rmsnorm")
PROBE = """
import os, sys
from pypto_op import cli
try:
    cli.main(sys.argv[1:])
except SystemExit as end:
    used = os.times()
    loaded = [name for name in ("torch", "pypto") if name in sys.modules]
    print("@", end.code, ",".join(loaded), sum(used[:4]))
"""
NOWHERE = "no/such/folder"
BEGUN = "custom/begun"
"""An operator of which SPEC.md alone is there."""


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["verify", NOWHERE], "no such operator directory"),
        (["harnes", "new", OPERATOR], "No such command 'harnes'. Did you mean 'harness'?"),
        (["precision-compare", OPERATOR], "Did you mean 'debug precision-compare'?"),
        (["verify", OPERATOR, "--modes", "gpu"], "'gpu' is no mode; use a subset of"),
        (["install", "--target", "."], "Missing option '--harness'"),
        (["verify", OPERATOR, "--case", "nosuch"], "no case matches"),
        (["verify", OPERATOR[:-1]], f"no such operator directory; did you mean {OPERATOR}?"),
        (["verify", OPERATOR, "--case", "L3_onetoken"], "it has 31: L3_one_token, "),
        (["verify", OPERATOR, "--case", "L2_a", "--case", "L2_b"], "--case is given 2 times and takes one value"),
        (["debug", "precision-compare", OPERATOR, "--case", "a", "--case", "b"], "--case is given 2 times"),
        (["state", "init", "--op-dir", ""], "--op-dir is empty"),
        (["state", "init", "--op-dir", NOWHERE, "--stage", "1", "--stage", "2"], "--stage is given 2 times"),
        (["verify", ""], "is empty"),
        (
            ["eval", "--runner", "replay", "--requests", ""],
            "--requests is empty: leave it out, or give it a value; see `pypto-op eval",
        ),
        (["mutate", OPERATOR, "--operators", " "], "--operators is empty"),
        (["new", "softmax", "--dtype", ""], "--dtype is empty"),
        (["verify", OPERATOR, "--seed", str(2**64)], "is not in the range 0<=x<=9223372036854775807"),
        (["mutate", OPERATOR, "--seed", str(2**64)], "is not in the range"),
        (["tune", OPERATOR, "--seed", str(2**32)], "is not in the range"),
        (["verify", OPERATOR, "--memory-mb", str(2**64)], "is not in the range 256<=x<=16777216"),
        (["perf", OPERATOR, "--leaf", "x"], "--leaf needs --left"),
        (["perf", OPERATOR, "--against", __file__], "--against needs --passes"),
        (["lint", ""], "is empty"),
        (["verify", OPERATOR, "--levels", "L9"], "L9"),
        (["verify", OPERATOR, "--modes", "gpu"], "gpu"),
        (["verify", OPERATOR, "--policy", "nosuch"], "there is no policy"),
        (["verify", OPERATOR, "--suite", "no.json"], "no such file; leave --suite out"),
        (["verify", OPERATOR, "--impl", "no.py"], "no such file"),
        (["verify", OPERATOR, "--up-to-module", "7"], "there is no M7"),
        (["verify", OPERATOR, "--self-test", "--case", "x"], "takes no --case"),
        (["verify", OPERATOR, "--compose", "--suite", "x.json"], "takes no --suite"),
        (["verify", OPERATOR, "--seed", "abc"], "'abc' is not a whole number"),
        (["verify", OPERATOR, "--timeout", "abc"], "'abc' is not a number"),
        (["mutate", NOWHERE], "no such operator directory"),
        (["mutate", OPERATOR, "--operators", "nosuch"], "no mutation operator"),
        (["mutate", OPERATOR, "--case", "nosuch"], "no case matches"),
        (["reproduce", NOWHERE, "--case", "x"], "no such operator directory"),
        (["reproduce", OPERATOR, "--case", "nosuch"], "no case matches"),
        (["benchmark", NOWHERE], "no such operator directory"),
        (["report", NOWHERE], "no such operator directory"),
        (["harness", "new", NOWHERE], "no such operator directory"),
        (["tests", "new", NOWHERE], "no such operator directory"),
        (["cleanup", NOWHERE], "no such operator directory"),
        (["check", NOWHERE], "no such operator directory"),
        (["interfaces", "check", NOWHERE], "no such operator directory"),
        (["interfaces", "new", NOWHERE], "no such operator directory"),
        (["memory", "check", NOWHERE], "no such operator directory"),
        (["script", "no.py"], "no.py"),
        (["state", "nosuch", "--op-dir", NOWHERE], "nosuch"),
        (["verify", __file__], "is no folder"),
        (["verify"], "see `pypto-op verify --help`"),
        (["verify", "--modes"], "--modes"),
        (["script", "-m"], "-m MODULE"),
        (["nosuch"], "see `pypto-op --help`"),
        (["lint", "no.py"], "no such file"),
        (["diagnose", "--log", "no.txt"], "no.txt"),
        (["design-params", "no.py"], "no.py"),
        (["memory", "nosuch"], "nosuch"),
        (["state", "status", "--op-dir", __file__], "is no folder"),
        (["new", "x", "--p0", "T=8", "--dynamic", "N"], "is in no P0 shape; name its size there: --p0 N=64"),
        (["eval", "--compare", "no.json"], "no.json: no such file; name the result.json of an earlier `pypto-op eval`"),
    ],
    ids=lambda value: " ".join(Path(word).name for word in value) if isinstance(value, list) else "",
)
def test_it_costs_nothing(words: list[str], told: str, tmp_path: Path) -> None:
    done = program.with_commands("-c", PROBE, *words, cwd=tmp_path)
    code, loaded, _ = done.stdout.splitlines()[-1].removeprefix("@ ").split(" ")
    assert (code, loaded) == ("2", ""), done.stdout + done.stderr
    assert told in done.stderr and "Traceback" not in done.stderr
    said = [line for line in done.stderr.splitlines() if " s so far" not in line]
    assert len(said) == 1 and said[0].startswith("pypto-op"), "one line: what is wrong, and what to do"
    assert not list(tmp_path.iterdir()), "nothing was written"


def test_a_command_of_any_group_is_named_with_its_group(monkeypatch: pytest.MonkeyPatch) -> None:
    group = click.Group("weather", commands=[click.Command("forecast")])
    monkeypatch.setitem(sys.modules, "weather", SimpleNamespace(group=group))
    monkeypatch.setitem(cli._COMMANDS, "weather", ("weather:group", "say what becomes of it"))
    assert "Did you mean 'weather forecast'?" in command("forecast").stderr


def _asked(words: list[str], folder: Path) -> tuple[str, str, str]:
    """Return exit code, which large packages were loaded, and standard error without the lines of progress."""
    done = program.with_commands("-c", PROBE, *words, cwd=folder)
    code, loaded, _ = done.stdout.splitlines()[-1].removeprefix("@ ").split(" ")
    return code, loaded, "\n".join(line for line in done.stderr.splitlines() if " s so far" not in line)


@pytest.mark.parametrize("group", sorted({words.rpartition(" ")[0] for words, _ in command_page.leaves(cli.root)}))
def test_in_every_group_a_slip_is_told_with_the_right_word(group: str) -> None:
    """Two letters of each command are swapped, in its middle or at its end."""
    names = [words.rpartition(" ")[2] for words, _ in command_page.leaves(cli.root) if words.rpartition(" ")[0] == group]
    for name in names:
        at = max(len(name) // 2 - 1, 0)
        slip = name[:at] + name[at + 1] + name[at] + name[at + 2 :]
        slip = slip if slip not in (name, *names) else name[:-1]
        done = command(*group.split(), slip)
        assert done.code == 2 and done.stderr.count("\n") == 1 and f"'{name}'" in done.stderr, (slip, done)


@pytest.mark.parametrize(
    "words",
    [
        ["verify", "OP"], ["mutate", "OP"], ["benchmark", "OP"], ["report", "OP"], ["harness", "new", "OP"],
        ["tests", "new", "OP"], ["reproduce", "OP", "--case", "x"], ["cleanup", "OP"], ["lint", "OP"], ["report", "--index", "."],
        ["check", "OP"], ["interfaces", "new", "OP"], ["memory", "check", "OP"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_a_folder_of_somebody_else_is_no_operator(words: list[str], tmp_path: Path) -> None:
    theme = tmp_path / "custom" / "theme"
    theme.mkdir(parents=True)
    for name in ("README.md", "x.css", "theme_impl.py"):
        (theme / name).write_text("x = 1\n", encoding="utf-8")
    before = sorted(tmp_path.rglob("*"))
    code, loaded, said = _asked(["custom/theme" if word == "OP" else word for word in words], tmp_path)
    assert (code, loaded) == ("2", ""), said
    assert "operator" in said and "\n" not in said
    assert sorted(tmp_path.rglob("*")) == before, "nothing was written"


@pytest.mark.parametrize("words", [["mutate"], ["benchmark"], ["harness", "new"], ["tests", "new"]], ids=" ".join)
@pytest.mark.slow
def test_an_operator_that_has_only_begun_is_told_the_next_step(words: list[str], tmp_path: Path) -> None:
    assert _asked(["new", "softmax", "--dtype", "float16", "--p0", "R=64,C=1024"], tmp_path)[0] == "0"
    code, loaded, said = _asked([*words, "custom/softmax"], tmp_path)
    assert (code, loaded) == ("2", "") and "\n" not in said
    assert "fill in custom/softmax/SPEC.md, then run `pypto-op check custom/softmax`" in said


def _begun(folder: Path) -> None:
    (folder / BEGUN).mkdir(parents=True)
    shutil.copy(Path(OPERATOR) / "SPEC.md", folder / BEGUN)


@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        (["interfaces", "check"], f"run `pypto-op interfaces new {BEGUN}`"),
        (["interfaces", "new"], f"write the formula into {BEGUN}/begun_golden.py, then run `pypto-op check {BEGUN}`"),
        (["cleanup"], f"write the formula into {BEGUN}/begun_golden.py, then run `pypto-op check {BEGUN}`"),
        (["memory", "check"], "name an operator that was made by `pypto-op new`"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_a_document_that_is_not_there_is_told_with_the_command_that_makes_it(
    words: list[str], remedy: str, tmp_path: Path
) -> None:
    _begun(tmp_path)
    code, _, said = _asked([*words, BEGUN], tmp_path)
    assert code == "2" and said.endswith(f"no such file; {remedy}") and "\n" not in said


@pytest.mark.parametrize(
    ("package", "words"),
    [
        ("libcst", ["lint", OPERATOR]),
        ("markdown_it", ["check", OPERATOR]),
        ("psutil", ["doctor"]),
        ("referencing", ["check", OPERATOR]),  # of jsonschema: no dependency of ours says its name
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_package_that_is_missing_is_named_with_the_command_that_installs_it(
    package: str, words: list[str], tmp_path: Path
) -> None:
    without = f"import sys; sys.modules[{package!r}] = None"
    done = program.python("-c", f"{without}{PROBE}", *words, cwd=tmp_path)
    said = [line for line in done.stderr.splitlines() if " s so far" not in line]
    assert done.stdout.splitlines()[-1].startswith("@ 3 "), done.stdout + done.stderr
    assert len(said) == 1 and said[0].startswith(f"pypto-op: {package}"), said
    assert " is not installed here; run `make setup`" in said[0]


def test_without_click_the_command_says_so_in_one_line(tmp_path: Path) -> None:
    run = "import runpy, sys; sys.modules['click'] = None; runpy.run_module('pypto_op.cli', run_name='__main__')"
    done = program.python("-c", run, cwd=tmp_path)
    assert done.returncode == 3 and done.stdout == ""
    assert done.stderr.startswith("pypto-op: click is not installed here; run `") and done.stderr.count("\n") == 1


def test_the_file_of_the_static_check_is_no_tolerance(tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text("launches: {in_loops: allow}\n", encoding="utf-8")
    for name in ("verify", "benchmark"):
        done = command("triton", name, "--op_name", "x", "--verify_dir", tmp_path, "--policy", tmp_path / "policy.yaml")
        assert done.code == 2 and "--static_policy" in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.parametrize("words", [["interfaces", "check"], ["benchmark"], ["harness", "new"], ["mutate"]], ids=" ".join)
def test_a_printed_command_can_be_typed_where_a_folder_has_a_space(words: list[str], tmp_path: Path) -> None:
    _begun(tmp_path / "my work")
    folder = tmp_path / "my work" / BEGUN
    (folder / "begun_impl.py").write_text("import pypto\n", encoding="utf-8")
    said = command(*words, folder).stderr
    assert f"{shlex.quote(str(folder))}" in said, said


def test_the_triton_judge_looks_at_its_folder_first(tmp_path: Path) -> None:
    code, loaded, said = _asked(["triton", "verify", "--op_name", "x", "--verify_dir", NOWHERE], tmp_path)
    assert (code, loaded) == ("1", ""), "its exit codes are 0 and 1"
    assert NOWHERE in said and "\n" not in said


@pytest.mark.slow
def test_a_file_where_a_folder_belongs_is_named_with_a_remedy(tmp_path: Path) -> None:
    folder = tmp_path / "custom" / "rmsnorm"
    shutil.copytree(OPERATOR, folder, ignore=shutil.ignore_patterns("_debug"))
    (folder / "_debug").write_text("no folder", encoding="utf-8")

    done = command("perf", folder)

    assert done.code == 3
    last = done.stderr.strip().splitlines()[-1]
    assert str(folder / "_debug") in last and "a part of this path is a file" in last and "internal error" not in done.stderr


@pytest.mark.parametrize(
    "words",
    [["diagnose", "--log"], ["report", "--index"], ["doctor", "--target"], ["triage", OPERATOR, "--log"]],
    ids=lambda words: words[0],
)
def test_links_that_lead_back_to_themselves_are_one_line(tmp_path: Path, words: list[str]) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    run = command(*words, loop)
    said = [line for line in run.stderr.strip().splitlines() if " s so far" not in line]
    assert run.code in (2, 3) and len(said) == 1 and str(loop) in said[0] and "internal error" not in said[0], (run.code, said)


def test_an_earlier_kernel_that_is_no_text_is_refused_before_anything_is_timed(tmp_path: Path) -> None:
    base = tmp_path / "earlier.py"
    base.write_bytes(b"x = '\xff'\n")
    run = command("regress", OPERATOR, "--base", base)
    assert run.code == 2 and "earlier.py: byte 5: not UTF-8; save it as UTF-8" in run.stderr and "seconds" not in run.stdout


@pytest.mark.parametrize("words", [["api", "matmul"], ["lint", "--explain", "all"], ["--help"]], ids=" ".join)
def test_a_full_standard_output_is_one_line_and_no_success(words: list[str]) -> None:
    with open("/dev/full", "w", encoding="utf-8") as full:  # noqa: PTH123
        done = subprocess.run(
            [sys.executable, "-m", "pypto_op.cli", *words], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    said = [line for line in done.stderr.splitlines() if " s so far" not in line]
    assert done.returncode == 3 and said == ["pypto-op: standard output: No space left on device; make room on its disk"]


def test_a_folder_that_cannot_be_copied_is_told_with_its_first_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`shutil` collects the errors of the files, and keeps of each its words alone."""
    for name in ("from", "to"):
        (tmp_path / name).mkdir()
    (tmp_path / "from" / "a.txt").write_text("text\n", encoding="utf-8")
    (tmp_path / "to" / "a.txt").symlink_to("/dev/full")
    monkeypatch.setattr(cli.root, "main", lambda **_: shutil.copytree(tmp_path / "from", tmp_path / "to", dirs_exist_ok=True))
    done = command("report")
    assert (done.code, done.stderr) == (3, f"pypto-op: {tmp_path}/to/a.txt: No space left on device; make room on its disk\n")


@pytest.mark.parametrize("words", [["lint", "--explain", "all"], ["verify", BEGUN, "--modes", "sim"]], ids=lambda words: words[0])
def test_a_reader_that_leaves_is_one_line_and_no_verdict(words: list[str], tmp_path: Path) -> None:
    _begun(tmp_path)
    child = subprocess.Popen(
        [sys.executable, "-m", "pypto_op.cli", *words],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None and child.stderr is not None
    child.stdout.close()
    said = [line for line in child.stderr.read().splitlines() if " s so far" not in line]
    assert child.wait() == 3 and len(said) == 1 and said[0].startswith("pypto-op: standard output: Broken pipe; "), said
