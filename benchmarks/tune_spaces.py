"""Spaces small enough to exhaust: the tuner with a fifth of the trials beside the best of all, and beside a greedy ratchet.

`python -m benchmarks.tune_spaces NAME ...` exhausts the named ones and writes benchmarks/results/tune_spaces.json.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import click

from benchmarks import keeping
from benchmarks.table import Row, Table
from benchmarks.tune_bench import bench


def _numbers(now: int, factors: tuple[float, ...]) -> tuple[str, ...]:
    return tuple(str(int(now * factor)) for factor in factors)


SPACES: dict[str, dict[str, tuple[str, ...]]] = {
    "rmsnorm": {
        "rows T_TILE": ("16", "4", "8", "32"),
        "vector tile 16, 512 [0]": ("16", "2", "4", "8"),
        "vector tile 16, 512 [1]": ("512", "1024", "2048"),
    },
    "swiglu": {
        "rows ROWS": _numbers(32, (1, 0.5, 2, 4)),
        "vector tile 32, 128 [0]": _numbers(32, (1, 0.25, 0.5, 2)),
        "vector tile 32, 128 [1]": _numbers(128, (1, 2, 4)),
        "unroll_list of loop ROWS of _swiglu_kernel_impl": ("none", "[4, 2, 1]"),
    },
    "gather_rows_scale": {
        "rows N_TILE": _numbers(32, (1, 0.5, 2, 4)),
        "vector tile 32, 256 [0]": _numbers(32, (1, 0.25, 0.5, 2)),
        "vector tile 32, 256 [1]": _numbers(256, (1, 2, 4)),
        "unroll_list of loop SLOTS of _gather_rows_scale_kernel_impl": ("none", "[4, 2, 1]"),
    },
    "swiglu_bwd": {
        "rows ROWS": _numbers(16, (1, 0.5, 2, 4)),
        "vector tile 16, 256 [0]": _numbers(16, (1, 0.25, 0.5, 2)),
        "vector tile 16, 256 [1]": _numbers(256, (1, 2, 4)),
        "unroll_list of loop ROWS of _swiglu_bwd_kernel_impl": ("none", "[4, 2, 1]"),
    },
    "moe_topk_gate": {
        "rows T_TILE": _numbers(32, (1, 0.5, 2, 4)),
        "vector tile 32, 256 [0]": _numbers(32, (1, 0.25, 0.5, 2)),
        "vector tile 32, 256 [1]": _numbers(256, (1, 2, 4)),
        "unroll_list of loop TOKENS of _moe_topk_gate_kernel_impl": ("none", "[4, 2, 1]"),
    },
    "dequant_linear": {
        "cube tile 32, 32, 64, 64, 64, 64 [0]": _numbers(32, (1, 0.5, 2)),
        "cube tile 32, 32, 64, 64, 64, 64 [2]": _numbers(64, (1, 0.5, 2)),
        "cube tile 32, 32, 64, 64, 64, 64 [4]": _numbers(64, (1, 2)),
        "order of loop ROWS and COLUMNS of _dequant_linear_kernel_impl": ("as written", "exchanged"),
        "unroll_list of loop COLUMNS of _dequant_linear_kernel_impl": ("none", "[4, 2, 1]"),
    },
}
"""Operator -> key of a choice -> options. The rules of thumb were ordered after the first had been seen. All others were written
down before they were measured, by one pattern: rows and the first number of the tile as written, and next to it; its last number
as written and larger; unrolled or not. dequant_linear is of another kind: a product's tiles, and the order of its loops. After
gather_rows_scale was seen the proposer was changed; those below it are newer."""
_SHARE, _SEEDS = 0.2, 10
_RESULTS = Path(__file__).resolve().parent / "results" / "tune_spaces.json"
Known = Mapping[frozenset[tuple[str, str]], float]
"""Essence -> time over the kernel's, of every right candidate that loses on no shape."""


def run(names: Sequence[str] = tuple(SPACES)) -> list[Table]:
    """Exhaust the named spaces, search each with every seed, and keep the figures.

    Args:
        names: of `SPACES`.
    """
    results = keeping.load(_RESULTS)
    for name in names:
        results[name] = _measured(name)
        print(name, results[name], flush=True)
        keeping.store(_RESULTS, dict(sorted(results.items())))
    return [_table(name, results[name]) for name in names]


def _measured(name: str) -> dict[str, Any]:
    from pypto_op.tuning.search import Search, Wish

    space = SPACES[name]
    with bench(name) as at:
        kernel = at["kernel"]
        for key, choice in kernel.choices.items():
            kernel.choices[key] = replace(choice, options=space.get(key, (choice.now,)))
        at["ledger"] = _kept(at, name)
        known, tried = _exhaust(at, space)
        best, budget = min([1.0, *known.values()]), round(_SHARE * tried)
        tuned, greedy, needed = [], [], []
        for seed in range(_SEEDS):
            outcome = Search(kernel, at["clock"], at["ledger"], Wish(1e9, budget, seed=seed)).run()
            found = [known.get(frozenset(kernel.essence(one.assignment).items()), math.inf) for one in outcome.candidates]
            tuned.append(min([1.0, *found]))
            near = [place for place, share in enumerate(found, 1) if share <= 1.05 * best]
            needed.append(near[0] if near else None)
            greedy.append(_ratchet(kernel, space, known, budget, seed))
    return {"candidates": tried, "budget": budget, "best": best, "tuned": tuned, "greedy": greedy, "near after": needed}


