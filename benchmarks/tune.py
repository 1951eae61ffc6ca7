"""The tuner: how much faster it makes the examples, how near it comes to exhaustive search, and what it refuses."""

from __future__ import annotations

import math
import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks.table import Row, Table

_OPERATORS = ("rmsnorm", "matmul_bias_gelu", "flash_attention_fwd", "softmax", "flash_attention_bwd", "gated_delta_rule_bwd")
_SECONDS, _TRIALS, _MUTANTS, _JUDGED = 150.0, 40, 2, 4
_SMALL = {
    "rows T_TILE": ("16", "4", "8", "32"),
    "vector tile 16, 512 [0]": ("16", "2", "4", "8"),
    "vector tile 16, 512 [1]": ("512", "1024", "2048"),
}
_SEEDS = 10


def run(quick: bool) -> list[Table]:
    """Measure; with `quick` one example, and no small space."""
    tables = [_examples(_OPERATORS[:1] if quick else _OPERATORS), _planted()]
    return tables if quick else [*tables, _small_space()]


@contextmanager
def _bench(name: str) -> Iterator[dict[str, Any]]:
    """Give kernel, clock and ledger of an example in a scratch workspace."""
    from pypto_op.backends.base import Limits
    from pypto_op.bundle_files import bundle_root
    from pypto_op.judge.contract import load_contract
    from pypto_op.judge.subject import resolve
    from pypto_op.tuning.clock import Clock
    from pypto_op.tuning.kernel import Kernel
    from pypto_op.tuning.ledger import Ledger
    from pypto_op.vocabulary import Mode
    from pypto_op.workspace import OpWorkspace

    with tempfile.TemporaryDirectory() as folder:
        op = Path(folder) / "custom" / name
        shutil.copytree(bundle_root() / "examples" / "ops" / name, op)
        ws = OpWorkspace.at(op)
        contract = load_contract(ws)
        subject = resolve(ws, contract.total_modules)
        kernel = Kernel(subject.impl.read_text(encoding="utf-8"), subject.wrapper)
        with Clock(contract, subject, Mode.SIM, Limits()) as clock:
            yield {"ws": ws, "kernel": kernel, "clock": clock, "ledger": Ledger(op / "_debug" / "ledger")}


def _examples(names: tuple[str, ...]) -> Table:
    rows, speedups = [], []
    for name in names:
        values = _one_example(name)
        speedups.append(values["times faster"])
        rows.append(Row(name, values))
        print(name, values, flush=True)
    overall = math.exp(statistics.fmean(map(math.log, speedups)))
    rows.append(Row("geometric mean", {"times faster": overall}, 1.5, "times faster", True))
    notes = [
        f"at most {_SECONDS:.0f} s and {_TRIALS} candidates of search for each, two at once; cost-model time over all P0 shapes",
        "accepted: by the linter, the whole suite, every P0 shape in every dtype, and planted faults; 1 where nothing was",
    ]
    return Table("Tuned over first kernel", "as named", rows, notes)


def _one_example(name: str) -> dict[str, float]:
    from pypto_op.tuning.acceptance import Gatekeeper
    from pypto_op.tuning.search import Search, Wish

    with _bench(name) as at:
        search = Search(at["kernel"], at["clock"], at["ledger"], Wish(_SECONDS, _TRIALS, jobs=2))
        outcome = search.run()
        begun, faster, refused = time.monotonic(), 1.0, 0
        keeper = Gatekeeper(at["ws"], at["clock"], at["kernel"].source, mutants=_MUTANTS, jobs=2)
        for one in outcome.ranking(keeper.noise())[:_JUDGED]:
            verdict = keeper.judge(at["kernel"].write(one.assignment), at["ledger"].folder / str(one.number))
            if not verdict.reason:
                faster = 1 / (one.ratio or 1.0)
                break
            print(name, one.ratio, verdict.reason, flush=True)
            refused += 1
        return {
            "times faster": faster,
            "candidates": len(outcome.candidates),
            "candidates a minute": 60 * len(outcome.candidates) / outcome.seconds,
            "survivors refused": refused,
            "seconds to judge": time.monotonic() - begun,
        }


def _planted() -> Table:
    """Hand the planted kernels to the tuner's own filters and gatekeeper."""
    from benchmarks.tune_planted import texts
    from pypto_op.tuning.acceptance import Gatekeeper
    from pypto_op.tuning.search import Search, Wish

    rows = []
    with _bench("rmsnorm") as at:
        search = Search(at["kernel"], at["clock"], at["ledger"], Wish(1.0, 1))
        keeper = Gatekeeper(at["ws"], at["clock"], at["kernel"].source, mutants=0, jobs=2)
        for number, (name, text) in enumerate(texts(at["kernel"].source).items()):
            by, reason = refusal(search, keeper, text, at["ledger"].folder / str(number))
            print(name, by, reason[:120], flush=True)
            rows.append(Row(f"{name}: {by}", {"refused": float(bool(by))}, 1.0, "refused", True))
    return Table("Kernels that are fast because they are wrong", "1: refused", rows, ["named: what refuses it first"])


