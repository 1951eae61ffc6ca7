"""Shell words as patterns: what a word of a command could become when the shell expands it.

A pattern is a string with special characters: `ANY` stands for text that nobody can know before the command
runs, `STAR` for text that a glob may match inside one folder, `LISTED` for names that a program prints: who reads
what is called so may read any file. Everything else stands for itself.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from typing import Any

ANY = "\x00"
STAR = "\x01"
SPLIT = "\x02"
LISTED = "\x06"
_OPEN, _COMMA, _CLOSE = "\x03", "\x04", "\x05"
_BRACE_MARKS = str.maketrans({_OPEN: "{", _COMMA: ",", _CLOSE: "}"})
_BRACES = re.compile(f"{_OPEN}([^{_OPEN}{_CLOSE}]*){_CLOSE}")
_SPECIAL = dict.fromkeys(range(7), "�")
_MAX_FIELDS = 256
_MAX_LENGTH = 1 << 16

Node = dict[str, Any]


def is_known(pattern: str) -> bool:
    """Say whether a pattern is one plain text."""
    return not {ANY, STAR, LISTED} & set(pattern)


def clean(command: str) -> str:
    """Return the command without the characters that patterns use as marks."""
    return command.translate(_SPECIAL)


def pattern_regex(pattern: str) -> re.Pattern[str]:
    """Compile a pattern into a regular expression for whole texts."""
    pieces = [{ANY: r".*", LISTED: r".*", STAR: r"[^/]*"}.get(c) or re.escape(c) for c in pattern]
    return re.compile("".join(pieces) + r"\Z", re.DOTALL)


class Expander:
    """Expands words.

    Args:
        variables: what the shell's variables hold: patterns; a list is its items joined by the split mark.
        substitute: analyses a command substitution and returns its output as a pattern.
    """

    def __init__(self, variables: dict[str, str], substitute: Callable[[list[Node]], str]) -> None:
        self.variables = variables
        self.substitute = substitute

    def fields(self, word: Node | None) -> list[str]:
        """Return the patterns of the fields that `word` expands to."""
        quoted = any(part.get("Type") in ("SglQuoted", "DblQuoted") for part in (word or {}).get("Parts") or [])
        found: list[str] = []
        for item in _expand_braces(self._joined(word)[:_MAX_LENGTH]):
            pieces = item.split(SPLIT)
            found += pieces if quoted and len(pieces) == 1 else [piece for piece in pieces if piece]
            if len(found) > _MAX_FIELDS:
                return [LISTED]
        return found

    def text(self, word: Node | None) -> str:
        """Return `word` as one pattern, without splitting (assignments, here-documents, redirect targets)."""
        return self._joined(word)[:_MAX_LENGTH].replace(SPLIT, " ").translate(_BRACE_MARKS)

    def here_document(self, redirect: Node) -> str:
        """Return the text of a here-document as a pattern."""
        delimiter = (redirect.get("Word") or {}).get("Parts") or []
        parts = (redirect.get("Hdoc") or {}).get("Parts") or []
        if any(p.get("Type") != "Lit" or "\\" in p.get("Value", "") for p in delimiter):
            return "".join(part.get("Value", "") for part in parts)
        return "".join(self._part(part, quoted=True) for part in parts).replace(SPLIT, " ")

    def _joined(self, word: Node | None) -> str:
        parts = (word or {}).get("Parts") or []
        return "".join(self._part(part, quoted=False, first=i == 0) for i, part in enumerate(parts))

    def _part(self, part: Node, *, quoted: bool, first: bool = False) -> str:
        kind = part.get("Type")
        if kind == "Lit":
            value = part.get("Value", "")
            return _unescape_quoted(value) if quoted else self._unquoted(value, first)
        if kind == "SglQuoted":
            return _ansi_c(part.get("Value", "")) if part.get("Dollar") else str(part.get("Value", ""))
        if kind == "DblQuoted":
            return "".join(self._part(inner, quoted=True) for inner in part.get("Parts") or [])
        if kind == "ProcSubst":
            self.substitute(part.get("Stmts") or [])
            return "/dev/fd/63"
        if kind in ("ParamExp", "CmdSubst"):
            value = self._parameter(part) if kind == "ParamExp" else self.substitute(part.get("Stmts") or [])
            return value if quoted else re.sub(r"[ \t\n]+", SPLIT, value)
        return STAR if kind == "ExtGlob" else ANY

    def _unquoted(self, value: str, first: bool) -> str:
        out = []
        home = self.variables.get("HOME", ANY)
        if first and (value == "~" or value.startswith("~/")):
            out.append(home)
            value = value[1:]
        value = re.sub(r"(?<==)~(?=/|$)", home.replace("\\", r"\\"), value)
        for token in re.findall(r"\\\n|\\.|\[[^\]\s/]*\]|\*\*+|.", value, re.DOTALL):
            if token.startswith("\\"):
                out.append("" if token == "\\\n" else token[1:])
            elif token in "*?" or len(token) > 1:
                out.append(ANY if token.startswith("**") else STAR)  # `**` crosses folders where globstar is on
            else:
                out.append({"{": _OPEN, ",": _COMMA, "}": _CLOSE}.get(token, token))
        return "".join(out)

    def _parameter(self, part: Node) -> str:
        """Return the value of `$x` and `${x:-y}`; what other forms give is not followed."""
        if any(part.get(key) for key in ("Length", "Width", "Excl", "Names", "Repl", "Slice")):
            return ANY
        value, expansion = self._lookup((part.get("Param") or {}).get("Value", ""), part), part.get("Exp")
        if not expansion:
            return ANY if value is None else value
        operator = expansion.get("Op", "")
        if operator in (":-", "-", ":=", "="):
            other = self.text(expansion.get("Word")) if expansion.get("Word") else ""
            return other if value is None or (value == "" and ":" in operator) else value
        return value if value is not None and operator in (":?", "?") else ANY

    def _lookup(self, name: str, part: Node) -> str | None:
        value, item = self.variables.get(name), part.get("Index")
        whole = not item or (item.get("Parts") or [{}])[0].get("Value", "") in ("@", "*")
        return value if value is None or whole or SPLIT not in value else LISTED


def _unescape_quoted(value: str) -> str:
    return re.sub(r"\\([$`\"\\])|\\\n", lambda m: m.group(1) or "", value)


def _ansi_c(value: str) -> str:
    try:
        decoded = codecs.decode(value.encode("latin-1", "backslashreplace"), "unicode_escape")
    except (UnicodeDecodeError, ValueError):
        return ANY
    return decoded.translate(_SPECIAL)


def _expand_braces(text: str) -> list[str]:
    """Expand `{a,b}`; of `{1..3}` only the folder is known, and a brace that is no expansion stays as it is."""
    for match in _BRACES.finditer(text):
        body = match.group(1)
        items = body.split(_COMMA) if _COMMA in body else [STAR] if ".." in body else []
        out: list[str] = []
        for item in items:
            out += _expand_braces(text[: match.start()] + item + text[match.end() :])
            if len(out) > _MAX_FIELDS:
                return [LISTED]
        if out:
            return out
    return [text.translate(_BRACE_MARKS)]
