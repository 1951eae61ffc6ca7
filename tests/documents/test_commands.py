"""The commands `new`, `check`, `interfaces` and `memory`, as a person or an agent calls them."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests import program

from pypto_op.documents import api_report, design, interfaces, memory, ranges, schema, spec
from pypto_op.documents.reading import parse_yaml
from pypto_op.errors import ContractError
from pypto_op.workspace import OpWorkspace

RMSNORM = Path(__file__).resolve().parents[2] / "examples" / "ops" / "rmsnorm"
GOLDEN = """import torch


def rmsnorm_golden(x, weight, eps=1e-6):
    scale = torch.rsqrt(x.float().square().mean(-1, keepdim=True) + eps)
    out = x * scale * weight
    return out, scale
"""


def tree(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def new(run, *options):
    code, out, err = run("new", "rmsnorm", *options)
    assert (code, err) == (0, ""), err
    return OpWorkspace.at("custom/rmsnorm"), out


def test_new_writes_a_workspace_whose_only_faults_are_marked_todos(run):
    ws, out = new(run, "--dtype", "fp32", "--dtype", "bf16", "--p0", "T=128,H=4096", "--dynamic", "T")
    assert "next: fill in" in out
    for check in (spec.check(ws.spec), api_report.check(ws.api_report)):
        assert check and all("TODO" in finding.problem for finding in check)
    for check in (design.check(ws.design), memory.check(ws.memory)):
        assert check and all("TODO" in finding.problem for finding in check)
    document = spec.load(ws.spec)
    assert document.supported_dtypes == ("float32", "bfloat16") and document.p0_shapes == ({"T": 128, "H": 4096},)
    code, out, _ = run("check", ws.root)
    assert code == 1 and "SPEC.md: line " in out and "TODO is left" in out


def test_new_without_details_leaves_todos_that_the_gates_refuse(run):
    ws, _ = new(run)
    for load, path in ((spec.load, ws.spec), (design.load, ws.design)):
        with pytest.raises(ContractError, match=r"TODO is left"):
            load(path)


@pytest.mark.parametrize(
    "name",
    ["../x", "a b", "x" * 300, ";rm -rf .", "", "Ä", "Rms", "1op", "a/b", ".", "..", "op\n", "-x", "$(id)", "a.b", "~"],
)
def test_hostile_names_are_refused_and_leave_nothing(run, tmp_path, name):
    code, out, err = run("new", "--", name)
    assert code == 2 and out == "" and err.count("\n") == 1 and len(err) < 300
    assert "cannot name an operator" in err
    assert tree(tmp_path) == []


def test_a_workspace_where_no_kernel_could_run_is_refused_at_once(run, tmp_path):
    (tmp_path / "my work").mkdir()
    code, _, err = run("new", "rmsnorm", "--into", "my work")
    assert code == 3 and "white space" in err and tree(tmp_path / "my work") == []


def test_existing_directories_and_files_and_dead_links_are_refused(run, tmp_path):
    new(run)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    code, _, err = run("new", "rmsnorm")
    assert code == 2 and "already exists" in err
    (tmp_path / "custom" / "relu").symlink_to("nowhere")
    (tmp_path / "custom" / "gelu").write_text("mine")
    for name in ("relu", "gelu"):
        assert run("new", name)[0] == 2
    assert before == {path: path.read_bytes() for path in before}
    assert sorted(p.name for p in (tmp_path / "custom").iterdir()) == ["gelu", "relu", "rmsnorm"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--dtype", "fp4"], "'fp4' is no dtype"),
        (["--dtype", "fp32", "--dtype", "float32"], "a dtype is named twice"),
        (["--p0", "T:1"], "'T:1' is no shape"),
        (["--p0", "T=0"], "a P0 size is below 1"),
        (["--p0", "T=٣"], "is no shape"),
        (["--p0", "a b=1"], "'a b' is no symbol"),
        (["--p0", "T=1", "--dynamic", "S"], "the dynamic axis S is in no P0 shape"),
        (["--dynamic", "x: [*y]"], "is no symbol"),
        (["--into", "missing"], "no such workspace"),
        (["--colour"], "No such option"),
    ],
)
def test_bad_options_are_refused_and_leave_nothing(run, tmp_path, options, words):
    code, _, err = run("new", "rmsnorm", *options)
    assert code == 2 and words in err and tree(tmp_path) == []


@pytest.mark.slow
def test_a_test_in_the_new_workspace_finds_the_comparison(run, tmp_path):
    ws, _ = new(run)
    test = ws.root / "test_rmsnorm.py"
    test.write_text(
        "import sys; from pathlib import Path\n"
        "here = Path(__file__).resolve()\n"
        "scripts = '.agents/skills/pypto-op-verify/scripts'\n"
        "sys.path.insert(0, str(next(p / scripts for p in list(here.parents)[:8] if (p / scripts).is_dir())))\n"
        "from detailed_tensor_compare import detailed_tensor_compare\n"
        "print(detailed_tensor_compare.__module__)\n"
    )
    done = program.with_torch(test)
    assert done.stdout == "pypto_op.compare\n", done.stderr


def test_new_prints_json(run):
    code, out, _ = run("new", "rmsnorm", "--json")
    data = json.loads(out)
    assert code == 0 and "SPEC.md" in data["files"] and data["op_dir"].endswith("custom/rmsnorm")


# -- interfaces ----------------------------------------------------------------------------------------------


def test_interfaces_new_takes_what_golden_spec_and_design_tell(run):
    ws, _ = new(run, "--dtype", "bf16", "--p0", "T=128,H=4096")
    ws.spec.write_text(ws.spec.read_text().replace("default_params: {}", "default_params: {eps: 1e-6}"))
    ws.golden.write_text(GOLDEN)
    code, out, _ = run("interfaces", "new", ws.root)
    assert code == 0 and "fill in the TODOs" in out
    data = parse_yaml(ws.interfaces.read_text())
    assert [(p["name"], p["shape"], p["dtype"]) for p in data["primary_inputs"]] == [
        ("x", ["TODO"], "bfloat16"),
        ("weight", ["TODO"], "bfloat16"),
        ("eps", [], "float32"),
    ]
    assert [final["name"] for final in data["final_outputs"]] == ["out0", "out1"]
    assert data["composition_verification"]["atol"] == 1e-2
    assert data["composition_verification"]["shapes"] == [{"T": 128, "H": 4096}]  # no axis is dynamic: no other is promised
    code, out, _ = run("interfaces", "check", ws.root)
    assert code == 1 and "modules[0].outputs[0].dtype" in out and "TODO" in out
    assert run("interfaces", "new", ws.root)[0] == 2, "an existing contract is never overwritten"


TABLE = """| name | kind | shape | dtype | meaning |
|---|---|---|---|---|
| `x` | input | [T, H] | float16, bfloat16 | in [-1, 1) |
| weight | input | `[2*H]` | float32 | any |
| eps | input | scalar | Python float | > 0 |
| y, z | output | [T, H] | dtype of x | new tensors |
"""


def test_interfaces_new_takes_names_shapes_and_dtypes_from_the_table_of_section_5(run):
    ws, _ = new(run, "--dtype", "fp16,bf16", "--p0", "T=128,H=4096")
    head, tail = ws.spec.read_text().split("| name | kind |")
    ws.spec.write_text(head.replace("default_params: {}", "default_params: {eps: 1e-6}") + TABLE + tail.split("|\n\n", 1)[1])
    ws.golden.write_text(GOLDEN)
    run("interfaces", "new", ws.root)
    data = parse_yaml(ws.interfaces.read_text())
    ports = [(p["name"], p["shape"], p["dtype"]) for p in [*data["primary_inputs"], *data["modules"][0]["outputs"]]]
    assert ports == [
        ("x", ["T", "H"], "float16"),
        ("weight", ["2*H"], "float32"),
        ("eps", [], "float32"),
        ("y", ["T", "H"], "float16"),
        ("z", ["T", "H"], "float16"),
    ]
    assert ranges.of(spec.load(ws.spec).shape_constraints, "x") == ranges.Range(-1.0, 1.0, open_high=True)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_interfaces_new_filled_in_satisfies_every_rule(run, count):
    ws, _ = new(run)
    ws.golden.write_text(GOLDEN)
    ws.spec.unlink()
    code, out, _ = run("interfaces", "new", ws.root, "--stdout", "--modules", count)
    assert code == 0 and not ws.interfaces.exists()
    filled = out.replace("dtype: TODO", "dtype: float32").replace("heavy_ops: [TODO]", "heavy_ops: [matmul]")
    filled = filled.replace("[TODO]", "[T]").replace("- TODO", "- {T: 16}", 1).replace("- TODO", "- {T: 17}")
    ws.interfaces.write_text(filled.replace("TODO", "x"))
    assert interfaces.load(ws.interfaces).total_modules == count
    code, out, _ = run("interfaces", "check", ws.root, "--json")
    assert (code, json.loads(out)["ok"]) == (0, True)
    assert run("interfaces", "check", ws.interfaces)[0] == 0
    ws.golden.write_text(GOLDEN.replace("x, weight", "weight, x"))
    code, out, _ = run("interfaces", "check", ws.root)
    assert code == 1 and "primary_inputs: are x, weight, eps; the golden takes weight, x, eps" in out


def test_interfaces_new_follows_the_design(run):
    ws, _ = new(run)
    ws.golden.write_text(GOLDEN)
    ws.spec.unlink()
    text = (
        ws.design.read_text()
        .replace("### 0.3 Decision\nTODO", "### 0.3 Decision\nDecision: module_count = 3")
        .replace("TODO", "x")
    )
    ws.design.write_text(text.replace("compute_kind: x", "compute_kind: vector").replace("dtypes: [x]", "dtypes: [fp32]"))
    _, out, _ = run("interfaces", "new", ws.root, "--stdout")
    assert [module["id"] for module in parse_yaml(out)["modules"]] == [1, 2, 3]


def test_interfaces_new_needs_a_golden(run):
    ws, _ = new(run)
    code, _, err = run("interfaces", "new", ws.root)
    assert code == 2 and "rmsnorm_golden.py: line 6: a TODO was left; write the golden first" in err
    ws.golden.unlink()
    code, _, err = run("interfaces", "new", ws.root)
    assert code == 2 and "rmsnorm_golden.py: no such file" in err


def test_design_params_needs_a_golden_that_is_written(run):
    ws, _ = new(run)
    before = ws.design.read_text()
    code, out, err = run("design-params", ws.golden)
    assert (code, out) == (2, "") and "rmsnorm_golden.py: line 6: a TODO was left; write the golden first" in err
    assert ws.design.read_text() == before
    assert run("design-params", ws.root) == (code, out, err), "the folder of an operator stands for its golden"


# -- memory --------------------------------------------------------------------------------------------------


def test_memory_append_and_check(run, tmp_path):
    ws, _ = new(run)
    old = tmp_path / "old.md"
    old.write_text(ws.memory.read_text())
    cells = ["--cell", "M1 produced", "--cell", "ok", "--cell", "verify"]
    code, out, _ = run("memory", "append", ws.root, "--section", "development", *cells)
    assert code == 0 and "| M1 produced | ok | verify |" in out and out.strip() in ws.memory.read_text()
    code, out, _ = run("memory", "append", ws.root, "--new-section", "Composition Rejection", "--text", "seed 3")
    assert code == 0 and out.startswith("## Composition Rejection - 20")
    _, out, _ = run("memory", "check", ws.root, "--against", old)
    assert "append-only" not in out
    ws.memory.write_text(ws.memory.read_text().replace("| M1 produced | ok |", "| M1 produced | fail |"))
    old.write_text(old.read_text() + "\n| x | M1 produced | ok | verify |\n")
    code, out, _ = run("memory", "check", ws.root, "--against", old)
    assert code == 1 and "-| x | M1 produced | ok | verify |" in out


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--section", "development"],
        ["--text", "x"],
        ["--section", "development", "--cell", "x", "--text", "y"],
        ["--section", "a", "--new-section", "b", "--text", "y"],
        ["--new-section", "b", "--cell", "y"],
        ["--section", "no such", "--text", "y"],
    ],
)
def test_memory_append_refuses_what_is_not_clear(run, options):
    ws, _ = new(run)
    before = ws.memory.read_bytes()
    code, _, err = run("memory", "append", ws.root, *options)
    assert code == 2 and err.count("\n") == 1 and ws.memory.read_bytes() == before


def test_text_comes_from_standard_input_too(run, monkeypatch):
    import io

    ws, _ = new(run)
    monkeypatch.setattr(sys, "stdin", io.StringIO("from a pipe\n"))
    assert run("memory", "append", ws.root, "--section", "Task summary", "--text", "-")[0] == 0
    assert "\nfrom a pipe\n" in ws.memory.read_text()


# -- check ---------------------------------------------------------------------------------------------------


def test_check_of_hostile_documents_ends_in_findings_not_tracebacks(run):
    ws, _ = new(run)
    ws.spec.write_bytes(b"\xff\xfe")
    ws.design.write_text("---\na: &a [*a]\n---\n")
    ws.api_report.write_text("x" * 1_000_001)
    ws.suite.write_text('{"a": 1, "a": 2}')
    ws.interfaces.write_text("a: 1\na: 2")
    code, out, err = run("check", ws.root, "--json")
    found = json.loads(out)["findings"]
    assert code == 1 and err == "" and len(found) == 7
    problems = {Path(name).name: items[0]["problem"] for name, items in found.items()}
    assert problems["SPEC.md"] == "not UTF-8; save it as UTF-8" and "anchors" in problems["DESIGN.md"]
    assert "larger than" in problems["API_REPORT.md"]
    assert "twice" in problems["adversarial_suite.json"] and "twice" in problems["module_interfaces.yaml"]


@pytest.mark.parametrize("name", ["missing", "a b"])
def test_check_of_no_operator(run, tmp_path, name):
    if name != "missing":
        (tmp_path / name).mkdir()
    code, _, err = run("check", name)
    assert code == 2 and err.count("\n") == 1


def test_a_newer_spec_beside_an_older_suite_is_found(run, tmp_path):
    ws = OpWorkspace.at(shutil.copytree(RMSNORM, tmp_path / "custom" / "rmsnorm", ignore=shutil.ignore_patterns("_debug")))
    assert run("check", ws.root)[0] == 0
    text = ws.spec.read_text()
    ws.spec.write_text(text.replace("float16, bfloat16]", "float16, bfloat16, int32]"))
    code, out, _ = run("check", ws.root)
    assert code == 1 and "adversarial_suite.json: cases: SPEC.md supports int32, and no case has it; run `pypto-op harness" in out
    ws.spec.write_text(text.replace("op_name: rmsnorm", "op_name: rms"))
    code, out, _ = run("check", ws.root)
    assert code == 1 and "SPEC.md: op_name: 'rms' is not the name of the directory, 'rmsnorm'" in out


def test_the_examples_satisfy_every_check(run):
    examples = Path(__file__).resolve().parents[2] / "examples" / "ops"
    folders = [path.parents[1] for path in sorted(examples.glob("*/eval/module_interfaces.yaml"))]
    assert len(folders) >= 3
    for folder in folders:
        ws = OpWorkspace.at(folder)
        code, out, _ = run("check", ws.root)
        assert code == 0, out
        assert interfaces.check_signature(interfaces.load(ws.interfaces), ws) == []


def test_loading_a_document_does_not_load_torch():
    code = "import sys, pypto_op.documents.commands, pypto_op.documents.spec; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_schema_findings_serialise():
    finding = schema.Finding("a[0].b", "is wrong", 3)
    assert finding.as_dict() == {"where": "a[0].b", "problem": "is wrong", "line": 3}


DESIGNED = """
Decision: module_count = 2

