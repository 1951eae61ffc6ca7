"""Which matches in a log are evidence: a line that tells of a failure, not a number or a word in passing.

A log is full of numbers that are also error codes (steps, seeds, sizes, addresses) and of words that are also causes (names of
tests and files, checks that went well). So three things are asked of a match. Its line must not be a calm one: a level such as
INFO, or words that nothing happened. A code must stand in the syntax in which runtimes print codes. And words must not be part of
a path or of a name.
"""

from __future__ import annotations

import functools
import re

_CALM = re.compile(
    r"^(?:[^\n]{0,120}?[\s\[(<|\-])?(?:INFO|DEBUG|TRACE|EVENT|NOTICE|VERBOSE|NOTE)(?=[\s\])>|:,\-])"
    r"|^[^\n]{0,120}?(?:[\[<](?:info|debug|trace|notice)\s*[\]>]|"
    r"\"?\b(?:level|severity|lvl)\"?\s*[=:]\s*\"?(?:info|debug|trace|notice)\b)"
    r"|^(?:Info|Debug|info|debug)\s*[:\]]|^[ID]\d{4} \d\d:\d\d|^\d\d-\d\d \d\d:\d\d:\d\d\.\d+ +\d+ +\d+ [IDV] "
)
"""A level at the head of a line, as CANN, pypto, Python, glog, Android, Rust, Go and Java print it, that means no harm."""
_LEVEL = re.compile(
    r"\b(?:ERROR|FATAL|CRITICAL|SEVERE|PANIC)\b(?!\s*[=:]\s*0\b)|(?:^|\[)[EF]\d{3,4} \d\d:\d\d|"
    r"\blevel\"?\s*[=:]\s*\"?(?:error|fatal|critical)\b"
    r"|^(?:error|fatal)\b"
)
_RAISED = re.compile(
    r"\b\w*(?:Error|Exception|Interrupt)(?::|\()(?! *0\b)|\bE[A-Z]\d{4}: |terminate called|core dumped|error code is \d|"
    r"(?<!no )(?<!0 )\bfailed\b(?!\s*[=:]\s*0\b)",
    0,
)
"""What a child's words hold that a calm launcher hands on: an exception, a code, a failure."""
_WENT_WELL = re.compile(
    r"(?i)\b(?:ok|okay|passed|(?-i:PASS)(?! is)|success(?:ful(?:ly)?)?|succeeded|no (?:problem|error|issue|fault|leak|overlap)s?|"
    r"recovered|retry(?:ing)?|"
    r"retries|handled|caught|expected|ignor(?:ed|ing)|skip(?:ped|ping)?|check(?:ing|ed|s)? (?:for|that|if|whether)|"
    r"handlers?|hook(?:ed|s)?|install(?:ed|ing)|regist(?:er|ered|ering)|enabled?|disabled?|in case of|to avoid|avoids?|prevents?|"
    r"protect(?:s|ed)?|never|without|0 (?:errors?|failures?|failed)|(?:errors?|fail(?:ed|ures?)?|faults?)\s*[=:]\s*0(?! in )|"
    r"counts?\s*[=:]|metrics?|docs?|see also|example|injected|simulat(?:e|ed|ing)|set to|defaults?|threshold is|"
    r"limits?\s*[=:])(?!\w)"
)
"""Words of a line that speaks of a failure without having one."""
_HARM = re.compile(
    r"(?i)\berr(?:or|no|code)?s?\b|error|exception|\bfail|\bfatal|\babort|traceback|\bcrash|\bpanic|cannot|can't|could not|"
    r"unable|refus|"
    r"\bE[A-Z]\d{4}[:\[)]|错误|失败|无法|异常"
)
_NO_HARM = re.compile(
    r"(?i)\b(?:0|no|zero|without) (?:errors?|failures?|failed|exceptions?|faults?)|(?:errors?|fail(?:ed|ures?)?|exceptions?|"
    r"faults?)\s*[=:]\s*(?:0\b|none)|"
    r"\S*(?:/|\\)\S*|\b[\w.-]+\.(?:py|log|txt|md|json|ya?ml|cc?|cpp|h|hpp|bin|pt|ckpt|csv)\b|\btest_\w+|\berror (?:rate|bound|"
    r"handl\w+|budget)"
)
"""What takes the harm out of such words: a count of none, a path, a file's name, the name of a measure."""
_NUMBER = re.compile(r"-?\d{6}")
_NAMED = re.compile(r"E[A-Z]?\d{4,5}", re.IGNORECASE)
_CODE_BEFORE = re.compile(
    r"(?i)(?:\b(?:error|err|ret|return|exit|status|result)[ _-]?(?:code|no)\b|\bruntime result|\berrno|\bwith code|\bretval|"
    r"\b(?:rt|acl|hal)[A-Z]\w+(?:\([^()]*\))?(?: failed)?|\bfail(?:ed|ure)?)\s*(?:is|was|with|of)?\s*[:=(\[]*\s*\"?$"
)
"""What stands before a number that is a code."""
_CODE_NEAR = re.compile(
    r"(?i)(?:\b(?:code|ret|rc|result|status|error(?: \w{2,6})?|returned?|err|desc)\s*(?:is|with)?\s*[:=(\[]*\s*)$"
)
"""What stands before one in a line that tells of a failure anyhow."""
_PATH_BEFORE, _PATH_AFTER = "/\\.-_", "/\\_"
_SHOWN_NAME = re.compile(r"\s*(?:\)?:? ?\[PID|\)?: (?:\[|\d{4}-|Inner)|\):|\[[A-Z]|\s+[\[A-Z])")


