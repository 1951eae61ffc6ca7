"""Limits that a person wrote as words: "values lie between 0.001 and about 100", "never below 1", "up to 1e4", "not negative".

A clause is read where it is a limit from its first word to its last. Whatever else it holds ("values above 10 are clipped",
"usually between 0 and 1") it says something that nobody here can know, so it is no limit.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from pypto_op.python_text import UNREADABLE, expression, names_in


@dataclass(frozen=True)
class Limits:
    """The ends that words give a value, as text of a number or of a size ("T - 1"); "" where they give none."""

    # low, high: the ends
    low: str = ""
    high: str = ""
    # open_low, open_high: the end itself is no legal value
    open_low: bool = False
    open_high: bool = False
    reach: bool = False  # the words said "up to" alone, which of a signed number speaks of both sides

    def of(self, name: str) -> list[str]:
        """Return them as comparisons, the form of `shape_constraints`."""
        low = [f"{self.low} {'<' if self.open_low else '<='} {name}"] if self.low else []
        return low + ([f"{name} {'<' if self.open_high else '<='} {self.high}"] if self.high else [])

    def within(self, other: Limits) -> Limits | None:
        """Return both together; None where they speak of the same end and differ."""
        if (self.low and other.low and (self.low, self.open_low) != (other.low, other.open_low)) or (
            self.high and other.high and (self.high, self.open_high) != (other.high, other.open_high)
        ):
            return None
        low, high = (self if self.low else other), (self if self.high else other)
        reach = (self.reach or other.reach) and not low.low
        return Limits(low.low, high.high, low.open_low, high.open_high, reach)


_NUMBER = r"[-+−]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[-+]?\d+)?(?:\s?(?:\^|\*\*)\s?-?\d+)?"
_WORDS = {"zero": "0", "one": "1", "ten": "10", "hundred": "100", "thousand": "1000", "million": "1000000"}
_WORDS |= {"tenth": "0.1", "hundredth": "0.01", "thousandth": "0.001", "millionth": "1e-6"}
_SIZE = r"-?[A-Z]\w*(?:\s*[-+*]\s*\w+|\s*//\s*\w+)*"
_ABOUT = r"(?:about|around|roughly|approximately|approx\.?|some|ca\.?|circa|~|≈)?\s*(?:an?\s+)?"
_END = rf"{_ABOUT}({_NUMBER}(?![\w.])|(?i:{'|'.join(_WORDS)})\b|{_SIZE})"
OF_VALUES = (
    r"(?:values?|entry|entries|elements?|numbers?|(?:log-?)?probabilit(?:y|ies)|activations?|gradients?|weights?|exponents?|logits?|"
    r"scores?|scales?|factors?|decays?|shares?|coefficients?|cosines?|sines?|temperatures?|variances?|angles?|indices|index|labels?)"
)
"""What the values of an input are called; "rows up to 8" is no limit of them."""
_NOT = rf"(?:never|not|no(?: {OF_VALUES})?|none|nothing|cannot|can not|can't|does not|do not|doesn't|don't)"
_IS = (
    r"(?:(?:is|are|be|being|lies?|lying|stays?|ranges?|ranging|runs?|running|goes?|going|gets?|falls?|falling|drops?|dropping|rises?|"
    r"rising|remains?|keeps?|kept|held)\s+)?(?:(?:always|strictly|ever|anywhere|anything|somewhere)\s+)?"
)
_BELOW = r"(?:below|under|beneath|less than|smaller than|lower than)"
_ABOVE = r"(?:above|over|beyond|past|more than|greater than|larger than|higher than|exceed(?:s|ing)?)"
_MORE, _LESS = r"(?:more|above|greater|larger|higher|up|upwards?)", r"(?:less|below|fewer|smaller|lower)"
_BOTH_WAYS = (
    r"(?:(?:in|by) (?:magnitude|absolute value|size)|(?:either|each) way|both ways|of (?:either|both) signs?|"
    r"(?:in|to|on) (?:either|both) (?:directions?|sides?))"
)
_OUTSIDE = rf"{_NOT} {_IS}(?:leav(?:e|es|ing)|outside(?: of)?|out of)(?: the (?:range|interval))?(?: of)?(?: from)?(?: between)?"
_MAGNITUDE = rf"(?:in )?(?:magnitudes?|absolute values?) {_IS}(?:of )?"
_PHRASES: tuple[tuple[str, Limits], ...] = (
    (rf"(?:in |within )?between {_END}\s+and\s+{_END}", Limits("{0}", "{1}")),
    (rf"(?:in|within)\s*\[\s*{_END}\s*,\s*{_END}\s*\]", Limits("{0}", "{1}")),
    (rf"(?:in|within)\s*\(\s*{_END}\s*,\s*{_END}\s*\]", Limits("{0}", "{1}", open_low=True)),
    (rf"(?:in|within)\s*\[\s*{_END}\s*,\s*{_END}\s*\)", Limits("{0}", "{1}", open_high=True)),
    (rf"(?:in|within)\s*\(\s*{_END}\s*,\s*{_END}\s*\)", Limits("{0}", "{1}", open_low=True, open_high=True)),
    (rf"(?:from\s+)?{_END}\s*(?:up to|to|\.\.\.?|…|–|through|until)\s*{_END}", Limits("{0}", "{1}")),
    (rf"{_NOT} {_IS}{_BELOW} {_END}|at least {_END}|from {_END} (?:on|onwards?|up|upwards)\b", Limits(low="{0}")),
    (rf"(?:>=|≥)\s*{_END}|{_END} (?:or|and) {_MORE}\b|{_END} at least", Limits(low="{0}")),
    (rf"{_OUTSIDE}\s+{_END}\s*(?:to|and|\.\.\.?|…|–)\s*{_END}", Limits("{0}", "{1}")),
    (rf"{_OUTSIDE}\s*\[\s*{_END}\s*,\s*{_END}\s*\]", Limits("{0}", "{1}")),
    (rf"(?:up to|at most|{_NOT} {_IS}{_ABOVE}) {_END} {_BOTH_WAYS}", Limits("-{0}", "{0}")),
    (rf"(?:{_BELOW}|<)\s*{_END} {_BOTH_WAYS}", Limits("-{0}", "{0}", open_low=True, open_high=True)),
    (rf"{_NOT} {_IS}{_BELOW} {_END} n?or {_IS}{_ABOVE} {_END}", Limits("{0}", "{1}")),
    (rf"{_NOT} {_IS}{_ABOVE} {_END} n?or {_IS}{_BELOW} {_END}", Limits("{1}", "{0}")),
    (rf"{_NOT} {_IS}{_ABOVE} {_END}|at most {_END}|(?:<=|≤)\s*{_END}", Limits(high="{0}")),
    (rf"{_END} (?:or|and) {_LESS}\b|{_END} at (?:the )?most", Limits(high="{0}")),
    (rf"{_MAGNITUDE}(?:up to|at most|{_NOT} {_IS}{_ABOVE}) {_END}", Limits("-{0}", "{0}")),
    (rf"{_MAGNITUDE}(?:{_BELOW}|<)\s*{_END}", Limits("-{0}", "{0}", open_low=True, open_high=True)),
    (rf"(?:within\s+)?(?:±|\+/-|\+-|plus or minus)\s*{_END}", Limits("-{0}", "{0}")),
    (rf"up to {_END}", Limits(high="{0}", reach=True)),
    (rf"{_NOT} negative|non-?negative|positive or (?:zero|0)|(?:zero|0) or positive", Limits(low="0")),
    (rf"{_NOT} positive|non-?positive|negative or (?:zero|0)|(?:zero|0) or negative", Limits(high="0")),
    (rf"{_BELOW} {_END}|<\s*{_END}", Limits(high="{0}", open_high=True)),
    (rf"{_ABOVE} {_END}|>\s*{_END}", Limits(low="{0}", open_low=True)),
    (r"positive\b", Limits(low="0", open_low=True)),
    (r"negative\b", Limits(high="0", open_high=True)),
)
_READ = tuple((re.compile(rf"{_IS}(?:{pattern})(?![\w.^*])", re.I), form) for pattern, form in _PHRASES)
_SUBJECT = re.compile(
    rf"(?:(?:so|thus|hence|likewise|also|again|all|each|every|its|their|the|whose)\s+)*(?:it\b|they\b|{OF_VALUES}\b)?"
    r"(?:\s*\b(?:can|may|must|should|will|shall|has to|have to)(?=\s))?\s*",
    re.I,
)
_JOINT = re.compile(r"\s*(?:,|\band\b|\bbut\b)\s*(?:also\s+)?", re.I)
_COMPARES = (
    r"\b(?:between|from|below|under|above|over|beyond|within|at least|at most|up to|to|no more|less than|more than|exceeds?|"
    r"leaves?|outside|(?:greater|smaller|larger|lower) than|magnitudes?)\b|[<>≤≥±]|\bin\s*[\[(]\s*(?=[-\d])"
)
_NAMED = rf"\b(?:{'|'.join(word for word in _WORDS if word not in ('zero', 'one'))})\b"
"""A number in words; "set to zero" and "one of" are no limits."""
_SIGNED = r"\b(?:always|never|not|strictly|must be|is|are|stays?) (?:positive|negative)\b"
_HINT = re.compile(
    rf"(?:{_COMPARES})[^.;]*?(?:(?<![\w.]){_NUMBER}(?![\w.])|{_NAMED})|{_NUMBER}\s*(?:to|\.\.|…|–)\s*{_ABOUT}{_NUMBER}|{_SIGNED}",
    re.I,
)


def clause(text: str, symbols: Collection[str]) -> Limits | None:
    """Return the limits that a clause is, "values are never below 1 and at most 8"; None where it is, or holds, something else.

    Args:
        text: the clause, without the full stop.
        symbols: the sizes that an end may name.
    """
    subject = _SUBJECT.match(text)
    at, found = subject.end() if subject else 0, Limits()
    while at < len(text):
        step = max(_phrases(text, at, symbols), key=lambda one: one[0], default=None)
        joined = found.within(step[1]) if step else None
        if step is None or joined is None:
            return None
        found, at = joined, step[0]
        joint = _JOINT.match(text, at)
        if at < len(text) and (joint is None or joint.end() == len(text)):
            return None
        at = joint.end() if joint else at
    return found if found != Limits() else None


def is_hint(text: str) -> bool:
    """Whether a text seems to speak of a limit: a word of more or less beside a number."""
    return bool(_HINT.search(text))


def _phrases(text: str, start: int, symbols: Collection[str]) -> Iterator[tuple[int, Limits]]:
    """Yield where each phrase ends that begins here, and its limits; a shorter one may be the beginning of another."""
    for pattern, form in _READ:
        match = pattern.match(text, start)
        ends = [_end(end, symbols) for end in match.groups() if end] if match else []
        if match and all(ends):
            low, high = (written.format(*ends).replace("--", "") for written in (form.low, form.high))
            yield match.end(), replace(form, low=low, high=high)


def _end(written: str, symbols: Collection[str]) -> str:
    """Return an end as Python, "" for what is neither a number nor an expression of sizes."""
    text = _WORDS.get(written.casefold(), written).replace("−", "-").replace("^", "**").lstrip("+")
    tree = expression(text)
    if tree is None or not names_in(tree) <= set(symbols):
        return ""
    if names_in(tree):
        return text
    try:
        value = _number(text)
    except (*UNREADABLE, OverflowError, ZeroDivisionError):
        return ""
    return f"{int(value)}" if value == int(value) and abs(value) < 2**53 else f"{value!r}"


def _number(text: str) -> float:
    """Return the number that "1e4" or "2**-3" is.

    Raises:
        ValueError: it is none.
    """
    base, _, exponent = text.replace(" ", "").partition("**")
    return float(base) ** int(exponent or 1)
