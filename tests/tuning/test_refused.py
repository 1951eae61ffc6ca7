"""Kernels that are fast because they are wrong, in the hands of the tuner's own filters and gatekeeper."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from benchmarks.tune import refusal
from benchmarks.tune_bench import bench
from benchmarks.tune_planted import CAREFUL, FAST, PLANTED, texts
from tests.judge.judging import sim_problem

from pypto_op.tuning.acceptance import Gatekeeper
from pypto_op.tuning.search import Search, Wish

SUITE = (
    "L1_one_tile_fp32", "L2_two_tiles_fp32", "L2_second_p0_bf16", "L3_prime_fp16", "L3_large_eps_fp16", "L3_large_eps_bf16",
    "L4_long_bf16", "L4_wide", "L4_p0_fp16", "L5_tiny_fp16",
)  # fmt: skip
"""One case of each thing that a planted kernel gets wrong, in each dtype: the others of rmsnorm's refuse no further kernel."""

pytestmark = [pytest.mark.sim, pytest.mark.slow]


@pytest.fixture(scope="module")
def tuner() -> Iterator[dict[str, Any]]:
    if problem := sim_problem():
        pytest.skip(problem)
    os.environ[CAREFUL] = "1"  # as a user's shell would: no candidate sees it
    with bench("rmsnorm", SUITE) as at:
        search = Search(at["kernel"], at["clock"], at["ledger"], Wish(1.0, 1))
        keeper = Gatekeeper(at["ws"], at["clock"], at["kernel"].source, mutants=0, jobs=1)
        yield at | {"search": search, "keeper": keeper, "texts": texts(at["kernel"].source)}
    del os.environ[CAREFUL]


@pytest.mark.parametrize("name", PLANTED)
def test_a_fast_wrong_kernel_is_refused(tuner: dict[str, Any], name: str, tmp_path: Path) -> None:
    by, reason = refusal(tuner["search"], tuner["keeper"], tuner["texts"][name], tmp_path)
    assert by, f"accepted: {name}"
    assert reason


def test_what_they_all_share_is_right_and_fast(tuner: dict[str, Any], tmp_path: Path) -> None:
    text = tuner["kernel"].source
    for before, after in FAST:
        text = text.replace(before, after, 1)
    assert refusal(tuner["search"], tuner["keeper"], text, tmp_path) == ("", "")


def test_a_gain_within_the_noise_is_none(tuner: dict[str, Any], tmp_path: Path) -> None:
    """The kernel itself, with a comment: nothing is wrong with it, and nothing is won."""
    verdict = tuner["keeper"].judge(tuner["kernel"].source + "# the same\n", tmp_path)
    assert verdict.reason == "over every dtype it gains 0.0 %, less than 1.0 %"
