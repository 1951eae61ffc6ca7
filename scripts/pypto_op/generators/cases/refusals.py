"""The suite's `raises`: what a sentence of SPEC.md's edge cases says that the wrapper answers with ValueError.

A sentence is taken clause by clause, and only in forms that cannot be meant otherwise (docs/adding-inputs.md lists them). A
clause in any other form is told, so that nobody takes it for tried.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pypto_op.documents import constraints, markdown, ranges
from pypto_op.documents.axes import symbols_of
from pypto_op.documents.reading import read_text
from pypto_op.generators.cases.walks import product
from pypto_op.generators.operator import relations
from pypto_op.generators.operator.sources import INTEGERS
from pypto_op.python_text import names_in

if TYPE_CHECKING:
    from pypto_op.generators.cases.case_maker import Maker

Fault = Mapping[str, Any]

_MOST_ELEMENTS = 1 << 18
_RAISES = re.compile(r"\bValueError\b")
_SUBJECT = re.compile(r"[:,]?\s*\b(?:(?:the )?wrapper|it|this|each)?\s*(?:also )?(?:raises?|is|are)?(?: an?| with)?$", re.I)
_AFTER = re.compile(r"^\s*(?:for|when|if|on|where)\s+", re.I)
_AGAIN = re.compile(
    r"^\s*[-*]?\s*(?:so it does|so does it|it (?:also )?(?:does|raises)(?: so)?(?: too)?|the same (?:goes|holds)|likewise)\s+"
    r"(?:for|where|when|if|on)\s+",
    re.I,
)
"""How a sentence begins that goes on about the ValueError of the one before."""
_ELSEWISE = re.compile(
    r"\b(?:raises?|refuse[sd]?|rejects?|rejected|invalid|illegal|not (?:allowed|accepted)|(?:is|are) an error)\b", re.I
)
"""What a sentence may say of a wrong call without the word ValueError: no call comes of it, which is told."""
_NUMERAL = r"`?(-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)`?"
_NUMBER = rf"{_NUMERAL}(?!\s*[-+*/%\w.])"
_COMPARED = re.compile(rf"`?\b([A-Za-z_]\w*)`?\s*(==|!=|=|<=|>=|<|>|other than|not equal to|not)\s*{_NUMBER}")
_MULTIPLE = re.compile(r"\b(?:no|not an?) multiple of `?(\d+)|\bnot divisible by `?(\d+)|%\s*(\d+)\s*!=\s*0")
_BEYOND = re.compile(rf"\b({relations.ABOVE}|{relations.BELOW})\s+{_NUMERAL}(?!\s*[-+*/%]|\w|\.\d)")
_OUTSIDE = re.compile(rf"\boutside (?:of )?{_NUMERAL} (?:to|and) {_NUMERAL}(?!\s*[-+*/%]|\w|\.\d)")
_END = r"`?([-+]?(?:\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|inf))`?"
_INTERVAL = re.compile(rf"\b(?:outside(?: of)?|not (?:with)?in) `?([(\[])\s*{_END}\s*,\s*{_END}\s*([)\]])")
_OUT_OF_RANGE = re.compile(
    r"\b(?:outside|out of|beyond|not (?:with)?in)(?: of)? (?:the |its |their )?(?:own |legal )?(?:range|limit|bound)s?\b", re.I
)
"""What is legal stands elsewhere in SPEC.md."""
_NOT_POSITIVE = re.compile(r"\b(?:not|non-?) ?positive\b", re.I)
_NEGATIVE = re.compile(r"(?<!not )(?<!non-)\bnegative\b", re.I)
_DTYPES = re.compile(r"\b(other|unsupported|any other|mixed|unequal) dtypes?\b", re.I)
_STRIDED = re.compile(r"\bnon-contiguous\b", re.I)
_EMPTY = re.compile(r"\bempty (tensors?|inputs?)\b", re.I)
_RANK = re.compile(
    r"\branks?\b|\bnumber of (?:axes|dimensions)\b|\bnot (?:[1-9]-?[dD]|(?:one|two|three|four)-dimensional)\b", re.I
)
_UNEQUAL = re.compile(r"\b(unequal|mismatched|different|other) shapes\b|\bshapes (?:that|which) (?:do not|don't|differ)\b", re.I)
_NEAR = 0.01
"""A float is tried so near beyond an end: of a share that ends at 0.99 a wrapper may refuse no more than what is above 1."""
_BELOW = relations.BELOW.split("|")
_ALL = {"input", "inputs", "tensor", "tensors"}


def refusals(maker: Maker, untried: list[str] | None = None) -> list[dict[str, Any]]:
    """Return what the judge calls the wrapper with to see it raise, an entry per fault; none where SPEC.md names none.

    Args:
        maker: of the suite.
        untried: told each clause of which no call comes.
    """
    found: dict[str, dict[str, Any]] = {}
    base: dict[str, Any] = {"shape": dict(maker.base), "dtype": {"default": maker.sources.spec.supported_dtypes[0]}, "seed": 42}
    for sentence in _sentences(read_text(maker.sources.ws.spec), untried):
        told_last: list[Fault] = []
        for clause in _whole(maker, _clauses(sentence)):
            told = _read(maker, clause) or _another_of(maker, clause, told_last)
            for fault in told:
                made = {**base, **fault, "shape": {**base["shape"], **fault.get("shape", {})}}
                found.setdefault(made["id"], made)
            if not told and untried is not None:
                untried.append(clause)
            told_last = told
    return list(found.values())


def _sentences(text: str, untried: list[str] | None) -> Iterator[str]:
    """Yield what each sentence of the edge cases that speaks of ValueError says that about; tell those that only seem to."""
    for section in markdown.sections(text):
        if "edge cases" in section.title.casefold():
            told = False
            for part in re.split(r"[.;](?=\s|$)|\n(?=\s*[-*|])", section.text):
                said, goes_on = _RAISES.search(part), _AGAIN.match(part) if told else None
                told = bool(said or goes_on)
                if goes_on and not said:
                    yield " ".join(part[goes_on.end() :].split())
                elif not said and untried is not None and _ELSEWISE.search(part):
                    untried.append(" ".join(part.split()).lstrip("-* "))
                if said:
                    before = _SUBJECT.sub("", " ".join(part[: said.start()].split()).lstrip("-* "))
                    after = " ".join(part[said.end() :].split())
                    yield before or (_AFTER.sub("", after) if _AFTER.match(after) else "")


def _clauses(sentence: str) -> list[str]:
    """Return what stands between commas, but for commas in brackets."""
    parts = (part.strip().removeprefix("and ").removeprefix("or ") for part in re.split(r",(?![^()\[\]]*[)\]])", sentence))
    return [part for part in parts if part]


def _whole(maker: Maker, clauses: list[str]) -> Iterator[str]:
    """Yield the clauses, an axis or scalar alone joined to what is said of it: "K, N or R no multiple of 16" is one clause."""
    scalars = {port.name for port in maker.sources.interfaces.primary_inputs if not port.shape}
    before: list[str] = []
    for clause in clauses:
        name = clause.strip("`")
        if name in scalars or name in maker.base:
            before.append(clause)
        else:
            yield " or ".join([*before, clause])
            before = []
    yield from before


def _read(maker: Maker, clause: str) -> list[Fault]:
    found = [*_numbers(maker, clause), *_kinds(maker, clause)]
    return found or [*_related(maker, clause)]


def _another_of(maker: Maker, clause: str, last: list[Fault]) -> list[Fault]:
    """Return the fault of the clause before for the inputs that are all that this one names: "non-contiguous x, r"."""
    words = set(re.findall(r"[A-Za-z_]\w*", clause)) - {"and", "or"}
    names = [port.name for port in maker.sources.tensors if port.name in words]
    if not names or words - set(names) or not last or last[-1]["fault"] != "non_contiguous":
        return []
    return [_of_input("non_contiguous", name) for name in names]


def _numbers(maker: Maker, clause: str) -> Iterator[Fault]:
    """Yield sizes and scalars that break what the clause says of numbers."""
    for name, sign, text in _COMPARED.findall(clause):
        number = float(text)
        if sign in ("!=", "other than", "not equal to", "not"):
            yield from _with(maker, name, (number // 2 if number >= 2 else number + 1), stated=True)
        else:
            yield from _with(maker, name, number, beyond={"<": -1, ">": 1}.get(sign, 0))
    scalars = [port.name for port in maker.sources.interfaces.primary_inputs if not port.shape]
    names = [name for name in dict.fromkeys(re.findall(r"[A-Za-z_]\w*", clause)) if name in maker.base or name in scalars]
    for name in names:
        for found in _MULTIPLE.findall(clause):
            divisor = int("".join(found))
            if divisor > 1:
                yield from _with(maker, name, divisor + max(1, divisor // 2), stated=True)
        for word, text in _BEYOND.findall(clause):
            yield from _with(maker, name, float(text), beyond=-1 if word in _BELOW else 1)
        for end, beyond, is_open in _ends(maker, name, clause):
            if is_open:
                yield from _with(maker, name, end)
            yield from _with(maker, name, end, beyond=beyond)
        if _NOT_POSITIVE.search(clause):
            yield from _with(maker, name, 0.0)
        if _NOT_POSITIVE.search(clause) or _NEGATIVE.search(clause):
            yield from _with(maker, name, 0.0, beyond=-1)


def _related(maker: Maker, clause: str) -> Iterator[Fault]:
    """Yield, for each whole number and axis of a relation between several, the value next to its own that makes it true."""
    sources = maker.sources
    told = relations.read(clause, {*maker.base, *sources.whole_numbers})
    given = {**sources.whole_numbers, **maker.base}
    if told is None or not relations.fails(told, given):
        return
    for name in sorted(names_in(told)):
        low, high = sources.spec.axis_ranges.get(name, (1 if name in maker.base else None, None))
        alone = [rule for rule in sources.spec.shape_constraints if (tree := constraints.read(rule)) and names_in(tree) <= {name}]
        for value in relations.nearest(given[name]):
            within = (low is None or value >= low) and (high is None or value <= high)
            changed = {**given, name: value}
            breaks = within and relations.holds(told, changed) and constraints.satisfied(alone, changed)
            if breaks and (found := list(_with(maker, name, value, stated=True))):
                yield from found
                break


def _ends(maker: Maker, name: str, clause: str) -> Iterator[tuple[float, int, bool]]:
    """Yield each end of what the clause says is legal: where, which way is outside, and whether the end itself is refused.

    "outside 0 to 1" leaves that open, and SPEC.md's range says it; "outside (0, 1]" says it itself.
    """
    kept = ranges.of(maker.sources.spec.shape_constraints, name, maker.base)
    for low, high in _OUTSIDE.findall(clause):
        yield float(low), -1, kept.open_low and float(low) == kept.low
        yield float(high), 1, kept.open_high and float(high) == kept.high
    said = [(float(low), float(high), left == "(", right == ")") for left, low, high, right in _INTERVAL.findall(clause)]
    for low, high, open_low, open_high in said + [kept.ends] * bool(_OUT_OF_RANGE.search(clause)):
        yield from (end for end in ((low, -1, open_low), (high, 1, open_high)) if math.isfinite(end[0]))


def _with(maker: Maker, name: str, number: float, *, beyond: int = 0, stated: bool = False) -> Iterator[Fault]:
    """Yield the fault that an axis or a scalar has this value, or one `beyond` it (-1: below, 1: above).

    Args:
        maker: of the suite.
        name: of an axis or scalar; another yields nothing.
        number: as SPEC.md has it.
        beyond: in which direction the value lies from it; along an axis, the next size that is legal but for this.
        stated: the sentence alone makes the size illegal; otherwise the constraints must agree.
    """
    sources = maker.sources
    scalars = {port.name: port.dtype for port in sources.interfaces.primary_inputs if not port.shape}
    if name in scalars:
        if scalars[name] != "bool":
            step = 1.0 if scalars[name] in INTEGERS or number == 0.0 else abs(number) * _NEAR
            value: float = int(number) + beyond if scalars[name] in INTEGERS else float(f"{number + beyond * step:.6g}")
            yield {"id": re.sub(r"[^\w.+-]", "_", f"raises_{name}_{value}"), "fault": "scalar", "input": name, "value": value}
        return
    if name not in maker.base or not any(name in symbols_of(port) for port in sources.tensors):
        return
    size = int(number) + beyond * (_divisor(maker, name) if beyond > 0 and number > 0 else 1)
    wrong = {**maker.base, name: size}
    wrong.update({axis: 1 for axis in maker.dynamic if axis != name and product(sources, wrong) > _MOST_ELEMENTS})
    if product(sources, wrong) > _MOST_ELEMENTS:
        smaller = maker.small_beside(name, maker.base[name], maker.fixed)
        wrong.update({axis: smaller[axis] for axis in maker.fixed if axis != name})
    used = any(shape.get(name) == size for shape in maker.p0)
    if size == 0 or (
        size > 0 and product(sources, wrong) <= _MOST_ELEMENTS and not used and (stated or not sources.legal(wrong))
    ):
        changed = {axis: value for axis, value in wrong.items() if value != maker.base[axis]}
        yield {"id": f"raises_{name}_{size}", "fault": "size", "shape": changed}


def _divisor(maker: Maker, axis: str) -> int:
    """Return what SPEC.md's constraints say that a size is a multiple of; a wrapper may refuse other sizes for that alone."""
    said = (re.fullmatch(rf"\s*{axis}\s*%\s*(\d+)\s*==\s*0\s*", text) for text in maker.sources.spec.shape_constraints)
    return next((int(found[1]) for found in said if found), 1)


