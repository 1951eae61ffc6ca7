"""A page whose keys say nothing sensible is refused with file and line."""

from __future__ import annotations

from pathlib import Path

import pytest
from labelled_corpus import bases, checked
from tests.markdown_cases import cases
from tests.markdown_cases.pages import PageError

PAGE = """---
artifact: impl
clean: true
---
# OL62

The operator's arithmetic happens in the kernel.

## base: kernel

### bad: on_the_host
A power on the host.
- at: ["y ** 2"]
```diff
-    return y
+    return y ** 2
```

## base: none

### good: nothing
An operator alone.
- operator: complete
"""


def _checked(tmp_path: Path, text: str) -> cases.Cases:
    path = tmp_path / "OL62.md"
    path.write_text(text, encoding="utf-8")
    return checked(cases.load(path, bases()))


def test_five_lines_are_a_case(tmp_path: Path) -> None:
    case = _checked(tmp_path, PAGE).cases[0]
    assert case.files[""] == bases()["kernel"][""].replace(b"return y\n", b"return y ** 2\n")


@pytest.mark.parametrize(
    ("old", "new", "place", "said"),
    [
        ("artifact: impl", "artifact: kernel", "---", "artifact: 'kernel' is not one of"),
        ("clean: true", "label: good", "---", "label: Additional properties"),
        ("# OL62", "# OL6", "# OL6", "title: 'OL6' does not match"),
        ("The operator's arithmetic happens in the kernel.", "", "# OL62", "intent: '' is too short"),
        ("- at:", "- att:", "- att:", "att: Additional properties"),
        ('- at: ["y ** 2"]', "- at: y", "- at: y", "at: 'y' is not of type 'array'"),
        ('- at: ["y ** 2"]', "- stage: 9", "- stage: 9", "stage: 9 is greater"),
        ("- operator: complete", "", "### good: nothing", "case nothing has no file"),
        ("artifact: impl\n", "", "### bad: on_the_host", "case on_the_host needs an `artifact`"),
        ("- operator: complete", "- operator: whole", "- operator: whole", "operator: 'whole' is not one of"),
    ],
)
def test_wrong_keys_are_refused_where_they_stand(tmp_path: Path, old: str, new: str, place: str, said: str) -> None:
    text = PAGE.replace(old, new, 1)
    with pytest.raises(PageError) as caught:
        _checked(tmp_path, text)
    assert f":{caught.value.line}: {said}" in str(caught.value)
    assert text.split("\n")[caught.value.line - 1].startswith(place), str(caught.value)
