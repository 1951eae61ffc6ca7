"""eval/adversarial_suite.json: the cases that an operator is judged on."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pypto_op.documents import schema, together
from pypto_op.documents.knobs import JUDGED_BY
from pypto_op.documents.reading import read_json
from pypto_op.documents.schema import Finding
from pypto_op.errors import ContractError
from pypto_op.vocabulary import DTYPE_ALIASES, Level

LEAST_PER_LEVEL = 2
"""Cases that a complete suite has per level (verifier seed, B.2)."""

Case = dict[str, Any]


@dataclass(frozen=True)
class Suite:
    """A suite; its cases have `level` as "L1".."L5" and `precision` as a bool, everything else as written."""

    op: str  # the operator
    total_modules: int  # N
    cases: tuple[Case, ...]  # in the order of the file
    source: str  # the file
    raises: tuple[Case, ...] = ()  # calls that the wrapper must refuse with ValueError, as written (`judge.running.raises`)

    def select(self, levels: str | Iterable[str | int] | None = None, case: str | None = None) -> list[Case]:
        """Return the cases of some levels, or one case.

        Args:
            levels: `["L1", "L2"]`, `"L1,L2"`, numbers; None for all.
            case: the id of the only case wanted, or None.

        Raises:
            ContractError: no such level, no such case, or nothing is left: an empty selection is never a
            verdict.
        """
        chosen = list(self.cases)
        if levels is not None:
            wanted = _parse_levels(levels, self.source)
            chosen = [item for item in chosen if item["level"] in wanted]
        if case is not None:
            chosen = [item for item in chosen if item["id"] == case]
        if not chosen:
            asked = " and ".join(
                text
                for text in (
                    f"the case {case[:128]!r}" if case is not None else "",
                    f"levels {_shown(levels)}" if levels is not None else "",
                )
                if text
            )
            ids = ", ".join(item["id"] for item in self.cases[:5])
            raise ContractError(f"no case matches {asked}", file=self.source, remedy=f"it has {len(self.cases)}: {ids}, ...")
        return chosen

    def as_dict(self) -> dict[str, Any]:
        """Return the suite as the data of its file."""
        return {
            "schema_version": 1,
            "op": self.op,
            "total_modules": self.total_modules,
            "cases": [dict(case) for case in self.cases],
            **({"raises": [dict(told) for told in self.raises]} if self.raises else {}),
        }


def load(path: Path | str) -> Suite:
    """Read a suite; `test_cases` is accepted for `cases`.

    Raises:
        ContractError: unreadable, the schema is broken, two cases share an id, it is
            another operator's, or it lies beside older or newer inputs.
    """
    path = Path(path)
    together.check_whole(path.parent)
    data = read_json(path)
    schema.check(data, "adversarial_suite", file=path)
    schema.raise_first(_duplicates(data) + schema.of_another(data["op"], path, "op"), file=path)
    return build(data, str(path))


def check(path: Path | str) -> list[Finding]:
    """Return everything that is wrong with a suite, completeness included."""
    path = Path(path).resolve()
    try:
        together.check_whole(path.parent)
        data = read_json(path)
    except ContractError as error:
        return [Finding.of(error)]
    found = schema.findings(data, "adversarial_suite") or _duplicates(data)
    if found:
        return found
    return schema.of_another(data["op"], path, "op") + check_complete(build(data, str(path)))


def check_complete(suite: Suite) -> list[Finding]:
    """Return what a complete suite has and this one lacks: two cases per level, above L1 two whose numbers are compared.

    Cases that differ in name and tolerance only count once. Not part of `load`: an incomplete suite still judges what it
    covers.
    """
    found = []
    for level in Level:
        cases = [case for case in suite.cases if case["level"] == level.value]
        if len(cases) < LEAST_PER_LEVEL:
            found.append(Finding("cases", f"level {level} has {len(cases)} case(s), needs {LEAST_PER_LEVEL}"))
            continue
        compared = cases if level is Level.L1 else [case for case in cases if case["precision"]]
        distinct = len({_what_runs(case) for case in compared})
        if distinct < LEAST_PER_LEVEL:
            kind = "different case(s)" if level is Level.L1 else "different case(s) that compare numbers"
            found.append(Finding("cases", f"level {level} has {distinct} {kind}, needs {LEAST_PER_LEVEL}"))
    return found


def untried_dtypes(suite: Suite, supported: Sequence[str], ports: Iterable[str]) -> list[str]:
    """Return the dtypes that SPEC.md supports and no case has: an older suite beside a newer SPEC.md says nothing of them.

    Args:
        supported: SPEC.md's `supported_dtypes`.
        ports: the dtypes that the contract gives inputs, whatever the case says.
    """
    given = [case.get("dtype") for case in suite.cases]
    words = [word for dtype in given for word in (dtype.values() if isinstance(dtype, Mapping) else [dtype])]
    tried = {DTYPE_ALIASES.get(word, word) for word in (*words, *ports) if isinstance(word, str)}
    return [dtype for dtype in supported if dtype not in tried]


def _what_runs(case: Case) -> str:
    """Return what `make_inputs` sees of a case, as text: its shape, dtype, seed and knobs."""
    kept = {key: value for key, value in case.items() if key not in JUDGED_BY or key == "raises"}
    return json.dumps(kept, sort_keys=True, default=str)


def build(data: Mapping[str, Any], source: str) -> Suite:
    """Return the suite of data that satisfies the schema."""
    cases = []
    for item in data.get("cases", data.get("test_cases", [])):
        case = {"precision": True, **item, "level": Level.parse(item["level"]).value}
        cases.append(case)
    return Suite(data["op"], data["total_modules"], tuple(cases), source, tuple(data.get("raises", ())))


def _duplicates(data: Mapping[str, Any]) -> list[Finding]:
    key = "cases" if "cases" in data else "test_cases"
    first: dict[str, int] = {}
    found = []
    for number, case in enumerate(data[key]):
        earlier = first.setdefault(case["id"], number)
        if earlier != number:
            found.append(Finding(f"{key}[{number}].id", f"{case['id']!r} is already the id of {key}[{earlier}]"))
    for number, told in enumerate(data.get("raises", ())):
        if first.setdefault(told["id"], -1 - number) != -1 - number:
            found.append(Finding(f"raises[{number}].id", f"{told['id']!r} is already an id"))
    return found


def _parse_levels(levels: str | Iterable[str | int], source: str) -> set[str]:
    words: Sequence[str | int] = [word for word in levels.split(",") if word.strip()] if isinstance(levels, str) else list(levels)
    wanted = set()
    for word in words:
        try:
            wanted.add(Level.parse(word).value)
        except ValueError:
            raise ContractError(f"there is no level {str(word)[:40]!r}", file=source, remedy="use L1, L2, L3, L4, L5") from None
    if not wanted:
        raise ContractError("no level is named", file=source, remedy="use L1, L2, L3, L4, L5")
    return wanted


def _shown(levels: str | Iterable[str | int]) -> str:
    return levels[:60] if isinstance(levels, str) else ",".join(map(str, levels))
