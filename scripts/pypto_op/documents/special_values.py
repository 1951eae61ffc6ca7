"""Which special values SPEC.md makes legal inputs: NaN, -inf, infinities, the largest number, denormals, negative zero."""

from __future__ import annotations

import re
from collections.abc import Collection

from pypto_op.documents import markdown

_EDGE_CASES = re.compile(r"edge cases", re.I)
_SPECIAL_WORDS = (
    ("one_inf", re.compile(r"(?<![-\w])\+?inf(inity)?\b", re.I)),
    ("minus_zero", re.compile(r"-0(\.0)?(?![\w.])|negative zero", re.I)),
    ("denormal", re.compile(r"(de|sub)normal", re.I)),
    ("largest", re.compile(r"largest (finite|float|value)|finfo", re.I)),
)
_RULED_OUT = re.compile(r"\b(not|no|never|without|raises?|undefined|outside)\b", re.I)
_OUTSIDE = re.compile(r"\b(outside|undefined|illegal|excluded|never (occur|appear)s?|raises?)\b")
_NOT_LEGAL = re.compile(r"\b(outside (of )?(the|its|this|our) (domain|contract|spec\w*)|(illegal|excluded|ruled out)\b)")
_NAN = re.compile(r"\bnans?\b")
_OPEN = re.compile(r"\b(may|might|need not|unspecified|not (said|specified|promised|defined))\b")
_LEAVE = re.compile(r"\b(may|might) (also |well |even )?(hold|contain|carry|occur|appear|lie|stand|sit)s?\b")
"""What an input may hold is a leave, and says nothing of how far it reaches."""
_OUTPUT_ROW = re.compile(r"^\|\s*`?(\w+)`?\s*\|\s*output\s*\|", re.M)
_LEFT_OUT = re.compile(r"\b(left|leaves?|leaving) out\b")
_CONDITIONAL = re.compile(r"[\s*-]*(under|with|when|where|if)\b")
_IT = re.compile(r"\bit\b")
_MINUS_INF = re.compile(r"(?<!\w)-inf\b")
_CLOSED = re.compile(
    r"\b(nothing but|only|all|entirely|wholly|fully|completely|every\w*)\b[^,:]{0,40}?(?<!\w)(-inf|masked|closed)\b"
    r"|(?<!\w)(-inf (throughout|everywhere|only)|(masked|closed) (entirely|wholly|fully|completely))\b"
)
_SOME_STAY = re.compile(r"\b(at least|never|not|no) (one|all|every|row|entirely|wholly|fully|completely)\b")
_OF_A_RESULT = re.compile(r"\b(results?|outputs?|overflow\w*|beyond)\b", re.I)
_FINITE = re.compile(r"(?<!or )(?<!not )\bfinite\b(?! or\b)")
_POSITIVE = (
    r"(> ?0(\.0)?(?![\d.])|positive\b|(above|more than|greater than) (0(?![\d.])|zero)|non-?zero\b|(not|never) (0(?![\d.])|zero))"
)
_NEVER_ZERO = re.compile(rf"(?<!non-)(?<![\w-]){_POSITIVE}")
_SAYS_FINITE = re.compile(
    r"(?!.*\b(where|when|if)\b.*finite)(?P<names>[\w`, ]+?) (is|are|stays?|must be)( always)? finite\b(?! or\b)"
)


def says_nan(text: str) -> bool:
    """Whether SPEC.md, whose text this is, speaks of NaN in a sentence that does not rule it out: it is a legal input then."""
    return any(_NAN.search(part) and not _OUTSIDE.search(part) for part in _statements(text))


def nan_ruled_out(text: str, names: Collection[str]) -> dict[str, str]:
    """Return the inputs in which SPEC.md rules NaN out, in part at least, with the sentence that does.

    "If keep is 0, dy may be NaN. NaN in rows that count is outside the domain": a NaN in `dy` is legal where nobody can say
    without running the golden. A sentence that names none of the inputs is about all of them.

    Args:
        text: SPEC.md's.
        names: the inputs.
    """
    found: dict[str, str] = {}
    for part in _statements(text):
        if _NAN.search(part) and _NOT_LEGAL.search(part):
            words = set(re.findall(r"\w+", part))
            named = [name for name in names if name.lower() in words] or names
            found |= {name: " ".join(part.split()) for name in named if name not in found}
    return found


