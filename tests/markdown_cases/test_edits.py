"""Edits without line numbers: they find their place, and say why when they do not."""

from __future__ import annotations

import pytest
from tests.markdown_cases.edits import EditError, apply

BASE = ["import a", "", "def f(x):", "    y = 1", "    return x", "", "def g(x):", "    z = 2", "    return x"]


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        (["-    y = 1", "+    y = 3"], [*BASE[:3], "    y = 3", *BASE[4:]]),
        ([" import a", "+import b"], ["import a", "import b", *BASE[1:]]),
        (["+import b", " import a"], ["import b", *BASE]),
        (["-    z = 2", "     return x", "+# end"], [*BASE[:7], "    return x", "# end"]),
        (["-import a", "...", "-    z = 2", "+    z = 3"], [*BASE[1:7], "    z = 3", BASE[8]]),
        (["-def f(x):", "-...", "-def g(x):", "+def h(x):"], [*BASE[:2], "def h(x):", *BASE[7:]]),
        ([" import a", "", "+X = 1"], ["import a", "", "X = 1", *BASE[2:]]),
        # The second place is looked for below the first, so its line need not be alone in the base.
        (
            [" def g(x):", "+    '''g'''", "...", "-    return x", "+    return z"],
            [*BASE[:7], "    '''g'''", "    z = 2", "    return z"],
        ),
    ],
)
def test_an_edit_finds_its_place(edit: list[str], expected: list[str]) -> None:
    assert apply(BASE, edit) == expected


@pytest.mark.parametrize(
    ("edit", "line", "said"),
    [
        (["-    y = 2", "+    y = 3"], 0, "is not in the base"),
        (["-    return x", "+    return 1"], 0, "stands 2 times in the base"),
        (["-import a", "...", "+b"], 2, "needs a line of the base"),
        (["-import a", "...", "-def g(x):", "...", "-def f(x):"], 4, "is not in the base"),
        (["-def g(x):", "-...", "-import a"], 0, "which ends `-...`, is not in the base below it"),
        (["-...", "-import a"], 0, "needs a removed line above it"),
        ([" import a"], 0, "nothing is added or removed"),
        ([], 0, "nothing is added or removed"),
        (["-import a", "@@ -1 +1 @@"], 1, "a line of an edit starts with"),
    ],
)
def test_an_edit_that_does_not_fit_says_where_and_why(edit: list[str], line: int, said: str) -> None:
    with pytest.raises(EditError, match=said.replace("...", r"\.\.\.")) as caught:
        apply(BASE, edit)
    assert caught.value.line == line
