"""DESIGN.md and API_REPORT.md: what machines read, and what is refused."""

import pytest

from pypto_op.documents import api_report, design
from pypto_op.errors import ContractError

from . import goldens

BODY = """
# flash_bwd
## 0. Complexity
### 0.3 Decision
{decision}
### 0.5 Modules
{table}
## 1. API mapping
x
## 3. Tiling
### 3.2.5 Tile code
```python
pypto.set_vec_tile_shapes(64, 64)
```
## 6. Verification plan
x
## Numerical Stability Profile
x
"""
TWO_ROWS = "| module | boundary tensor | CU |\n|---|---|---|\n| M1 | ds | 1.1 |\n| M2 | dq | 0.9 |"


def write_design(folder, decision, table="", front="dynamic_axes: []"):
    path = folder / "DESIGN.md"
    head = f'---\nschema_version: "2.1"\nop_name: flash_bwd\n{front}\n---\n'
    path.write_text(head + BODY.format(decision=decision, table=table))
    return path


@pytest.mark.parametrize(
    ("decision", "count"),
    [
        ("Decision: module_count = 1", 1),
        ("**Decision**: total 2.33 >= 1.3, so `module_count = 2`", 2),
        ("- Decision -> module_count: **3**", 3),
        ("决策: module_count = 4", 4),
        ("Decision: module_count = 2\n\ndecomposition_level: L1", 2),
        ("Decision: module_count = 1, decomposition_level = L0", 1),
    ],
)
def test_the_decision_is_read_in_every_spelling(tmp_path, decision, count):
    document = design.load(write_design(tmp_path, decision))
    assert document.module_count == count and document.override == ""


@pytest.mark.parametrize(
    ("decision", "front", "words"),
    [
        ("module_count: 2", "dynamic_axes: []", "no decision on module_count"),
        ("Decision: module_count = TODO", "dynamic_axes: []", "no decision on module_count"),
        ("Decision: module_count = 1\nDecision: module_count = 2", "dynamic_axes: []", "decides on module_count 1 and 2"),
        ("Decision: module_count = 0", "dynamic_axes: []", "module_count is 0"),
        ("Decision: module_count = 99", "dynamic_axes: []", "module_count is 99"),
        ("Decision: module_count = 2\ndecomposition_level: L0", "dynamic_axes: []", "decomposition_level is L0"),
        ("Decision: module_count = 2", "dynamic_axes: []\nmodule_count: 1", "section 0.3 decides on 2"),
        ("Decision: module_count = 1", "dynamic_axes: T", "dynamic_axes: 'T' is not of type array"),
        ("Decision: module_count = 1", "dynamic_axes: []\nstatus: TODO", "status: TODO is left"),
    ],
)
def test_no_single_decision_no_design(tmp_path, decision, front, words):
    with pytest.raises(ContractError) as caught:
        design.load(write_design(tmp_path, decision, front=front))
    assert words in caught.value.one_line()


def test_check_holds_the_decision_against_the_golden(tmp_path):
    (tmp_path / "flash_bwd_golden.py").write_text(goldens.FA_BWD.replace("fa_bwd", "flash_bwd"))
    one = design.check(write_design(tmp_path, "Decision: module_count = 1"))
    assert [f.problem for f in one] == [
        "module_count is 1, the golden's complexity gives 2: take that, or add `override: <reason>`"
    ]
    meant = write_design(tmp_path, "Decision: module_count = 1 (override: both halves share every load)")
    assert design.check(meant) == []
    assert design.load(meant).override == "both halves share every load"
    assert design.check(write_design(tmp_path, "Decision: module_count = 2", TWO_ROWS)) == []


