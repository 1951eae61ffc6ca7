"""`pypto-op harness new`: eval/test_inputs.py, eval/adversarial_suite.json and eval/adversarial_runner.py."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from pypto_op import speaking
from pypto_op.documents import constraints, knobs, ranges, shape_expr, together
from pypto_op.documents import suite as suite_document
from pypto_op.documents.axes import INDICES
from pypto_op.documents.ranges import Range
from pypto_op.documents.reading import read_text
from pypto_op.documents.spec import Spec
from pypto_op.documents.stamps import is_untouched, stamped_python, stamped_suite
from pypto_op.documents.writing import write_atomically
from pypto_op.generators.cases import far_ends, lagging, leaning, one_number, whole_numbers
from pypto_op.generators.cases import suite as suite_cases
from pypto_op.generators.cases.case_maker import Maker
from pypto_op.generators.cases.float_scalars import defaults
from pypto_op.generators.cases.refusals import refusals
from pypto_op.generators.operator.indices import index_limits
from pypto_op.generators.operator.sources import Sources, gather
from pypto_op.generators.rehearsing.overflows import beyond
from pypto_op.generators.rehearsing.rehearsal import Offers, Progress, Rehearsed, drawable, rehearse
from pypto_op.generators.rehearsing.smallness import small
from pypto_op.generators.writing.generated import Fate, Outcome, fate_of, render, write_together
from pypto_op.judge.adversarial import runner_text
from pypto_op.judge.stressing import KEY, patterns_source
from pypto_op.stress.sites import normalised
from pypto_op.workspace import OpWorkspace


@dataclass(frozen=True)
class Made:
    """What `harness new` did.

    Attributes:
        files: the three files, and what became of each.
        cases: how many cases the suite that lies there has.
        dropped: generated cases that were left out, and why.
        natural: generated cases that are judged by the golden's natural error, and how many times the tolerance that is.
        blind: generated cases that are judged so since their tolerance takes a fault for right, and the faults.
        findings: what the suite that lies there still lacks.
        unlimited: integer tensors whose values nothing limits: neither SPEC.md nor what the golden takes as an index.
        untried: what SPEC.md says that the wrapper refuses, in words of which no call was made.
        unranged: float scalars of which SPEC.md names no range, so that no other sign of theirs is tried.
        worded: inputs whose limits SPEC.md says in words alone, with what was made of them.
        unread: words of SPEC.md that may limit an input and could not be read, each behind the input's name.
        unheeded: entries of SPEC.md's shape_constraints that no draw is made to obey.
    """

    files: list[Outcome]
    cases: int
    dropped: dict[str, str] = field(default_factory=dict)
    natural: dict[str, float] = field(default_factory=dict)
    blind: dict[str, tuple[str, ...]] = field(default_factory=dict)
    findings: list[str] = field(default_factory=list)
    unlimited: list[str] = field(default_factory=list)
    untried: list[str] = field(default_factory=list)
    unranged: list[str] = field(default_factory=list)
    worded: dict[str, str] = field(default_factory=dict)
    unread: list[str] = field(default_factory=list)
    unheeded: list[str] = field(default_factory=list)


def new_harness(ws: OpWorkspace, *, force: bool = False, try_cases: bool = True, progress: Progress | None = None) -> Made:
    """Write the harness; edited files are kept unless `force`.

    Args:
        ws: the operator; SPEC.md, module_interfaces.yaml and the golden must be there.
        force: replace edited files too.
        try_cases: run each generated case on the golden, and leave out what says nothing.
        progress: called before each of these runs.

    Raises:
        ContractError: a document or the golden is missing or malformed, no case works, or an edited file is kept beside what a
            stopped run replaced.
        InfraError: a file cannot be written, or the reference process cannot run.
    """
    speaking.now("reading SPEC.md, the contract, the design and the golden")
    sources = gather(ws)
    unlimited = [port.name for port in sources.tensors if port.name in sources.unlimited and port.dtype in INDICES]
    if try_cases and unlimited:
        speaking.now(f"trying on the golden which whole numbers are indices or lengths: {', '.join(unlimited)}")
        indices = index_limits(sources, unlimited)
        sources = replace(sources, ranges={**sources.ranges, **indices})
        unlimited = [name for name in unlimited if name not in indices]
    texts = {ws.test_inputs: inputs_text(sources), ws.runner: runner_text()}
    rehearsed, untried = Rehearsed([], {}), list[str]()
    kept = [] if force or not ws.suite.exists() or is_untouched(read_text(ws.suite)) else [Outcome(ws.suite, Fate.KEPT)]
    with together.drafts(ws.eval_dir) as folder:
        if not kept:
            tried = _with_inputs(ws, texts[ws.test_inputs], folder, force)
            rehearsed, document = _suite_made(sources, tried, try_cases, progress, untried)
            texts[ws.suite] = stamped_suite(document)
        outcomes = write_together(folder, texts, force=force, whole=not kept) + kept
    together.check_whole(ws.eval_dir)
    suite = suite_document.load(ws.suite)
    names = [port.name for port in sources.interfaces.primary_inputs]
    knobs.check_known(suite.cases, names, ws.test_inputs, read_text(ws.test_inputs))
    findings = [finding.one_line() for finding in suite_document.check_complete(suite)]
    told = rehearsed.dropped, rehearsed.natural, rehearsed.blind
    limits = *_worded(sources.spec), _unheeded(sources)
    return Made(outcomes, len(suite.cases), *told, findings, unlimited, untried, _unranged(sources), *limits)


@dataclass(frozen=True)
class _WithDraft(OpWorkspace):
    """An operator whose inputs are still a draft."""

    draft: Path

    @property
    def test_inputs(self) -> Path:
        """The draft."""
        return self.draft


def _with_inputs(ws: OpWorkspace, text: str, folder: Path, force: bool) -> OpWorkspace:
    """Return the operator with the inputs that will be there: a draft in `folder`, or what somebody edited."""
    if fate_of(ws.test_inputs, text, force=force) in (Fate.KEPT, Fate.UNCHANGED):
        return ws
    draft = folder / ws.test_inputs.name
    write_atomically(draft, text)
    return _WithDraft(ws.root, ws.name, draft)


def _suite_made(
    sources: Sources, ws: OpWorkspace, try_cases: bool, progress: Progress | None, untried: list[str]
) -> tuple[Rehearsed, dict[str, Any]]:
    """Return what became of the cases, and the suite; `untried` gets the refusals that no call is made of.

    Args:
        sources: what is known of the operator.
        ws: the operator, with the inputs that the cases are tried on.
        try_cases, progress: as of `new_harness`.
        untried: see there.
    """
    speaking.now("choosing shapes and values of the cases; nothing is written before all were tried")
    maker, rehearsed = suite_cases.filled(sources), Rehearsed([], {})
    sizes, cases = maker.dropped, suite_cases.in_order(maker)
    if try_cases:
        judged_by = sources.spec.policy()
        stays, between = partial(whole_numbers.stays, sources), partial(far_ends.between, maker)
        telling, overflowing, tiny = (partial(offer, maker) for offer in (far_ends.telling, beyond, small))
        offers = Offers(maker.in_place_of, maker.spare, stays, telling, between, overflowing, tiny)
        rehearsed = rehearse(ws, cases, judged_by, progress, sources.scalars, offers)
        rehearsed = replace(rehearsed, dropped={**sizes, **rehearsed.dropped})
        cases = suite_cases.by_level(rehearsed.cases)
    else:  # without a search the former would be ordinary cases, and the golden may refuse the latter
        plain = (case for case in cases if KEY not in case)
        cases = [case for case in plain if knobs.SET in case or not whole_numbers.varied_integer(case, sources.scalars)]
    speaking.now("drawing the calls that the wrapper must refuse")
    refused, undrawn = drawable(ws, refusals(Maker(sources), untried))
    rehearsed.dropped.update(undrawn)
    return rehearsed, _suite(sources, cases, refused)


def inputs_text(sources: Sources) -> str:
    """Return the text of eval/test_inputs.py."""
    tensors, sized = sources.tensors, _sized(sources)
    context = {
        "op": sources.ws.name,
        "ports": sources.interfaces.primary_inputs,
        "tensors": [{"name": p.name, "shape": _listed(p.shape), "dtype": _word(p.dtype)} for p in tensors],
        "follows": sources.following,
        "scalars": _mapping(sources.scalars),
        "weights": _mapping(sources.weights),
        "patterns": patterns_source(),
        "ranges": [(name, *_python(kept, *sized.get(name, ("", "")))) for name, kept in _bounded(sources).items()],
        "sized": bool(sized),
        "rows": _rows(sources),
        "distinct": any(rows.distinct for rows in sources.spec.rows.values()),
        "fixed": [port.name for port in tensors if port.name in sources.spec.fixed_inputs],
        "integers": [(name, *ranges) for name, ranges in sources.ranges.items()],
        "pages": _mapping(_pages(sources)),
        "wide": one_number.wide(sources.ranges),
        "apart": bool(sources.apart),
        "alike": bool(sources.alike or sources.meeting),
        "leaning": bool(leaning.pairs(sources)),
        "lagging": bool(lagging.pairs(sources)),
        "masks": sources.masks,
    }
    return stamped_python(render("test_inputs.py.j2", context))


def _bounded(sources: Sources) -> dict[str, Range]:
    """Return the range of each floating tensor that SPEC.md bounds, in the base shape where an end names a size."""
    found = {name: ranges.of(sources.spec.shape_constraints, name, sources.p0_sizes()[0]) for name in sources.floating}
    return {name: kept for name, kept in found.items() if kept != Range()}


def _unranged(sources: Sources) -> list[str]:
    """Return the float scalars of which SPEC.md names no range, nor says that they may be any number."""
    said, names = sources.spec.shape_constraints, (name for name in defaults(sources) if name not in sources.free)
    return [name for name in names if ranges.of(said, name, sources.p0_sizes()[0]) == Range()]


def _unheeded(sources: Sources) -> list[str]:
    """Return the entries of SPEC.md's shape_constraints that no draw is made to obey."""
    sizes = {*sources.interfaces.symbols, *sources.scalars, *sources.p0_sizes()[0]}
    return constraints.unheeded(sources.spec.shape_constraints, sizes, [port.name for port in sources.tensors])


