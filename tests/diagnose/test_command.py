"""`pypto-op diagnose` as it is called: exit codes, JSON, bad input, and no guess without evidence."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.quickly import examples

from pypto_op import cli
from pypto_op.diagnose.commands import diagnose as command
from pypto_op.diagnose.log_stream import WHOLE_BYTES
from pypto_op.diagnose.log_text import parse_log
from pypto_op.diagnose.search import diagnose
from pypto_op.documents import schema
from pypto_op.errors import ContractError

NO_TILE = """\x1b[1m\x1b[91mERROR\x1b[0m \x1b[1m/w/custom/soft/soft_impl.py:7:13:\x1b[0m RuntimeError: Errcode: F21004!
op [EXP]tile shape not set, func Operation, file operation.cpp, line 184
 6 | def kernel(x, out):
\x1b[91m 7 |\x1b[0m     out[:] = pypto.exp(x)
"""
AFTERMATH = """INTERNAL BUG /w/soft_impl.py:1:0: Errcode: F21004!
op [CAST]tile shape not set, func Operation, file operation.cpp, line 184
ERROR:root:Record function kernel failed: RuntimeError: Errcode: FC0000!
The dtype of input tensors are not same., func CheckBinaryInputTensors, file binary.cpp, line 62
"""
CRASH = (
    "crashed: soft_impl.py:13: killed by SIGSEGV (segmentation fault) in the wrapper\nFatal Python error: Segmentation fault\n"
)
GOOD_RUN = "[INFO ] PYPTO(2):2026-11-21 06:38:47.206 [flow_verifier.cpp:62][VERIFY]:tensor_graph Verify NO_COMPARE\nPASS\n"


@pytest.fixture
def call(tmp_path):
    """Return a function that writes a log (and a kernel) and runs the command on it."""

    def run(text, *words, kernel=None, name="run.log"):
        log = tmp_path / name
        log.write_bytes(text.encode() if isinstance(text, str) else text)
        if kernel is not None:
            (tmp_path / "scratch.py").write_text(kernel)
            words = ("--kernel", str(tmp_path / "scratch.py"), *words)
        return CliRunner().invoke(command, ["--log", str(log), *words], standalone_mode=False)

    return run


def test_a_hit_names_place_cause_and_remedy(call):
    done = call(NO_TILE)
    assert done.return_value == 0
    assert "soft_impl.py:7: a vector operation has no tile shape [no-vector-tile]" in done.output
    for word in ("out[:] = pypto.exp(x)", "F21004", "cause", "set_vec_tile_shapes", "OL04", "skill  pypto-general-debug"):
        assert word in done.output


def test_json_answers_keep_to_the_schema(call):
    for text, code, first in [(NO_TILE, 0, "no-vector-tile"), (GOOD_RUN, 3, None), (CRASH, 0, "host-segfault"), ("", 3, None)]:
        done = call(text, "--json")
        answer = json.loads(done.stdout)
        schema.check(answer, "diagnosis")
        assert done.return_value == code and [hit["id"] for hit in answer["hits"]][:1] == ([first] if first else [])


def test_the_first_error_counts_and_not_its_aftermath(call):
    hits = json.loads(call(AFTERMATH, "--json").stdout)["hits"]
    assert [hit["id"] for hit in hits] == ["dtype-mix"]


def test_a_crash_alone_names_its_kind_and_says_what_would_decide(call):
    done = call(CRASH)
    assert done.return_value == 0
    assert "[host-segfault]" in done.output and "--kernel" in done.stderr and "python-max" in done.stderr
    innocent = "def soft_wrapper(x):\n    return x\n"
    assert "[python-max]" not in call(CRASH, kernel=innocent).output
    guilty = "import pypto\n\n\n@pypto.frontend.jit\ndef kernel(x: pypto.Tensor([4, 8], pypto.DT_FP32)):\n    y = max(x, x)\n"
    done = call(CRASH, kernel=guilty)
    assert done.return_value == 0
    assert "scratch.py:6" in done.output.splitlines()[0] and "[python-max]" in done.output.splitlines()[0]


def test_a_report_is_read_as_a_log(call):
    report = {"status": "ERROR", "stdout": NO_TILE, "checks": [{"summary": "the wrapper raised"}]}
    assert call(json.dumps(report), name="evaluation_report.json").return_value == 0


@pytest.mark.slow
def test_of_a_long_log_begin_middle_and_end_are_read(call):
    filler = b"working\n" * (WHOLE_BYTES // 8 + 1000)
    for log in (NO_TILE.encode() + filler, filler + NO_TILE.encode(), filler + NO_TILE.encode() + filler):
        done = call(log)
        assert done.return_value == 0 and "[no-vector-tile]" in done.output
    assert call(filler).return_value == 3


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["diagnose", "--log", "nowhere.log"], "nowhere.log: cannot be read"),
        (["diagnose", "empty"], "there is no log in this folder"),
        (["diagnose"], "say once what is to be diagnosed"),
        (["diagnose", "here.log", "--log", "here.log"], "say once what is to be diagnosed"),
        (["diagnose", "--show", "no-vektor-tile"], "nearest: no-vector-tile"),
        (["diagnose", "--log", "here.log", "--kernel", "nowhere.py"], "nowhere.py"),
    ],
)
def test_a_wrong_call_ends_in_one_line_and_exit_code_2(words, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here.log").write_text("x")
    (tmp_path / "empty").mkdir()
    with pytest.raises(SystemExit) as ended:
        cli.main(words)
    err = capsys.readouterr().err
    assert ended.value.code == 2 and said in err and err.count("\n") == 1


def test_an_entry_is_shown_with_its_example():
    shown = CliRunner().invoke(command, ["--show", "python-max"]).output
    assert "# the mistake" in shown and "max(0.0, x)" in shown and "pypto.maximum(x, 0.0)" in shown


def test_the_log_may_come_on_standard_input():
    done = CliRunner().invoke(command, ["--log", "-"], input=NO_TILE, standalone_mode=False)
    assert done.return_value == 0


# In short pieces: a whole text might be a word of our own sources, which hypothesis tries, too, and SIGBUS or OL04 is evidence.
WORDS = st.lists(st.text(max_size=3), max_size=12).map("".join)


@pytest.mark.slow
@settings(max_examples=examples(100))
@given(WORDS | st.builds(lambda a, b: a + CRASH + b, WORDS, WORDS))
def test_no_log_breaks_the_search(text):
    found = diagnose(parse_log(text))
    schema.check(found.as_dict(), "diagnosis")
    assert {hit.entry.id for hit in found.hits} <= {"host-segfault"}, "random words are no evidence"


@pytest.mark.parametrize(
    "file", ["soft_golden.py", "modules/soft_module1_golden.py", "modules/test_soft_module1.py", "_debug/link.py"]
)
@pytest.mark.parametrize("option", ["--kernel", "--log"])
def test_no_line_of_the_judges_files_is_quoted(file, option, tmp_path, capsys):
    op = tmp_path / "custom" / "soft"
    for folder in ("modules", "_debug"):
        (op / folder).mkdir(parents=True)
    for name in ("soft_golden.py", "modules/soft_module1_golden.py", "modules/test_soft_module1.py"):
        (op / name).write_text("CANARY = 1\n" * 9)
    (op / "_debug" / "link.py").symlink_to(op / "modules" / "soft_module1_golden.py")
    log = tmp_path / "run.log"
    log.write_text(NO_TILE.split(" 6 |", maxsplit=1)[0])
    words = [*(["--log", str(log)] if option == "--kernel" else []), option, str(op / file)]
    with pytest.raises(SystemExit) as ended:
        cli.main(["diagnose", *words])
    said = capsys.readouterr()
    assert ended.value.code == 2 and "the judge's" in said.err and "CANARY" not in said.out + said.err


@pytest.mark.parametrize("name", ["nosuchfolder", "soft-max", "NoSuchFolder", "./nosuchfolder", "SIGILL"])
def test_a_name_that_is_nowhere_is_a_wrong_call(name):
    done = CliRunner().invoke(cli.root, ["diagnose", name], standalone_mode=False)
    assert isinstance(done.exception, ContractError) and done.exception.exit_code == 2
    assert str(done.exception).startswith(f"{name.removeprefix('./')}: ") and "\n" not in str(done.exception)


@pytest.mark.parametrize("text", ["507999", "EZ9998", "-8021", "error 12", "Segmentation fault", "507015"])
def test_a_code_or_an_errors_words_are_a_text(text):
    done = CliRunner().invoke(cli.root, ["diagnose", "--log", text], standalone_mode=False)
    assert done.exception is None and done.return_value in (0, 3)


@pytest.mark.parametrize(
    ("words", "entry"),
    [
        ("signal handlers: SIGILL, SIGTERM, SIGUSR1", None),
        ("enum { SIGHUP = 1, SIGILL = 4 }", None),
        ("Fatal Python error: Illegal instruction", "host-illegal-instruction"),
        ("subprocess.CalledProcessError: Command 'x' died with <Signals.SIGILL: 4>.", "host-illegal-instruction"),
        ("Program received signal SIGILL, Illegal instruction.", "host-illegal-instruction"),
        ("bash: line 1: 4711 Illegal instruction     (core dumped) python x.py", "host-illegal-instruction"),
        ("run.sh: line 3: 4711 Bus error (core dumped) python x.py", "host-bus-error"),
        ("Fatal Python error: Bus error", "host-bus-error"),
    ],
)
def test_a_signals_name_alone_is_no_crash(words, entry):
    found = diagnose(parse_log(f"step 1 of 2\n{words}\nstep 2 of 2\n"))
    assert [hit.entry.id for hit in found.hits[:1]] == ([entry] if entry else [])
