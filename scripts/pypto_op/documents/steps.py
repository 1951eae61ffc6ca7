"""The sizes that DESIGN.md walks in: how long a step of each axis is, and every other tile, step or block that it names.

The table under "Loops" is the best source (`| T | pypto.loop, step 64 |`). Where it says nothing of an axis, a sentence of that
section does ("B, then H, then T in chunks of 64"). The prose and code of tiling and loops name further sizes.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from pypto_op.documents import markdown
from pypto_op.documents.reading import read_text

LARGEST = 4096
"""A larger number is no tile."""

_SECTIONS = ("tiling", "tile", "loops", "切分", "循环", "分块")
_STEP = re.compile(
    r"(?:step|stride|tile|block|chunk|步长)s?\s*(?:of|size|length|=|:|：)?\s*(?:of|=|:)?\s*(\d{1,6})\b", re.IGNORECASE
)
_COUNTED = re.compile(
    r"(?<![\w.])(\d{1,6})[ -](?:rows?|tokens?|positions?|columns?|elements?|keys|queries)?[ -]?"
    r"(?:tiles?|steps?|blocks?|chunks?|at a time|per step|a step)\b",
    re.IGNORECASE,
)
_PAIR = re.compile(r"\b(\d{1,5})\s*[x×]\s*(\d{1,5})\b")
_CALL = re.compile(r"set_(?:vec|cube)_tile_shapes\(([^()]*)\)")
_NAME = re.compile(r"\b[A-Z0-9_]*(?:TILE|ROWS|BLOCK|CHUNK|STEP)[A-Z0-9_]*\s*[:=]\s*(\d+)\b")
_CEILING = re.compile(r"\+\s*(\d{1,6})\s*\)\s*//\s*(\d{1,6})")
_NUMBER = re.compile(r"(?<![\w.])\d{1,6}(?![\w.])")
_LOOP = re.compile(r"^(\s*)for\s+(\w+)\s+in\s+pypto\.loop\((.*)", re.MULTILINE)
_ASSIGNED = re.compile(r"^\s*([\w, ]+?)\s*=\s*(.+)$", re.MULTILINE)
_WORD = re.compile(r"[A-Za-z_]\w*")
_SENTENCE = re.compile(
    r"\b([A-Za-z]\w*)(?:\s*[*×·]\s*[A-Za-z]\w*)*\s+"
    r"(?:walks\s+|goes\s+|is walked\s+)?(?:in|by)\s+(?:steps|chunks|tiles|blocks|groups)\s+of\s+(\d{1,6})\b"
)
"""Of a product of axes that is walked as one, "S * H in steps of 32", the first is the one that grows."""
_ORDER = re.compile(r"\b([A-Za-z]\w*), then (?=([A-Za-z]\w*))")


@dataclass(frozen=True)
class Steps:
    """What a design says of its loops."""

    of: dict[str, tuple[int, ...]]  # axis -> the steps of its loops, smallest first; 1 for an axis that is walked one by one
    named: tuple[int, ...]  # every tile, step or block that the design names, smallest first
    nested: bool  # a loop runs inside another one over the same length, so that the work grows with its square


def steps_of(design: Path, symbols: Collection[str]) -> Steps:
    """Read the steps of a design; nothing is named where there is no such file."""
    if not design.is_file():
        return Steps({}, (), nested=False)
    text = read_text(design)
    sections = list(markdown.sections(text))
    parts = [s.text for s in sections if any(word in s.title.casefold() for word in _SECTIONS)]
    of: dict[str, set[int]] = {}
    for axis, step in _rows(text, symbols):
        of.setdefault(axis, set()).add(step)
    loops = [s.text for s in sections if any(word in s.title.casefold() for word in ("loops", "循环"))]
    said = dict(step for part in loops for step in _sentences(part, symbols))
    of |= {axis: {step} for axis, step in said.items() if axis not in of}
    named = {size for part in parts for size in _named(part)} | set(tiles_in(text)) | {s for found in of.values() for s in found}
    return Steps(
        {axis: tuple(sorted(found)) for axis, found in of.items()},
        tuple(sorted(size for size in named if 1 < size <= LARGEST)),
        _is_nested("\n".join(parts)),
    )


def tiles_in(text: str) -> Iterator[int]:
    """Yield the numbers of tile calls and of constants whose names speak of tiles, in a document or a kernel."""
    for match in _CALL.finditer(text):
        yield from map(int, _NUMBER.findall(match[1]))
    for match in _NAME.finditer(text):
        yield int(match[1][:6])


def _rows(text: str, symbols: Collection[str]) -> Iterator[tuple[str, int]]:
    """Yield axis and step of each row of a table with the columns axis and loop."""
    for table in markdown.tables(text):
        axis, loop = table.column("axis", "轴"), table.column("loop", "循环")
        if axis is None or loop is None:
            continue
        for row in table.rows:
            names = [word for word in _WORD.findall(row[axis]) if word in symbols][:1]
            step = _STEP.search(row[loop])
            if names and step:
                yield names[0], int(step[1])


def _sentences(part: str, symbols: Collection[str]) -> Iterator[tuple[str, int]]:
    """Yield axis and step of sentences: those that are walked before another one in steps of 1, then the steps that are said."""
    for match in _ORDER.finditer(part):
        yield from ((name, 1) for name in match.groups() if name in symbols)
    yield from ((match[1], int(match[2])) for match in _SENTENCE.finditer(part) if match[1] in symbols)


def _named(part: str) -> Iterator[int]:
    for pattern in (_STEP, _COUNTED):
        yield from (int(match[1]) for match in pattern.finditer(part))
    for match in _PAIR.finditer(part):
        yield from (int(match[1]), int(match[2]))
    yield from (int(match[2]) for match in _CEILING.finditer(part) if int(match[1]) + 1 == int(match[2]))


def _is_nested(text: str) -> bool:
    """Whether code has a loop inside a loop over the same length, such as keys inside queries."""
    roots = _roots(text)
    open_loops: list[tuple[int, set[str]]] = []
    for match in _LOOP.finditer(text):
        depth = len(match[1])
        bound = match[3].split("name=")[0]
        lengths = set().union(*(roots.get(word, {word}) for word in _WORD.findall(bound)), set())
        open_loops = [(at, over) for at, over in open_loops if at < depth]
        if any(lengths & over for _, over in open_loops):
            return True
        open_loops.append((depth, lengths - {"if", "else", "pypto"}))
        roots[match[2]] = lengths
    return False


def _roots(text: str) -> dict[str, set[str]]:
    """Return name -> the names that it was made of by integer arithmetic: `tiles = (length + 127) // 128`."""
    roots: dict[str, set[str]] = {}
    for match in _ASSIGNED.finditer(text):
        if "//" in match[2] and "," not in match[1]:
            words = _WORD.findall(match[2].split("#")[0])
            roots[match[1]] = set().union(*(roots.get(word, {word}) for word in words), set())
    return roots
