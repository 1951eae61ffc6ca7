"""Reads pypto's docstrings: NumPy sections, dtypes, and the sentences that restrict the caller."""

from __future__ import annotations

import re
from typing import Any

_UNDERLINE = re.compile(r"-{3,}\s*$")
_PARAMETER = re.compile(r"(?P<name>\*{0,2}'?[\w, ]+'?)\s*:\s*(?P<type>.*)$")
_DTYPE = re.compile(r"\bDT_[A-Z0-9]+\b")
_RESTRICTS = re.compile(
    r"\b(must|only|required|requires|exceed|not supported|unsupported|supported|cannot|at most|at least|same (?:shape|size|"
    r"dtype|type|number)|broadcast|range|contiguous|align)",
    re.IGNORECASE,
)


def parse(text: str) -> dict[str, Any]:
    """Return summary, parameters, returns, raises, constraints, dtypes and docstring example of a docstring.

    dtypes are those that the words about parameters name; an empty list means that it says nothing.
    """
    head, sections = _sections(text)
    prose = " ".join(head.split())
    arguments = "\n".join(body for title, body in sections.items() if "arameter" in title or "Argument" in title)
    rows = _rows(arguments)
    return {
        "summary": _first_sentence(prose),
        "parameters": rows,
        "returns": " ".join(sections.get("Returns", sections.get("Return", "")).split())[:300],
        "raises": [" ".join(row) for row in _raises(sections.get("Raises", ""))],
        "constraints": _constraints(head, rows),
        "dtypes": sorted(set(_DTYPE.findall(arguments or head))),
        "docstring_example": next((body.strip() for title, body in sections.items() if title.startswith("Example")), ""),
    }


def _sections(text: str) -> tuple[str, dict[str, str]]:
    lines = text.splitlines()
    starts = [i for i in range(len(lines) - 1) if lines[i].strip() and _UNDERLINE.match(lines[i + 1].strip())]
    head = "\n".join(lines[: starts[0]] if starts else lines)
    sections = {}
    for number, start in enumerate(starts):
        end = starts[number + 1] if number + 1 < len(starts) else len(lines)
        sections[lines[start].strip().rstrip(":")] = "\n".join(lines[start + 2 : end])
    return head.strip(), sections


def _rows(body: str) -> list[dict[str, str]]:
    rows: list[dict[str, str]] = []
    indents = [len(line) - len(line.lstrip()) for line in body.splitlines() if line.strip()]
    margin = min(indents, default=0)
    for line in body.splitlines():
        found = _PARAMETER.match(line.strip())
        if found and len(line) - len(line.lstrip()) == margin:
            rows.append({"name": found["name"].strip("' "), "type": found["type"].strip(), "text": ""})
        elif rows and line.strip():
            rows[-1]["text"] = f"{rows[-1]['text']} {line.strip()}".strip()[:400]
    return rows


def _raises(body: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for line in body.splitlines():
        word = line.strip()
        if re.fullmatch(r"\w*(Error|Exception)", word):
            found.append((word, ""))
        elif found and word:
            name, text = found[-1]
            found[-1] = (name, f"{text} {word}".strip()[:300])
    return found


def _constraints(head: str, rows: list[dict[str, str]]) -> list[str]:
    """Return the sentences that restrict the caller; those about a parameter begin with its name."""
    found: list[str] = []
    for place, text in [("", head), *((row["name"], row["text"]) for row in rows)]:
        for sentence in re.split(r"(?<=[.;])\s+|\n\s*\n|\n\s*-", text):
            words = " ".join(sentence.split()).strip(" .-")
            if _RESTRICTS.search(words) and 8 < len(words) < 320:
                found.append(f"{place}: {words}" if place else words)
    return list(dict.fromkeys(found))[:12]


def _first_sentence(prose: str) -> str:
    end = re.search(r"\.(?=\s|$)", prose)
    return (prose[: end.start()] if end else prose)[:200]
