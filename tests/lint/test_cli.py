"""`pypto-op lint`, run as a user runs it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from linting import lay_out, operator_at
from tests import calling, program
from tests.telling import told_lines

from pypto_op.documents.reading import parse_yaml
from pypto_op.vocabulary import LintEvent, Severity
from pypto_op_lint import registry
from pypto_op_lint.examples import impl
from pypto_op_lint.findings import FAIL, Finding, LintResult
from pypto_op_lint.reporters import as_github
from pypto_op_lint.rule import Valid

EXAMPLES = Path(__file__).parents[2] / "examples" / "ops"
BAD = impl().replace("pypto.exp(tile)", "pypto.silu(tile)")


def run(*arguments: object, cwd: Path | None = None) -> calling.Answer:
    """Run the command in this process, from the folder `cwd`."""
    with pytest.MonkeyPatch.context() as patch:
        if cwd is not None:
            patch.chdir(cwd)
        return calling.command("lint", *arguments)


@pytest.fixture
def good(tmp_path: Path) -> Path:
    return lay_out(tmp_path, Valid(impl()))


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    return lay_out(tmp_path, Valid(BAD))


def test_a_clean_file_exits_0(good: Path) -> None:
    done = program.python("-m", "pypto_op.cli", "lint", good)
    assert (done.returncode, told_lines(done.stderr)) == (0, [])
    assert done.stdout.startswith("clean: ")
    again = run(good)
    assert (again.code, again.stdout) == (0, done.stdout)


def test_a_blocking_finding_exits_2_and_says_where_and_what_to_do(bad: Path) -> None:
    done = run(bad)
    line = BAD.split("\n").index(next(text for text in BAD.split("\n") if "silu" in text)) + 1
    assert done.code == 2
    assert f"custom/demo/demo_impl.py:{line}:" in done.stdout
    assert "[OL55][S0] FAIL" in done.stdout
    assert "fix: " in done.stdout


def test_a_warning_alone_exits_0(tmp_path: Path) -> None:
    path = lay_out(tmp_path, Valid(impl().replace("import torch_npu\n", "")))
    done = run(path)
    assert done.code == 0
    assert "[PX09][S2] WARN" in done.stdout


def test_json_has_the_agreed_keys(bad: Path) -> None:
    for flag in (["--json"], ["--format", "json"]):
        done = run(bad, *flag)
        data = json.loads(done.stdout)
        assert done.code == 2
        (finding,) = data["findings"]
        assert set(finding) == {"rule_id", "severity", "status", "file", "line", "column", "message", "fix_hint"}
        assert (finding["rule_id"], finding["severity"], finding["status"]) == ("OL55", "S0", "FAIL")
        assert data["summary"]["blocks"] is True


def test_sarif_points_at_the_place(bad: Path) -> None:
    done = run(bad, "--format", "sarif")
    (sarif,) = json.loads(done.stdout)["runs"]
    (result,) = sarif["results"]
    place = result["locations"][0]["physicalLocation"]
    assert result["ruleId"] == "OL55"
    assert result["level"] == "error"
    assert place["artifactLocation"]["uri"] == "custom/demo/demo_impl.py"
    assert place["region"]["startLine"] > 1
    assert sarif["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == "OL55"


def test_only_the_named_rules_run(bad: Path) -> None:
    assert run(bad, "--rules", "OL01,OL48").code == 0
    assert run(bad, "--rules", "ol55").code == 2
    unknown = run(bad, "--rules", "OL01,OL99")
    assert unknown.code == 2
    assert "OL99" in unknown.stderr
    assert unknown.stderr.count("\n") == 1


def test_an_operator_is_linted_as_its_gate_does(tmp_path: Path) -> None:
    root = operator_at(tmp_path).root
    lay_out(tmp_path, Valid(BAD))
    done = run("--op-dir", root, "--event", "submit-for-verify", "--phase", "M1", "--stage", "5", "--rules", "OL55", "--json")
    assert done.code == 2
    assert json.loads(done.stdout)["summary"]["event"] == "submit-for-verify"
    assert run("--op-dir", root, "--event", "complete-stage", "--stage", "1", "--rules", "OL55").code == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "nothing to lint"),
        (["nowhere_impl.py"], "no such file"),
        (["--op-dir", "nowhere"], "no such file"),
        (["--op-dir", ".", "--event", "submit-for-verify", "--phase", "M0"], "not a phase"),
        (["--op-dir", ".", "--event", "sometimes"], "sometimes"),
        (["--op-dir", ".", "--stage", "9"], "9"),
    ],
)
def test_wrong_arguments_are_told_without_a_traceback(arguments: list[str], words: str, tmp_path: Path) -> None:
    done = run(*arguments, cwd=operator_at(tmp_path).root)
    assert done.code == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_fix_repairs_what_is_safe_and_keeps_line_ends(tmp_path: Path) -> None:
    path = lay_out(tmp_path, Valid(impl()))
    text = "\ufefffrom __future__ import annotations\n" + impl().replace("DT_FP32),\n):", "DT_FP32),\n) -> None:")
    path.write_bytes(text.replace("\n", "\r\n").encode())
    path.chmod(0o640)
    assert run(path).code == 2
    done = run(path, "--fix")
    assert done.code == 0
    assert "2 repaired" in done.stderr
    assert path.read_bytes() == ("\ufeff" + impl()).replace("\n", "\r\n").encode()
    assert path.stat().st_mode & 0o777 == 0o640
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_fix_leaves_what_it_cannot_repair(bad: Path) -> None:
    assert run(bad, "--fix").code == 2
    assert bad.read_text(encoding="utf-8") == BAD


def test_fix_reaches_every_file_of_an_operator(tmp_path: Path) -> None:
    path = lay_out(tmp_path, Valid("from __future__ import annotations\n" + impl()))
    done = run("--op-dir", path.parent, "--event", "on-write", "--rules", "PX03", "--fix")
    assert done.code == 0
    assert path.read_text(encoding="utf-8") == impl()


def test_every_rule_explains_itself() -> None:
    done = run("--explain", "ol48")
    assert done.code == 0
    for words in ("# OL48 known-tile (S0, blocks)", "## Why", "## Use instead", "Runs: on-write"):
        assert words in done.stdout
    listing = run("--explain", "all").stdout
    assert [line.split()[0] for line in listing.splitlines()] == list(registry.all_rules())
    assert run("--explain", "OL27").code == 2


@pytest.mark.parametrize("value", [5, True, [5], {"a": 5}], ids=str)
def test_values_of_a_wrong_type_in_documents_are_no_error_of_the_linter(value: object, tmp_path: Path) -> None:
    place = tmp_path / "custom" / "rmsnorm"
    shutil.copytree(EXAMPLES / "rmsnorm", place, ignore=shutil.ignore_patterns("*_golden.py"))  # to import it takes a second
    for name in ("adversarial_suite.json", "module_interfaces.yaml"):
        file = place / "eval" / name
        file.write_text(json.dumps(dict.fromkeys(parse_yaml(file.read_text()), value)))
    done = run(place)
    assert done.code in (0, 2) and "internal error" not in done.stderr


def test_an_error_of_the_linter_itself_is_exit_1_and_one_line(
    good: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from pypto_op import cli
    from pypto_op_lint import engine

    def fails(*_: object) -> None:
        raise RuntimeError("the engine\nbroke")

    monkeypatch.setattr(engine, "lint_units", fails)
    with pytest.raises(SystemExit) as caught:
        cli.main(["lint", str(good)])
    assert caught.value.code == 1
    assert capsys.readouterr().err == "pypto-op lint: internal error: RuntimeError: the engine broke\n"


@pytest.mark.parametrize("form", ["github", "sarif"])
def test_code_hosts_are_told_the_place_in_the_folder_that_ci_runs_in(tmp_path: Path, form: str) -> None:
    path = lay_out(tmp_path / "kernels", Valid(BAD))
    done = run(path.relative_to(tmp_path), "--format", form, cwd=tmp_path)
    assert done.code == 2
    assert "kernels/custom/demo/demo_impl.py" in done.stdout
    assert str(tmp_path) not in done.stdout


def test_a_github_annotation_is_one_line_whatever_the_finding_says() -> None:
    finding = Finding("OL00", Severity.S1, FAIL, "custom/a,b:c/x.py", 3, None, "50 % of\r\nit: a, b", "mend::it")
    result = LintResult(LintEvent.ON_WRITE, [finding], notes=["one\ntwo"])
    first, note, last = as_github(result).split("\n")
    assert first == ("::error file=custom/a%2Cb%3Ac/x.py,line=3,title=OL00 S1 FAIL::50 %25 of%0D%0Ait: a, b%0Afix: mend::it")
    assert note == "::notice::one%0Atwo"
    assert last.startswith("blocked: 1 fail")
