"""Snapshots on gated_delta_rule_bwd: a one-walk-back kernel, probed from a manifest, against its golden made to tell."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.debug.asking import ask, line_of, place

from pypto_op.bundle_files import bundle_root
from pypto_op.workspace import OpWorkspace

pytestmark = [pytest.mark.sim, pytest.mark.timeout(900)]

MANIFEST = """
op: gated_delta_rule_bwd
module: M2
case: L2_two_chunks_fp16
modes: [sim]
intermediates:
  - name: dstate
    shape: [K, V]
    probe_point: inside_nt_loop
    golden_expression: dstate
    index: {head: head, c: back}
    golden: {where: begin, when: "t % 64 == 63 or t == tokens - 1", index: "(tokens - 1) // 64 - t // 64"}
  - {name: entering, shape: [K, V], probe_point: inside_nt_loop, index: {head: head, c: n}}
"""


@pytest.fixture
def faulty(tmp_path: Path) -> OpWorkspace:
    ws = place(
        tmp_path,
        "gated_delta_rule_bwd",
        ("carried[:] = dstate * decay + asked - ", "carried[:] = dstate * decay + asked + "),
    )
    ws.debug_dir.mkdir()
    (ws.debug_dir / "snapshot_manifest.yaml").write_text(MANIFEST)
    return ws


@pytest.mark.usefixtures("numeric")
def test_the_drift_begins_after_the_first_turn(faulty: OpWorkspace) -> None:
    answer = ask("snapshot-bisect", "--manifest", faulty.debug_dir / "snapshot_manifest.yaml", "--json")
    report = answer.result("snapshot_report")
    assert answer.code == 1 and report["per_mode_status"] == {"sim": "FAIL"}
    told = report["intermediates"]["dstate"]["per_mode"]["sim"]
    assert [row["all_close"] for row in told["per_iter"]] == [True, False], report
    assert report["first_drift"] == {"name": "dstate", "iter": 1}
    assert report["intermediates"]["entering"]["per_mode"]["sim"]["status"] == "GOLDEN_STUB_UNFILLED"
    assert report["intermediates"]["dstate"]["line"] == line_of(faulty.impl, "# <<< SNAPSHOT:inside_nt_loop")
    assert (faulty.debug_dir / "snapshot_report.json").is_file()
    no_copy_of_the_golden(faulty)


@pytest.mark.usefixtures("numeric")
def test_of_a_module_whose_golden_hands_over_to_a_helper_the_helpers_loops_are_told(faulty: OpWorkspace) -> None:
    modules = bundle_root() / "examples" / "ops" / "gated_delta_rule_bwd" / "modules"
    shutil.copytree(modules, faulty.root / "modules", ignore=shutil.ignore_patterns("__pycache__"))
    kernel = faulty.root / "modules" / "gated_delta_rule_bwd_module12_impl.py"
    kernel.write_text(kernel.read_text().replace("* decay + asked - ", "* decay + asked + "))
    manifest = faulty.debug_dir / "snapshot_manifest.yaml"
    answer = ask("snapshot-bisect", "--manifest", manifest, "--json")
    assert answer.code == 1, answer.stderr
    assert answer.result("snapshot_report")["first_drift"] == {"name": "dstate", "iter": 1}
    manifest.write_text(MANIFEST.replace("where: begin", "loop: 2, where: begin"))
    refused = ask("snapshot-generate", manifest)
    assert refused.code == 2 and "module12_golden has 2 for statements" in refused.stderr


def no_copy_of_the_golden(ws: OpWorkspace) -> None:
    """Debugger, coder and optimizer read what lies in _debug/; a module's golden is denied to them."""
    lines = {line.strip() for line in ws.golden.read_text().splitlines() if len(line.strip()) > 40}
    assert len(lines) > 5
    for path in ws.debug_dir.rglob("*"):
        if path.is_file() and path.suffix in (".py", ".sh", ".json"):
            assert not lines & {line.strip() for line in path.read_text().splitlines()}, path


def test_what_is_written_and_what_does_not_fit(faulty: OpWorkspace) -> None:
    manifest = faulty.debug_dir / "snapshot_manifest.yaml"
    kernel = faulty.impl.read_bytes()
    assert ask("snapshot-generate", manifest, "--dry-run").code == 0
    assert sorted(path.name for path in faulty.debug_dir.iterdir()) == ["snapshot_manifest.yaml"]
    files = ask("snapshot-generate", manifest, "--json").result("debug_files")["files"]
    assert sorted(Path(name).name for name in files) == [
        "gated_delta_rule_bwd_M2_snapshot.py",
        "run_snapshot_bisect.sh",
    ]
    assert faulty.impl.read_bytes() == kernel
    no_copy_of_the_golden(faulty)
    for text, problem in (
        (MANIFEST.replace("inside_nt_loop", "nowhere"), "no marker is called nowhere"),
        (MANIFEST.replace("shape: [K, V]", "shape: [K]"), "1 sizes"),
        (MANIFEST.replace("where: begin", "loop: 7, where: begin"), "for statements"),
        ("op: [", "snapshot_manifest.yaml"),
    ):
        manifest.write_text(text)
        answer = ask("snapshot-generate", manifest)
        assert answer.code == 2 and problem in answer.stderr, (problem, answer.stderr)
    manifest.write_text(MANIFEST)
    faulty.impl.write_text(faulty.impl.read_text().replace("# <<< SNAPSHOT:SIG_JIT", "# "))
    answer = ask("snapshot-generate", manifest)
    assert answer.code == 2 and "SNAPSHOT:SIG_JIT" in answer.stderr
