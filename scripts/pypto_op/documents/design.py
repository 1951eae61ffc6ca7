"""DESIGN.md: how the operator is built, and into how many modules (section 0.3)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pypto_op.documents import complexity, front_matter, markdown, schema
from pypto_op.documents.front_matter import Document
from pypto_op.documents.schema import Finding
from pypto_op.documents.tolerance import policy_of
from pypto_op.errors import ContractError
from pypto_op.policy import Policy
from pypto_op.vocabulary import DTYPE_ALIASES, Decomposition

_DECISION = re.compile(r"(?:Decision|决策|判定)\b.*?module_count\W*?[=:：]\W*?(\d+)", re.IGNORECASE)
_OVERRIDE = re.compile(r"\boverride(?:\s+reason)?\W*?[:：]\s*(\S.*)", re.IGNORECASE)
_LEVEL = re.compile(r"decomposition_level\W*?[=:：]\W*?(L0|L1|single|staged)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Design:
    """What machines read in DESIGN.md.

    Attributes:
        op_name: the operator.
        status: draft, reviewed, final, or "".
        compute_kind: vector, cube, mixed, or "".
        dtypes: dtype words, aliases resolved.
        dynamic_axes: names of the axes whose length is known at run time only.
        module_count: N, decided in section 0.3.
        override: why N is not what the complexity formula gives; "" if it is.
        precision: the tolerance policy, or None where only SPEC.md gives one.
    """

    op_name: str
    status: str
    compute_kind: str
    dtypes: tuple[str, ...]
    dynamic_axes: tuple[str, ...]
    module_count: int
    override: str
    precision: Policy | None

    @property
    def decomposition(self) -> Decomposition:
        """`single` for one module, else `staged`."""
        return Decomposition.SINGLE if self.module_count == 1 else Decomposition.STAGED


def load(path: Path | str) -> Design:
    """Read DESIGN.md.

    Raises:
        ContractError: unreadable, the front matter breaks its schema, or no single decision on module_count.
    """
    document = front_matter.load(path, "design")
    count, override = _decision(document)
    data = document.data
    precision = data.get("precision")
    return Design(
        op_name=data["op_name"],
        status=data.get("status", ""),
        compute_kind=data.get("compute_kind", ""),
        dtypes=tuple(DTYPE_ALIASES.get(word, word) for word in data.get("dtypes", [])),
        dynamic_axes=tuple(data["dynamic_axes"]),
        module_count=count,
        override=override,
        precision=None if precision is None else policy_of(precision, file=document.path),
    )


def check(path: Path | str) -> list[Finding]:
    """Return everything that is wrong with DESIGN.md, the decision against the golden's complexity included."""
    document, found = front_matter.check(path, "design", "design")
    if document is None:
        return found
    found += markdown.check_sections("design_complete", document.sections)
    if schema.findings(document.data, "design"):
        return found
    try:
        design = load(path)
    except ContractError as error:
        return [*found, Finding(error.where or "", error.problem)]
    found += _module_table(document, design.module_count)
    found += _against_golden(document, design)
    return found


def _decision(document: Document) -> tuple[int, str]:
    """Return N and the reason of an override, from the line `Decision: module_count = N`."""
    where = "section 0.3"
    decisions = [
        (number, line, int(match[1][:6]))
        for number, line in enumerate(document.body.split("\n"), document.body_line)
        if (match := _DECISION.search(line))
    ]
    counts = {count for _, _, count in decisions}
    if not decisions:
        raise ContractError(
            "no decision on module_count",
            file=document.path,
            where=where,
            remedy="write `Decision: module_count = N`; `pypto-op design-params` computes N",
        )
    if len(counts) > 1:
        raise ContractError(
            f"decides on module_count {' and '.join(map(str, sorted(counts)))}",
            file=document.path,
            where=f"line {decisions[-1][0]}",
            remedy="decide once",
        )
    count = counts.pop()
    if not 1 <= count <= complexity.MAX_MODULES:
        raise ContractError(f"module_count is {count}", file=document.path, where=where, remedy="decide on 1 to 32")
    _agree(document, count)
    match = next((m for _, line, _ in decisions if (m := _OVERRIDE.search(line))), None)
    match = match or _OVERRIDE.search(document.body)
    return count, match[1].strip(" )*`.") if match else ""


def _agree(document: Document, count: int) -> None:
    """Refuse a decomposition_level, or a module_count in the front matter, that contradicts the decision."""
    level = _LEVEL.search(document.body)
    expected = Decomposition.SINGLE if count == 1 else Decomposition.STAGED
    if level:
        word = level[1].upper() if level[1].upper() in ("L0", "L1") else level[1].lower()
        if Decomposition.parse(word) is not expected:
            raise ContractError(
                f"decomposition_level is {level[1]}, module_count {count} means {expected}",
                file=document.path,
                where="section 0.3",
            )
    stated = document.data.get("module_count", count)
    if stated != count:
        raise ContractError(f"is {stated}, section 0.3 decides on {count}", file=document.path, where="module_count")


def _module_table(document: Document, count: int) -> Iterator[Finding]:
    """With N >= 2 modules there is a table of N rows, which names the boundaries between them."""
    if count == 1:
        return
    tables = [
        table
        for table in markdown.tables(document.body)
        if table.column("module", "模块") is not None and table.column("boundary", "边界") is not None
    ]
    if not tables:
        yield Finding("section 0.5", f"no table with the columns module and boundary for {count} modules")
    elif all(len(table.rows) != count for table in tables):
        line = document.body_line + tables[0].line - 1
        yield Finding("section 0.5", f"the module table has {len(tables[0].rows)} rows, not {count}", line)


def _against_golden(document: Document, design: Design) -> Iterator[Finding]:
    golden = document.path.parent / f"{design.op_name}_golden.py"
    if design.override or not golden.is_file():
        return
    try:
        computed = complexity.analyse(golden).module_count
    except ContractError:
        return
    if computed != design.module_count:
        yield Finding(
            "section 0.3",
            f"module_count is {design.module_count}, the golden's complexity gives {computed}: "
            "take that, or add `override: <reason>`",
        )
