"""Shell words as patterns: what a word of a command could become when the shell expands it.

A pattern is a string with two special characters: `ANY` stands for text that nobody can know before the
command runs, `STAR` for text that a glob may match inside one folder. Everything else stands for itself.
"""

from __future__ import annotations

import codecs
import fnmatch
import itertools
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

ANY = "\x00"
STAR = "\x01"
_SPLIT, _OPEN, _COMMA, _CLOSE = "\x02", "\x03", "\x04", "\x05"
_BRACE_MARKS = str.maketrans({_OPEN: "{", _COMMA: ",", _CLOSE: "}"})
_SPECIAL = dict.fromkeys(range(6), "�")
_MAX_FIELDS = 256
_MAX_LENGTH = 1 << 16

Node = dict[str, Any]


def is_known(pattern: str) -> bool:
    """Say whether a pattern is one plain text."""
    return ANY not in pattern and STAR not in pattern


def clean(command: str) -> str:
    """Return the command without the characters that patterns use as marks."""
    return command.translate(_SPECIAL)


def pattern_regex(pattern: str) -> re.Pattern[str]:
    """Compile a pattern into a regular expression for whole texts."""
    pieces = [{ANY: r".*", STAR: r"[^/]*"}.get(c) or re.escape(c) for c in pattern]
    return re.compile("".join(pieces) + r"\Z", re.DOTALL)


@dataclass
class Variables:
    """What the shell's variables hold. A value is a pattern; a list is its items joined by the split mark."""

    values: dict[str, str] = field(default_factory=dict)
    arguments: list[str] = field(default_factory=list)

    def copy(self) -> Variables:
        """Return an independent copy, for a subshell."""
        return Variables(dict(self.values), list(self.arguments))

    def merge(self, other: Variables) -> None:
        """Keep only what both ways through a branch agree on."""
        for name in set(self.values) | set(other.values):
            if self.values.get(name) != other.values.get(name):
                self.values[name] = ANY


class Expander:
    """Expands words. `substitute` analyses a command substitution and returns its output as a pattern."""

    def __init__(self, variables: Variables, substitute: Callable[[list[Node]], str]) -> None:
        self.variables = variables
        self.substitute = substitute

    def fields(self, word: Node | None) -> list[str]:
        """Return the patterns of the fields that `word` expands to."""
        parts = (word or {}).get("Parts") or []
        text = "".join(self._part(part, quoted=False, first=i == 0) for i, part in enumerate(parts))
        quoted = any(part.get("Type") in ("SglQuoted", "DblQuoted") for part in parts)
        found: list[str] = []
        for item in _expand_braces(text[:_MAX_LENGTH]):
            pieces = item.split(_SPLIT)
            found += pieces if quoted and len(pieces) == 1 else [piece for piece in pieces if piece]
            if len(found) > _MAX_FIELDS:
                return [ANY]
        return found

    def text(self, word: Node | None) -> str:
        """Return `word` as one pattern, without splitting (assignments, here-documents, redirect targets)."""
        parts = (word or {}).get("Parts") or []
        text = "".join(self._part(part, quoted=False, first=i == 0) for i, part in enumerate(parts))
        return text[:_MAX_LENGTH].replace(_SPLIT, " ").translate(_BRACE_MARKS)

    def here_document(self, redirect: Node) -> str:
        """Return the text of a here-document as a pattern."""
        delimiter = (redirect.get("Word") or {}).get("Parts") or []
        literal = any(p.get("Type") != "Lit" or "\\" in p.get("Value", "") for p in delimiter)
        parts = (redirect.get("Hdoc") or {}).get("Parts") or []
        if literal:
            return "".join(part.get("Value", "") for part in parts)
        return "".join(self._part(part, quoted=True) for part in parts).replace(_SPLIT, " ")

    def _part(self, part: Node, *, quoted: bool, first: bool = False) -> str:
        kind = part.get("Type")
        if kind == "Lit":
            value = part.get("Value", "")
            return _unescape_quoted(value) if quoted else self._unquoted(value, first)
        if kind == "SglQuoted":
            return _ansi_c(part.get("Value", "")) if part.get("Dollar") else str(part.get("Value", ""))
        if kind == "DblQuoted":
            return "".join(self._part(inner, quoted=True) for inner in part.get("Parts") or [])
        if kind == "ParamExp":
            value = self._parameter(part)
            return value if quoted else re.sub(r"[ \t\n]+", _SPLIT, value)
        if kind in ("CmdSubst", "ProcSubst"):
            output = self.substitute(part.get("Stmts") or [])
            if kind == "ProcSubst":
                return "/dev/fd/63"
            return output if quoted else re.sub(r"[ \t\n]+", _SPLIT, output)
        if kind == "ExtGlob":
            return STAR
        return ANY

    def _unquoted(self, value: str, first: bool) -> str:
        out = []
        home = self.variables.values.get("HOME", ANY)
        if first and (value == "~" or value.startswith("~/")):
            out.append(home)
            value = value[1:]
        value = re.sub(r"(?<==)~(?=/|$)", home.replace("\\", r"\\"), value)
        for token in re.findall(r"\\\n|\\.|\[[^\]\s/]*\]|.", value, re.DOTALL):
            if token.startswith("\\"):
                out.append("" if token == "\\\n" else token[1:])
            elif token in "*?" or len(token) > 1:
                out.append(STAR)
            else:
                out.append({"{": _OPEN, ",": _COMMA, "}": _CLOSE}.get(token, token))
        return "".join(out)

    def _parameter(self, part: Node) -> str:
        name = (part.get("Param") or {}).get("Value", "")
        if part.get("Length") or part.get("Width") or part.get("Excl") or part.get("Names"):
            return ANY
        value = self._lookup(name, part)
        expansion = part.get("Exp")
        if expansion:
            return self._modified(value, expansion)
        if part.get("Repl"):
            return self._replaced(value, part["Repl"])
        if value is None or part.get("Slice"):
            return ANY
        return value

    def _lookup(self, name: str, part: Node) -> str | None:
        arguments = self.variables.arguments
        if name == "*" and "IFS" in self.variables.values:
            return ANY
        if name in ("@", "*"):
            return _SPLIT.join(arguments) if arguments else None
        if name.isdecimal() and name != "0":
            index = int(name) - 1
            return arguments[index] if index < len(arguments) else None
        value = self.variables.values.get(name)
        index_node = part.get("Index")
        if index_node and value is not None and _literal(index_node) not in ("@", "*"):
            return ANY if _SPLIT in value else value
        return value

    def _modified(self, value: str | None, expansion: Node) -> str:
        operator = expansion.get("Op", "")
        other = self.text(expansion.get("Word")) if expansion.get("Word") else ""
        if operator in (":-", "-", ":=", "="):
            return other if value is None or (value == "" and ":" in operator) else value
        if operator in (":+", "+"):
            return ANY
        if value is None or ANY in value or ANY in other or _SPLIT in value:
            return ANY
        if operator in ("%", "%%", "#", "##"):
            return _trimmed(value, other.replace(STAR, "*"), operator)
        return {"^^": value.upper(), ",,": value.lower(), ":?": value, "?": value}.get(operator, ANY)

    def _replaced(self, value: str | None, replacement: Node) -> str:
        old = self.text(replacement.get("Orig"))
        new = self.text(replacement.get("With")) if replacement.get("With") else ""
        if value is None or not old or not all(is_known(t) for t in (value, old, new)):
            return ANY
        return value.replace(old, new) if replacement.get("All") else value.replace(old, new, 1)


