"""Bounds what an expression sees at once: of a long line the parts around telling words, of a blob its beginning and end.

Graphs and reports are printed as JSON in one line, tensors in base64, and a core may be read by mistake. An expression that
tries each place of such a line anew takes time by the square of its length, so no line that is searched is long.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

LONGEST = 2048
"""Characters of a line that are searched as they stand."""

_LONGEST_WORD = 512
"""Characters without a blank that may be a word: a path, or a mangled name."""

_KEPT = 32 * 1024
"""Characters of a longer line that are kept around telling words."""

_BEFORE, _AFTER = 240, 400
_NEAR = 48
_CUT = " … "
_LONG_LINE = re.compile(rf"[^\n]{{{LONGEST + 1},}}")
_BLOB = re.compile(rf"\S{{{_LONGEST_WORD + 1},}}")


def bounded(text: str, words: Sequence[str]) -> str:
    """Return `text` with each long line and blob cut to what may tell something; lines keep their numbers.

    Args:
        words: that lines have that may tell something.
    """
    text = _LONG_LINE.sub(lambda found: _around(found[0], words), text)
    return _BLOB.sub(lambda found: f"{found[0][: _LONGEST_WORD // 2]}{_CUT}{found[0][-_LONGEST_WORD // 2 :]}", text)


def _around(line: str, words: Sequence[str]) -> str:
    """Return the head of a line, and what stands around its telling words; those between blanks go before those in a blob."""
    spoken: list[tuple[int, int]] = []
    hidden: list[tuple[int, int]] = []
    for word in words:
        at = line.find(word)
        while at >= 0:
            near = line[max(0, at - _NEAR) : at] + line[at + len(word) : at + _NEAR]
            (spoken if " " in near else hidden).append((max(0, at - _BEFORE), at + _AFTER))
            at = line.find(word, at + _AFTER)
    kept = [(0, _BEFORE)]
    room = _KEPT
    for begin, end in [*_ends_first(spoken), *_ends_first(hidden)]:
        if room <= 0:
            break
        kept.append((begin, end))
        room -= end - begin
    return _CUT.join(line[begin:end] for begin, end in _joined(kept))


def _ends_first(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the spans in turn from both ends: the first error is the cause, the last one ends the run."""
    left = sorted(set(spans))
    return [left[at // 2] if at % 2 == 0 else left[-1 - at // 2] for at in range(len(left))]


def _joined(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for begin, end in sorted(spans):
        if joined and begin <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((begin, end))
    return joined
