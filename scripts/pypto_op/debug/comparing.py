"""Compares a kernel's dumped run with its golden's, in the trusted worker (`child`), and returns places, never a value."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from pypto_op.backends.wire import read_values
from pypto_op.compare import compare_leaves
from pypto_op.debug import divergence, dump_files, explanation, hypotheses, reads_writes, rerun, turns
from pypto_op.debug.dump_files import Step
from pypto_op.debug.golden_trace import Traced
from pypto_op.debug.matching import Golden
from pypto_op.debug.mending import Mend, first_mend
from pypto_op.debug.places import distinct, place, row_of
from pypto_op.debug.wanted import Backwards
from pypto_op.diagnose.kernel_names import KernelNames
from pypto_op.documents.policy import Policy, get_policy

_MOST = 5
_MOST_EXPLAINED = 2
_OF_NOTHING = ("RANGE", "VEC_DUP")
"""Operations that fill in numbers: nothing spoils them but their own line."""


def divergences(message: Mapping[str, Any], traced: Traced) -> dict[str, Any]:
    """Return whether the outputs agree, which are wrong, and where the kernel leaves the golden, first places first.

    Args:
        message: `kernel`, `graphs`: folders of the two runs; `names` of the outputs; `policy`; `impl`; `wrapper`.
    """
    numbers = traced.outputs
    expected = [traced.tensors[number] for number in numbers]
    wrong = _wrong(message, expected)
    answer = {"complete": traced.complete, "wrong": wrong, "operations": 0, "divergences": []}
    steps = _steps(message["kernel"], message["graphs"], message["impl"])
    answer["operations"] = len(steps)
    if wrong:
        search = _Search(
            steps, Golden(traced.tensors, traced.rows, traced.numbers), dict(zip(message["names"], numbers, strict=False)),
            Path(message["impl"]).read_text(encoding="utf-8"),
        )  # fmt: skip
        exchanged = search.exchanged(_outputs(message), expected, wrong, message["wrapper"])
        missing = search.never_written(wrong, message["names"])
        answer["divergences"] = distinct([*exchanged, *missing, *search.places()])[:_MOST]
    return answer


@lru_cache(maxsize=1)
def _steps(kernel: str, graphs: str, impl: str) -> list[Step]:
    """Return the steps of a run with their lines; the same ones to each question about it, since reading them takes a second."""
    steps = dump_files.read_steps(Path(kernel))
    dump_files.set_lines(steps, Path(graphs), Path(impl))
    return steps


def simulator(message: Mapping[str, Any], _: Traced) -> dict[str, Any]:
    """Return the first operation of which torch makes something else than the simulator, {} where there is none."""
    steps = _steps(message["kernel"], message["graphs"], message["impl"])
    step = rerun.disagreeing(steps)
    return {"operations": len(steps), "step": None} if step is None else _told(step, len(steps))


def _told(step: Step, count: int) -> dict[str, Any]:
    return {"operations": count, "step": {"opcode": step.opcode, "number": step.number, "line": step.line}}


def shapes(_: Mapping[str, Any], traced: Traced) -> dict[str, Any]:
    """Return the operations of the golden's trace and the shapes of the tensors that they name by number."""
    return {"rows": traced.rows, "shapes": [list(one.shape) for one in traced.tensors]}


def rounding(message: Mapping[str, Any], traced: Traced) -> dict[str, Any]:
    """Return whether the golden in float64 gives what the kernel gives, and not what it gives itself."""
    expected = [traced.tensors[number] for number in traced.outputs]
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


