"""`pypto-op fill-memory`: what MEMORY.md repeats of a kernel's file, written by code, so that every line number is right.

The golden's inventory, API map, tiles and self-review are written anew from the file that lies there. What is a judgement
stays the coder's: the pitfalls that were thought of, and whether a write reads padding. What the file does not show stays open.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pypto_op.documents import interfaces, markdown
from pypto_op.documents.memory import append_row, table
from pypto_op.documents.reading import read_text
from pypto_op.documents.writing import locked, write_atomically
from pypto_op.errors import ContractError
from pypto_op.review.kernel_facts import KernelFacts, Place, golden_steps
from pypto_op.workspace import OpWorkspace

_INVENTORY = ("#", "operation", "shape change", "PyPTO", "Line", "Status")
_AUDIT = "valid-shape audit"
_PREFLIGHT = "Experience Preflight"


@dataclass
class Filled:
    """What was written."""

    path: Path  # MEMORY.md
    open: list[str] = field(default_factory=list)  # what the file does not show, one sentence each
    later: list[str] = field(default_factory=list)  # steps of the golden that an earlier phase leaves to later modules


def fill(ws: OpWorkspace, phase: int | None, *, audit: str | None, preflight: Sequence[str], log: str | None) -> Filled:
    """Write the derived sections of MEMORY.md.

    Args:
        phase: k of the staged file that is meant; None: the integrated kernel, which is phase M1.
        audit: the coder's words on valid shapes; None keeps what is there.
        preflight: known pitfalls that were thought of; each becomes a ticked item.
        log: the result of the work, for the development log.

    Raises:
        ContractError: a file is missing or malformed.
        InfraError: MEMORY.md cannot be locked or written.
    """
    impl = ws.impl if phase is None else ws.module_impl(phase)
    facts = KernelFacts(impl, ws.wrapper_name() if phase is None else ws.wrapper_name(phase))
    name, shown = f"M{phase or 1}", str(impl.relative_to(ws.root))
    done = Filled(ws.memory)
    inventory, calls = _inventory(ws, phase, facts, done)
    tiles = [[function, tile, f"DESIGN.md 3.2.5; {shown}:{line}"] for function, tile, line in facts.tiles()]
    with locked(ws.memory):
        text = read_text(ws.memory)
        old = _items(text, f"Phase {name} self-review")
        review = _self_review(ws, phase, facts, shown, done, audit or _said(old))
        text = _with(text, "Golden function inventory", table(_INVENTORY, inventory))
        text = _with(text, "API map", table(("step", "PyPTO", "level"), calls))
        text = _with(text, "Vector tile config", table(("stage", "tile", "why"), tiles))
        text = _with(text, f"Phase {name} self-review", review)
        if preflight:
            text = _with(text, _PREFLIGHT, [f"- [x] {_one_line(words)}" for words in preflight])
        write_atomically(ws.memory, text)
    if log is not None:
        append_row(ws.memory, "Development & debug log", [f"{name} impl produced", _one_line(log), "verdict"])
    return done


def _inventory(ws: OpWorkspace, phase: int | None, facts: KernelFacts, done: Filled) -> tuple[list[list[str]], list[list[str]]]:
    """Return the rows of the inventory and of the API map.

    Which steps belong to later modules stands nowhere. So before the last phase a file that marks any leaves the others, as OL53
    takes it.
    """
    steps, marks = golden_steps(ws.golden), facts.marks()
    staged = phase is not None and phase < interfaces.load(ws.interfaces).total_modules
    unmarked = done.later if staged and marks else done.open
    if not steps:
        done.open.append(f"{ws.golden.name} has no numbered inventory in its header")
    rows, calls = [], []
    for step in steps:
        places = marks.get(step.number, [])
        if not places:
            unmarked.append(f"step {step.number} ({step.operation}): no line of the kernel says `# golden {step.number}`")
            rows.append([str(step.number), step.operation, step.change, "", "", "❌"])
            continue
        lines = ", ".join(str(place.line) for place in places)
        rows.append([str(step.number), step.operation, step.change, f"`{places[0].code}`", lines, "✅"])
        names = list(dict.fromkeys(name for place in places for name in facts.called_at(place.line)))
        named = ", ".join(f"`{name}`" for name in names) or f"`{places[0].code}`"
        calls.append([str(step.number), named, "direct" if names else "operator"])
    for number in sorted(set(marks) - {step.number for step in steps}):
        done.open.append(f"the kernel marks step {number}, which the golden's inventory does not have")
    return rows, calls


def _all_written(ws: OpWorkspace, phase: int | None, written: Sequence[Place]) -> bool:
    """Whether as many tensors are written as the contract names; of a staged file, whether any is."""
    outputs = len(interfaces.load(ws.interfaces).final_outputs) if phase is None else 1
    return len({place.code for place in written}) >= outputs


def _self_review(
    ws: OpWorkspace, phase: int | None, facts: KernelFacts, shown: str, done: Filled, audit: str | None
) -> list[str]:
    wrapper = facts.wrapper
    wanted = [port.name for port in interfaces.load(ws.interfaces).primary_inputs]
    given = [argument.arg for argument in wrapper.args.args] if wrapper else []
    line = wrapper.lineno if wrapper else 0
    end = (wrapper.end_lineno or line) if wrapper else 0
    written, views, loops, launches = facts.written(), facts.views(), facts.host_loops(), facts.launches()
    ranks = {view.ranks for view in views if view.ranks is not None}
    places = ", ".join(f"`{place.code}` {shown}:{place.line}" for place in written)
    open_steps = sum("no line of the kernel says" in text for text in done.open)
    signature = bool(given) and set(given) <= set(wanted) and given == [name for name in wanted if name in given]
    rows = [
        (signature, f"host wrapper signature matches `primary_inputs`: {shown}:{line}, {', '.join(given) or 'no wrapper'}"),
        (_all_written(ws, phase, written), f"every declared output tensor is written: {places or 'no assemble'}"),
        (
            all(shape == offsets for shape, offsets in ranks),
            f"ranks of every view (shape and offsets) agree: {_lines(shown, [view.line for view in views])}",
        ),
        (not open_steps, f"golden function inventory rows of this phase carry a line: {open_steps} open"),
        (wrapper is not None and not loops, f"no `for ... in range` in the wrapper: {shown}:{line}-{end}"),
        (len(launches) == 1, f"the wrapper launches the kernel exactly once: {_lines(shown, launches)}"),
    ]
    done.open += [f"self-review: {text}" for fine, text in rows if not fine]
    ragged = _lines(shown, [view.line for view in views if view.ragged])
    if audit is None:
        done.open.append("self-review: the valid-shape audit is the coder's, `--audit TEXT`")
    last = f"- [{'x' if audit else ' '}] {_AUDIT}: set at {ragged}; {_one_line(audit) if audit else 'to be said'}"
    return [*(f"- [{'x' if fine else ' '}] {text}" for fine, text in rows), last]


# -- the page --------------------------------------------------------------------------------------------------------


def _with(text: str, title: str, body: Sequence[str]) -> str:
    """Return the page with the body of a section replaced; a section that is not there is made at the end."""
    lines = text.split("\n")
    section = markdown.find_section(markdown.sections(text), [title])
    if section is None:
        return "\n".join([*lines, f"## {title}", *body, ""])
    rest = "\n".join(lines[section.line :]).removeprefix(section.text).lstrip("\n")
    return "\n".join([*lines[: section.line], *body, "", rest]).rstrip("\n") + "\n"


def _items(text: str, title: str) -> list[str]:
    section = markdown.find_section(markdown.sections(text), [title])
    return [item.text for item in section.checklist if item.ticked] if section is not None else []


def _said(items: Sequence[str]) -> str | None:
    """Return the coder's words of an earlier audit."""
    found = next((text for text in items if text.startswith(_AUDIT)), None)
    return found.partition("; ")[2] or None if found else None


def _lines(shown: str, lines: Sequence[int]) -> str:
    return f"{shown}:{', '.join(map(str, lines))}" if lines else "none"


def _one_line(words: str) -> str:
    said = re.sub(r"\s+", " ", words).strip()
    if not said:
        raise ContractError("an empty text says nothing", remedy="give a sentence")
    return said
