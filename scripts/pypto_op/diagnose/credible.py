"""Which matches in a log are evidence: a line that tells of a failure, not a number or a word in passing.

A log is full of numbers that are also error codes (steps, seeds, sizes, addresses) and of words that are also causes (names of
tests and files, checks that went well). So three things are asked of a match. Its line must not be a calm one: no level such as
INFO, and nothing beside the match that says that it did not happen, or that it is the name of a handler or a check. A code must
stand in the syntax in which runtimes print codes. And words must not be part of a path or of a name. The words of each kind are
data (`credible.yaml`).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from pypto_op.documents import schema

FILE = Path(__file__).with_name("credible.yaml")

_NUMBER = re.compile(r"-?\d{6}")
_NAMED = re.compile(r"E[A-Z]?\d{4,5}", re.IGNORECASE)
_PATH_BEFORE, _PATH_AFTER = "/\\.-_", "/\\_"


@functools.cache
def words_of(name: str) -> re.Pattern[str]:
    """Return the words of a kind that `credible.yaml` has, as one expression.

    Raises:
        ContractError: the file is not as schemas/credible.schema.json says.
    """
    kind = _data()[name]
    return re.compile("|".join(f"(?:{one})" for one in kind["patterns"]), re.IGNORECASE if kind.get("ignore_case") else 0)


@functools.cache
def _data() -> Mapping[str, Any]:
    data: Mapping[str, Any] = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    schema.check(data, "credible", file=FILE)
    return data


def counts(text: str, found: re.Match[str]) -> bool:
    """Say whether a match in a log is evidence of a failure."""
    words = found[0].strip(" \t\r\n(:")
    at = found.start() + found[0].index(words)  # a match may begin with the end of the line before
    begin, end = text.rfind("\n", 0, at) + 1, text.find("\n", at)
    line = text[begin : end if end >= 0 else len(text)]
    first, last = at - begin, min(at - begin + len(words), len(line))
    if line.strip(" \t\r\"'") == words and (len(line) == len(text.rstrip()) or not _NUMBER.fullmatch(words)):
        return True  # somebody asks about these very words
    if not _tells(line, first, last):
        return False
    if _NUMBER.fullmatch(words):
        return _is_code(line, first, last)
    if _NAMED.fullmatch(words):
        return _is_name(line, first, last)
    return _is_harmful(f"{line[:first]} {line[last:]}") or not _in_a_path(line, first, last)


@functools.lru_cache(maxsize=8192)
def _tells(line: str, first: int, last: int) -> bool:
    """Say whether a line tells that what stands at `first` to `last` of it happened."""
    before, after = line[max(0, first - 80) : first], line[last : last + 80]
    if words_of("loud_level").search(line[:200]):
        return True
    if words_of("denied").search(before):
        return False
    well = bool(
        words_of("hypothetical").search(before) or words_of("thing").search(after) or words_of("ended_well").search(line[:1000])
    )
    if words_of("calm_level").match(line):
        return bool(words_of("raised").search(line)) and not well
    return not well or _is_harmful(f"{line[:first]} {line[last:]}")


@functools.lru_cache(maxsize=8192)
def _is_harmful(line: str) -> bool:
    """Say whether a line has words of a failure of its own, beside those that were matched."""
    return bool(words_of("loud_level").search(line[:200]) or words_of("harm").search(words_of("no_harm").sub(" ", line)))


def _is_code(line: str, begin: int, end: int) -> bool:
    before, after = line[max(0, begin - 60) : begin], line[end : end + 8]
    if (
        before[-1:] in tuple(_PATH_BEFORE)
        or after[:1] in tuple(_PATH_AFTER)
        or re.match(r"\.\d|\.\w+\b", after)
        and after[1:2].isdigit()
    ):
        return False
    if after.startswith(", desc=") or words_of("code_before").search(before):
        return True
    return _is_harmful(line) and bool(words_of("code_near").search(before))


def _is_name(line: str, begin: int, end: int) -> bool:
    before, after = line[max(0, begin - 60) : begin], line[end : end + 12]
    if before[-1:] in tuple(_PATH_BEFORE) or after[:1] in tuple(_PATH_AFTER):
        return False
    return (
        not before.strip(" \t[]0123456789rank:")
        or _is_harmful(line[:begin] + " " + line[end:])
        or bool(words_of("shown_name").match(after))
    )


def _in_a_path(line: str, begin: int, end: int) -> bool:
    """Say whether the words are a part of a path or name, such as `logs/SIGSEGV.txt`."""
    inside = not re.search(r"\s", line[begin:end]) and (
        line[begin - 1 : begin] in tuple("/\\_") or line[end : end + 1] in tuple("/\\_")
    )
    named = re.match(r"\.(?:py|log|txt|md|json|ya?ml|bin|pt|ckpt|csv)\b", line[end : end + 6])
    return bool(inside or named)