class _Search:
    """Looks for the places where a kernel leaves its golden.

    Args:
        outputs: number of each output among them, by name.
    """

    def __init__(self, steps: list[Step], golden: Golden, outputs: Mapping[str, int], source: str) -> None:
        self._steps, self._golden, self._outputs = steps, golden, outputs
        self._text = KernelNames(source)
        self._first, self._well = divergence.first_divergences(steps, golden)
        self._back = Backwards(steps, golden, self._well)

    def places(self) -> list[dict[str, Any]]:
        """Return the places of what was computed, read and written, the likeliest first."""
        steps, text, first = self._steps, self._text, self._first
        numbers, names = list(self._outputs.values()), list(self._outputs)
        wants = self._back.wants(numbers, names)
        mend = first_mend(steps, self._back, wants)
        shown = {want.step.number for want in wants if want.operands_well}
        rows = [row_of(found, "computed", text, sure=found.step.number in shown) for found in first if found.sure]
        parts = [row_of(found, "computed", text, sure=False) for found in first if not found.sure]
        read = [*reads_writes.other_batch(steps, self._outputs), *reads_writes.misjoined(steps, first)]
        moved = reads_writes.misplaced(steps, self._golden, numbers)
        through = [] if first else divergence.went_through(steps, self._golden, [one.step for one in moved if not one.step.moves])
        explained = hypotheses.explaining(steps, self._back, numbers, names, self._golden.numbers)
        unwritten, unread = _uncovered(steps, self._golden, self._outputs, text)
        found = [
            *self._backwards(),
            *unwritten,
            *(place for one in explained[:_MOST_EXPLAINED] for place in explanation.places(one, text)),
            *explanation.conditions(first, {step.number: step for step in steps}, text),
            *unread,
            *(self._taken_from_a_table(one) for one in reads_writes.unpicked(steps, self._golden)),
            *(row_of(one, "misplaced", text) for one in read),
            *([] if mend is None else [_mended(mend, steps, text)]),
            *sorted(rows, key=lambda row: row["opcode"] in _OF_NOTHING),
            *(row_of(one, "computed", text, sure=False) for one in through),
            *(row_of(one, "misplaced", text) for one in moved),
            *parts,
        ]
        placed = [want.step for want in wants if want.step.line]
        if not found and placed:
            made = divergence.maker_of(placed[0], steps)
            guess = divergence.Divergence(made, "it would have to be another for the output to be right")
            found = [row_of(guess, "computed", text, sure=False)]
        return distinct(found)

    def _backwards(self) -> list[dict[str, Any]]:
        """Return the line that sets the order of a loop's turns, where a state goes through them against the golden's order."""
        index = turns.walked_backwards(self._steps, self._golden)
        line = self._text.order_of(index) if index else 0
        words = "the turns compute what the golden's do, in the opposite order, and a state is carried from turn to turn"
        return [place(line, "misplaced", "LOOP", index, words)] if line else []

    def _taken_from_a_table(self, found: divergence.Divergence) -> dict[str, Any]:
        """Return the place of a read, or where its offset is taken out of a tensor."""
        row = row_of(found, "unread", self._text)
        return {**row, "line": self._text.table_of(row["line"]) or row["line"]}

    def exchanged(self, made: list[Any], expected: list[Any], wrong: list[str], wrapper: str) -> list[dict[str, Any]]:
        """Return the lines that exchange outputs or arguments."""
        return explanation.exchanged(
            made, expected, wrong, list(self._outputs), wrapper,
            self._back, list(self._outputs.values()), self._text,
        )  # fmt: skip

    def never_written(self, wrong: list[str], outputs: Sequence[str]) -> list[dict[str, Any]]:
        """Return the last write of the file for outputs that no write names, where others are written by their name."""
        written = {step.symbol for step in self._steps if step.opcode == "ASSEMBLE"}
        if not written & set(outputs) or not self._text.writes:
            return []
        words = "nothing is ever written to {}; this is the last write of the kernel"
        last = max(self._text.writes)
        return [place(last, "unwritten", "ASSEMBLE", "", words.format(name)) for name in wrong if name not in written]


def _uncovered(
    steps: list[Step], golden: Golden, outputs: Mapping[str, int], text: KernelNames
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return what no turn of a loop writes, and what none reads."""
    unwritten, unread = [], []
    for gap in reads_writes.uncovered(steps, outputs):
        if gap.twice:
            over = f"turns write over one another and leave a part of axis {gap.axis} of {gap.name}: the offset is off"
            unwritten += [place(line, "unwritten", "ASSEMBLE", "", over) for line in text.writes_of_graph(gap.graph, gap.name)]
        loops = text.holding(gap.indices, gap.graph)[:2]
        if loops and loops[0].index in gap.idle:
            only = f"only some turns write {gap.name}: it is the condition or the place of the write, not the loop's bound"
            unwritten += [place(line, "unwritten", "ASSEMBLE", "", only) for line in text.writes_of_graph(gap.graph, gap.name)]
        words = f"no write of any turn reaches the end of axis {gap.axis} of {gap.name}: bound, offset or size is short"
        if gap.cut:
            cut = f"the last write is cut short and ends before axis {gap.axis} of {gap.name} does: the extent is off"
            lines = [line for loop in loops for line in text.extents_of(loop.first)]
            unwritten += [place(line, "unwritten", "EXTENT", "", cut) for line in lines[:1]]
        for loop in loops:
            unwritten.append(place(loop.first, "unwritten", "LOOP", loop.index, words))
    for short in reads_writes.unread(steps, text, golden):
        if isinstance(short, divergence.Divergence):
            unread.append(row_of(short, "unread", text))
            continue
        words = f"no turn reads all of axis {short.axis} of an input: bound, offset or valid shape is short"
        for loop in text.holding(short.indices, short.graph)[:1]:
            unread.append(place(loop.first, "unread", "LOOP", loop.index, words))
    ran = {name for step in steps for name, _ in step.loops}
    if not any(step.opcode == "ASSEMBLE" and step.symbol in outputs for step in steps):
        idle = [loop for loop in text.loops if loop.index not in ran]
        unwritten = [place(loop.first, "unwritten", "LOOP", loop.index, "no turn ran") for loop in idle]
    return unwritten, unread


def _mended(mend: Mend, steps: list[Step], text: KernelNames) -> dict[str, Any]:
    """Return the place where one edit makes all that follows right, with that edit in the names of the kernel's results."""
    by_number = {step.number: step for step in steps}

    def named(found: re.Match[str]) -> str:
        step = by_number[int(found[1])]
        return step.symbol if step.opcode == "ASSEMBLE" else f"[{step.opcode} of line {step.line or '?'}]"

    words = f"all that follows is right where this is {re.sub(r'#([0-9]+)', named, mend.formula)}"
    step = mend.want.step
    if mend.maker is not None:
        kept = f"what this makes is what line {step.line or '?'} should read later; it is not kept"
        return row_of(divergence.Divergence(mend.maker, kept), "computed", text)
    row = row_of(divergence.Divergence(step, words, same=divergence.same_operations(steps, step)), "computed", text)
    before = step
    while before.line is None and before.parents:
        before = by_number[max(before.parents)]
    beside = [one.line for one in steps if one.line and (one.function, one.loops) == (step.function, step.loops)]
    writes = text.writes_of(step.symbol, beside)
    near = [line for line in writes if before.line is None or line >= before.line] or writes
    return {**row, "line": row["line"] or (near[0] if near else text.write_of_state(step.symbol, step.function, before.line))}
