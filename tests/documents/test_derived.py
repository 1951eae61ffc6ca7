"""What `design-params` writes into SPEC.md and DESIGN.md, and what it leaves as it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.calling import command

from pypto_op.documents import design, markdown, spec
from pypto_op.documents.front_matter import read

from . import goldens

WORDS = ["new", "soft", "--dtype", "float16,float32", "--p0", "T=64,H=32", "--dynamic", "T"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    assert command(*WORDS, "--into", tmp_path).code == 0
    made = tmp_path / "custom" / "soft"
    (made / "soft_golden.py").write_text(goldens.SOFTMAX)
    return made


def section(path: Path, number: str) -> str:
    return next(one.text for one in markdown.sections(read(path).body) if one.title.startswith(number))


def test_what_is_open_is_written_from_golden_and_front_matter(folder: Path) -> None:
    text = (folder / "SPEC.md").read_text()
    for number in ("6. Dtypes", "8. Dynamic axes"):  # as an agent leaves them that writes the whole page
        body = section(folder / "SPEC.md", number.split(" ")[0])
        text = text.replace(f"## {number}\n{body}", f"## {number}\n")
    (folder / "SPEC.md").write_text(text)
    done = command("design-params", folder / "soft_golden.py")
    assert "SPEC.md 6, SPEC.md 8, DESIGN.md 0.1, DESIGN.md 0.2, DESIGN.md 0.3" in done.stdout, done
    assert "| 6 | 0 | 0 | 1 |" in section(folder / "DESIGN.md", "0.1")
    assert "total_complexity = 0.33." in section(folder / "DESIGN.md", "0.2")
    assert "Decision: module_count = 1" in section(folder / "DESIGN.md", "0.3")
    assert "| float16 | float32 | float16 |" in section(folder / "SPEC.md", "6.")
    assert "Run-time lengths: T (1 to 65536)." in section(folder / "SPEC.md", "8.")
    assert "## 7." in (folder / "SPEC.md").read_text() and spec.load(folder / "SPEC.md").op_name == "soft"


def test_an_output_of_a_dtype_of_its_own_is_told_in_section_6(folder: Path) -> None:
    text = (folder / "SPEC.md").read_text()
    rows = (
        "| x | input | [T, H] | float16, float32 | |\n| y | output | [T, H] | dtype of x | |\n| s | output | [T] | float32 | |\n"
    )
    text = text.replace("| TODO | input | | | |\n", rows).replace(section(folder / "SPEC.md", "6."), "\n")
    (folder / "SPEC.md").write_text(text)
    command("design-params", folder / "soft_golden.py")
    assert "| float16 | float32 | float16, float32 |" in section(folder / "SPEC.md", "6.")
    assert "| float32 | float32 | float32 |" in section(folder / "SPEC.md", "6.")


def test_a_second_call_changes_nothing_and_another_golden_the_figures(folder: Path) -> None:
    command("design-params", folder / "soft_golden.py")
    before = [(folder / name).read_bytes() for name in ("SPEC.md", "DESIGN.md")]
    assert "written" not in command("design-params", folder / "soft_golden.py").stdout
    assert before == [(folder / name).read_bytes() for name in ("SPEC.md", "DESIGN.md")]
    (folder / "soft_golden.py").write_text(goldens.MAMBA)
    command("design-params", folder / "soft_golden.py")
    assert "Decision: module_count = 3" in section(folder / "DESIGN.md", "0.3")


def test_what_a_person_decided_stays(folder: Path) -> None:
    path = folder / "DESIGN.md"
    decided = "Decision: module_count = 2\noverride: the user asked for two\n"
    path.write_text(path.read_text().replace("### 0.3 Decision\nTODO\n", f"### 0.3 Decision\n{decided}"))
    command("design-params", folder / "soft_golden.py")
    assert design._decision(read(path)) == (2, "the user asked for two")


def test_a_golden_alone_is_only_counted(tmp_path: Path) -> None:
    (tmp_path / "op_golden.py").write_text(goldens.SOFTMAX)
    assert command("design-params", tmp_path / "op_golden.py").code == 0 and [p.name for p in tmp_path.iterdir()] == [
        "op_golden.py"
    ]


def test_a_frozen_page_stays(folder: Path) -> None:
    held = {"design_md": {"path": "DESIGN.md", "sha256": "0" * 64, "stage": 3}}
    (folder / ".orchestrator_state.json").write_text(json.dumps({"artifact_hashes": held}))
    before = (folder / "DESIGN.md").read_bytes()
    assert command("design-params", folder / "soft_golden.py").code == 0 and (folder / "DESIGN.md").read_bytes() == before
