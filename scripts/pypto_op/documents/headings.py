"""What the documents must say: the sections of `headings.yaml`, and no word on what is left to do."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from pypto_op.documents.markdown import Section, find_section
from pypto_op.documents.reading import read_yaml
from pypto_op.documents.schema import Finding

_MARK = r"(?:TODO|TBD|FIXME)\b"
_UNFINISHED = re.compile(
    # A mark that stands for something: at the beginning of a line, cell, bracket or value, or followed by a colon. In the
    # middle of a sentence ("no TODO is left") it is a word.
    rf"(?:^|[|:=(\[<{{,\"'`])[\s>*#_-]*({_MARK})|\b(TODO|TBD|FIXME)\s*[:(]|(待补充|待定|待填写)"
)
_PLACEHOLDER_LINE = re.compile(r"^[\s>*-]*(?:<[^<>\n]+>|\{\{[^{}\n]*\}\}|\.{3}|…+)[.。]?\s*$", re.MULTILINE)
"""A line that only says that something belongs there: `<the plan>`, `{{ plan }}`, `...`."""


def unfinished(text: str, *, first_line: int = 1) -> Iterator[Finding]:
    """Yield a finding for each line on which something is still to be written, code and comments included."""
    for number, line in enumerate(text.split("\n")):
        match = _UNFINISHED.search(line)
        if match:
            word = next(group for group in match.groups() if group)
            yield Finding("", f"{word} is left: {line.strip()[:80]}", number + first_line)


@lru_cache(maxsize=1)
def required_headings() -> dict[str, dict[str, dict[str, Any]]]:
    """Return `headings.yaml`: the sections each document needs, and the words that name or prove them."""
    data = read_yaml(Path(__file__).with_name("headings.yaml"))
    assert isinstance(data, dict)
    return data


def check_sections(document: str, found: Sequence[Section]) -> Iterator[Finding]:
    """Yield what `headings.yaml` asks of `document` (`spec`, `design`, ...) and the sections do not give."""
    for key, rule in required_headings()[document].items():
        section = find_section(found, rule["titles"])
        if section is None:
            titles = " or ".join(repr(title) for title in rule["titles"][:2])
            yield Finding("", f"the section on {key.replace('_', ' ')} is missing: write a heading {titles}")
            continue
        text = section.text.casefold()
        if not _PLACEHOLDER_LINE.sub("", text).strip():
            yield Finding(section.title, "the section is empty", section.line)
        for alternatives in rule.get("mentions", []):
            if text.strip() and not any(word.casefold() in text for word in alternatives):
                yield Finding(section.title, f"mentions none of {', '.join(alternatives)}", section.line)
