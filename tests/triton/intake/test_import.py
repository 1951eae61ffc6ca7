"""`pypto-op triton import`: a public task becomes a folder that `verify` takes; what is no task is refused in one line."""

from __future__ import annotations

import re
import shlex
import textwrap
from pathlib import Path

import pytest
from tests.calling import Answer, command
from tests.triton import lab

from pypto_op.triton.intake.constants import Site, parse, replaced, sites
from pypto_op.triton.intake.importing import op_name_of

PAGE = lab.ROOT / "docs" / "triton-public.md"

LINEAR = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, features, out_features, groups, shape):
        super().__init__()
        self.linear = nn.Linear(features, out_features)
        self.norm = nn.GroupNorm(groups, out_features)
        self.bias = nn.Parameter(torch.randn(shape))

    def forward(self, x):
        return self.norm(self.linear(x)) + self.bias

batch_size, in_features = 1024, 8 * 1024
out_features = 8192
num_groups = 16
bias_shape = (out_features,)

def get_inputs():
    return [torch.rand(batch_size, in_features)]

def get_init_inputs():
    return [in_features, out_features, num_groups, bias_shape]
"""


def written(place: Path, text: str, name: str = "7_Some_Task.py") -> Path:
    """Write a task and return its path."""
    place.mkdir(exist_ok=True)
    path = place / name
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    return path


def refused(answer: Answer, code: int, *words: str) -> None:
    """Hold an answer to be one line with these words and this exit code."""
    assert answer.code == code, answer.stdout + answer.stderr
    lines = [line for line in answer.stderr.splitlines() if line and "so far" not in line]
    assert len(lines) == 1 and "Traceback" not in answer.stderr, answer.stderr
    assert all(word in lines[0] for word in words), lines


def test_numbers_are_found_and_replaced_in_their_places() -> None:
    text = 'a = b = 1 << 20  # ä\n"ä"; c, d = 3, 2 * 8\nshape = [64, 7]\ne = 1\nModel = get_inputs = 0\n'
    found = {site.name: site for site in sites(parse(text, "t.py"))}
    assert {name: site.value for name, site in found.items()} == {
        "a = b": 1048576, "c": 3, "d": 16, "shape[0]": 64, "shape[1]": 7,
    }  # fmt: skip
    changed = replaced(text, {found["a = b"]: 16, found["d"]: 4, found["shape[0]"]: 8}, remark=True)
    assert changed.splitlines()[:3] == [
        "a = b = 16  # ä  # public task: 1048576", '"ä"; c, d = 3, 4  # public task: 16', "shape = [8, 7]  # public task: 64"
    ]  # fmt: skip
    assert isinstance(found["c"], Site)


@pytest.mark.parametrize(
    ("file", "name"),
    [("19_ReLU.py", "relu"), ("1_Square_matrix_multiplication_.py", "square_matrix_multiplication"), ("3.py", "task_3"),
     ("softmax_torch.py", "softmax"), ("97-Scaled Dot.py", "scaled_dot"), ("_.py", "task")],
)  # fmt: skip
def test_the_name_is_made_of_the_files(file: str, name: str) -> None:
    assert op_name_of(Path(file)) == name


@pytest.mark.slow
def test_the_page_from_a_task_to_a_verdict_runs_as_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = PAGE.read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    said = {}
    for block, line in re.findall(r"```python\n((?:.|\n)*?)```|^    (pypto-op .*)$", text, re.MULTILINE):
        if block:
            (tmp_path / block.split("\n")[0].removeprefix("# ")).write_text(block, encoding="utf-8")
            continue
        answer = command(*shlex.split(line)[1:])
        assert answer.code == 0, f"{line}\n{answer.stdout}{answer.stderr}"
        said[line] = answer.stdout
    assert len(said) == 4
    imported = next(iter(said.values()))
    page = (tmp_path / "softplus" / "IMPORT.md").read_text(encoding="utf-8")
    for words in ("393216", "untested", "Sizes above"):
        assert words in imported and words in page
    assert "dim = 48  # public task: 393216" in (tmp_path / "softplus" / "softplus_torch.py").read_text(encoding="utf-8")
    assert "dim = 393216\n" in (tmp_path / "softplus_gpu" / "softplus_torch.py").read_text(encoding="utf-8")
    assert any("PASS: 1/1" in words for words in said.values())


@pytest.mark.slow
def test_numbers_that_hang_together_are_changed_together(tmp_path: Path) -> None:
    file = written(tmp_path, LINEAR)
    found = command("triton", "import", file, "--dir", tmp_path / "op", "--json").report
    assert found["op_name"] == "some_task" and found["small_enough"]
    assert found["elements"]["public"] == 8192 * 8192 and found["elements"]["here"] <= 4096
    here = {number["name"]: number["here"] for number in found["numbers"]}
    assert here.keys() >= {"batch_size", "in_features", "out_features"} and here["out_features"] % here.get("num_groups", 16) == 0
    assert found["arguments"][0]["public"]["shape"] == [1024, 8192]
    assert found["outputs"][0]["shape"] == [here["batch_size"], here["out_features"]]
    assert any("one sign" in line for line in found["untested"])
    again = command("triton", "import", file, "--dir", tmp_path / "op", "--set", "in_features=100", "--json").report
    assert again["arguments"][0]["here"]["shape"][1] == 100, "an import may be made anew"
    kept = command("triton", "import", file, "--dir", tmp_path / "gpu", "--gpu", "--json").report
    assert kept["numbers"] == [] and "# public" not in (tmp_path / "gpu" / "some_task_torch.py").read_text()


@pytest.mark.slow
def test_data_and_modules_come_along_and_a_missing_function_is_added(tmp_path: Path) -> None:
    (tmp_path / "helping.py").write_text("SCALE = 2\n")
    (tmp_path / "sizes.json").write_text("[6, 10]")
    text = lab.task("return x * SCALE", "[torch.randn(*json.load(open(PATH)))]").replace(
        "def get_init_inputs():\n    return []", ""
    )
    head = "import json\nfrom pathlib import Path\nfrom helping import SCALE\nPATH = Path(__file__).parent / 'sizes.json'\n"
    file = written(tmp_path, head + text)
    found = command("triton", "import", file, "--dir", tmp_path / "op", "--json").report
    assert found["arguments"][0]["here"]["shape"] == [6, 10]
    assert {path.name for path in (tmp_path / "op").iterdir()} == {"some_task_torch.py", "IMPORT.md", "helping.py", "sizes.json"}


@pytest.mark.slow
def test_data_that_is_named_after_the_tasks_own_file_is_found_by_the_copy_too(tmp_path: Path) -> None:
    (tmp_path / "7_Some_Task.json").write_text("[6, 10]")
    text = lab.task("return x + 1", "[torch.randn(*json.load(open(os.path.splitext(__file__)[0] + '.json')))]")
    file = written(tmp_path, "import json, os\n" + text)
    found = command("triton", "import", file, "--dir", tmp_path / "op", "--json").report
    assert found["arguments"][0]["here"]["shape"] == [6, 10]
    (tmp_path / "7_Some_Task.json").write_text("[60, 100]")
    found = command("triton", "import", file, "--dir", tmp_path / "op", "--json").report
    assert any("sizes stand in 7_Some_Task.json" in line for line in found["untested"]), "no --set could change them"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def Model(:\n", ["7_Some_Task.py", "line 1", "not Python"]),
        ("x = 1\n", ["no Model and no get_inputs"]),
        ("class Model: pass\n", ["no get_inputs"]),
        ("\0", ["not Python"]),
    ],
)
def test_what_is_no_task_is_refused(text: str, words: list[str], tmp_path: Path) -> None:
    refused(command("triton", "import", written(tmp_path, text), "--dir", tmp_path / "op"), 2, *words)
    assert not (tmp_path / "op").exists()


def test_a_missing_file_a_taken_folder_and_an_unknown_number_are_refused(tmp_path: Path) -> None:
    file = written(tmp_path, LINEAR)
    refused(command("triton", "import", tmp_path / "none.py"), 2, "none.py", "no such file; give a task")
    refused(command("triton", "import", file, "--dir", tmp_path), 2, "not empty", "--dir")
    refused(command("triton", "import", file, "--dir", tmp_path / "op", "--set", "dim=3"), 2, "dim", "in_features")
    refused(command("triton", "import", file, "--set", "dim"), 2, "NAME=N")


RAISES = lab.task("return x", "1 / 0")
ENDLESS = lab.task("return x", "[torch.zeros(2)]", more="\nwhile True:\n    pass\n")
HUGE = lab.task("return x", "[bytearray(3 << 30) and torch.zeros(2)]")
FORWARD = lab.task("return x @ x", "[torch.rand(3, 4)]")
EXITS = lab.task("return x", "exit(0)")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "words"),
    [
        (RAISES, ["ZeroDivisionError", "some_task_torch.py:"]),
        (ENDLESS, ["Timeout", "--timeout"]),
        (HUGE, ["OutOfMemory", "--memory_mb"]),
        (FORWARD, ["RuntimeError"]),
        (EXITS, ["Exited"]),
    ],
    ids=["raises", "endless", "huge", "forward", "exits"],
)
def test_a_task_that_does_not_run_is_told_in_one_line(text: str, words: list[str], tmp_path: Path) -> None:
    more = ["--timeout", "4"] if text == ENDLESS else ["--memory_mb", "1024"]
    refused(command("triton", "import", written(tmp_path, text), "--dir", tmp_path / "op", *more), 1, *words)
    assert not (tmp_path / "op").exists()


@pytest.mark.slow
def test_a_number_that_is_set_helps_where_the_public_one_does_not_run(tmp_path: Path) -> None:
    file = written(tmp_path, lab.task("return x + 1", "[bytearray(room) and torch.zeros(2)]", more="\nroom = 3 << 30\n"))
    found = command("triton", "import", file, "--dir", tmp_path / "op", "--set", "room=8", "--memory_mb", "1024", "--json").report
    assert found["numbers"] == [{"name": "room", "public": 3 << 30, "here": 8}]


@pytest.mark.slow
def test_a_number_stays_where_the_task_does_not_run_with_half_of_it(tmp_path: Path) -> None:
    text = lab.task("return x + torch.zeros(4096, 1 if len(x) else 9).T", "[torch.rand(rows, 4096)]", more="\nrows = 2048\n")
    found = command("triton", "import", written(tmp_path, text), "--dir", tmp_path / "op", "--json").report
    assert found["arguments"][0]["here"]["shape"] == [2, 4096] and not found["small_enough"]
    assert any("as small as wished" in line for line in found["untested"])


@pytest.mark.slow
@pytest.mark.parametrize(
    "forward",
    ["x.clone().index_put_((places,), rows)", "x.index_copy(0, places, rows)", "x.index_add(0, places, rows)"],
)
def test_places_stay_within_the_rows_that_they_name(forward: str, tmp_path: Path) -> None:
    """Without memory an index that left its rows is not seen, so rows and places may be halved apart."""
    text = lab.task(
        f"return {forward}",
        "[torch.zeros(10000, 1024), torch.randint(0, 10000, (2048,)), torch.rand(2048, 1024)]", of="x, places, rows",
    )  # fmt: skip
    found = command("triton", "import", written(tmp_path, text), "--dir", tmp_path / "op", "--json").report
    assert found["small_enough"] and max(number["here"] for number in found["numbers"]) <= 64


@pytest.mark.slow
def test_what_goes_into_a_large_weight_of_the_class_becomes_small_all_the_same(tmp_path: Path) -> None:
    text = lab.task("return self.table(x)", "[torch.randint(0, 100, (512, 128))]", init="self.table = nn.Embedding(100000, 32)")
    found = command("triton", "import", written(tmp_path, text), "--dir", tmp_path / "op", "--json").report
    assert not found["small_enough"] and 1024 < found["largest_input_or_output"] <= 4096


@pytest.mark.slow
@pytest.mark.parametrize(("forward", "draws"), [("return x + torch.randn_like(x)", True), ("return x + 1", False)])
def test_a_task_that_draws_numbers_in_forward_is_told(forward: str, draws: bool, tmp_path: Path) -> None:
    file = written(tmp_path, lab.task(forward, "[torch.randn(8, 8)]"))
    found = command("triton", "import", file, "--dir", tmp_path / "op", "--json").report
    assert any("draws random numbers" in line for line in found["untested"]) is draws


@pytest.mark.slow
def test_inputs_of_eight_bits_are_drawn_as_any_other(tmp_path: Path) -> None:
    """PyTorch has no comparison for floats of 8 bits; the page asks on which side of zero the inputs lie."""
    given = "[torch.randn(8, 32).to(torch.float8_e4m3fn), torch.randn(32).to(torch.float8_e5m2)]"
    task = written(tmp_path, lab.task("return x.float() * xs[1].float()", given))
    answer = command("triton", "import", str(task), "--dir", str(tmp_path / "op"))
    assert answer.code == 0, answer.stderr
    assert "8x32 float8_e4m3fn" in answer.stdout
