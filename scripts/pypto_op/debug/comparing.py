"""What the runs of a kernel and its golden say together, computed in the trusted worker (`child`): places, never a value."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pypto_op.backends.wire import read_values
from pypto_op.compare import compare_leaves
from pypto_op.debug import divergence, dump_files, reads_writes, replay
from pypto_op.debug.dump_files import Step
from pypto_op.debug.matching import Golden
from pypto_op.debug.mending import Mend, first_mend
from pypto_op.debug.wanted import Backwards
from pypto_op.diagnose.kernel_loops import KernelLoops
from pypto_op.documents.policy import Policy, get_policy

_MOST = 5


def divergences(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return whether the outputs agree, which are wrong, and where the kernel leaves the golden, first places first.

    Args:
        message: `kernel`, `graphs`, `golden`: folders of the three runs; `names` of the outputs; `policy`; `impl`.
    """
    traced, told = read_values(Path(message["golden"]) / "outputs")
    numbers = [int(row["tensor"]) for row in told["rows"] if row["op"] == "output"]
    wrong = _wrong(message, [traced[number] for number in numbers])
    answer = {"complete": bool(told["complete"]), "wrong": wrong, "operations": 0, "divergences": []}
    steps = dump_files.read_steps(Path(message["kernel"]))
    answer["operations"] = len(steps)
    if wrong:
        impl = Path(message["impl"])
        dump_files.set_lines(steps, Path(message["graphs"]), impl)
        tensors: list[Any] = list(traced)
        text = KernelLoops(impl.read_text(encoding="utf-8"))
        missing = _never_written(steps, wrong, message["names"], text)
        places = _places(steps, Golden(tensors, told["rows"]), dict(zip(message["names"], numbers, strict=False)), text)
        answer["divergences"] = _distinct([*missing, *places])[:_MOST]
    return answer


