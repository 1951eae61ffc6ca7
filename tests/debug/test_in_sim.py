"""The debugger's tools on real kernels with planted faults, in `sim`."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.calling import command
from tests.debug.asking import ask, line_of, place

from pypto_op.debug import precision_compare

pytestmark = [pytest.mark.sim, pytest.mark.timeout(900), pytest.mark.usefixtures("numeric")]

CASE = "L2_two_by_two_fp32"


def test_the_first_operation_that_leaves_the_golden_is_named_with_its_line(tmp_path: Path) -> None:
    ws = place(tmp_path, "softmax", ("pypto.exp(old_max - new_max)", "pypto.exp(new_max - old_max)"))
    answer = ask("precision-compare", ws.root, "--case", CASE, "--json")
    result = answer.result("debug_precision_compare")
    first = result["divergences"][0]
    assert answer.code == 0 and not result["agrees"]
    assert abs(first["line"] - line_of(ws.impl, "exp(new_max - old_max)")) <= 1, result
    assert result["blame"]["who"] == "kernel" and len(result["blame"]["tried"]) == 3
    assert not list(ws.debug_dir.glob("precision-compare-*")), "values of a golden stay nowhere"


def test_a_golden_that_fails_its_own_check_is_to_blame(tmp_path: Path) -> None:
    ws = place(tmp_path, "softmax", golden=("torch.exp(x_wide - row_max)", "torch.exp(x_wide * 0.9 - row_max)"))
    result = ask("precision-compare", ws.root, "--case", CASE, "--json").result("debug_precision_compare")
    assert not result["agrees"]
    assert result["blame"]["who"] == "golden", result


def test_a_right_kernel_agrees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ws = place(tmp_path, "softmax")
    answer = ask("precision-compare", ws.root, "--case", CASE, "--json")
    result = answer.result("debug_precision_compare")
    assert (answer.code, result["agrees"], result["divergences"], result["blame"]) == (1, True, [], None)
    monkeypatch.setattr(precision_compare, "precision_compare", lambda *_, **__: result)  # the same again, in words
    said = ask("precision-compare", ws.root, "--case", CASE).stdout
    assert said == f"called once on case {CASE}, the kernel agrees with the golden\n"


def test_a_kernel_that_is_wrong_in_another_call_is_told_what_the_verdict_saw(tmp_path: Path) -> None:
    ws = place(tmp_path, "rmsnorm", ("mean_square + eps)", "mean_square + 1e-6)"))
    assert command("verify", ws.root, "--modes", "sim", "--case", "L2_two_tiles_fp32").code == 1
    said = ask("precision-compare", ws.root).stdout
    assert "called once on case L2_two_tiles_fp32, the kernel agrees" in said
    assert "refused it otherwise: sim: called with eps" in said
    ws.impl.write_text(ws.impl.read_text() + "# another byte\n")
    said = precision_compare.refused_otherwise(ws, "L2_two_tiles_fp32")
    assert said == f"; the verdict is about other bytes: run `pypto-op verify {ws.root}`"


def test_a_write_that_never_comes_leads_to_its_loop(tmp_path: Path) -> None:
    ws = place(tmp_path, "softmax", ('pypto.loop(col_tiles, name="WRITE"', 'pypto.loop(width // C_TILE, name="WRITE"'))
    result = ask("precision-compare", ws.root, "--case", "L3_tile_plus_1_fp16", "--no-blame", "--json").result(
        "debug_precision_compare"
    )
    first = result["divergences"][0]
    assert (first["kind"], first["line"]) == ("unwritten", line_of(ws.impl, 'name="WRITE"'))


def test_workarounds_say_what_moves_the_error(tmp_path: Path) -> None:
    ws = place(
        tmp_path,
        "softmax",
        ("return x_tile if dtype == pypto.DT_FP32 else pypto.cast(x_tile, pypto.DT_FP32)", _NARROWED),
    )
    answer = ask("precision-debug", ws.root, "--case", CASE, "--only", "no_narrowing", "--only", "unroll_list_1", "--json")
    result = answer.result("debug_precision_debug")
    effects = {row["name"]: row["effect"] for row in result["tried"]}
    assert answer.code == 0 and result["before"]["status"] == "FAIL"
    assert effects == {"no_narrowing": "mended", "unroll_list_1": "none"}
    assert ask("precision-debug", ws.root, "--case", CASE, "--only", "magic").code == 2


_NARROWED = "rounded = pypto.cast(x_tile, pypto.DT_BF16)\n    return pypto.cast(rounded, pypto.DT_FP32)"


def test_a_dump_is_read_by_every_reader_of_runs(tmp_path: Path) -> None:
    ws = place(tmp_path, "softmax", ("[row, w * C_TILE], out)", "[row, w * 64], out)"))
    assert ask("dump", ws.root, "--case", CASE, "--json").result("debug_files")["written"]
    run = ws.debug_dir / "dumps"

    passes = ask("pass-error-locator", run, "--json")
    told = passes.result("debug_pass_error_locator")
    assert passes.code == 1 and told["passes"] > 30 and told["suspects"] == []
    assert any(change["operations"].get("EXPAND", 0) > 0 for change in told["changes"])

    overlap = ask("memory-overlap-detector", run, "--json")
    both = overlap.result("debug_memory_overlap_detector")
    assert overlap.code == 0 and both["on_chip"] == []
    assert {one["tensor"] for one in both["written_twice"]} == {"out"}, "two turns write the same columns"
    assert all(one["lines"] == [line_of(ws.impl, "w * 64], out)")] for one in both["written_twice"]), both
    assert not any("c=" in turn for one in both["written_twice"] for turn in one["turns"]), "that loop has ended"

    budget = ask("machine-workspace", run, "--json").result("debug_machine_workspace")
    layers = {layer["memory"]: layer for layer in budget["layers"]}
    assert 0 < layers["UB"]["peak_bytes"] <= layers["UB"]["size_bytes"] and layers["UB"]["lines"]

    _aicore(tmp_path, run, ws.impl)
    _broken_passes(run)


def test_lines_are_the_kernels_and_not_those_of_an_operator_that_pypto_composes(tmp_path: Path) -> None:
    """pypto writes sigmoid in Python, and its graph names the lines of that file."""
    ws = place(tmp_path, "rmsnorm", ("y_wide = x_wide * inverse_rms", "y_wide = pypto.sigmoid(x_wide) * inverse_rms"))
    assert ask("dump", ws.root, "--case", "L2_two_tiles_fp32", "--json").result("debug_files")["written"]
    budget = ask("machine-workspace", ws.debug_dir / "dumps", "--json").result("debug_machine_workspace")
    lines = {line for layer in budget["layers"] for line in layer["lines"]}
    assert line_of(ws.impl, "pypto.rsqrt(") in lines and max(lines) <= len(ws.impl.read_text().splitlines()), lines


def _aicore(tmp_path: Path, run: Path, kernel: Path) -> None:
    """A device's log speaks of a leaf by the hash in a file's name, or of a task by its number."""
    import csv

    with next(run.glob("output_*/dyn_topo.txt")).open(newline="") as file:
        row = list(csv.DictReader(file))[-1]
    for words in (
        f"[ERROR] aicore error, errcode 507015: kernel_aicore/TENSOR_WRITE_{row['leafHash']}.cce:41",
        f"[ERROR] vector core exception, taskId: {row['taskId']}, 507015",
    ):
        log = tmp_path / "device.log"
        log.write_text(f"noise\n{words}\n")
        answer = ask("aicore-error-locator", "--log", log, "--run-dir", run, "--json")
        told = answer.result("debug_aicore_error_locator")
        lines = [call["line"] for one in told["functions"] for call in one["calls"]]
        assert answer.code == 0 and told["side"] == "kernel" and "507015" in told["codes"] and told["log_lines"] == [2]
        assert line_of(kernel, "y_tile = pypto.exp(") in lines, told
    answer = ask("aicore-error-locator", "--log", log, "--run-dir", tmp_path, "--json")
    assert answer.code == 1 or answer.result("debug_aicore_error_locator")["functions"]


def _broken_passes(run: Path) -> None:
    """A pass that left no graph failed; a graph cut short is said and passed over."""
    after = sorted(run.glob("output_*/Pass_*_OoOSchedule/After_*PATH0_hiddenfunc0_1?.json"))
    for path in after:
        path.unlink()
    damaged = next(run.glob("output_*/Pass_*_ExpandFunction/After_*.json"))
    damaged.write_text(damaged.read_text()[:100])
    told = ask("pass-error-locator", run, "--json").result("debug_pass_error_locator")
    assert {one["pass"] for one in told["suspects"]} == {"OoOSchedule"} and len(told["unread"]) == 1