def _table(name: str, found: Mapping[str, Any]) -> Table:
    tuned, greedy, best, budget = found["tuned"], found["greedy"], found["best"], found["budget"]
    over = math.exp(statistics.fmean(math.log(a / b) for a, b in zip(tuned, greedy, strict=True)))
    rows = [
        Row("best of all", {"ratio": best, "candidates": found["candidates"]}),
        Row("tuner, median of seeds", {"ratio": statistics.median(tuned), "candidates": budget}),
        Row("tuner, median of seeds over best of all", {"ratio": statistics.median(tuned) / best}, 1.05, "ratio"),
        Row("tuner, worst seed over best of all", {"ratio": max(tuned) / best}, 1.05, "ratio"),
        Row("greedy ratchet, median of seeds", {"ratio": statistics.median(greedy), "candidates": budget}),
        Row("tuner over greedy, geometric mean", {"ratio": over}, 1.0, "ratio"),
    ]
    notes = [
        f"time over the first kernel's, of candidates that lose on no shape; {_SEEDS} seeds",
        "greedy ratchet: one choice after another in random order, each option tried, the best kept",
    ]
    return Table(f"Beside exhaustive search and a greedy ratchet: {name}", "ratio", rows, notes)


def _exhaust(at: Mapping[str, Any], space: Mapping[str, Sequence[str]]) -> tuple[Known, int]:
    """Time every candidate of a small space, and put it into the ledger; return the good ones, and how many were timed."""
    from pypto_op.backends.build_cache import digest_of
    from pypto_op.tuning.clock import ratio
    from pypto_op.tuning.ledger import Candidate, Fate
    from pypto_op.tuning.search import Search, Wish

    kernel, clock = at["kernel"], at["clock"]
    base = Search(kernel, clock, at["ledger"], Wish(1.0, 1)).baseline().times
    known: dict[frozenset[tuple[str, str]], float] = {}
    tried = 0
    for values in product(*space.values()):
        essence = kernel.essence(dict(zip(space, values, strict=True)))
        if not essence or kernel.faults(essence):
            continue
        text, tried = kernel.write(essence), tried + 1
        if (earlier := at["ledger"].known(digest_of(text))) is not None:
            if earlier.fate is not Fate.WRONG and not _loses(earlier.times, base):
                known[frozenset(essence.items())] = ratio(earlier.times, base)
            continue
        timed = clock.time(text)
        share = math.inf if timed.fault else ratio(timed.times, base)
        loses = _loses(timed.times, base)
        fate = Fate.WRONG if timed.fault else Fate.SLOWER if loses or share >= 1 else Fate.SURVIVED
        told = None if timed.fault else share
        at["ledger"].note(Candidate(1, "", essence, digest_of(text), "", fate, timed.fault, timed.times, told))
        if not timed.fault and not loses:
            known[frozenset(essence.items())] = share
    return known, tried


def _kept(at: Mapping[str, Any], name: str) -> Any:
    """Return a ledger that outlives the run: a space is exhausted once for the same kernel, suite and tool."""
    from pypto_op.judge.cases.contract import load_contract
    from pypto_op.tuning.ledger import Ledger, key_of
    from pypto_op.vocabulary import Mode

    key = key_of(at["ws"], load_contract(at["ws"]), at["kernel"].source, Mode.SIM, at["clock"].cases)
    return Ledger(_RESULTS.parents[2] / "bench-out" / "spaces" / f"{name}-{key[:16]}")


def _loses(times: Mapping[str, float], base: Mapping[str, float]) -> bool:
    from pypto_op.tuning.asking import GAIN

    return any(took > base[case] * (1.0 + GAIN) for case, took in times.items())


def _ratchet(kernel: Any, space: Mapping[str, Sequence[str]], known: Known, budget: int, seed: int) -> float:
    """Return what a greedy ratchet finds in so many candidates."""
    dice, best, spent = random.Random(seed), 1.0, 0
    now: dict[str, str] = {}
    while spent < budget:
        before = best
        for key in dice.sample(sorted(space), len(space)):
            for option in dice.sample(space[key], len(space[key])):
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


@click.command()
@click.argument("names", nargs=-1, required=True, type=click.Choice(tuple(SPACES)), metavar="NAME...")
def main(names: tuple[str, ...]) -> None:
    """Exhaust each named space and keep the figures in benchmarks/results/tune_spaces.json."""
    run(names)


if __name__ == "__main__":
    main()
