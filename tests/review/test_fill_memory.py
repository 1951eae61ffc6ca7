"""What `pypto-op fill-memory` writes is what the kernel's file shows, line by line; what it does not show stays open."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.calling import Answer, command

from pypto_op.bundle_files import bundle_root
from pypto_op.documents import memory
from pypto_op.workspace import OpWorkspace

EXAMPLE = bundle_root() / "examples" / "ops" / "rmsnorm"
MARKS = {
    "x_wide = pypto_widen(x_tile, dtype)": "1",
    "mean_square = pypto.sum(": "2, 3",
    "inverse_rms = pypto.rsqrt(": "4, 5",
    "y_wide = x_wide * inverse_rms": "6, 7, 8",
    "return y_wide if dtype": "9",
}


@pytest.fixture
def ws(tmp_path: Path) -> OpWorkspace:
    command("new", "rmsnorm", "--dtype", "float32", "--p0", "T=64,H=1024", "--dynamic", "T", "--into", tmp_path)
    root = tmp_path / "custom" / "rmsnorm"
    for name in ("SPEC.md", "DESIGN.md", "rmsnorm_golden.py", "rmsnorm_impl.py", "eval/module_interfaces.yaml"):
        (root / name).parent.mkdir(exist_ok=True)
        shutil.copy(EXAMPLE / name, root / name)
    found = OpWorkspace.at(root)
    mark(found, MARKS)
    return found


def mark(ws: OpWorkspace, marks: dict[str, str]) -> None:
    lines = ws.impl.read_text().split("\n")
    for number, line in enumerate(lines):
        for code, steps in marks.items():
            if line.strip().startswith(code):
                lines[number] = f"{line.partition('  #')[0]}  # golden {steps}"
    ws.impl.write_text("\n".join(lines))


def fill(ws: OpWorkspace, *words: str) -> Answer:
    return command("fill-memory", ws.root, *words)


FULL = (
    "--preflight",
    "squares of float16 overflow: widened first",
    "--audit",
    "x_tile: its view; assemble clips",
    "--log",
    "clean",
)


def line_of(ws: OpWorkspace, code: str) -> int:
    return next(number for number, line in enumerate(ws.impl.read_text().split("\n"), 1) if code in line)


def lint(ws: OpWorkspace) -> str:
    return command("lint", "--op-dir", ws.root, "--event", "submit-for-verify", "--phase", "M1").stdout


def test_everything_is_filled_in_and_the_gates_rules_take_it(ws: OpWorkspace) -> None:
    before = lint(ws)
    assert "[OL53]" in before and "[OL54]" in before
    done = fill(ws, *FULL)
    assert (done.code, "open:" in done.stdout) == (0, False), done.stdout
    text = ws.memory.read_text()
    summed = line_of(ws, "pypto.sum(")
    assert "| 3 | mean over H | [T, H] -> [T, 1] | `mean_square = pypto.sum(" in text and f" | {summed} | ✅ |" in text
    assert f"| pypto_normalise | vec (16, 512) | DESIGN.md 3.2.5; rmsnorm_impl.py:{line_of(ws, 'set_vec_tile_shapes')} |" in text
    assert f"exactly once: rmsnorm_impl.py:{line_of(ws, '    kernel(')}\n" in text
    assert f"valid-shape audit: set at rmsnorm_impl.py:{line_of(ws, 'valid_shape=')}; x_tile: its view" in text
    after = lint(ws)
    assert "[OL53]" not in after and "[OL54]" not in after and "[OL61]" not in after, after
    assert not [finding for finding in memory.check(ws.memory) if "row" in finding.problem]


def test_lines_follow_the_file_and_words_stay(ws: OpWorkspace) -> None:
    assert fill(ws, *FULL).code == 0
    ws.impl.write_text("# one more line\n" + ws.impl.read_text())
    first = ws.memory.read_text()
    assert fill(ws).code == 0
    second = ws.memory.read_text()
    assert first != second and f"| {line_of(ws, 'pypto.sum(')} | ✅ |" in second
    assert "x_tile: its view" in second and "widened first" in second
    assert second.count("## Phase M1 self-review") == 1
    assert fill(ws).code == 0 and ws.memory.read_text() == second, "nothing changed, nothing is written anew"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("  # golden 4, 5", "", "step 4 (add eps): no line of the kernel says `# golden 4`"),
        ("# golden 9", "# golden 9, 12", "marks step 12, which the golden's inventory does not have"),
        ("def rmsnorm_wrapper(x, weight, eps)", "def rmsnorm_wrapper(weight, x, eps)", "self-review: host wrapper signature"),
        ("pypto.assemble(y_tile, [row, 0], out)", "pass", "self-review: every declared output tensor is written: no assemble"),
        ("[T_TILE, hidden], [row, 0]", "[T_TILE, hidden], [row]", "self-review: ranks of every view"),
        ("    kernel(\n", "    kernel(x)\n    kernel(\n", "self-review: the wrapper launches the kernel exactly once"),
        ("    _check(x, weight, eps)\n", "    for i in range(2):\n        pass\n", "self-review: no `for ... in range`"),
    ],
)
def test_what_the_file_does_not_show_stays_open(ws: OpWorkspace, old: str, new: str, said: str) -> None:
    text = ws.impl.read_text()
    assert old in text
    ws.impl.write_text(text.replace(old, new, 1))
    done = fill(ws, *FULL)
    assert done.code == 1 and said in done.stdout, done.stdout
    if "step" not in said:
        assert "- [ ] " in ws.memory.read_text()


def test_the_audit_is_the_coders(ws: OpWorkspace) -> None:
    done = fill(ws, "--json")
    assert done.code == 1 and done.report["open"] == ["self-review: the valid-shape audit is the coder's, `--audit TEXT`"]
    assert "- [ ] valid-shape audit" in ws.memory.read_text()


def test_a_phase_before_the_last_leaves_steps_to_later_modules(tmp_path: Path) -> None:
    """Its self-review could not be ticked: every step of the golden was asked of the first module's file."""
    name = "flash_attention_bwd"
    command("new", name, "--dtype", "float32", "--p0", "BH=2,S=128,D=64", "--dynamic", "S", "--into", tmp_path)
    root = tmp_path / "custom" / name
    shutil.copytree(EXAMPLE.parent / name, root, dirs_exist_ok=True, ignore=shutil.ignore_patterns("MEMORY.md"))
    ws = OpWorkspace.at(root)
    impl, line = ws.module_impl(1), "    return pypto.exp(pypto_product("
    assert "# golden" not in impl.read_text()
    assert fill(ws, *FULL, "--up-to-module", "1").code == 1, "nothing is marked"
    impl.write_text("\n".join(f"{text}  # golden 2" if text.startswith(line) else text for text in impl.read_text().split("\n")))
    done = fill(ws, *FULL, "--up-to-module", "1")
    assert done.code == 0 and "left to later modules: step 3 " in done.stdout and "open:" not in done.stdout, done.stdout
    assert "[OL53]" not in (found := lint(ws)) and "[OL54]" not in found, found
    whole = fill(ws, *FULL, "--up-to-module", "2")
    assert whole.code == 1 and "open: step 3 " in whole.stdout, "the last phase has all of them"


def test_a_file_that_is_not_there(ws: OpWorkspace) -> None:
    ws.impl.unlink()
    done = fill(ws)
    assert done.code == 2 and "rmsnorm_impl.py" in done.stderr and "Traceback" not in done.stderr
    assert fill(ws, "--up-to-module", "x").code == 2
