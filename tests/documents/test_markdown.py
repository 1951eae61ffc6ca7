"""Headings, tables and what is left to do, as people really write them."""

from hypothesis import given, settings
from hypothesis import strategies as st

from pypto_op.documents import markdown

TEXT = """# Title
intro
## 2. Formula ##
y = x
```python
# not a heading
## Precision
```
<!-- ## hidden
## also hidden -->
### Detail
more
~~~
## fenced
~~~
## 数学公式
$$x$$
"""


def test_sections_ignore_code_and_comments():
    found = markdown.sections(TEXT, first_line=10)
    assert [(s.title, s.level, s.line) for s in found] == [
        ("Title", 1, 10),
        ("2. Formula", 2, 12),
        ("Detail", 3, 20),
        ("数学公式", 2, 25),
    ]
    assert "more" in found[1].text and "$$" not in found[1].text and "$$x$$" in found[0].text


def test_a_section_is_found_in_either_language_and_any_case():
    found = markdown.sections(TEXT)
    assert markdown.find_section(found, ["FORMULA", "数学公式"]).title == "2. Formula"
    assert markdown.find_section(found[3:], ["formula", "数学公式"]).title == "数学公式"
    assert markdown.find_section(found, ["Precision"]) is None


def test_a_fence_closes_only_with_its_own_mark():
    text = "````\n```\n## no\n````\n## yes\n```js\n~~~\n## no\n```\n## yes too"
    assert [s.title for s in markdown.sections(text)] == ["yes", "yes too"]


def test_tables_with_escapes_missing_cells_and_without_outer_bars():
    text = "x\n| a | b |\n|---|:-:|\n| 1 | c\\|d |\n| 2 |\n\na | b\n--|--\n3 | 4\n```\n| no | no |\n|--|--|\n```"
    first, second = markdown.tables(text)
    assert first.header == ("a", "b") and first.rows == (("1", "c|d"), ("2", "")) and first.line == 2
    assert second.rows == (("3", "4"),) and second.line == 7
    assert first.column("B") == 1 and first.column("zzz") is None


def test_required_sections_missing_empty_and_without_their_words():
    text = "## Formula\n\n## I/O\nshape only\n"
    problems = [f.one_line() for f in markdown.check_sections("spec", markdown.sections(text))]
    assert any("Formula: the section is empty" in p for p in problems)
    assert any("mentions none of dtype" in p for p in problems)
    assert any("precision is missing: write a heading 'Precision' or '精度要求'" in p for p in problems)
    assert len(problems) == 3


def test_unfinished_text_is_found_with_its_line():
    found = list(markdown.unfinished("ok\nTODO: x\nautodoc TODOS\n待定\nFIXME", first_line=5))
    assert [(f.line, f.problem.split(" ")[0]) for f in found] == [(6, "TODO"), (8, "待定"), (9, "FIXME")]


@settings(max_examples=200, deadline=None)
@given(st.text("#`~<!->| \nabc", max_size=120))
def test_any_text_can_be_taken_apart(text):
    lines = text.split("\n")
    assert len(markdown.blank_out_code_and_comments(text).split("\n")) == len(lines)
    for section in markdown.sections(text):
        assert lines[section.line - 1].lstrip().startswith("#")
    for table in markdown.tables(text):
        assert all(len(row) == len(table.header) for row in table.rows)
