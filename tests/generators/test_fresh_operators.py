"""The operators under tests/fixtures/fresh are what they claim to be, and the runner that measures suites with them works."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import click
import pytest
import torch
from benchmarks import fresh, fresh_kernels, fresh_results, strength
from tests.judge.judging import Answer

from pypto_op.backends.reference import ReferenceSession
from pypto_op.documents import spec
from pypto_op.workspace import OpWorkspace

OPERATORS = fresh_kernels.operators()


@pytest.mark.parametrize("op", OPERATORS)
def test_every_replacement_applies_and_makes_another_kernel(op: str):
    found = fresh_kernels.kernels(op)
    assert len({kernel.digest for kernel in found}) == len(found)
    assert len({(kernel.kind, kernel.id) for kernel in found}) == len(found)
    assert [kernel.kind for kernel in found].count("wrong") >= 12
    assert [kernel.kind for kernel in found].count("honest") >= 4
    for kernel in found:
        ast.parse(kernel.text, kernel.id)
        assert kernel.why


def test_a_replacement_that_does_not_occur_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "adder").mkdir()
    (tmp_path / "adder" / "adder_impl.py").write_text("total = left + right\n", encoding="utf-8")
    row = "- id: minus\n  why: minus for plus\n  replace:\n    - ['left + write', 'left - write']\n"
    (tmp_path / "adder" / "wrong.yaml").write_text(row, encoding="utf-8")
    (tmp_path / "adder" / "honest.md").write_text("# adder\n\nNone.\n\n## base: kernel\n", encoding="utf-8")
    monkeypatch.setattr(fresh_kernels, "FIXTURES", tmp_path)
    with pytest.raises(Exception, match=r"adder/wrong.yaml: minus: not in adder_impl.py: 'left \+ write'"):
        fresh_kernels.kernels("adder")


@pytest.mark.slow
@pytest.mark.parametrize("op", OPERATORS)
def test_documents_check_and_the_right_kernel_lints_clean(op: str, tmp_path: Path, call):
    root = fresh.workspace(op, tmp_path)
    assert not (root / f"{op}_impl.py").exists(), "the suite must be made without the kernel"
    (root / f"{op}_impl.py").write_text(fresh_kernels.kernels(op)[0].text, encoding="utf-8")
    for words in (("check", root), ("interfaces", "check", root), ("lint", root / f"{op}_impl.py")):
        answer: Answer = call(*words)
        assert answer.code == 0, answer.stdout + answer.stderr


@pytest.mark.sim
@pytest.mark.slow
def test_a_right_kernel_passes_and_a_wrong_one_does_not(tmp_path: Path, call):
    root = fresh.workspace("gather_rows_scale", tmp_path)
    assert call("harness", "new", "--no-rehearsal", root).code == 0
    suite = root / "eval" / "adversarial_suite.json"
    document = json.loads(suite.read_text(encoding="utf-8"))
    document["cases"] = [case for case in document["cases"] if case["level"] == "L3"][:2]
    suite.write_text(json.dumps(document), encoding="utf-8")
    by_id = {kernel.id: kernel for kernel in fresh_kernels.kernels("gather_rows_scale")}
    right = fresh.judged("gather_rows_scale", root, by_id["gather_rows_scale"])
    # Beside the written cases: what the wrapper refuses, and a drawn shape per dynamic axis.
    whole = 2 + len(document["raises"]) + len(spec.load(root / "SPEC.md").dynamic_axes)
    assert (right["status"], right["refused_by"], right["cases"]) == ("PASS", None, whole), right
    wrong = fresh.judged("gather_rows_scale", root, by_id["gate_ignored"])
    assert wrong["status"] == "FAIL" and wrong["refused_by"] in {case["id"] for case in document["cases"]}
    assert wrong["failed"] and wrong["category"] == "precision" and wrong["cpu_seconds"] > 0.0


@pytest.mark.sim
@pytest.mark.slow
def test_a_kernel_with_room_for_so_many_segments_is_refused_and_one_with_room_for_all_is_not(tmp_path: Path, call):
    root = fresh.workspace("segment_mean", tmp_path)
    assert call("harness", "new", "--no-rehearsal", root).code == 0
    suite = json.loads((root / "eval" / "adversarial_suite.json").read_text(encoding="utf-8"))
    [many] = [case["id"] for case in suite["cases"] if case["id"].startswith("L4_S_many_") and "ragged" not in case["id"]]
    right = fresh_kernels.kernels("segment_mean")[0].text
    loop = "pypto.loop(segments, name"
    for room, case, code in ((256, many, 0), (256, "fresh_S", 0), (16, many, 1), (32, many, 1), (64, "fresh_S", 1)):
        (root / "segment_mean_impl.py").write_text(right.replace(loop, f"pypto.loop(pypto.min(segments, {room}), name"))
        answer = call("verify", "--modes", "sim", "--case", case, root)
        assert answer.code == code, (room, case, answer.stdout, answer.stderr)


def _row(kind: str, name: str, status: str, case: str | None = None) -> dict[str, object]:
    said = "an element is off" if case else None
    found = {"kind": kind, "id": name, "why": f"{name} in words", "status": status, "refused_by": case, "said": said}
    return {**found, "category": "precision", "failed": [case] if case else [], "cases": 9, "cpu_seconds": 3.0, "seconds": 4.0}


def test_the_page_names_each_kernel_that_was_judged_wrongly():
    rows = [_row("right", "adder", "PASS"), _row("honest", "halves", "FAIL", "L5_tiny"), _row("wrong", "minus", "PASS")]
    rows += [_row("wrong", "twice", "FAIL", "L3_one"), _row("wrong", "gone", "ERROR")]
    found = {"harness": {"cpu_seconds": 5.0, "seconds": 6.0, "exit": 0, "cases": 9}, "kernels": rows}
    assert fresh_results.counts(found) == {"right": 2, "accepted": 1, "wrong": 3, "refused": 1}
    text = "\n".join(fresh_results.section({"adder": found}))
    assert "| adder | 9 | 1 of 2 | 1 of 3 | earlier | 5 | 3 | 20 |" in text
    assert "honest `halves` (halves in words): FAIL `L5_tiny`: an element is off" in text
    assert "wrong `minus` (minus in words): PASS" in text and "wrong `gone` (gone in words): ERROR" in text
    assert "| adder | twice in words | `L3_one` (precision) | 1 of 9 |" in text


def test_the_page_says_how_many_kernels_were_not_judged_and_which_suite_judged_the_others():
    rows = [{**_row("right", "adder", "PASS"), "commit": "12345678"}, _row("wrong", "twice", "FAIL", "L3_one")]
    found = {"harness": {"cpu_seconds": 5.0, "exit": 0, "cases": 9}, "kernels": rows, "of": {"right": 2, "wrong": 1}}
    text = "\n".join(fresh_results.section({"adder": found}))
    assert "| adder | 9 | 1 of 1 (1 not judged) | 1 of 1 | `12345678`: 1, earlier: 1 | 5 | 3 | 11 |" in text


def test_some_kernels_are_judged_alone_and_verdicts_of_the_others_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    kernels = [fresh_kernels.Kernel(kind, name, "", name) for kind, name in (("right", "adder"), ("wrong", "minus"))]
    judged: list[str] = []
    monkeypatch.setattr(fresh, "operators", lambda: ["adder"])
    monkeypatch.setattr(fresh, "kernels", lambda op: kernels)
    monkeypatch.setattr(fresh, "digest", lambda op: "fixtures")
    monkeypatch.setattr(fresh, "workspace", lambda op, folder: folder)
    monkeypatch.setattr(fresh, "suite_of", lambda op, root: {"harness": {"cpu_seconds": 5.0, "exit": 0}, "suite": suite})
    monkeypatch.setattr(fresh, "judged", lambda op, root, kernel: judged.append(kernel.id) or _verdict(kernel))
    monkeypatch.setattr(fresh_results, "RESULTS", tmp_path / "fresh.json")
    monkeypatch.setattr(strength, "PAGE", tmp_path / "strength.md")
    suite = "first"
    fresh.run(False, ["adder:wrong"])
    assert judged == ["minus"] and not fresh.whole(fresh_results.load()["adder"], "adder")
    older = fresh_results.load()
    del older["adder"]["kernels"][0]["suite"], older["adder"]["kernels"][0]["commit"]
    fresh_results.store(older)
    suite = "second"
    fresh.run(False, ["adder:right"])
    found = fresh_results.load()["adder"]
    assert judged == ["minus", "adder"] and fresh.whole(found, "adder")
    assert [(row["id"], row["suite"]) for row in found["kernels"]] == [("adder", "second"), ("minus", "first")]
    fresh.run(False, ["adder"])
    assert judged == ["minus", "adder", "minus"], "the right kernel's verdict is of this suite, the other one's is not"
    with pytest.raises(click.UsageError, match="no kernel times of adder"):
        fresh.run(False, ["adder:times"])


def _verdict(kernel: fresh_kernels.Kernel) -> dict[str, object]:
    fails = kernel.kind == "wrong"
    row = _row(kernel.kind, kernel.id, "FAIL" if fails else "PASS", "L3_one" if fails else None)
    return {**row, "digest": kernel.digest}


def test_what_was_measured_is_on_the_page():
    section = fresh_results.section(fresh_results.load())
    assert "\n".join(section) in strength.PAGE.read_text(encoding="utf-8")


@pytest.mark.sim
def test_sums_of_codes_reach_what_an_accumulator_of_24_bits_does_not_hold(tmp_path: Path, call):
    root = fresh.workspace("int8_linear", tmp_path)
    assert call("harness", "new", "--no-rehearsal", root).code == 0
    cases = {
        case["id"]: case for case in json.loads((root / "eval" / "adversarial_suite.json").read_text(encoding="utf-8"))["cases"]
    }
    wanted = {name: case for name, case in cases.items() if "codes" in name}
    assert {case["dtype"]["default"] for name, case in wanted.items() if "great_codes" in name} == {"float16", "bfloat16"}
    with ReferenceSession(OpWorkspace(root, "int8_linear")) as session:
        sums = {}
        for name, case in wanted.items():
            x, w = (value for part, value in session.make_inputs(case) if part in ("x", "w"))
            assert x.dtype == w.dtype == torch.int8
            sums[name] = (x.long() @ w.long().T).flatten()
    for name, found in sums.items():
        reached = found.max() if "great" in name else -found.min()
        assert reached > 2**23, f"{name} sums up to {reached}"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("op", "zeros"),
    [("gae_advantage", {"gamma", "lam"}), ("adamw_step", {"weight_decay", "beta1", "beta2"}), ("top_p_filter", set())],
)
def test_a_float_scalar_is_tried_at_0_where_spec_allows_it(op: str, zeros: set[str], tmp_path: Path, call):
    """A wrapper may take 0 for "not given"."""
    root = fresh.workspace(op, tmp_path)
    assert call("harness", "new", "--no-rehearsal", root).code == 0
    cases = json.loads((root / "eval" / "adversarial_suite.json").read_text(encoding="utf-8"))["cases"]
    names = {name for case in cases for name, value in case.items() if value == 0.0 and isinstance(value, float)}
    assert names == zeros


@pytest.mark.sim
@pytest.mark.slow
@pytest.mark.parametrize("name", ["gamma", "lam"])
def test_a_kernel_that_takes_0_for_the_default_is_refused_and_the_right_one_is_not(name: str, tmp_path: Path, call):
    root = fresh.workspace("gae_advantage", tmp_path)
    assert call("harness", "new", "--no-rehearsal", root).code == 0
    right = fresh_kernels.kernels("gae_advantage")[0].text
    usual = {"gamma": "0.99", "lam": "0.95"}[name]
    launch = "(PYPTO_DTYPES[reward.dtype], gamma, lam)"
    wrong = right.replace(launch, launch.replace(f" {name}", f" {name} or {usual}"))
    assert wrong != right
    for text, code in ((right, 0), (wrong, 1)):
        (root / "gae_advantage_impl.py").write_text(text, encoding="utf-8")
        answer = call("verify", "--modes", "sim", "--case", f"L3_zero_{name}_float32", root)
        assert answer.code == code, answer.stdout + answer.stderr


@pytest.mark.slow
def test_sizes_that_spec_refuses_in_one_breath_are_tried_one_by_one(tmp_path: Path, call):
    root = fresh.workspace("lora_linear", tmp_path)
    assert call("harness", "new", "--no-rehearsal", root).code == 0
    suite = json.loads((root / "eval" / "adversarial_suite.json").read_text(encoding="utf-8"))
    assert {"raises_K_24", "raises_N_24", "raises_R_24"} <= {row["id"] for row in suite["raises"]}


@pytest.mark.slow
def test_matrices_that_an_index_chooses_do_not_drown_the_rest_of_the_sum(tmp_path: Path, call):
    """At scale 1 the adapters' part is 100 times the base product, and a base product in bfloat16 was within the tolerance."""
    root = fresh.workspace("lora_linear", tmp_path)
    assert call("harness", "new", "--no-rehearsal", root).code == 0
    case = {
        "id": "x",
        "level": "L2",
        "shape": {"T": 8, "K": 256, "N": 64, "R": 16, "E": 3},
        "dtype": {"default": "float16"},
        "seed": 3,
    }
    with ReferenceSession(OpWorkspace(root, "lora_linear")) as session:
        values = dict(session.make_inputs(case))
    assert values["a"].double().std() == pytest.approx(256**-0.5, rel=0.2)
    assert values["b"].double().std() == pytest.approx(16**-0.5, rel=0.2)
