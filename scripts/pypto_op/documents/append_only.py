"""MEMORY.md is append-only for agents: say what an edit took away, changed, hid or put in before older entries.

Free to change: the status block, and what was left open. An empty or open cell (TODO, WIP, a cross), an unticked
box and a line that says TODO may be filled in; nothing else that stands there may go.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pypto_op.documents.markdown import Markdown
from pypto_op.documents.memory import status_sections, status_span

_OPEN = re.compile(r"TODO|TBD|FIXME|WIP|❌|⬜|待补充|待定|待填写")
_BOX = re.compile(r"\[[ xX✅-]\]")
_OPEN_BOXES = ("[ ]", "[-]")
_ANY_BOX = "\0"
_OPEN_CELL = re.compile(r"(?:|-|…|\.\.\.|not implemented|pending)\Z", re.IGNORECASE)
_ENTRY = re.compile(r"\s*(?:\||[-*] )")
_SHOWN = 8
_MOST_MISSING = 50


@dataclass(frozen=True)
class Hunk:
    """A place where the edit breaks the rule."""

    line: int  # line of the old text, counted from 1
    reason: str  # what happened to it
    old: tuple[str, ...]  # the old lines
    new: tuple[str, ...]  # what the new text has there

    def text(self) -> str:
        """Return the hunk as people know it from diffs."""
        body = [f"-{line}" for line in self.old] + [f"+{line}" for line in self.new]
        return "\n".join([f"@@ line {self.line}: {self.reason} @@", *body])


def violations(old: str, new: str) -> list[Hunk]:
    """Return what in the step from `old` to `new` is more than appending; [] if nothing is.

    The old lines must all be there, in their order, each as it was or filled in where it was open, and still
    visible, not inside a comment or a code block. A new table row or list entry may not stand before an old one.
    """
    old, new = old.replace("\r\n", "\n"), new.replace("\r\n", "\n")
    before, after = _without_status(_lines(old)), _without_status(_lines(new))
    if status_span(old) is not None and status_span(new) is None:
        return [Hunk(1, "the status block is gone", ("(status block)",), ())]
    if status_sections(new) > max(1, status_sections(old)):
        return [Hunk(1, "a second status section is put in", (), ("(status section)",))]
    matched, missing = _match(before, after)
    hunks = [_missing_hunk(number, before, after, matched) for number in missing]
    if hunks:
        return _merged(hunks)
    hidden = _hidden(old, new)
    return hidden or _inserted_before_old(before, after, matched)


def _lines(text: str) -> list[str]:
    return text.split("\n")


def _without_status(lines: list[str]) -> list[str]:
    """Blank the status block, so that line numbers stay."""
    text = "\n".join(lines)
    span = status_span(text)
    if span is None:
        return lines
    inside = text[span[0] : span[1]]
    return (text[: span[0]] + "\n" * inside.count("\n") + text[span[1] :]).split("\n")


def _match(before: Sequence[str], after: Sequence[str]) -> tuple[dict[int, int], list[int]]:
    """Map each old line to the first later new line that keeps it; also return the old lines without one."""
    matched: dict[int, int] = {}
    missing: list[int] = []
    position = 0
    for number, line in enumerate(before):
        if not line.strip():
            continue
        target = next((k for k in range(position, len(after)) if _keeps(line, after[k])), None)
        if target is None:
            missing.append(number)
            if len(missing) == _MOST_MISSING:
                break
        else:
            matched[number] = target
            position = target + 1
    return matched, missing


def _keeps(old: str, new: str) -> bool:
    """Whether `new` is `old`, or `old` with its open parts filled in."""
    old, new = old.rstrip(), new.rstrip()
    if old == new:
        return True
    if not new.strip():
        return False
    if old.lstrip().startswith("|") and new.lstrip().startswith("|"):
        old_cells, new_cells = _cells(old), _cells(new)
        return len(old_cells) == len(new_cells) and all(map(_cell_keeps, old_cells, new_cells))
    return _filled(old, new)


def _cell_keeps(old: str, new: str) -> bool:
    return bool(_OPEN_CELL.match(old)) or old == new or _filled(old, new)


def _filled(old: str, new: str) -> bool:
    """Whether `new` keeps every part of `old` that was not open, in order, from the first to the last."""
    old_boxes, new_boxes = _BOX.findall(old), _BOX.findall(new)
    if not old_boxes and not _OPEN.search(old):
        return False
    if len(old_boxes) != len(new_boxes):
        return False
    if any(a != b and a not in _OPEN_BOXES for a, b in zip(old_boxes, new_boxes, strict=True)):
        return False
    fixed = _OPEN.split(_BOX.sub(_ANY_BOX, old))
    rest = _BOX.sub(_ANY_BOX, new)
    if len(fixed) == 1:
        return rest == fixed[0]
    if not rest.startswith(fixed[0]):
        return False
    position = len(fixed[0])
    for part in fixed[1:-1]:
        found = rest.find(part, position)
        if found < 0:
            return False
        position = found + len(part)
    return rest.endswith(fixed[-1]) and len(rest) - len(fixed[-1]) >= position


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]


def _missing_hunk(number: int, before: Sequence[str], after: Sequence[str], matched: dict[int, int]) -> Hunk:
    earlier = max((k for k in matched if k < number), default=None)
    later = min((k for k in matched if k > number), default=None)
    start = matched[earlier] + 1 if earlier is not None else 0
    end = matched[later] if later is not None else len(after)
    there = tuple(line for line in after[start:end] if line.strip())
    reason = "an old line is moved" if before[number] in after else "an old line is changed or removed"
    return Hunk(number + 1, reason, (before[number],), there[:_SHOWN])


def _merged(hunks: list[Hunk]) -> list[Hunk]:
    """Join hunks of neighbouring lines that have the same new text."""
    result: list[Hunk] = []
    for hunk in hunks:
        last = result[-1] if result else None
        if last and last.new == hunk.new and last.reason == hunk.reason and len(last.old) < _SHOWN:
            result[-1] = Hunk(last.line, last.reason, last.old + hunk.old, last.new)
        else:
            result.append(hunk)
    return result


def _hidden(old: str, new: str) -> list[Hunk]:
    """Find old lines that were visible and now stand in a comment or a code block, as the status always does."""
    before, after = _lines(Markdown(old).visible), _lines(Markdown(new).visible)
    _, missing = _match(before, after)
    return _merged([Hunk(n + 1, "an old line is hidden or taken apart", (before[n],), ()) for n in missing])


def _inserted_before_old(before: Sequence[str], after: Sequence[str], matched: dict[int, int]) -> list[Hunk]:
    old_at = {new: number for number, new in matched.items()}
    hunks = []
    for position, line in enumerate(after[:-1]):
        follower = position + 1
        is_new_entry = position not in old_at and _ENTRY.match(line) is not None
        if is_new_entry and follower in old_at and _ENTRY.match(after[follower]):
            number = old_at[follower]
            hunks.append(Hunk(number + 1, "an entry is put in before an old one", (before[number],), (line,)))
    return hunks