def _kinds(maker: Maker, clause: str) -> Iterator[Fault]:
    """Yield other dtypes, empty and non-contiguous inputs, inputs of another rank, inputs that do not fit one another."""
    sources = maker.sources
    words = set(re.findall(r"[A-Za-z_]\w*", clause))
    names = [port.name for port in sources.tensors]
    named = [name for name in names if name in words]
    if _DTYPES.search(clause) and sources.floating and "int32" not in sources.spec.supported_dtypes:
        yield {"id": "raises_dtype", "fault": "dtype"}
    if _EMPTY.search(clause):
        for axis in maker.dynamic:
            yield from _with(maker, axis, 0.0)
    if _STRIDED.search(clause):
        for name in named or (names if words & _ALL or len(names) == 1 else []):
            yield _of_input("non_contiguous", name)
    if _RANK.search(clause):
        for name in named or names:
            yield _of_input("rank", name)
    if _UNEQUAL.search(clause):
        yield from _unequal(maker, named or names)


def _of_input(fault: str, name: str) -> Fault:
    return {"id": f"raises_{fault}_{name}", "fault": fault, "input": name}


def _unequal(maker: Maker, names: list[str]) -> Iterator[Fault]:
    """Yield, of each input, that it is longer than another along an axis that both have."""
    shapes = {port.name: port.shape for port in maker.sources.tensors}
    for name in names:
        for axis, symbol in enumerate(shapes[name]):
            if symbol in maker.base and any(symbol in shape for other, shape in shapes.items() if other != name):
                yield {"id": f"raises_shape_{name}_{symbol}", "fault": "shape", "input": name, "axis": axis}
                break