| id | module | boundary | units |
|---|---|---|---|
| M1 | statistics: dot | `dots` [T, 1], `rstd` [T, 1] | 1.1 |
| M2 | scale | `out`, `rstd` | 0.9 |
"""


def test_interfaces_new_names_boundaries_and_units_as_the_design_does(run):
    ws, _ = new(run, "--dtype", "fp32", "--p0", "T=128,H=4096", "--dynamic", "T")
    ws.golden.write_text(GOLDEN)
    text = ws.design.read_text().split("## 0. Complexity")[0].replace("TODO", "vector", 1)
    ws.design.write_text(text + DESIGNED)
    _, out, _ = run("interfaces", "new", ws.root, "--stdout")
    data = parse_yaml(out)
    assert [[port["name"] for port in module["outputs"]] for module in data["modules"]] == [["dots", "rstd"], ["out"]]
    assert data["final_outputs"] == [{"name": "out", "source": "module_2"}, {"name": "rstd", "source": "module_1"}]
    assert data["composition_verification"]["shapes"] == [{"T": 128, "H": 4096}, {"T": 17, "H": 4096}]
    filled = out.replace("dtype: TODO", "dtype: float32").replace("heavy_ops: [TODO]", "heavy_ops: [softmax]")
    filled = filled.replace("[TODO]", "[T, H]").replace("TODO", "x")
    ws.interfaces.write_text(filled)
    code, out, _ = run("interfaces", "check", ws.root)
    assert code == 0, out
    assert [module.cu for module in interfaces.load(ws.interfaces).modules] == [1.1, 0.9]


EMPTIED = ("SPEC.md", "API_REPORT.md", "DESIGN.md", "MEMORY.md", "eval/module_interfaces.yaml", "eval/adversarial_suite.json")


@pytest.mark.parametrize("name", EMPTIED)
def test_an_empty_document_is_one_finding_with_a_remedy(run, name):
    ws, _ = new(run, "--dtype", "float32")
    (ws.root / name).write_text("\n")
    code, out, _ = run("check", ws.root)
    told = [line for line in out.splitlines() if line.startswith(f"{name}: ")]
    assert code == 1 and len(told) == 1 and "the file is empty" in told[0] and "; bring it back, or write it anew" in told[0], out