def nan_is_open(text: str) -> str:
    """Return the sentence of SPEC.md that leaves open how far a NaN reaches ("it may reach later tokens"), "" where none does.

    The golden has one reach then, and a right kernel another. A sentence about a condition ("under the flag ...") leaves the
    ordinary call as it is, and so does one of what inputs may hold ("rows that nobody names may hold NaN").
    """
    before, outputs = "", set(_OUTPUT_ROW.findall(text.lower()))
    for part in _statements(text):
        about = _NAN.search(part) or (_IT.search(part) and _NAN.search(before))
        words = re.findall(r"\w+", _LEFT_OUT.sub("", part))
        of_a_result = _OF_A_RESULT.search(part) or not outputs.isdisjoint(words)
        said = part if of_a_result else _LEAVE.sub("", part)
        if about and _OPEN.search(said) and not _CONDITIONAL.match(part) and not _OUTSIDE.search(part):
            return " ".join(part.split())
        before = part
    return ""


def says_minus_inf(text: str) -> bool:
    """Whether SPEC.md speaks of -inf in a sentence that does not rule it out."""
    return any(_MINUS_INF.search(part) and not _OUTSIDE.search(part) and "not " not in part for part in _statements(text))


def says_closed(text: str) -> bool:
    """Whether SPEC.md says what becomes of a row of nothing but -inf, such as one that a mask closes."""
    return any(_CLOSED.search(part) and not _OUTSIDE.search(part) and not _SOME_STAY.search(part) for part in _statements(text))


def is_finite(text: str, name: str) -> bool:
    """Whether SPEC.md says that an input is finite, in a sentence ("x and r are finite") or in the input's row of a table."""
    for part in _statements(text):
        if _MINUS_INF.search(part):
            continue
        said = _SAYS_FINITE.match(part.strip(" \n-*"))
        row = [cell.strip(" `\n") for cell in part.strip().split("|")[1:]]
        if said and name.lower() in re.findall(r"\w+", said["names"]):
            return True
        if row and row[0] == name.lower() and any(_FINITE.search(cell) for cell in row[1:]):
            return True
    return False


def is_never_zero(text: str, name: str) -> bool:
    """Whether SPEC.md says that a number is positive, or not 0: by its name ("eps > 0", "eps is positive"), or in its table row.

    What else a sentence holds says nothing of it: `scale * [count > 0]` is about the count.
    """
    said = re.compile(rf"(?<![\w.]){re.escape(name.lower())}`?\s*(is |must be |stays |has to be )?(always )?{_POSITIVE}")
    for part in _statements(text):
        row = [cell.strip(" `\n") for cell in part.strip().split("|")[1:]]
        if said.search(part) or (row and name.lower() in re.split(r"\W+", row[0]) and _NEVER_ZERO.search(" | ".join(row[1:]))):
            return True
    return False


def zones(text: str) -> list[str]:
    """Return the zones of special values that the edge cases of SPEC.md name, and do not rule out in the same sentence.

    A result that overflows to Inf makes no Inf a legal input.
    """
    parts = [
        part for section in markdown.sections(text) if _EDGE_CASES.search(section.title) for part in _sentences(section.text)
    ]
    said = [part for part in parts if not _RULED_OUT.search(part)]
    inputs = [part for part in said if not _OF_A_RESULT.search(part)]
    return [zone for zone, word in _SPECIAL_WORDS if any(word.search(part) for part in (inputs if zone == "one_inf" else said))]


def _sentences(text: str) -> list[str]:
    return [part for part in re.split(r"[.;](?=\s|$)|\n", text) if part.strip()]


def _statements(text: str) -> list[str]:
    return re.split(r"[.;](?=\s|$)|\n(?=\s*[-#|\n])", text.lower())
