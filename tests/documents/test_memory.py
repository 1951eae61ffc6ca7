"""MEMORY.md: status block, appending from many hands, and the append-only guard."""

import json
import subprocess
import sys
from datetime import datetime, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.quickly import examples

from pypto_op.documents import memory
from pypto_op.documents.append_only import violations
from pypto_op.documents.scaffold import Request, new_operator
from pypto_op.errors import ContractError

NOW = datetime(2026, 11, 21, 4, 0, tzinfo=timezone.utc)


@pytest.fixture
def path(tmp_path):
    ws = new_operator(Request("rmsnorm"), tmp_path)
    text = ws.memory.read_text()
    text = text.replace("decomposition_level: TODO", "decomposition_level: L1").replace("module_count: TODO", "module_count: 2")
    ws.memory.write_text(text.replace("TODO", "x"))
    return ws.memory


def test_a_filled_ledger_has_no_fault(path):
    assert memory.check(path) == []


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("module_count: 2", "module_count: two", "status.module_count: 'two' is not of type integer"),
        ("module_count: 2", "module_count: 2\nmodule_count: 1", "the key 'module_count' occurs twice"),
        ("module_count: 2", "module_count: 1", "status.decomposition_level: is L1 with module_count 1"),
        ("active_module: none", "active_module: M3", "status.active_module: is M3 of 2 module(s)"),
        ("correctness: not_started", "correctness: great", "status.correctness: 'great' is not one of"),
        ("## Agent status (minimal)", "## Something", "agent status is missing"),
        ("```yaml", "", "has no status block"),
        ("## API map", "## Agent status\n```yaml\na: 1\n```\n## API map", "more than one status section"),
        ("## Golden function inventory", "## Other", "golden function inventory is missing"),
        ("pypto_verified: []", "pypto_verified: [{id: M2, evidence: x, detailed_tensor_compare_ok: true}]", "not M1, M2"),
    ],
)  # fmt: skip
def test_faults_of_the_status_block(path, old, new, words):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    assert any(words in finding.one_line() for finding in memory.check(path))


def test_the_status_block_is_held_against_the_state(path):
    state = {"plan": {"module_count": 3}, "stage5_phases": {"active_phase": "M1"}}
    path.with_name(".orchestrator_state.json").write_text(json.dumps(state))
    lines = [finding.one_line() for finding in memory.check(path)]
    assert "status.module_count: is 2, the frozen plan has 3" in lines
    assert "status.active_module: is none, the state has M1" in lines


# -- appending ------------------------------------------------------------------------------------------------


def test_rows_go_below_the_last_one_and_the_time_is_filled_in(path):
    before = path.read_text()
    memory.append_row(path, "development", ["wrote M1", "ok", "verify"], now=NOW)
    memory.append_row(path, "Development & debug", ["a | b", "c", "d"], now=NOW)
    lines = path.read_text().split("\n")
    first = lines.index("| 2026-11-21 04:00:00 | wrote M1 | ok | verify |")
    assert lines[first + 1] == "| 2026-11-21 04:00:00 | a \\| b | c | d |"
    assert violations(before, path.read_text()) == []
    assert memory.check(path) == []


def test_text_goes_to_the_end_of_its_section(path):
    before = path.read_text()
    memory.append_text(path, "Task summary", "A second paragraph.\n\n### Detail\nmore")
    memory.append_text(path, "Experience Preflight", "- [ ] another trap")
    text = path.read_text()
    assert "x: operator, shapes, where the golden comes from.\n\nA second paragraph." in text
    assert "concerns this operator\n- [ ] another trap\n" in text
    assert violations(before, text) == [] and memory.check(path) == []


def test_a_new_section_goes_to_the_end(path):
    heading = memory.append_section(path, "Composition Rejection", "seed=3 differs", now=NOW)
    assert heading == "## Composition Rejection - 2026-11-21 04:00:00"
    assert path.read_text().endswith(f"{heading}\n\nseed=3 differs\n")


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda p: memory.append_row(p, "nowhere", ["a"]), "has no section 'nowhere'"),
        (lambda p: memory.append_row(p, "", ["a"]), "has no section ''"),
        (lambda p: memory.append_row(p, "Development", ["a"]), "1 cells for 4 columns"),
        (lambda p: memory.append_row(p, "Development", ["a\nb", "c", "d"]), "a cell is one line"),
        (lambda p: memory.append_row(p, "Task summary", ["a"]), "has no table"),
        (lambda p: memory.append_text(p, "Task summary", "## Agent status\n"), "no heading of level 1 or 2"),
        (lambda p: memory.append_text(p, "Task summary", "```\nopen"), "leaves a code fence or a comment open"),
        (lambda p: memory.append_text(p, "Task summary", "<!-- open"), "leaves a code fence or a comment open"),
        (lambda p: memory.append_text(p, "Task summary", " \n "), "1 to 20000 characters"),
        (lambda p: memory.append_text(p, "Task summary", "x" * 20_001), "1 to 20000 characters"),
        (lambda p: memory.append_section(p, "a\nb", "x"), "a title is one line"),
    ],
)
def test_bad_entries_are_refused_and_change_nothing(path, act, words):
    before = path.read_bytes()
    with pytest.raises(ContractError) as caught:
        act(path)
    assert words in caught.value.one_line() and path.read_bytes() == before


