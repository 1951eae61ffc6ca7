"""Writes the sections of SPEC.md (6, 8) and DESIGN.md (0.1 to 0.3) that repeat the front matter or count the golden.

A section is written where it is open (empty, or with a TODO), and anew where code wrote it before. What a person wrote stays, and
so does a page that a gate has frozen.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from pypto_op.documents import front_matter, markdown, port_table, spec
from pypto_op.documents.complexity import HEAVY_OPS_PER_UNIT, LINES_PER_UNIT, DesignParams
from pypto_op.documents.memory import table
from pypto_op.documents.reading import read_json, read_text
from pypto_op.documents.spec import Spec
from pypto_op.documents.writing import locked, write_atomically
from pypto_op.errors import ContractError
from pypto_op.workspace import STATE_FILE

_MADE = "Written by `pypto-op design-params`."
_LARGEST_STATE = 8 << 20
_OPEN = re.compile(r"\bTODO\b|\A\s*\Z")


def fill(golden: Path, params: DesignParams) -> list[str]:
    """Write what follows from a golden and from SPEC.md's front matter into the SPEC.md and DESIGN.md beside the golden.

    Args:
        golden: `<op>_golden.py`.
        params: what was counted in it.

    Returns:
        The sections that changed: "DESIGN.md 0.1", ...

    Raises:
        ContractError: a document cannot be read as text.
        InfraError: one cannot be locked or written.
    """
    done = _fill(golden.with_name("DESIGN.md"), _of_design(params))
    try:
        known = spec.load(golden.with_name("SPEC.md"))
    except ContractError:  # not written yet, or not fit: `pypto-op check` tells that
        return done
    outputs = [
        row.dtype for row in port_table.rows(front_matter.read(golden.with_name("SPEC.md")).body).values() if row.is_output
    ]
    return [*_fill(golden.with_name("SPEC.md"), _of_spec(known, outputs)), *done]


def _of_design(params: DesignParams) -> dict[str, list[str]]:
    signals, decided = params.signals, params.as_dict()
    counted = (signals.effective_lines, signals.state_groups, signals.matmuls, signals.cross_tile_reduces)
    names = ("effective_lines", "loop_carried_state_groups", "matmul_count", "cross_tile_reduce_count")
    return {
        "0.1": table(names, [tuple(map(str, counted))]),
        "0.2": [
            f"L = {counted[0]} / {LINES_PER_UNIT} = {decided['L']:.2f}; S = {counted[1]}; "
            f"O = ({counted[2]} + {counted[3]}) / {HEAVY_OPS_PER_UNIT} = {decided['O']:.2f}; "
            f"total_complexity = {decided['total_complexity']:.2f}."
        ],
        "0.3": [f"Decision: module_count = {params.module_count}"],
    }


def _of_spec(known: Spec, outputs: Sequence[str]) -> dict[str, list[str]]:
    """Return the bodies of 6 and 8; `outputs` has section 5's one dtype of each output, "" for one that follows the case's."""

    def made(dtype: str) -> str:
        return ", ".join(dict.fromkeys(fixed or dtype for fixed in outputs)) or dtype

    header = ("input dtype", "accumulation dtype", "output dtype")
    axes = [f"{axis} ({' to '.join(map(str, known.axis_ranges.get(axis, ('any length',))))})" for axis in known.dynamic_axes]
    return {
        "6": table(header, [(dtype, "float32", made(dtype)) for dtype in known.supported_dtypes]),
        "8": [f"Run-time lengths: {', '.join(axes)}." if axes else "None."],
    }


def _fill(path: Path, bodies: Mapping[str, Sequence[str]]) -> list[str]:
    if not path.is_file() or _frozen(path):
        return []
    with locked(path):
        before = text = read_text(path)
        done = []
        for number, body in bodies.items():
            changed = _with(text, number, body)
            done += [f"{path.name} {number}"] if changed != text else []
            text = changed
        if text != before:
            write_atomically(path, text)
    return done


def _frozen(path: Path) -> bool:
    """Whether the state file beside a page holds its hash."""
    state_file = path.with_name(STATE_FILE)
    if not state_file.is_file():
        return False
    try:
        state = read_json(state_file, limit=_LARGEST_STATE)
    except ContractError:
        return True
    held = state.get("artifact_hashes") if isinstance(state, dict) else None
    return isinstance(held, dict) and any(isinstance(one, dict) and one.get("path") == path.name for one in held.values())


def _with(text: str, number: str, body: Sequence[str]) -> str:
    """Return the page with the body of the section of this number, where that is open or was made here."""
    first = markdown.front_matter_lines(text)
    lines = text.split("\n")
    sections = markdown.sections("\n".join(lines[first:]), first_line=first + 1)
    found = next((section for section in sections if re.match(rf"{re.escape(number)}\.?(\s|\Z)", section.title)), None)
    if found is None or not (_MADE in found.text or _OPEN.search(found.text)):
        return text
    rest = "\n".join(lines[found.line :]).removeprefix(found.text).lstrip("\n")
    return "\n".join([*lines[: found.line], _MADE, "", *body, "", rest])
