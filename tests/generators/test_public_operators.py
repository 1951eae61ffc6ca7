"""Kernels of public files: taken out by statement, changed, put back, and judged by the file's own test."""

from __future__ import annotations

import ast
from pathlib import Path

import click
import pytest
from benchmarks import public_operators
from benchmarks.public_operators import extraction, page
from click.testing import CliRunner

FILE = "examples/02_intermediate/operators/activation/activation.py"
PUBLIC = """import sys
import argparse
import pypto
import torch

global_run_mode = pypto.RunMode.NPU
if "--sim" in sys.argv:
    global_run_mode = pypto.RunMode.SIM
FACTOR = 1.0
UNUSED = argparse


def tiling(x):
    pypto.set_vec_tile_shapes(32, 32)


@pypto.frontend.jit(runtime_options={"run_mode": global_run_mode})
def silu_activation_kernel(x: pypto.Tensor(), out: pypto.Tensor()):
    tiling(x)
    out[:] = x * pypto.sigmoid(x * FACTOR)


def test_silu(device_id=None):
    x = torch.randn(32, 64, device=f"npu:{device_id}")
    out = torch.empty_like(x)
    silu_activation_kernel(x, out)
    assert torch.allclose(out.cpu(), torch.nn.functional.silu(x.cpu()), atol=1e-4)
"""
WRAPPER = """import pypto
import torch

global_run_mode = pypto.RunMode.NPU


def public_silu_wrapper(x):
    out = torch.empty_like(x)
    silu_activation_kernel(x, out)
    return out
"""
ENTRIES = ["silu_activation_kernel"]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    path = tmp_path / "checkout" / FILE
    path.parent.mkdir(parents=True)
    path.write_text(PUBLIC, encoding="utf-8")
    return tmp_path / "checkout"


def test_a_kernel_is_taken_with_what_it_needs_alone_and_after_our_constants():
    text = extraction.assembled(PUBLIC, ENTRIES, WRAPPER)
    functions = [one.name for one in ast.parse(text).body if isinstance(one, ast.FunctionDef)]
    assert functions == ["tiling", "silu_activation_kernel", "public_silu_wrapper"]
    assert "FACTOR = 1.0" in text and "sys" not in text and "argparse" not in text
    assert text.index("global_run_mode") < text.index("def tiling")


def test_a_file_without_the_kernel_is_named_in_one_line():
    with pytest.raises(click.ClickException, match="does not bind absent_kernel"):
        extraction.assembled(PUBLIC, ["absent_kernel"], WRAPPER)


def test_a_change_of_the_kernel_comes_back_into_the_public_file_and_nothing_else():
    text = extraction.assembled(PUBLIC, ENTRIES, WRAPPER)
    back = extraction.put_back(PUBLIC, text.replace("x * FACTOR", "x + FACTOR"), ENTRIES, WRAPPER)
    assert ast.dump(ast.parse(back)) == ast.dump(ast.parse(PUBLIC.replace("x * FACTOR", "x + FACTOR")))
    ours = extraction.put_back(PUBLIC, text.replace("torch.empty_like(x)", "torch.zeros_like(x)"), ENTRIES, WRAPPER)
    assert ast.dump(ast.parse(ours)) == ast.dump(ast.parse(PUBLIC))


@pytest.mark.sim
def test_the_own_test_accepts_the_kernel_and_refuses_a_wrong_one(checkout: Path):
    about = {"file": FILE, "kernels": ENTRIES, "tests": ["test_silu"], "test_file": ""}
    wrong = [PUBLIC.replace("FACTOR = 1.0", "FACTOR = 2.0"), PUBLIC.replace("pypto.sigmoid(x * FACTOR)", "absent(x)")]
    answers = public_operators.own_tests_of(checkout, about, [PUBLIC, *wrong])
    assert [answer["ok"] for answer in answers] == [True, False, False]
    assert answers[1]["why"].startswith("AssertionError")


@pytest.mark.slow
@pytest.mark.sim
def test_a_wrong_public_kernel_is_refused_by_the_suite(checkout: Path, tmp_path: Path):
    (checkout / FILE).write_text(PUBLIC.replace("FACTOR = 1.0", "FACTOR = 1.1"), encoding="utf-8")
    row = public_operators.measure("public_silu", checkout, tmp_path / "made", mutants=0)
    assert row["status"] == "FAIL" and row["failed"] and not row["own_test"]["ok"]


def test_a_checkout_without_the_file_and_an_unknown_operator_are_refused_in_one_line(tmp_path: Path):
    from benchmarks.__main__ import main

    words = ["public_operators", "--source", str(tmp_path), "--json", str(tmp_path / "b.json")]
    missing = CliRunner().invoke(main, [*words, "public_silu"])
    assert missing.exit_code == 1 and f"the checkout has no {FILE}; check out tag r0.2.0" in missing.output
    unknown = CliRunner().invoke(main, [*words, "public_sil"])
    assert unknown.exit_code == 2 and "no operator public_sil" in unknown.output


def test_the_page_is_what_the_results_say():
    rows = page.load()
    assert rows and page.PAGE.read_text(encoding="utf-8") == page.text(rows)


def test_every_operator_has_a_row_and_what_is_refused_is_explained():
    import yaml

    rows, found = page.load(), yaml.safe_load(page.FINDINGS.read_text(encoding="utf-8")) or {}
    assert set(rows) == set(public_operators.operators())
    for op, row in rows.items():
        assert row["status"] == "PASS" or op in found, f"{op}: say in findings.yaml why it is {row['status']}"
        assert "own_test" not in row or row["own_test"]["ok"] or op in found, f"{op}: say why its own test fails"
    assert set(found) <= set(rows)
