"""Whole numbers that are all one, and counts of each order of magnitude: what a draw that is even never has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.generators.test_draws import made, placed, tensor

from pypto_op.generators.cases import suite as suite_cases
from pypto_op.generators.operator.sources import gather
from pypto_op.workspace import OpWorkspace

GOLDEN = "import torch\n\n\ndef op_golden(x, slot, used):\n    return torch.where(slot >= 0, x[slot.clamp(min=0)], 0.0) + used\n"
SAID = ["-1 <= slot < R", "0 <= used", "used <= 1000000"]


def _op(folder: Path, said: list[str] = SAID, **front: Any) -> OpWorkspace:
    ports = [tensor("x", shape=("R", "D")), tensor("slot", "int32", ("S",)), tensor("used", "int32", ("D",))]
    front = {"p0_shapes": [{"S": 40, "D": 32, "R": 50}], "dynamic_axes": ["S", "R"], **front}
    ws = placed(folder, ports, shape_constraints=said, **front)
    ws.golden.write_text(GOLDEN)
    return ws


def test_all_name_one_place_all_are_padding_and_all_counts_are_0(tmp_path: Path) -> None:
    ws = _op(tmp_path)
    cases = suite_cases.cases(gather(ws))
    own = [case for case in cases if "_all_" in case["id"] and "draw_range" in case]
    words = ("slot_all_one", "slot_all_apart", "used_all_least")
    found = {case["id"]: {word for word in words if word in case["id"]} for case in own}
    assert set().union(*found.values()) == set(words)
    for case in own:
        one = made(ws, **case)["slot" if "slot" in case["id"] else "used"].unique().tolist()
        wanted = {"slot_all_apart": [-1], "slot_all_one": [case["shape"]["R"] - 1], "used_all_least": [0]}
        assert all(one == wanted[word] for word in found[case["id"]]), (case["id"], one)
    longest = max(case["shape"]["S"] for case in cases)
    assert any("slot_all_one" in case["id"] and case["shape"]["S"] == longest for case in cases)


def test_counts_next_to_none_are_tried_among_others_and_alone(tmp_path: Path) -> None:
    """A variance of one sample in all is divided by no sample, and a part of one sample may be taken for none."""
    golden = "import torch\n\n\ndef op_golden(x, n):\n    return x / (n.sum() - 1).clamp(min=1)\n"
    found: dict[str, list[tuple[int, int]]] = {}
    for least in (0, 1):
        ports = [tensor("x", shape=("S", "D")), tensor("n", "int32", ("S",))]
        front = {"p0_shapes": [{"S": 40, "D": 32}], "dynamic_axes": ["S"], "shape_constraints": [f"{least} <= n <= 900"]}
        ws = placed(tmp_path / str(least), ports, **front)
        ws.golden.write_text(golden)
        drawn = {case["id"]: made(ws, **case)["n"] for case in suite_cases.cases(gather(ws)) if case["id"].startswith("L3_n_")}
        for name, n in drawn.items():
            assert n.unique().tolist() == [0 if "least" in name and not least else 1], name
            found.setdefault(name.removesuffix("_float32"), []).append((least, n.numel()))
    assert {name: [least for least, _ in told] for name, told in found.items()} == {
        "L3_n_all_least": [0, 1], "L3_n_all_1": [0], "L3_n_alone_1": [0],
    }  # fmt: skip
    assert found["L3_n_alone_1"] == [(0, 1)] and found["L3_n_all_1"][0][1] > 3


def test_counts_reach_a_sum_that_32_bits_do_not_hold(tmp_path: Path) -> None:
    golden = "import torch\n\n\ndef op_golden(x, n):\n    return (x * n[:, None]).sum(0) / n.sum().clamp(min=1)\n"
    for most, longest, reached in ((1_000_000, 4096, True), (1_000_000, 2000, False), (900, 4096, False)):
        ports = [tensor("x", shape=("S", "D")), tensor("n", "int32", ("S",))]
        front = {"p0_shapes": [{"S": 40, "D": 32}], "dynamic_axes": ["S"], "dynamic_axes_ranges": {"S": [1, longest]}}
        ws = placed(tmp_path / f"{most}_{longest}", ports, shape_constraints=[f"0 <= n <= {most}", "D % 16 == 0"], **front)
        ws.golden.write_text(golden)
        cases = suite_cases.cases(gather(ws))
        sums = [int(made(ws, **case)["n"].sum()) for case in cases if "all_greatest" in case["id"]]
        assert [found > 2**31 for found in sums] == [True] * reached
        assert all(case["shape"]["D"] == 16 for case in cases if "all_greatest" in case["id"])


def test_a_switch_is_tried_beside_counts_of_one(tmp_path: Path) -> None:
    """Whether a variance is divided by n or by n - 1 does not show beside a million of samples."""
    ports = [tensor("x", shape=("S", "D")), tensor("n", "int32", ("S",)), {"name": "less", "shape": [], "dtype": "int"}]
    front = {"p0_shapes": [{"S": 40, "D": 32}], "dynamic_axes": ["S"], "default_params": {"less": 1}}
    ws = placed(tmp_path, ports, shape_constraints=["0 <= n <= 1000000", "0 <= less <= 1"], **front)
    ws.golden.write_text("import torch\n\n\ndef op_golden(x, n, less):\n    return x / (n.sum() - less).clamp(min=1)\n")
    [case] = [case for case in suite_cases.cases(gather(ws)) if "of_ones" in case["id"]]
    assert case["less"] == 0 and made(ws, **case)["n"].unique().tolist() == [1]


def test_masks_borders_and_tables_are_left_to_cases_of_their_own(tmp_path: Path) -> None:
    for number, front in enumerate([{"input_ranges": {"slot": {"row_order": "rising"}}}, {"fixed_inputs": ["slot"]}]):
        ids = [case["id"] for case in suite_cases.cases(gather(_op(tmp_path / str(number), **front)))]
        assert not [name for name in ids if "slot_all" in name] and [name for name in ids if "used_all_least" in name]
    mask = suite_cases.cases(gather(_op(tmp_path / "mask", ["0 <= slot <= 1", *SAID[1:]])))
    assert not [case["id"] for case in mask if "slot_all" in case["id"]]


def test_of_a_wide_range_every_order_of_magnitude_is_drawn(tmp_path: Path) -> None:
    """Not of one that ends at a size: there a far place tells more."""
    ws = _op(tmp_path)
    drawn = made(ws, shape={"S": 4000, "D": 4000, "R": 4000})
    used, slot = drawn["used"], drawn["slot"]
    sizes = [int(((used >= 10**power) & (used < 10 ** (power + 1))).sum()) for power in range(6)]
    assert min(sizes) > 100 and int(used.max()) == 1000000 and int(used.min()) == 0
    assert int((slot > 2000).sum()) > 1500


def _routed(folder: Path) -> OpWorkspace:
    ports = [tensor("x", shape=("S", "D")), tensor("ids", "int32", ("S", "K")), tensor("real", "bool", ("S",))]
    front = {"p0_shapes": [{"S": 40, "D": 32, "K": 4}], "dynamic_axes": ["S"], "input_ranges": {"ids": {"distinct": True}}}
    ws = placed(folder, ports, shape_constraints=["0 <= ids < D"], **front)
    ws.golden.write_text(
        "import torch\n\n\ndef op_golden(x, ids, real):\n    return torch.where(real[:, None], x.gather(1, ids.long()), 0)\n"
    )
    return ws


def test_where_no_row_names_one_twice_all_rows_name_the_same(tmp_path: Path) -> None:
    """Counts in 16 bits, or with room for 255, hold what evenly drawn rows name."""
    ws = _routed(tmp_path)
    cases = suite_cases.cases(gather(ws))
    found = {word: [case for case in cases if word in case["id"]] for word in ("L3_ids_rows_alike", "L4_ids_rows_alike_along_S")}
    for word, [case] in found.items():
        drawn = made(ws, **case)
        assert drawn["ids"].sort().values.unique(dim=0).tolist() == [[28, 29, 30, 31]], word
    assert made(ws, **found["L4_ids_rows_alike_along_S"][0])["real"].all()
    assert found["L4_ids_rows_alike_along_S"][0]["shape"]["S"] == max(case["shape"]["S"] for case in cases)


def test_a_flag_that_is_the_only_one_counts(tmp_path: Path) -> None:
    """Of one token of padding the golden is a constant, so the case was left out: no other has one token that counts."""
    ws = _routed(tmp_path)
    ones = [case for case in suite_cases.cases(gather(ws)) if case["shape"]["S"] == 1]
    assert ones and all(bool(made(ws, **{**case, "seed": seed})["real"].all()) for case in ones for seed in range(8))
