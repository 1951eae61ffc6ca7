"""Labels survive edits that change nothing: other line ends, comments full of trigger words, other local names.

A rule that reads text where it should read code, or that knows the names of the snippets, fails here.
"""

from __future__ import annotations

import io
import re
import tokenize
import zlib
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from labelled_corpus import ANY_RULE, Snippet, all_snippets, judge

from pypto_op.vocabulary import Artifact, LintEvent

CODE = {Artifact.IMPL, Artifact.MODULE_IMPL, Artifact.TEST, Artifact.MODULE_TEST, Artifact.GOLDEN, Artifact.MODULE_GOLDEN}
pytestmark = pytest.mark.slow
ABOUT_TEXT = {"PX00", "OL37", "OL41"}
"""Rules about the text or the names themselves: these edits do change what they look at."""
EVERY = 3
"""Each variant looks at every third snippet; together they reach all of them."""

NOISE = (
    "# import pypto as pt; from pypto import frontend; @pypto.frontend.jit; from __future__ import annotations",
    "# for c in range(4): demo_kernel(x[c], y[c]); while True: demo_kernel(x, y); from demo_golden import demo_golden",
    "# y = torch.exp(x) * 2; return max(x, y); pypto.zeros(4); pypto.erf(x); unroll_list=[8, 4]; x.T; run_mode='sim'",
    "# PYPTO_PENDING_STUB; pypto.set_vec_tile_shapes(x.shape[0]); rows, width = x.shape; pypto.loop(1); sys.exit(0)",
)
RENAMED = {"tile": "block_of_rows", "left": "remaining", "rows": "row_total", "wide": "as_float", "inputs": "arguments"}


def other_line_ends(text: str) -> str:
    """CRLF instead of LF."""
    return text.replace("\n", "\r\n")


def noisy_comments(text: str) -> str:
    """A comment full of trigger words in front of every top-level function and class, and at the end."""
    number = 0
    lines = []
    for line in text.split("\n"):
        starts = re.match(r"(?:def|class|@)\b|@", line) is not None
        if starts and not (lines and lines[-1].startswith("@")):
            lines.append(NOISE[number % len(NOISE)])
            number += 1
        lines.append(line)
    return "\n".join([*lines, *NOISE, ""])


def other_local_names(text: str) -> str:
    """The corpus's favourite local names replaced; attributes, keywords and strings stay."""
    tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    names = {t.string for t in tokens if t.type == tokenize.NAME}
    fields = {after.string for dot, after in pairwise(tokens) if dot.string == "."}  # a field and its uses keep one name
    mapping = {old: new for old, new in RENAMED.items() if new not in names | fields and old not in fields}
    lines = text.split("\n")
    for before, token, after in reversed(list(zip(tokens, tokens[1:], tokens[2:], strict=False))):
        taken = before.string == "." or after.string == "="
        if token.type == tokenize.NAME and token.string in mapping and not taken:
            (row, start), (_, end) = token.start, token.end
            lines[row - 1] = lines[row - 1][:start] + mapping[token.string] + lines[row - 1][end:]
    changed = "\n".join(lines)
    for old, new in mapping.items():  # plain assignments; keyword arguments have no space before their sign
        changed = re.sub(rf"^(\s*){old} = ", rf"\g<1>{new} = ", changed, flags=re.MULTILINE)
    return changed


VARIANTS: list[Callable[[str], str]] = [other_line_ends, noisy_comments, other_local_names]


def _fitting(place: int) -> list[Snippet]:
    """Every third snippet that is one file of code with a definite label, another third for each variant."""
    chosen = []
    for snippet in all_snippets():
        whole = snippet.rule == ANY_RULE
        if not snippet.single or snippet.known_limit or snippet.artifact not in CODE or snippet.rule in ABOUT_TEXT:
            continue
        if snippet.event is not LintEvent.ON_WRITE or b"\r" in snippet.source:
            continue
        if whole or zlib.crc32(snippet.shown.encode()) % EVERY == place:
            chosen.append(snippet)
    return chosen


@pytest.mark.parametrize("variant", VARIANTS)
def test_labels_survive(variant: Callable[[str], str], tmp_path: Path) -> None:
    snippets = _fitting(VARIANTS.index(variant))
    assert len(snippets) > 200
    problems = []
    for number, snippet in enumerate(snippets):
        problem = judge(snippet, tmp_path / str(number), variant).problem
        if problem and not judge(snippet, tmp_path / f"{number}-as-is").problem:
            problems.append(problem)
    assert not problems, f"{len(problems)} labels fall under {variant.__name__}:\n" + "\n".join(problems)


@pytest.mark.parametrize("variant", VARIANTS)
def test_variants_change_the_text_and_keep_it_valid(variant: Callable[[str], str]) -> None:
    changed = 0
    for snippet in _fitting(VARIANTS.index(variant)):
        text = snippet.source.decode("utf-8")
        compile(variant(text), snippet.shown, "exec", dont_inherit=True)
        changed += variant(text) != text
    assert changed > 100
