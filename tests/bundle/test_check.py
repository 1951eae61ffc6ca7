"""`pypto-op bundle check`: the bundle is clean, and each kind of dangling reference is found where it stands."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from pypto_op import cli
from pypto_op.bundle import budgets, command_page, made, role_table, way_table
from pypto_op.bundle.agents import load_agents
from pypto_op.bundle.budgets import tokens
from pypto_op.bundle.check import check, check_text
from pypto_op.bundle.checks import command_lines
from pypto_op.bundle.checks.agents import check as check_team
from pypto_op.bundle.checks.names import Known
from pypto_op.bundle.checks.skills import check as check_skill
from pypto_op.bundle.checks.skills import read_skills
from pypto_op.bundle.commands import bundle as command
from pypto_op.bundle.texts import Text
from pypto_op.bundle_files import bundle_root
from pypto_op.vocabulary import Role
from pypto_op_lint import reference

PAGE = "skills/pypto-op-plan/SKILL.md"


def test_the_bundle_is_clean():
    assert [finding.one_line() for finding in check(bundle_root())] == []


@pytest.fixture(scope="module")
def original(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("bundle") / "copy"
    for folder in (".agents", "skills", ".claude-plugin", "docs", "examples", "lint/pypto_op_lint/guard"):
        shutil.copytree(
            bundle_root() / folder, root / folder, symlinks=True, ignore=shutil.ignore_patterns("__pycache__", "_debug")
        )
    shutil.copytree(bundle_root() / "scripts", root / "scripts", ignore=shutil.ignore_patterns("pypto_op", "__pycache__"))
    return root


@pytest.fixture
def copy(original, tmp_path) -> Path:
    """A bundle of its own to break."""
    root = tmp_path / "bundle"
    shutil.copytree(original, root, symlinks=True)
    return root


@pytest.fixture(scope="module")
def known() -> Known:
    return Known(bundle_root())


def added(known: Known, text: str) -> list[str]:
    """Return what is found in a page of a skill once `text` is added to it."""
    path = known.root / PAGE
    lines = path.read_text().rstrip().split("\n")
    whole = Text(path, known.root, "\n".join([*lines, "", *text.split("\n"), ""]))
    fresh = [finding for finding in check_text(whole, known) if finding.line > len(lines)]
    assert all(finding.file == PAGE for finding in fresh)
    return [finding.problem for finding in fresh]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Rule OL27 forbids it.", "there is no rule OL27"),
        ("Rule PX77.", "there is no rule PX77"),
        ("Ask pypto-op-tester.", "pypto-op-tester is neither an agent nor a skill"),
        ("Load skill `pypto-op-magic`.", "pypto-op-magic is neither an agent nor a skill"),
        ("Call `mcp__plugin_pypto-op_pypto-op__fix_it`.", "the MCP server has no tool fix_it"),
        ('Call `state_transition(action="finish", op_dir="x")`.', "the state machine has no action finish"),
        ("Run `pypto-op state finish --op-dir custom/x`.", "the state machine has no action finish"),
        ("Run `pypto-op judge custom/x`.", "`pypto-op` has no command 'judge'"),
        ("Run `pypto-op verify custom/x --quickly`.", "`pypto-op verify` has no option --quickly"),
        ("Run `pypto-op memory erase`.", "`pypto-op memory` has no command 'erase'"),
        ("```console\n$ pypto-op verify custom/x --quickly\n```", "`pypto-op verify` has no option --quickly"),
        ("Run `python -m pypto_op.nothing`.", "there is no module pypto_op.nothing"),
        ("Read `references/nowhere.md`.", "nothing lies at references/nowhere.md"),
        ("Read `recipes/`.", "nothing lies at recipes/"),
        ("Write `eval/answers.json`.", "nothing lies at eval/answers.json"),
        ("See [there](references/nowhere.md).", "the link leads nowhere"),
        ("See [there](#no-such-heading).", "no heading for #no-such-heading"),
        ("See skill `pypto-general-debug`, `references/DEBUG_GUIDEBOOK.md` §77.", "DEBUG_GUIDEBOOK.md has no section 77"),
        ("Look at DESIGN.md 9.9.", "the template of DESIGN.md has no section 9.9"),
        ("It lies in /home/somebody/pypto.", "names a path of one person's machine"),
        ("Use `pypto.gelu(x)`.", "has no pypto.gelu"),
        ("```python\ny = pypto.gelu(x)\n```", "has no pypto.gelu"),
        ("```python\nif x\n```", "the Python does not parse"),
        ("```sh\nif true\n```", "the shell does not parse"),
        ("```json\n{,}\n```", "the block does not parse"),
        ("```yaml\na: [\n```", "the block does not parse"),
        ("```ruby\nputs 1\n```", "blocks of language 'ruby' are not checked"),
    ],
)
def test_a_dangling_reference_is_found(known, text, said):
    problems = added(known, text)
    assert any(said in problem for problem in problems), problems


@pytest.mark.parametrize(
    "text",
    [
        "Rules OL01 to OL62, PX01.",
        "pypto-op-coder, pypto-op-develop and the tag `[pypto-op-lint]`.",
        "Run `pypto-op verify custom/<op> --modes sim --levels L1,L2`, then `pypto-op lint FILE`.",
        "`pypto-op state status --op-dir custom/<op>`; `pypto-op api NAME`; `pypto-op --version`.",
        "Files: `SPEC.md`, `<op>_golden.py`, `modules/<op>_module12_impl.py`, `eval/module_interfaces.yaml`, `_debug/x.py`.",
        "`custom/<op>/eval/evaluation_report.json`, `modules/*_golden.py`, `merged_swimlane.json`",
        "skill `pypto-op-develop`: `references/traps.md`; DESIGN.md 3.2.5",
        "```python\nimport pypto\ny = pypto.exp(x)\n```",
        "```console\n$ pypto-op doctor\nwhatever it says\n```",
        "`pypto.DT_...`, `a/b of it`, `https://example.org/x.md`",
    ],
)
def test_what_resolves_is_left_alone(known, text):
    assert added(known, text) == []


@pytest.mark.slow
def test_forms_and_budgets_are_held(copy):
    def problems(name, change):
        path = copy / name
        kept = path.read_text()
        path.write_text(change(kept))
        agents, (skills, found) = load_agents(copy), read_skills(copy)
        found += [finding for skill in skills for finding in check_skill(skill, copy)]
        texts = [Text(a.path, copy, a.path.read_text()) for a in agents]
        found += check_team(agents, [skill.folder.name for skill in skills], texts, copy)
        found += [*budgets.check(agents, skills, copy), *made.check(copy, agents, skills)]
        path.write_text(kept)
        return "\n".join(finding.one_line() for finding in found)

    assert "is not that of the folder" in problems(PAGE, lambda t: t.replace("name: pypto-op-plan", "name: plan"))
    assert "lower-case words" in problems(PAGE, lambda t: t.replace("name: pypto-op-plan", "name: Pypto--Op"))
    assert "the standard has no key 'tools'" in problems(PAGE, lambda t: t.replace("name:", "tools: [Read]\nname:", 1))
    assert "the description has" in problems(PAGE, lambda t: t.replace("description:", f"description: {'word ' * 210}", 1))
    assert "lines; fewer than 500" in problems(PAGE, lambda t: t + "a\n" * 500)
    assert "tokens; fewer than 5000" in problems(PAGE, lambda t: t + "word " * 4000)
    coder = ".agents/pypto-op-coder.md"
    assert "fewer than 3000 are allowed" in problems(coder, lambda t: t + "word " * 2500)
    assert "fewer than 12000 are allowed" in problems(coder, lambda t: t + "word " * 9000)
    assert "docs/budgets.md: is out of date" in problems(coder, lambda t: t + "word " * 50)
    assert "there is no skill pypto-op-magic" in problems(coder, lambda t: t.replace("[pypto-op-develop]", "[pypto-op-magic]"))
    assert "which role.runs does not list" in problems(coder, lambda t: t + "\nRun `pypto-op state status`.\n")
    assert "there is no command fly" in problems(coder, lambda t: t.replace("runs: [", "runs: [fly, "))
    assert "guard/roles.yaml: is out of date; run `pypto-op bundle write`" in problems(
        coder, lambda t: t.replace('reads_denied: ["modules/*_golden.py"]', "reads_denied: []")
    )
    optimizer = ".agents/pypto-op-optimizer.md"
    assert "skills/pypto-op-perf-tune: no agent names it" in problems(
        optimizer, lambda t: t.replace("[pypto-op-perf-tune]", "[]")
    )
    returns = "skills/pypto-orchestration-manual/references/agents.md"
    assert "no row of pypto-op-coder" in problems(returns, lambda t: t.replace("| pypto-op-coder |", "| coder |"))
    plugin = ".claude-plugin/plugin.json"
    assert "plugin.json: is out of date" in problems(plugin, lambda t: t.replace('"./.agents/pypto-op-coder.md",', ""))
    assert "the package's is" in problems(plugin, lambda t: t.replace('"version": "', '"version": "9'))


@pytest.mark.slow
def test_all_descriptions_together_have_a_limit(copy):
    for path in (copy / "skills").glob("*/SKILL.md"):
        path.write_text(path.read_text().replace("description:", f"description: {'word ' * 150}", 1))
    assert any("all descriptions" in finding.problem for finding in check(copy))


@pytest.mark.slow
def test_a_missing_agent_and_a_skill_without_a_page_are_named(copy):
    (copy / ".agents/pypto-op-debugger.md").unlink()
    (copy / "skills/pypto-op-plan/SKILL.md").unlink()
    said = "\n".join(finding.one_line() for finding in check(copy))
    assert f"{Role.DEBUGGER} is missing" in said and "skills/pypto-op-plan: the skill has no SKILL.md" in said


def test_a_broken_agent_is_one_line_and_exit_code_2(copy, capsys):
    path = copy / ".agents/pypto-op-coder.md"
    path.write_text(path.read_text().replace("tools: [", "tools: [Rite, "))
    with pytest.raises(SystemExit) as ended:
        cli.main(["bundle", "check", "--root", str(copy)])
    assert ended.value.code == 2 and "tools[0]" in capsys.readouterr().err


@pytest.mark.slow
def test_the_command_says_so_in_json_and_with_its_exit_code(copy):
    (copy / PAGE).write_text((copy / PAGE).read_text() + "\nRule OL27.\n")
    done = CliRunner().invoke(command, ["check", "--root", str(copy), "--json"], standalone_mode=False)
    assert done.return_value == 1
    assert any(row["file"] == PAGE and "OL27" in row["problem"] and row["line"] for row in json.loads(done.stdout))
    with pytest.raises(SystemExit) as ended:
        cli.main(["bundle", "check", "--root", str(copy / "skills")])
    assert ended.value.code == 2


def test_the_generated_files_are_written_by_the_commands(copy):
    names = (
        role_table.TABLE,
        budgets.PAGE,
        command_page.PAGE,
        made.MANIFEST,
        way_table.LEADER,
        way_table.MANUAL,
        reference.PAGES / "OL48.md",
    )
    kept = {name: (copy / name).read_text() for name in names}
    (copy / budgets.PAGE).write_text("old")
    (copy / command_page.PAGE).unlink()
    (copy / reference.PAGES / "OL48.md").write_text("edited by hand")
    (copy / reference.PAGES / "OL99.md").write_text("a rule that is gone")
    for page in (way_table.LEADER, way_table.MANUAL):
        (copy / page).write_text(kept[page].replace("| 1 |", "| 7 |").replace("| 1 ", "| 8 "))
    table = kept[role_table.TABLE].replace("writes: ", "writes:  ").replace("runs: [", "runs: [fly, ")
    (copy / role_table.TABLE).write_text(table.replace("writers: [", "writers: [pypto-op-coder, "))
    (copy / made.MANIFEST).write_text(kept[made.MANIFEST].replace('"./.agents/pypto-op-coder.md",', ""))
    said = {found.file for found in made.check(copy, load_agents(copy), read_skills(copy)[0])}
    assert said == {name.as_posix() for name in (*names, reference.PAGES / "OL99.md")}
    done = CliRunner().invoke(command, ["write", "--root", str(copy)], standalone_mode=False)
    assert done.return_value == 0 and set(done.output.split()) == {str(copy / name) for name in names}
    assert {name: (copy / name).read_text() for name in names} == kept
    assert not (copy / reference.PAGES / "OL99.md").exists()


def test_every_flag_of_every_command_is_known_to_the_check():
    assert list(command_lines.problems(" verify custom/x --modes sim --json --help")) == []
    assert list(command_lines.problems(" verify custom/x --levels L1,L2")) == []
    assert "no number" in next(command_lines.problems(" verify custom/x --levels L1"))
    assert list(command_lines.problems(" interfaces new custom/x")) == []
    assert list(command_lines.problems(" NAME --json")) == [] or "has no" in next(command_lines.problems(" NAME --json"))


def test_tokens_are_never_counted_too_low_for_text_in_chinese():
    assert tokens("a" * 35) == 10 and tokens("门禁") >= 2


def test_blocks_and_spans_are_told_apart(tmp_path):
    text = Text(tmp_path / "x.md", tmp_path, "a `b` c\n```py\nd = `e`\n```\n~~~\n```\n~~~\n`f`\n")
    assert [piece.text for piece in text.spans] == ["b", "f"]
    assert [(block.language, block.text) for block in text.markdown.fences] == [("py", "d = `e`"), ("", "```")]