def _worded(spec: Spec) -> tuple[dict[str, str], list[str]]:
    """Return what limits words gave inputs, and the words that gave none."""
    read = {name: told.told(name) for name, told in spec.worded.items() if told.told(name)}
    return read, [f"{name} by `{words}`" for name, told in spec.worded.items() for words in told.unread]


def _sized(sources: Sources) -> dict[str, tuple[str, str]]:
    """Return the floating tensors whose range ends at a size, with these ends: a place in a row lies in `[0, T - 1]`."""
    found = {name: ranges.sized_ends(sources.spec.shape_constraints, name, sources.p0_sizes()[0]) for name in sources.floating}
    return {name: ends for name, ends in found.items() if any(ends)}


def _rows(sources: Sources) -> dict[str, str]:
    """Return what SPEC.md says of the rows of each tensor, as Python (`patterns.within`)."""
    said = {port.name: sources.spec.rows[port.name] for port in sources.tensors if port.name in sources.spec.rows}
    texts = {}
    for name, rows in said.items():
        ends = ", ".join(map(str, _python(rows.kept)))
        parts = [f'"{rows.measure}": ({ends})'] * bool(rows.measure) + [f'"order": "{rows.order}"'] * bool(rows.order)
        parts += [f'"one_of": ({", ".join(f"{number!r}" for number in rows.one_of)})'] * bool(rows.one_of)
        parts += ['"distinct": True'] * rows.distinct
        texts[name] = "{" + ", ".join(parts) + "}"
    return texts


