"""The tuner: how much faster it makes the examples, how near it comes to exhaustive search, and what it refuses.

`python -m benchmarks.tune SECONDS NAME ...` measures the named examples with so much search each. What was measured last of each
stands in benchmarks/results/tune.json.
"""

from __future__ import annotations

import math
import os
import statistics
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from benchmarks import keeping, tune_spaces
from benchmarks.table import Row, Table
from benchmarks.tune_bench import bench

_OPERATORS = ("rmsnorm", "matmul_bias_gelu", "flash_attention_fwd", "softmax", "flash_attention_bwd", "gated_delta_rule_bwd")
_RESULTS = Path(__file__).resolve().parent / "results" / "tune.json"
_SECONDS, _TRIALS, _MUTANTS, _JUDGED = 150.0, 40, 2, 4


def run(quick: bool) -> list[Table]:
    """Measure; with `quick` one example, and no small space."""
    tables = [_examples(_OPERATORS[:1] if quick else _OPERATORS), _planted()]
    return tables if quick else [*tables, *tune_spaces.run()]


def _examples(names: tuple[str, ...], seconds: float = _SECONDS) -> Table:
    results = keeping.load(_RESULTS)
    for name in names:
        results[name] = _one_example(name, seconds)
        print(name, results[name], flush=True)
        keeping.store(_RESULTS, dict(sorted(results.items())))
    rows = [Row(name, results[name]) for name in _OPERATORS if name in results]
    overall = math.exp(statistics.fmean(math.log(row.values["times faster"]) for row in rows))
    rows.append(Row("geometric mean", {"times faster": overall}, 1.5, "times faster", True))
    notes = [
        f"at most {_TRIALS} candidates, two at once; cost-model time over all P0 shapes; of each example what was measured last",
        "accepted: by the linter, the whole suite, every P0 shape in every dtype, and planted faults; 1 where nothing was",
        "candidates a minute, known: the same search once more, with everything in the ledger",
    ]
    return Table("Tuned over first kernel", "as named", rows, notes)


def _one_example(name: str, seconds: float) -> dict[str, float]:
    from pypto_op.tuning.acceptance import Gatekeeper
    from pypto_op.tuning.search import Search, Wish

    with bench(name) as at:
        load, wish = os.getloadavg()[0], Wish(seconds, _TRIALS, jobs=2)
        outcome = Search(at["kernel"], at["clock"], at["ledger"], wish).run()
        again = Search(at["kernel"], at["clock"], at["ledger"], replace(wish, trials=len(outcome.candidates))).run()
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
            "candidates a minute, known": 60 * len(again.candidates) / again.seconds,
            "load before": load,
            "survivors refused": refused,
            "seconds to judge": time.monotonic() - begun,
        }


def _planted() -> Table:
    """Hand the planted kernels to the tuner's own filters and gatekeeper."""
    from benchmarks.tune_planted import texts
    from pypto_op.tuning.acceptance import Gatekeeper
    from pypto_op.tuning.search import Search, Wish

    rows = []
    with bench("rmsnorm") as at:
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


@click.command()
@click.argument("seconds", type=click.FloatRange(min=0, min_open=True))
@click.argument("names", nargs=-1, required=True, type=click.Choice(_OPERATORS), metavar="NAME...")
def main(seconds: float, names: tuple[str, ...]) -> None:
    """Search a faster kernel for each named example, SECONDS long, and keep the figures in benchmarks/results/tune.json."""
    _examples(names, seconds)


if __name__ == "__main__":
    main()
