"""`compare`: what the optimisation keeps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from pypto_op.errors import ContractError
from pypto_op.triton.bench.choice import choose
from pypto_op.triton.commands import triton
from pypto_op.triton.run.setup import results


def _perf(path: Path, *ratios: tuple[float, float, float], null: float = 1.0, **changes: Any) -> Path:
    rows = [
        {
            "case_idx": number,
            "ratio": {"ratio": ratio, "low": low, "high": high},
            "null_ratio": {"ratio": null, "low": null, "high": null},
        }
        for number, (low, ratio, high) in enumerate(ratios, 1)
    ]
    body = {
        "op_name": "relu", "hashes": {"task": "t", "data": "d", "impl": path.name}, "device": "H200", "warmup": 5, "repeats": 50,
        "total_cases": len(rows), "passed_cases": len(rows), "verify_gate": {"required": True}, "speedup_vs_torch": 1.5,
        "per_shape_results": rows, **changes,
    }  # fmt: skip
    path.write_text(json.dumps(results.sealed(body)), encoding="utf-8")
    return path


BASE = ((0.99, 1.0, 1.01), (1.98, 2.0, 2.02))


@pytest.mark.parametrize(
    ("ratios", "null", "keep"),
    [
        (((1.18, 1.2, 1.22), (1.98, 2.0, 2.02)), 1.0, True),
        (((0.99, 1.01, 1.03), (1.98, 2.01, 2.04)), 1.0, False),  # inside the intervals
        (((1.18, 1.2, 1.22), (1.98, 2.0, 2.02)), 1.3, False),  # inside what the reference differs from itself
        (((1.48, 1.5, 1.52), (1.78, 1.8, 1.82)), 1.0, False),  # a shape got slower
    ],
)
def test_only_a_gain_beyond_the_noise_is_kept(ratios: Any, null: float, keep: bool, tmp_path: Path) -> None:
    base, new = _perf(tmp_path / "a.json", *BASE), _perf(tmp_path / "b.json", *ratios, null=null)
    assert choose(base, new)["keep"] is keep
    done = CliRunner().invoke(triton, ["compare", str(base), str(new)], standalone_mode=False)
    assert done.return_value == (0 if keep else 1)
    assert ("keep" if keep else "drop") in done.output


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"device": "A100"}, "device differs"),
        ({"hashes": {"task": "other", "data": "d"}}, "task differs"),
        ({"repeats": 5}, "repeats differs"),
        ({"speedup_vs_torch": None}, "claims no speed-up"),
        ({"passed_cases": 1}, "not every shape"),
        ({"verify_gate": {"required": False}}, "not every shape"),
    ],
)
def test_what_cannot_be_compared_is_refused(changes: dict[str, Any], words: str, tmp_path: Path) -> None:
    base, new = _perf(tmp_path / "a.json", *BASE), _perf(tmp_path / "b.json", *BASE, **changes)
    with pytest.raises(ContractError, match=words):
        choose(base, new)


def test_a_changed_result_is_refused(tmp_path: Path) -> None:
    base, new = _perf(tmp_path / "a.json", *BASE), _perf(tmp_path / "b.json", *BASE)
    new.write_text(new.read_text().replace('"ratio": 2.0', '"ratio": 9.0'), encoding="utf-8")
    with pytest.raises(ContractError, match="changed"):
        choose(base, new)