def counts(text: str, found: re.Match[str]) -> bool:
    """Say whether a match in a log is evidence of a failure.

    Args:
        text: the log's words.
        found: a match in it.
    """
    words = found[0].strip(" \t\r\n(:")
    at = found.start() + found[0].index(words)  # a match may begin with the end of the line before
    begin, end = text.rfind("\n", 0, at) + 1, text.find("\n", at)
    line = text[begin : end if end >= 0 else len(text)]
    first, last = at - begin, min(at - begin + len(words), len(line))
    if line.strip(" \t\r\"'") == words and (len(line) == len(text.rstrip()) or not _NUMBER.fullmatch(words)):
        return True  # somebody asks about these very words
    rest = f"{line[:first]} {line[last:]}"
    if not _tells(line, rest):
        return False
    if _NUMBER.fullmatch(words):
        return _is_code(line, first, last)
    if _NAMED.fullmatch(words):
        return _is_name(line, first, last)
    return _is_harmful(rest) or not _in_a_path(line, first, last)


@functools.lru_cache(maxsize=8192)
def _tells(line: str, rest: str) -> bool:
    """Say whether a line may tell of a failure at all; `rest` is what it has beside the words in question."""
    if _LEVEL.search(line[:200]):
        return True
    if _CALM.match(line):
        return bool(_RAISED.search(line)) and not _WENT_WELL.search(line)
    return _is_harmful(rest) or not _WENT_WELL.search(line)


@functools.lru_cache(maxsize=8192)
def _is_harmful(line: str) -> bool:
    """Say whether a line has words of a failure of its own, beside those that were matched."""
    return bool(_LEVEL.search(line[:200]) or _HARM.search(_NO_HARM.sub(" ", line)))


def _is_code(line: str, begin: int, end: int) -> bool:
    before, after = line[max(0, begin - 60) : begin], line[end : end + 8]
    if (
        before[-1:] in tuple(_PATH_BEFORE)
        or after[:1] in tuple(_PATH_AFTER)
        or re.match(r"\.\d|\.\w+\b", after)
        and after[1:2].isdigit()
    ):
        return False
    if after.startswith(", desc=") or _CODE_BEFORE.search(before):
        return True
    return _is_harmful(line) and bool(_CODE_NEAR.search(before))


def _is_name(line: str, begin: int, end: int) -> bool:
    before, after = line[max(0, begin - 60) : begin], line[end : end + 12]
    if before[-1:] in tuple(_PATH_BEFORE) or after[:1] in tuple(_PATH_AFTER):
        return False
    return (
        not before.strip(" \t[]0123456789rank:") or _is_harmful(line[:begin] + " " + line[end:]) or bool(_SHOWN_NAME.match(after))
    )


def _in_a_path(line: str, begin: int, end: int) -> bool:
    """Say whether the words are a part of a path or name, such as `logs/SIGSEGV.txt`."""
    inside = not re.search(r"\s", line[begin:end]) and (
        line[begin - 1 : begin] in tuple("/\\_") or line[end : end + 1] in tuple("/\\_")
    )
    named = re.match(r"\.(?:py|log|txt|md|json|ya?ml|bin|pt|ckpt|csv)\b", line[end : end + 6])
    return bool(inside or named)
