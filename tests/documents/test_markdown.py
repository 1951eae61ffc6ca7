"""Headings, tables and what is left to do, as people really write them."""

from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.quickly import examples

from pypto_op.documents import headings, markdown

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
    problems = [f.one_line() for f in headings.check_sections("spec", markdown.sections(text))]
    assert any("Formula: the section is empty" in p for p in problems)
    assert any("mentions none of dtype" in p for p in problems)
    assert any("precision is missing: write a heading 'Precision' or '精度要求'" in p for p in problems)
    assert len(problems) == 3


def test_unfinished_text_is_found_with_its_line():
    found = list(headings.unfinished("ok\nTODO: x\nautodoc TODOS\n待定\nFIXME", first_line=5))
    assert [(f.line, f.problem.split(" ")[0]) for f in found] == [(6, "TODO"), (8, "待定"), (9, "FIXME")]


def test_a_comment_hides_what_it_covers_and_nothing_else():
    text = "a <!-- b --> c `<!-- d -->` e\n<!-- f\n\n## g\n--> h\ni <!-- j\nk --> l\n\nm <!-- n\n\n## o\n"
    assert markdown.Markdown(text).visible.split("\n") == (
        ["a  c `<!-- d -->` e", "", "", "", " h", "i ", " l", "", "m <!-- n", "", "## o", ""]
    )
    assert [s.title for s in markdown.sections(text)] == ["o"]


def test_placeholders_rules_and_quotations_are_prose():
    text = "<the plan>\n## A\ntext\n---\n## B\n> ## no\n\n- item\n  ## no\n## C#\n"
    assert [s.title for s in markdown.sections(text)] == ["A", "B", "C#"]


def test_code_in_lists_and_indented_code_say_where_they_stand():
    text = "1. a\n\n   ```py\n   x = 1\n     y\n   ```\n\ntext\n\n    z = 2\n\n```{.python title=x}\nw\n"
    fences = markdown.Markdown(text, 5).fences
    assert [(f.language, f.text, f.line, f.columns) for f in fences] == [
        ("py", "x = 1\n  y", 8, 3),
        ("", "z = 2", 14, 4),
        ("python", "w", 17, 0),
    ]


def test_a_line_without_a_bar_ends_a_table():
    (table,) = markdown.tables("| a | b |\n|---|---|\n| 1 | 2 |\nprose\n| 3 | 4 |\n")
    assert table.rows == (("1", "2"),) and table.numbered == [(3, ("1", "2"))]


def test_items_with_boxes_of_nested_lists():
    text = "## A\n- [x] a\n  - [ ] b\n    1. [✅] c\n```\n- [ ] no\n```\n"
    (section,) = markdown.sections(text)
    assert [(i.ticked, i.text, i.line) for i in section.checklist] == [(True, "a", 2), (False, "b", 3), (True, "c", 4)]


@settings(max_examples=examples(200))
@given(st.text("#`~<!->|:+ \t\r\nab行", max_size=120))
@example("\t:\r\n")
def test_any_text_can_be_taken_apart(text):
    lines = text.split("\n")
    document = markdown.Markdown(text)
    assert len(document.visible.split("\n")) == len(lines)
    assert all(line in lines[number - 1] or "<!--" in text for number, line in document.prose)
    for section in document.sections:
        assert lines[section.line - 1].lstrip().startswith("#")
        assert text.endswith(section.text) or section.text + "\n" in text
    for table in document.tables:
        assert all(len(row) == len(table.header) for row in table.rows)
        assert all("|" in lines[number - 1] for number, _ in table.numbered)
    ends_are_plain = text.replace("\r\n", "\n").replace("\r", " ").split("\n")
    for fence in document.fences:
        first = fence.text.split("\n")[0]
        assert not first.strip() or ends_are_plain[fence.line - 1].endswith(first.lstrip(" "))


_WORDS = st.text("ab#行列|\\*_- ", min_size=1, max_size=8).map(lambda text: f"x{text}".replace("\\", "").rstrip())
_HIDDEN = ["## not a heading", "| no | table |", "|---|---|", "- [ ] no item", "<!--"]


@st.composite
def _documents(draw):
    """Return lines, and the sections, tables and fences that they hold."""
    lines, heads, tables, fences = [], [], [], []
    for _ in range(draw(st.integers(1, 7))):
        kind = draw(st.sampled_from(["heading", "table", "fence", "comment", "list", "prose"]))
        if kind == "heading":
            title, level = draw(_WORDS).rstrip("# "), draw(st.integers(1, 6))
            heads.append((title, level, len(lines) + 1))
            lines.append(f"{'#' * level} {title}")
        elif kind == "table":
            width = draw(st.integers(1, 3))
            rows = draw(st.lists(st.lists(_WORDS, min_size=width, max_size=width), min_size=1, max_size=3))
            tables.append(([tuple(row) for row in rows], len(lines) + 1))
            written = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
            lines += [written[0], "|" + ":-:|" * width, *written[1:]]
        elif kind == "fence":
            mark = draw(st.sampled_from(["```", "~~~~", "`````"]))
            code = draw(st.lists(st.sampled_from([*_HIDDEN, "~~~" if mark[0] == "`" else "```"]), min_size=1, max_size=4))
            indent = draw(st.sampled_from(["", "- a\n  - b\n\n    "]))
            lines += indent.split("\n")[:-1]
            spaces = indent.split("\n")[-1]
            fences.append(("\n".join(code), len(lines) + 2, len(spaces)))
            lines += [spaces + line for line in (f"{mark}python", *code, mark)]
        elif kind == "comment":
            lines += ["<!-- hidden", "", *draw(st.lists(st.sampled_from(_HIDDEN[:4]), max_size=3)), "-->"]
        elif kind == "list":
            lines += ["- one", "  - two", "", "    ### three", "  - four", ""]
        else:
            lines += ["文字 and words", "---"]
        lines.append("")
    return lines, heads, tables, fences


@settings(max_examples=examples(300))
@given(_documents(), st.sampled_from(["\n", "\r\n"]))
def test_a_document_is_read_as_it_was_written(written, newline):
    lines, heads, tables, fences = written
    document = markdown.Markdown(newline.join(lines))
    assert [(s.title, s.level, s.line) for s in document.sections] == heads
    assert [([t.header, *t.rows], t.line) for t in document.tables] == tables
    assert [(f.text, f.line, f.columns) for f in document.fences if f.language] == fences