def _literal(node: Node) -> str:
    parts = node.get("Parts") or [{}]
    return str(parts[0].get("Value", ""))


def _unescape_quoted(value: str) -> str:
    return re.sub(r"\\([$`\"\\])|\\\n", lambda m: m.group(1) or "", value)


def _ansi_c(value: str) -> str:
    try:
        decoded = codecs.decode(value.encode("latin-1", "backslashreplace"), "unicode_escape")
    except (UnicodeDecodeError, ValueError):
        return ANY
    return decoded.translate(_SPECIAL)


def _trimmed(value: str, glob: str, operator: str) -> str:
    """Apply `${v%glob}` and its three sisters to a known value."""
    lengths = range(len(value) + 1)
    if operator.startswith("%"):
        hits = [n for n in lengths if fnmatch.fnmatchcase(value[n:], glob)]
        return value if not hits else value[: min(hits) if operator == "%%" else max(hits)]
    hits = [n for n in lengths if fnmatch.fnmatchcase(value[:n], glob)]
    return value if not hits else value[max(hits) if operator == "##" else min(hits) :]


def _expand_braces(text: str) -> list[str]:
    """Expand `{a,b}` and `{1..3}`; a brace that is no expansion stays as it is."""
    found = _innermost(text)
    if found is None:
        return [text.translate(_BRACE_MARKS)]
    start, end, items = found
    out: list[str] = []
    for item in items:
        out += _expand_braces(text[:start] + item + text[end:])
        if len(out) > _MAX_FIELDS:
            return [ANY]
    return out


def _innermost(text: str) -> tuple[int, int, list[str]] | None:
    for match in itertools.islice(re.finditer(f"{_OPEN}([^{_OPEN}{_CLOSE}]*){_CLOSE}", text), 64):
        body = match.group(1)
        if _COMMA in body:
            return match.start(), match.end(), body.split(_COMMA)
        span = re.fullmatch(r"(-?\d{1,6})\.\.(-?\d{1,6})", body)
        if span:
            low, high = int(span.group(1)), int(span.group(2))
            step = 1 if low <= high else -1
            numbers = [str(n) for n in range(low, high + step, step)]
            return match.start(), match.end(), numbers if len(numbers) <= _MAX_FIELDS else [ANY]
    return None