def refusal(search: Any, keeper: Any, text: str, folder: Path) -> tuple[str, str]:
    """Return what refuses a text, and why; ("", "") where it is accepted. Slow is no reason."""
    from pypto_op.tuning.ledger import Fate

    candidate = search.filtered(text)
    if candidate.fate in (Fate.WRONG, Fate.NO_RUN):
        few = not candidate.reason.startswith("P0_")
        return ("a few cases" if few else "the P0 shapes"), candidate.reason
    if candidate.fate is Fate.SLOWER:
        raise AssertionError(f"not fast: {candidate.ratio}")
    verdict = keeper.judge(text, folder)
    return ("", "") if not verdict.reason else (verdict.reason.split(",")[0].split(":")[0], verdict.reason)


def _small_space() -> Table:
    """Exhaust a small space of rmsnorm, then let the tuner and a greedy ratchet search what is known."""
    from pypto_op.tuning.search import Search, Wish

    with _bench("rmsnorm") as at:
        kernel = at["kernel"]
        for key, choice in kernel.choices.items():
            kernel.choices[key] = replace(choice, options=_SMALL.get(key, (choice.now,)))
        known = _exhaust(at)
        best, budget = min(known.values()), round(0.2 * len(known))
        tuned, greedy = [], []
        for seed in range(_SEEDS):
            outcome = Search(kernel, at["clock"], at["ledger"], Wish(1e9, budget, seed=seed)).run()
            found = [one.ratio for one in outcome.ranking(0.0) if one.ratio is not None]
            tuned.append(min([1.0, *found]))
            greedy.append(_ratchet(kernel, known, budget, seed))
    rows = [
        Row("best of all", {"ratio": best, "candidates": len(known)}),
        Row("tuner, median of seeds", {"ratio": statistics.median(tuned), "candidates": budget}),
        Row("tuner, worst seed over best of all", {"ratio": max(tuned) / best, "candidates": budget}, 1.05, "ratio"),
        Row("greedy ratchet, median of seeds", {"ratio": statistics.median(greedy), "candidates": budget}),
        Row(
            "tuner over greedy, geometric mean",
            {"ratio": math.exp(statistics.fmean(math.log(a / b) for a, b in zip(tuned, greedy, strict=True)))},
            1.0,
            "ratio",
        ),
    ]
    notes = [
        f"rmsnorm: rows per step and both numbers of its tile; time over the first kernel's; {_SEEDS} seeds, {budget} candidates",
        "greedy ratchet: one number after another in random order, each value tried, the best kept",
    ]
    return Table("Beside exhaustive search and a greedy ratchet", "ratio", rows, notes)


def _exhaust(at: Mapping[str, Any]) -> dict[frozenset[tuple[str, str]], float]:
    """Time every candidate of the small space, and put it into the ledger."""
    from pypto_op.backends.build_cache import digest_of
    from pypto_op.tuning.clock import ratio
    from pypto_op.tuning.ledger import Candidate, Fate
    from pypto_op.tuning.search import Search, Wish

    kernel, clock = at["kernel"], at["clock"]
    base = Search(kernel, clock, at["ledger"], Wish(1.0, 1)).baseline().times
    known = {}
    for values in product(*_SMALL.values()):
        essence = kernel.essence(dict(zip(_SMALL, values, strict=True)))
        if not essence or kernel.faults(essence):
            continue
        text = kernel.write(essence)
        timed = clock.time(text)
        right = not timed.fault
        share = ratio(timed.times, base) if right else math.inf
        fate = Fate.SURVIVED if right and share < 1 else Fate.SLOWER if right else Fate.WRONG
        at["ledger"].note(
            Candidate(1, "", essence, digest_of(text), "", fate, timed.fault, timed.times, share if right else None)
        )
        if right:
            known[frozenset(essence.items())] = share
    return known


def _ratchet(kernel: Any, known: Mapping[frozenset[tuple[str, str]], float], budget: int, seed: int) -> float:
    """Return what a greedy ratchet finds in so many candidates."""
    dice, now, best, spent = random.Random(seed), {}, 1.0, 0
    while spent < budget:
        before = best
        for key in dice.sample(sorted(_SMALL), len(_SMALL)):
            for option in dice.sample(_SMALL[key], len(_SMALL[key])):
                essence = kernel.essence({**now, key: option})
                if essence == now or spent >= budget:
                    continue
                spent += 1
                share = known.get(frozenset(essence.items()), math.inf)
                if share < best:
                    best, now = share, essence
        if best == before:
            break
    return best