def _pages(sources: Sources) -> dict[str, str]:
    """Return the page of each length: the fixed axis that its largest value is a multiple of (`lengths <= NB * PAGE`)."""
    found = {}
    for port in sources.tensors:
        if port.name in sources.ranges and port.dtype in INDICES and "*" in (high := sources.ranges[port.name][1]):
            fixed = sorted(shape_expr.parse(high).symbols - set(sources.spec.dynamic_axes))
            found.update({port.name: fixed[0]} if fixed else {})
    return found


def _python(kept: Range, *sized: str) -> tuple[str, str, bool, bool]:
    """Return a range as Python; `sized`: its ends that name sizes, "" for those that do not."""
    low, high = (repr(end) if math.isfinite(end) else f"{'-' * (end < 0)}math.inf" for end in (kept.low, kept.high))
    low, high = (f'"{named}"' if named else end for named, end in itertools.zip_longest(sized, (low, high), fillvalue=""))
    return low, high, kept.open_low, kept.open_high


def _suite(sources: Sources, cases: list[dict[str, Any]], refused: list[dict[str, Any]]) -> dict[str, Any]:
    stressed = {case[KEY]["expression"] for case in cases if KEY in case}
    tried = [normalised(found.expression) for found in sources.scan.subtractions]
    return {
        "schema_version": 1,
        "op": sources.ws.name,
        "total_modules": sources.interfaces.total_modules,
        "description": "Made by `pypto-op harness new`; add what this operator needs beyond it.",
        "x_never_cancels": [text for text in dict.fromkeys(tried) if text not in stressed],
        "cases": cases,
        **({"raises": refused} if refused else {}),
    }


def _word(dtype: str) -> str:
    return "int64" if dtype == "int" else dtype


def _listed(shape: tuple[str, ...]) -> str:
    return "[" + ", ".join(f'"{dimension}"' for dimension in shape) + "]"


def _mapping(values: Any) -> str:
    return "{" + ", ".join(f'"{name}": {value!r}' for name, value in values.items()) + "}"