def simulator(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return the first operation of which torch makes something else than the simulator, {} where there is none."""
    steps = dump_files.read_steps(Path(message["kernel"]))
    dump_files.set_lines(steps, Path(message["graphs"]), Path(message["impl"]))
    step = replay.disagreeing(steps)
    return {"operations": len(steps), "step": None} if step is None else _told(step, len(steps))


def _told(step: Step, count: int) -> dict[str, Any]:
    return {"operations": count, "step": {"opcode": step.opcode, "number": step.number, "line": step.line}}


def rounding(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return whether the golden in float64 gives what the kernel gives, and not what it gives itself."""
    traced, told = read_values(Path(message["golden"]) / "outputs")
    expected: list[Any] = [traced[int(row["tensor"])] for row in told["rows"] if row["op"] == "output"]
    exact: list[Any] = list(read_values(Path(message["exact"]) / "outputs")[0])
    if len(exact) != len(expected):
        return {"golden": False}
    wide = [one.to(two.dtype) for one, two in zip(exact, expected, strict=True)]
    plain = get_policy("allclose@1")
    own = compare_leaves(wide, expected, names=message["names"], policy=plain)
    kernel = compare_leaves(_outputs(message), wide, names=message["names"], policy=plain)
    return {"golden": bool(not own.all_close and kernel.all_close)}


def _outputs(message: Mapping[str, Any]) -> list[Any]:
    return list(read_values(Path(message["kernel"]) / "outputs")[0])


def _wrong(message: Mapping[str, Any], expected: list[Any]) -> list[str]:
    policy = Policy(*message["policy"])
    compared = compare_leaves(_outputs(message), expected, names=message["names"], policy=policy)
    leaves = [leaf.as_dict() for leaf in compared.per_tensor]
    return [str(leaf["name"]) for leaf in leaves if not leaf["all_close"]]


def _places(steps: list[Step], golden: Golden, outputs: Mapping[str, int], text: KernelLoops) -> list[dict[str, Any]]:
    first, well = divergence.first_divergences(steps, golden)
    back = Backwards(steps, golden, well)
    wants = back.wants(list(outputs.values()), list(outputs))
    mend = first_mend(steps, back, wants)
    mended = [_mended(mend, steps, text)] if mend is not None else []
    shown = {want.step.number for want in wants if want.operands_well}
    rows = [_row(found, "computed", text, sure=found.step.number in shown) for found in first if found.sure]
    parts = [_row(found, "computed", text, sure=False) for found in first if not found.sure]
    read = [*reads_writes.other_batch(steps, outputs), *reads_writes.misjoined(steps, first)]
    joined = [_row(found, "misplaced", text) for found in read]
    moved = [_row(found, "misplaced", text) for found in reads_writes.misplaced(steps, golden, list(outputs.values()))]
    found = [
        *_uncovered(steps, golden, outputs, text),
        *joined,
        *mended,
        *rows,
        *moved,
        *parts,
    ]
    placed = [want.step for want in wants if want.step.line]
    if not found and placed:
        guess = divergence.Divergence(placed[0], "it would have to be another for the output to be right")
        found = [_row(guess, "computed", text, sure=False)]
    return _distinct(found)


def _uncovered(steps: list[Step], golden: Golden, outputs: Mapping[str, int], text: KernelLoops) -> list[dict[str, Any]]:
    """Return what no turn of a loop writes or reads."""
    unwritten, unread = [], []
    for gap in reads_writes.uncovered(steps, outputs):
        words = f"no write of any turn reaches the end of axis {gap.axis} of {gap.name}: bound, offset or size is short"
        if gap.twice:
            over = f"turns write over one another and leave a part of axis {gap.axis} of {gap.name}: the offset is off"
            unwritten += [_place(line, "unwritten", "ASSEMBLE", "", over) for line in text.writes_of_graph(gap.graph, gap.name)]
        for loop in text.holding(gap.indices, gap.graph)[:2]:
            unwritten.append(_place(loop.first, "unwritten", "LOOP", loop.index, words))
    for short in reads_writes.unread(steps, text, golden):
        if isinstance(short, divergence.Divergence):
            unread.append(_row(short, "unread", text))
            continue
        words = f"no turn reads all of axis {short.axis} of an input: bound, offset or valid shape is short"
        for loop in text.holding(short.indices, short.graph)[:1]:
            unread.append(_place(loop.first, "unread", "LOOP", loop.index, words))
    if not steps:
        unwritten = [_place(loop.first, "unwritten", "LOOP", loop.index, "no turn ran") for loop in text.loops]
    return [*unwritten, *unread]


def _mended(mend: Mend, steps: list[Step], text: KernelLoops) -> dict[str, Any]:
    """Return the place where one edit makes all that follows right, with that edit in the names of the kernel's results."""
    by_number = {step.number: step for step in steps}

    def named(found: re.Match[str]) -> str:
        step = by_number[int(found[1])]
        return step.symbol if step.opcode == "ASSEMBLE" else f"[{step.opcode} of line {step.line or '?'}]"

    words = f"all that follows is right where this is {re.sub(r'#([0-9]+)', named, mend.formula)}"
    step = mend.want.step
    row = _row(divergence.Divergence(step, words, same=divergence.same_operations(steps, step)), "computed", text)
    before = step
    while before.line is None and before.parents:
        before = by_number[max(before.parents)]
    return {**row, "line": row["line"] or text.write_of_state(step.symbol, step.function, before.line)}


def _never_written(steps: list[Step], wrong: list[str], names: Sequence[str], text: KernelLoops) -> list[dict[str, Any]]:
    """Return the last write of the file for outputs that no write names, where other outputs are written by their name."""
    written = {step.symbol for step in steps if step.opcode == "ASSEMBLE"}
    if not written & set(names) or not text.writes:
        return []
    words = "nothing is ever written to {}; this is the last write of the kernel"
    return [_place(max(text.writes), "unwritten", "ASSEMBLE", "", words.format(name)) for name in wrong if name not in written]


def _row(found: divergence.Divergence, kind: str, text: KernelLoops, *, sure: bool = True) -> dict[str, Any]:
    step = found.step
    line = step.line
    if line is None and kind == "misplaced" and step.opcode == "ASSEMBLE":
        writes = text.writes_of_graph(step.function, step.symbol)
        line = writes[0] if len(writes) == 1 else None
    row = {**_place(line, kind, step.opcode, step.turn, found.why), "sure": sure}
    callers = text.callers(step.line, step.function) if step.line else []
    call = found.call_of(len(callers))
    if call is None and kind != "computed" and step.line and step.opcode == "VIEW" and text.placed_by_caller(step.line):
        call = found.same.index(step.number) % max(len(callers), 1) if step.number in found.same else 0
    if callers and call is not None:  # the helper does what it is told; this call of it hands over something else
        row["line"], callers = callers[call], callers[:1]
    return {**row, "operation": step.number, "shape": list(step.valid), "called_from": list(dict.fromkeys(callers))[:4]}


def _place(line: int | None, kind: str, opcode: str, turn: str, why: str) -> dict[str, Any]:
    row = {"line": line, "kind": kind, "opcode": opcode, "turn": turn, "why": why, "sure": True}
    return {**row, "operation": 0, "shape": [], "called_from": []}


def _distinct(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    kept: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        kept.setdefault((row["line"], row["kind"], row["opcode"]), row)
    return sorted(kept.values(), key=lambda row: row["line"] is None)