@pytest.mark.slow
def test_eight_processes_append_without_losing_a_row(path):
    code = (
        "import sys; from pathlib import Path; from pypto_op.documents import memory\n"
        "for n in range(10): memory.append_row(Path(sys.argv[1]), 'development', [f'{sys.argv[2]}-{n}', 'ok', 'x'])"
    )
    running = [subprocess.Popen([sys.executable, "-c", code, str(path), str(k)]) for k in range(8)]
    assert [process.wait(120) for process in running] == [0] * 8
    text = path.read_text()
    assert all(text.count(f"| {k}-{n} |") == 1 for k in range(8) for n in range(10))
    assert [p.name for p in path.parent.glob(".MEMORY*")] == []


# -- append-only -----------------------------------------------------------------------------------------------

OLD = """# op

## Agent status (minimal)
```yaml
phase: a
module_count: 1
```

## Per-module verification log (mandatory)
| When | Module | all_close |
|---|---|---|
| 1 | M1 | false |
| 2 | M1 | true |

## Golden function inventory
| # | op | Status |
|---|---|---|
| 1 | matmul | ❌ |
| 2 | TODO | |

## Phase M1 self-review
- [ ] output written
- [x] signature
TODO: say how

## Development & debug log
- first
- second
"""


def test_what_agents_may_do():
    allowed = [
        OLD + "- third\n",
        OLD.replace("phase: a\nmodule_count: 1", "phase: b\nmodule_count: 1\nblockers: []"),
        OLD.replace("| 1 | matmul | ❌ |", "| 1 | matmul | ✅ L42 |"),
        OLD.replace("| 2 | TODO | |", "| 2 | exp | ✅ |"),
        OLD.replace("- [ ] output", "- [x] output"),
        OLD.replace("TODO: say how", "Done: say how"),
        OLD.replace("| 2 | M1 | true |", "| 2 | M1 | true |\n| 3 | M1 | true |"),
        OLD.replace("## Golden", "## New section\ntext\n\n## Golden"),
        OLD.replace("## Agent", "\n\n## Agent").replace("- first", "- first   "),
        OLD.replace("\n", "\r\n"),
    ]
    for new in allowed:
        assert violations(OLD, new) == [], new


@pytest.mark.parametrize(
    ("old", "new", "line", "reason"),
    [
        ("| 1 | M1 | false |\n", "", 12, "changed or removed"),
        ("| 1 | M1 | false |", "| 1 | M1 | true |", 12, "changed or removed"),
        ("| 2 | M1 | true |", "| 2 | M1 | true, really |", 13, "changed or removed"),
        ("- [x] signature", "- [ ] signature", 23, "changed or removed"),
        ("- first\n- second", "- second\n- first", 28, "moved"),
        ("- first\n- second\n", "", 27, "changed or removed"),
        ("- first\n", "- earlier\n- first\n", 27, "put in before an old one"),
        ("- first\n- second", "- first\n- between\n- second", 28, "put in before an old one"),
        ("| 1 | M1 | false |", "| 0 | M1 | true |\n| 1 | M1 | false |", 12, "put in before an old one"),
        ("| 1 | matmul | ❌ |", "| 1 | exp | ✅ |", 18, "changed or removed"),
        ("- first", "<!--\n- first\n-->", 27, "hidden"),
        ("- first\n- second\n", "```\n- first\n- second\n```\n", 27, "hidden"),
        ("## Development & debug log", "## Log", 26, "changed or removed"),
        ("```yaml\nphase: a\nmodule_count: 1\n```", "", 1, "status block is gone"),
        ("# op\n", "# op\n## Agent status\n```yaml\nmodule_count: 9\n```\n", 1, "second status section"),
    ],
)
def test_what_agents_may_not_do(old, new, line, reason):
    assert old in OLD
    found = violations(OLD, OLD.replace(old, new, 1))
    assert found and reason in found[0].reason and found[0].line == line
    assert found[0].text().startswith(f"@@ line {line}: ")


@pytest.mark.slow
def test_a_huge_rewrite_is_refused_quickly():
    old = OLD + "".join(f"- entry {n}\n" for n in range(20_000))
    assert violations(old, OLD.replace("- first", "- changed"))


ENTRY = st.text("ab |[]x-✅❌", max_size=12)


@settings(max_examples=examples(150))
@given(st.lists(ENTRY, max_size=6), st.lists(ENTRY, max_size=4))
def test_appending_at_the_end_is_always_allowed(old, more):
    before = OLD + "\n".join(["", *(f"line {n} {text}" for n, text in enumerate(old))])
    assert violations(before, before + "\n" + "\n".join(f"new {text}" for text in more)) == []


@settings(max_examples=examples(150))
@given(st.data())
def test_removing_any_finished_line_is_always_seen(data):
    lines = OLD.split("\n")
    status = range(3, 7)
    finished = [n for n, line in enumerate(lines) if line.strip() and n not in status and lines.count(line) == 1]
    gone = data.draw(st.sampled_from(finished))
    assert violations(OLD, "\n".join(line for n, line in enumerate(lines) if n != gone))
