"""Pages of cases: what they expand to, and that a page which is not in order is refused with file and line."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.markdown_cases.cases import Cases, load
from tests.markdown_cases.pages import PageError

GOOD = """---
artifact: impl
---
# OL01

What the rule
is for.

## base: own
```python
a = 1
b = 2
```

### good: as_it_is
Nothing
is changed.

### bad: first_line
The `first` line.
- at: ["a = 3"]
- or: [OL02]
```diff
-a = 1
+a = 3
```

## base: other
- from: own
```diff
 b = 2
+c = 3
```

### good: all_anew
Written anew.
```python
d = 4
```

### good: longer
As the base.
- artifact: test

## base: two
- from: {x.py: own, y/z.py: operator/y.py}

### good: several
Several files.
```diff x.py
-a = 1
```
````markdown new.md
```python
```
````

## base: operator

### bad: escaped
Odd bytes.
```diff y.py crlf
+# first
 y = 0
```
```text odd.txt no-newline escaped
nul \\x00, latin \\xe9
```

## base: none

### good: lower
What lies below is edited.
```diff low.py
-l = 1
+l = 2
```

### good: empty
An empty file.
```python
```
"""
OPERATOR = {"operator": {"y.py": b"y = 0\n"}}


def _load(tmp_path: Path, text: str) -> Cases:
    path = tmp_path / "OL01.md"
    path.write_bytes(text.encode("utf-8"))
    return load(path, OPERATOR, lambda keys, name: b"l = 1\n" if (keys["artifact"], name) == ("impl", "low.py") else None)


def test_a_page_expands_to_the_files_of_its_cases(tmp_path: Path) -> None:
    found = _load(tmp_path, GOOD)
    assert (found.title, found.intent, found.page.front) == ("OL01", "What the rule is for.", {"artifact": "impl"})
    assert set(found.bases) == {"own", "other", "two"}
    assert [(case.label, case.name, dict(case.files)) for case in found.cases] == [
        ("good", "as_it_is", {"": b"a = 1\nb = 2\n"}),
        ("bad", "first_line", {"": b"a = 3\nb = 2\n"}),
        ("good", "all_anew", {"": b"d = 4\n"}),
        ("good", "longer", {"": b"a = 1\nb = 2\nc = 3\n"}),
        ("good", "several", {"x.py": b"b = 2\n", "y/z.py": b"y = 0\n", "new.md": b"```python\n```\n"}),
        ("bad", "escaped", {"y.py": b"# first\r\ny = 0\r\n", "odd.txt": b"nul \0, latin \xe9"}),
        ("good", "lower", {"low.py": b"l = 2\n"}),
        ("good", "empty", {"": b""}),
    ]
    assert found.cases[0].why == "Nothing is changed."
    assert found.cases[1].keys == {"at": ["a = 3"], "or": ["OL02"]}
    assert found.cases[3].keys == {"artifact": "test"}


@pytest.mark.parametrize(
    ("old", "new", "place", "said"),
    [
        ("---\n# OL01", "# OL01", "---", "front matter has no end"),
        ("artifact: impl", "artifact: [impl", "artifact: [impl", "not YAML"),
        ("artifact: impl", "impl", "impl", "`key: value` is expected"),
        ("# OL01\n", "Prose.\n\n# OL01\n", "Prose.", "a page starts with a title"),
        ("# OL01\n\n", "", "What the rule", "a page starts with a title"),
        ("What the rule\n", "- key: value\n\nWhat the rule\n", "# OL01", "prose only"),
        ("## base: own", "# base: own", "# base: own", "one title"),
        ("## base: own", "## own", "## own", "expected `## base: NAME`"),
        ("## base: own", "## base: operator", "## base: operator", "there is a base operator already"),
        ("## base: none", "## base: nothing", "## base: nothing", "there is no base nothing; there are none, operator"),
        ("- from: own", "- from: owns", "- from: owns", "there is no base owns"),
        ("- from: own", "- of: own", "## base: other", "one key only: `from`"),
        ("operator/y.py}", "operator/q.py}", "- from: {x.py", "operator has no q.py; it has y.py"),
        ("### good: as_it_is", "### fine: as_it_is", "### fine: as_it_is", "expected `### good: NAME` or `### bad: NAME`"),
        ("### good: as_it_is", "#### good: as_it_is", "#### good: as_it_is", "one to three"),
        ("### good: longer", "### good: as_it_is", "### good: as_it_is", "there is a case as_it_is already"),
        ("Nothing\nis changed.", "", "### good: as_it_is", "case as_it_is has no sentence"),
        ("- or: [OL02]", "- at: [b]", "- at: [b]", "`at` stands here twice"),
        ("- or: [OL02]", "- or", "- or", "`key: value` is expected"),
        ('- at: ["a = 3"]\n- or: [OL02]', "1. or: [OL02]", "1. or: [OL02]", "ordered_list has no meaning"),
        ("Nothing\nis changed.", "    indented", "    indented", "code_block has no meaning"),
        ("Nothing\nis changed.", "<p>x</p>", "<p>x</p>", "html_block has no meaning"),
        ("-a = 1\n+a = 3", "-a = 2\n+a = 3", "-a = 2", "'a = 2' is not in the base"),
        ("-a = 1\n+a = 3", "-a = 1\n+a = 3\n...\n-q", "-q", "'q' is not in the base"),
        ("```diff\n-a = 1", "```\n-a = 1", "```", "say what the block is"),
        ("```diff x.py", "```diff x.py z.py", "```diff x.py z.py", "one relative path"),
        ("```diff x.py", "```diff ../x.py", "```diff ../x.py", "one relative path"),
        ("```diff x.py", "```diff q.py", "```diff q.py", "the base has no q.py"),
        ("Several files.\n```diff x.py", "Several files.\n```diff", "```diff", "the base has no single file"),
        ("```diff x.py", "```python", "### good: several", "do not go together"),
        ("````markdown new.md", "````markdown x.py", "````markdown x.py", "two blocks for x.py"),
        ("An empty file.\n```python\n```\n", "An empty file.\n```text\n", "```text", "this block has no end"),
        ("What the rule", "What\rthe rule", "What\rthe rule", "carriage returns"),
    ],
)
def test_a_malformed_page_is_refused_with_file_and_line(tmp_path: Path, old: str, new: str, place: str, said: str) -> None:
    text = GOOD.replace(old, new, 1)
    assert text != GOOD
    with pytest.raises(PageError, match=said) as caught:
        _load(tmp_path, text)
    line = caught.value.line
    assert str(caught.value).startswith(f"{tmp_path / 'OL01.md'}:{line}: ")
    assert text.split("\n")[line - 1].startswith(place), str(caught.value)