def test_several_modules_need_a_row_each(tmp_path):
    none = design.check(write_design(tmp_path, "Decision: module_count = 2"))
    assert any("no table with the columns module and boundary" in f.problem for f in none)
    three = design.check(write_design(tmp_path, "Decision: module_count = 3", TWO_ROWS))
    assert any("has 2 rows, not 3" in f.problem and f.line for f in three)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("| 0.9 |", "| 0.4 |", "M2 has 0.4 units, too thin: 0.5 to 1.5 are allowed"),
        ("| 1.1 |", "| 1.9 |", "M1 has 1.9 units, too thick"),
        ("| 1.1 |", "| about one |", "M1 has no units: add a column CU"),
        ("| CU |", "| cube |", "M1 has no units"),
        ("| ds |", "| |", "M1 names no boundary tensor: write `name` [shape]"),
        ("| ds |", "| the final output |", "M1 names no boundary tensor"),
    ],
)
def test_rows_name_boundary_and_units(tmp_path, old, new, words):
    rows = TWO_ROWS.replace(old, new)
    found = design.check(write_design(tmp_path, "Decision: module_count = 2", rows))
    assert any(words in f.problem and f.line for f in found), found
    meant = design.check(write_design(tmp_path, "Decision: module_count = 2, override: the user wants two", rows))
    assert bool(meant) == ("boundary" in words), "units are advice where somebody named N"


@pytest.mark.parametrize(
    ("cell", "names"),
    [
        ("`ds` [BH, S, S], `dv` [BH, S, D]", ("ds", "dv")),
        ("`dq`, `dk` [BH, S, D]; `dv` passes through", ("dq", "dk", "dv")),
        ("ds [BH, S, S]", ("ds",)),
        ("ds: (BH, (T + 63) // 64), dv (BH, S) float32", ("ds", "dv")),
        ("**ds**<br>dv", ("ds", "dv")),
        ("ds and dv", ("ds", "dv")),
        ("final outputs", ()),
        ("-", ()),
    ],
)
def test_the_names_of_a_boundary_are_read_however_they_are_written(tmp_path, cell, names):
    rows = TWO_ROWS.replace("| ds |", f"| {cell} |")
    path = write_design(tmp_path, "Decision: module_count = 2", rows)
    assert [row.boundary for row in design.module_rows(path)] == [names, ("dq",)]


def test_check_names_missing_sections(tmp_path):
    path = write_design(tmp_path, "Decision: module_count = 1")
    path.write_text(path.read_text().replace("## Numerical Stability Profile", "## Other").replace("## 3. Tiling", "## 3. X"))
    problems = " ".join(finding.problem for finding in design.check(path))
    assert "numerical stability is missing" in problems


REPORT = """---
schema_version: "1.0"
op_name: softmax
---
# softmax
## 3. API mapping
| step | expression | PyPTO API | level | constraint ok | workaround |
|---|---|---|---|---|---|
| 1 | max | `pypto.amax` | direct | yes | |
| 2 | erf | - | **Unsupported** | no | {workaround} |
| 3 | div | `pypto.mul` | 替代 | yes | - |
## 4. 约束
x
## 5. Tiling
x
"""


def test_api_report(tmp_path):
    path = tmp_path / "API_REPORT.md"
    path.write_text(REPORT.format(workaround="polynomial"))
    assert api_report.check(path) == []


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("polynomial", "-", "line 10: 2: is unsupported and has no workaround"),
        ("polynomial", "", "line 10: 2: is unsupported and has no workaround"),
        ("**Unsupported**", "perhaps", "line 10: 2: level 'perhaps' is not direct"),
    ],
)
def test_an_unsupported_step_needs_a_workaround(tmp_path, old, new, words):
    path = tmp_path / "API_REPORT.md"
    path.write_text(REPORT.format(workaround="polynomial").replace(old, new))
    with pytest.raises(ContractError, match="line 10"):
        api_report.load(path)
    assert words in [finding.one_line() for finding in api_report.check(path)][0]


def test_a_report_without_a_mapping_table_is_incomplete(tmp_path):
    path = tmp_path / "API_REPORT.md"
    path.write_text(REPORT.split("| step", maxsplit=1)[0] + "text\n## 约束\nx\n## Tiling\nx\n")
    assert any("no mapping table" in finding.problem for finding in api_report.check(path))
