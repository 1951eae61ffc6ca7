"""Limits of inputs that SPEC.md says in words alone, in the table of section 5 or in a sentence about the input.

People write "values lie between 0.001 and about 100" and leave the front matter as it is. Inputs that break such a limit refuse
right kernels, so it counts like `input_ranges`, for each end that the front matter says nothing of. What looks like a limit and
is none of the known forms is told, not guessed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from pypto_op.documents import constraints, limit_words, markdown, port_table, ranges, row_words
from pypto_op.documents import rows as row_ranges
from pypto_op.documents.limit_words import Limits
from pypto_op.documents.ranges import Range
from pypto_op.documents.rows import Rows
from pypto_op.python_text import names_in

_INTERVAL = r"[\[(][^,\[\]()]+,[^,\[\]()]+[\])]"
_PARTS = re.compile(rf"(?P<whole>{_INTERVAL})|[;:(),]|(?<!\.)\.(?=\s|$)")
_REMARK = re.compile(
    r"(?<=\w)\s*\((?![^()]*\b(?:exclu\w*|open|not|never|without|or|and|but|above|below|beyond)\b)[a-z][a-z' -]*\)"
    r"(?=\s+(?:up to|to|and|through|until)\s+\S)",
    re.I,
)
"""What an end means, in brackets before the other end: "from 0 (frozen) to 100". "(exclusive)" says more of the end."""
_SENTENCES = re.compile(r"(?<!\.)\.(?=\s|$)|\n\s*\n|\n(?=\s*(?:[-*+]|\d+\.)\s)")
_BULLET = re.compile(r"^(?:[-*+]|\d+\.)\s+")
_HEDGES = re.compile(
    r"\b(except|unless|apart from|save for|usual(?:ly)?|typical(?:ly)?|mostly|mainly|(?<!as )often|normally|sometimes|rarely|"
    r"almost|nearly always|expected|where|when|if|clipped|clamped|ignored)\b",
    re.I,
)
"""Beside such a word a limit is none, or one of something else."""
_ANOTHER = re.compile(
    r"(?:or|else|and)\b(?!\s+(?:less|more|above|below|at (?:least|most)|up to|never|not)\b)|[-+]?\d\S*(?:$|\s(?!by default))",
    re.I,
)
"""A clause beside the limit that widens it ("0 to V - 1, or -1 for padding"), or may."""
_REFUSED = re.compile(r"\brais(?:es?|ing)\b|\brefus", re.I)
_MUST = re.compile(r"\b(must|has to|have to|needs? to|shall)\b", re.I)
_ABOUT_INPUTS = re.compile(
    r"(?:(?:all|each|every|the)\s+)*(?:(?:values?|entries|elements)\s+of\s+|(?:inputs?|tensors?|arguments?|scalars?|parameters?|"
    rf"{limit_words.OF_VALUES})\s+)?(?P<names>\w+(?:(?:\s*,\s*|\s+and\s+)\w+)*?)\s+(?:(?:values?|entries|elements)\s+)?"
    r"(?P<rest>(?:(?:must|may|can|should|will|shall|has to|have to|always|never|not|cannot|does|do)\s+)*"
    r"(?:is|are|be|lies?|stays?|ranges?|runs?|goes?|gets?|falls?|drops?|rises?|remains?|exceeds?|leaves?)\b.*)",
    re.I,
)
"""A sentence that begins with inputs and goes on with a verb: "x and r lie between 0 and 1"."""
_ALWAYS = re.compile(
    r"\b(lies?|ranges?|stays?|never|always|bounded|limited|held|kept|at (?:least|most)|no (?:more|less) than)\b", re.I
)
_ROWS_OF = re.compile(
    r"\b(rows?)\s+of\s+(?:the\s+)?(?P<names>\w+(?:(?:\s*,\s*|\s+(?:and|n?or)\s+)\w+)*?)(?=\s+(?!and\b|n?or\b)|$)", re.I
)
"""Rows of named inputs: "no row of a and b is shorter than 0.1"."""
_LIKEWISE = re.compile(
    r"(?:likewise|ditto|the same|same|as above|in the same range|(?:with )?the same limits?)(?: limits?)?", re.I
)
"""A whole clause that says of an input what the row above says of another."""
_ABOVE, _BELOW = (ast.Gt, ast.GtE), (ast.Lt, ast.LtE)
Clause = tuple[str, Limits | Rows | None]
"""A clause with what it says of values or of rows; None and `Rows()` where that could not be read."""


@dataclass(frozen=True)
class Worded:
    """What SPEC.md says in words of one input."""

    said: tuple[str, ...] = ()  # the limits as comparisons, for the ends that the front matter leaves open
    words: tuple[str, ...] = ()  # the clauses that say so
    # clauses that look like a limit and could not be read, where the front matter says nothing of the input
    unread: tuple[str, ...] = ()
    rows: Rows = Rows()  # what holds for its rows

    def told(self, name: str) -> str:
        """Return the limits of the input as a person reads them, with the words that say so; "" for none."""
        kept = [f"each row of {name} has a {self.rows.measure} in {self.rows.kept}"] if self.rows.measure else []
        kept += [f"no two of {name} are the same, but negative ones"] if self.rows.distinct else []
        return f"{' and '.join((*self.said, *kept))} (`{', '.join(self.words)}`)" if self.said or kept else ""


def of(body: str, data: Mapping[str, Any]) -> dict[str, Worded]:
    """Return what the body of SPEC.md says of inputs in words, by name; nothing of inputs of which it says none.

    Args:
        body: the text behind the front matter.
        data: the front matter.
    """
    said = (*data.get("shape_constraints", []), *ranges.comparisons(data.get("input_ranges", {})))
    defaults = data.get("default_params", {})
    found = {}
    for name, row, clauses in _clauses(body):
        if name in data.get("input_ranges", {}):
            continue
        of_values = [(text, limits) for text, limits in clauses if not isinstance(limits, Rows)]
        told = _told(name, row.shape != "[]", of_values, _sides(said, name), defaults.get(name))
        of_rows = [(text, limits) for text, limits in clauses if isinstance(limits, Rows)]
        told = _with_rows(told, of_rows, ranges.of((*said, *told.said), name))
        found.update({name: told} if told != Worded() else {})
    return found


def _told(name: str, is_tensor: bool, clauses: list[tuple[str, Limits | None]], known: set[str], default: object) -> Worded:
    """Return what clauses say of an input, of which the front matter says the sides in `known`."""
    words = tuple(text for text, limits in clauses if limits)
    unread = tuple(text for text, limits in clauses if limits is None)
    limits: Limits | None = Limits()
    for _, more in clauses:
        limits = limits.within(more) if limits and more else limits
    if limits and limits.reach and is_tensor and "low" not in known and not limits.high.startswith("-"):
        limits = replace(limits, low=f"-{limits.high}", reach=False)
    said = [] if limits is None else limits.of("it")
    is_number = type(default) in (int, float)
    if limits is None or (is_number and not ranges.of(said, "it").holds(float(default))):  # type: ignore[arg-type]
        return Worded() if known else Worded(unread=words)
    left = replace(limits, low="" if "low" in known else limits.low, high="" if "high" in known else limits.high)
    return Worded(tuple(left.of(name)), words if left.of(name) else (), () if known else unread)


def _with_rows(told: Worded, clauses: list[tuple[str, Rows]], values: Range) -> Worded:
    """Return what is told of an input and its rows; what these cannot have beside the range of its values is not read."""
    words = tuple(text for text, rows in clauses if rows != Rows())
    unread = tuple(text for text, rows in clauses if rows == Rows())
    kept: Rows | None = Rows()
    for _, rows in clauses:
        kept = kept.within(rows) if kept else None
    if kept is None or row_ranges.contradicts(kept, values):
        return replace(told, unread=(*told.unread, *words, *unread))
    return replace(told, rows=kept, words=tuple(dict.fromkeys((*told.words, *words))), unread=(*told.unread, *unread))


def _sides(said: Iterable[str], name: str) -> set[str]:
    """Return which ends of an input comparisons name; both where they name it otherwise."""
    found: set[str] = set()
    for op, _ in constraints.about(said, {name}):
        found |= {"low"} if isinstance(op, _ABOVE) else {"high"} if isinstance(op, _BELOW) else {"low", "high"}
    return found


@lru_cache(maxsize=32)
def _clauses(body: str) -> list[tuple[str, port_table.Row, list[Clause]]]:
    """Return each input with the clauses that are, or seem to be, limits of it."""
    table = {name: row for name, row in port_table.rows(body).items() if not row.is_output}
    symbols = {word for row in table.values() for word in re.findall(r"[A-Za-z_]\w*", row.shape)}
    sentences = list(_sentences(body))
    found: list[tuple[str, port_table.Row, list[Clause]]] = []
    for name, row in table.items():
        of_rows = row_words.reader(row.shape, port_table.dtype_of(name, table))
        meaning = re.sub(rf"\b(?:the )?{name}(?=\s)(?! [-+*/=])", "it", row.meaning)
        clauses = list(_of_cell(meaning, {"it", name}, symbols, of_rows))
        if found:
            clauses += _of_the_one_above(meaning, _carried(found[-1], name, table))
        clauses += [one for sentence in sentences for one in _of_sentence(sentence, name, table, symbols)]
        if of_rows is row_words.OF_FLOATS:
            clauses += [one for sentence in sentences for one in _of_rows(sentence, name, table)]
        clauses = [(re.sub(r"\bit\b", name, text), limits) for text, limits in clauses]
        found.append((name, row, list(dict.fromkeys(clauses))))
    return found


def _of_cell(meaning: str, own: Collection[str], symbols: Collection[str], of_rows: row_words.Reader) -> Iterator[Clause]:
    """Yield each limit of a cell; as unread all where another clause may take them back.

    Args:
        own: the names of the cell's input.
        of_rows: reads what may be said of the rows of an input of its kind.
    """
    read = [(part, limit_words.clause(part, symbols) or _compared(part, own, symbols)) for part in _parts(meaning)]
    kept = {part: of_rows.clause(re.sub(r"\s+of it\b", "", part)) for part, _ in read}
    is_hedged = bool(_HEDGES.search(meaning))
    others = any(limits is None and not kept[part] and _ANOTHER.match(part) for part, limits in read)
    for part, limits in read:
        if limits is None and (kept[part] or of_rows.is_hint(part)):
            yield part, (None if is_hedged or (others and not of_rows.stands) else kept[part]) or Rows()
        elif limits or limit_words.is_hint(part):
            yield part, None if is_hedged or others else limits


def _carried(above: tuple[str, port_table.Row, list[Clause]], name: str, table: Mapping[str, port_table.Row]) -> Iterator[Clause]:
    """Yield what "likewise" repeats of the row above: all beside the same shape, else limits of values of the same kind alone."""
    other, row, clauses = above
    is_whole = [port_table.dtype_of(one, table).startswith(("int", "uint")) for one in (other, name)]
    is_alike = is_whole[0] == is_whole[1] and (row.shape == "[]") == (table[name].shape == "[]")
    for text, limits in clauses:
        of_rows = isinstance(limits, Rows)
        if row.shape == table[name].shape or (is_alike and not of_rows):
            yield text, limits
        else:
            yield text, Rows() if of_rows else None


def _of_the_one_above(meaning: str, above: Iterable[Clause]) -> Iterator[Clause]:
    """Yield the limits of the row above for a cell that says no more of them than "likewise"."""
    for part in _parts(meaning):
        if _LIKEWISE.fullmatch(part):
            yield from ((part, None if _HEDGES.search(meaning) else limits) for _, limits in above)


def _of_rows(sentence: str, name: str, names: Collection[str]) -> Iterator[Clause]:
    """Yield the limit of a sentence about the rows of the input: "no row of a and b is shorter than 0.1"."""
    about = _ROWS_OF.search(sentence)
    subject = re.findall(r"\w+", re.sub(r"\b(?:and|n?or)\b", ",", about["names"])) if about else []
    if about is None or name not in subject or _REFUSED.search(sentence):
        return
    is_open = _HEDGES.search(sentence) or ":" in sentence or not set(subject) <= set(names)
    plain = f"{sentence[: about.end(1)]}{sentence[about.end() :]}"
    rows = None if is_open else row_words.clause(plain)
    if rows or row_words.is_hint(plain):
        yield sentence, rows or Rows()


def _compared(text: str, own: Collection[str], symbols: Collection[str]) -> Limits | None:
    """Return the limits of a comparison that names the input, "0 <= u < 1"; None where a text is something else."""
    found: Limits | None = Limits()
    told = list(constraints.about([text], own))
    if len(told) != len(list(constraints.comparisons([text]))):
        return None
    for op, end in told:
        if not isinstance(op, (*_ABOVE, *_BELOW)) or not names_in(end) <= set(symbols):
            return None
        written, is_open = ast.unparse(end), isinstance(op, (ast.Lt, ast.Gt))
        is_low = isinstance(op, _ABOVE)
        one = Limits(low=written, open_low=is_open) if is_low else Limits(high=written, open_high=is_open)
        found = found.within(one) if found else None
    return found if found != Limits() else None


def _of_sentence(sentence: str, name: str, names: Collection[str], symbols: Collection[str]) -> Iterator[Clause]:
    """Yield the limits of a sentence that begins with the input; None for what seems to be one."""
    about = _ABOUT_INPUTS.fullmatch(sentence)
    if about is None and _seems_about(sentence, name):
        yield sentence, None
    subject = re.findall(r"\w+", re.sub(r"\band\b", ",", about["names"])) if about else []
    if about is None or name not in subject or not set(subject) <= set(names) or ":" in sentence:
        return
    if _REFUSED.search(sentence) and not _MUST.search(sentence):
        return
    first, *others = [(part, limit_words.clause(part, symbols)) for part in _parts(about["rest"])]
    is_open = _HEDGES.search(sentence) or any(
        limits is None and _ANOTHER.match(part) and not _REFUSED.search(part) for part, limits in others
    )
    for part, limits in (first, *others):
        if limits or limit_words.is_hint(part):
            yield f"{name} {part}", None if is_open else limits


def _seems_about(sentence: str, name: str) -> bool:
    """Whether a sentence that is in no known form speaks of an input and of a limit that always holds."""
    said = re.search(rf"(?<![\w.\\]){re.escape(name)}(?![\w(])(?P<rest>.*)", sentence)
    is_plain = said and ":" not in sentence and not _HEDGES.search(sentence) and not _REFUSED.search(sentence)
    return bool(is_plain and said and _ALWAYS.search(said["rest"]) and limit_words.is_hint(said["rest"]))


def _parts(text: str) -> Iterator[str]:
    """Yield what stands between commas, colons and brackets, but for those of an interval and of a remark within a limit."""
    text, at = _REMARK.sub("", text), 0
    for cut in (*_PARTS.finditer(text), None):
        if cut is None or not cut["whole"]:
            part = re.sub(r"^\s*(?:and|but)\s+", "", text[at : cut.start() if cut else None]).strip()
            at = cut.end() if cut else at
            if part:
                yield part


def _sentences(body: str) -> Iterator[str]:
    """Yield the sentences of the text outside code, tables and headings."""
    lines = [line for line in markdown.Markdown(body).visible.split("\n") if not line.lstrip().startswith(("|", "$$"))]
    text = "\n".join("" if line.startswith("#") else line for line in lines)
    for part in _SENTENCES.split(text):
        plain = " ".join(part.replace("`", "").replace("$", "").split())
        if plain := _BULLET.sub("", plain):
            yield plain
