"""The static check on its labelled corpus, its places and reasons, its policy, and unreadable files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.quickly import read_table
from tests.triton import lab

from pypto_op.errors import ContractError
from pypto_op.triton.static.policy import load_policy
from pypto_op.triton.static.validate import validate_file

CORPUS = lab.HERE / "corpus"
LABELS: dict[str, int] = read_table(CORPUS / "labels.yaml")
TABLE: dict[str, dict[str, Any]] = read_table(CORPUS / "table.yaml")
HONEST = sorted([*TABLE["honest"], *(path.stem for path in (CORPUS / "honest").glob("[!_]*.py"))])
SAMPLES = sorted(path.name for path in lab.EXAMPLES.iterdir() if path.is_dir())


def file_of(kind: str, name: str, folder: Path) -> Path:
    """Return a file of the corpus; one that the table tells is written to the folder."""
    if name not in TABLE[kind]:
        return CORPUS / kind / f"{name}.py"
    path = folder / f"{name}.py"
    path.write_text(lab.told(TABLE[kind][name], TABLE["heads"]), encoding="utf-8")
    return path


def test_corpus_is_large_and_labelled() -> None:
    files = {path.stem for path in (CORPUS / "cheats").glob("*.py")} - {"op_torch"}
    cheats = files | set(TABLE["cheats"])
    assert not files & set(TABLE["cheats"])
    assert cheats == set(LABELS)
    assert len(cheats) >= 75
    assert len(HONEST) >= 75


@pytest.mark.parametrize("name", sorted(LABELS))
def test_cheat_is_refused(name: str, tmp_path: Path) -> None:
    result = validate_file(file_of("cheats", name, tmp_path))
    assert result["valid"] is False
    assert result["regression_type"] == LABELS[name]
    assert result["suggestion"]
    checks = result["checks"]
    found = checks["kernel_called_from_forward"]["violations"] + checks["no_forbidden_torch_ops"]["violations"]
    assert found or result["regression_type"] == 1
    for violation in found:
        assert violation["line"] >= 1
        assert violation["call"]
        assert violation["reason"]


@pytest.mark.parametrize("name", HONEST)
def test_honest_file_is_valid(name: str, tmp_path: Path) -> None:
    result = validate_file(file_of("honest", name, tmp_path))
    assert result["valid"] is True, result["checks"]
    assert result["regression_type"] is None
    assert result["checks"]["kernel_called_from_forward"]["called"]


@pytest.mark.parametrize("name", SAMPLES)
def test_sample_is_valid(name: str) -> None:
    assert validate_file(lab.EXAMPLES / name / f"{name}_triton_ascend_impl.py")["valid"]


def test_violation_names_line_call_and_reason(tmp_path: Path) -> None:
    path = file_of("cheats", "from_torch_import_as", tmp_path)
    result = validate_file(path)
    text = path.read_text(encoding="utf-8").splitlines()
    (violation,) = result["checks"]["no_forbidden_torch_ops"]["violations"]
    assert text[violation["line"] - 1].strip() == "y = sm(x, -1)"
    assert violation["call"] == "sm(x, -1)"
    assert "PyTorch computes" in violation["reason"]


def test_violation_in_a_sibling_names_its_file(tmp_path: Path) -> None:
    (tmp_path / "helpers.py").write_text("import torch\n\n\ndef soft(x):\n    return torch.softmax(x, -1)\n", encoding="utf-8")
    text = lab.impl("return run(copy_kernel, soft(x))").replace("import torch\n", "import torch\nfrom helpers import soft\n", 1)
    (tmp_path / "impl.py").write_text(text, encoding="utf-8")
    (violation,) = validate_file(tmp_path / "impl.py")["checks"]["no_forbidden_torch_ops"]["violations"]
    assert (violation["file"], violation["line"]) == ("helpers.py", 5)


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"def f(:\n", "not valid Python"), (b"x = \xff", "UTF-8"), (None, "does not exist"), (b"", None)],
)
def test_unreadable_file_has_the_usual_keys(content: bytes | None, words: str | None, tmp_path: Path) -> None:
    path = tmp_path / "impl.py"
    if content is not None:
        path.write_bytes(content)
    result = validate_file(path)
    assert (result["valid"], result["regression_type"]) == (False, 1)
    assert set(result["checks"]) == {"triton_kernel_exists", "kernel_called_from_forward", "no_forbidden_torch_ops"}
    if words is not None:
        assert words in result["error"]


def test_policy_can_forbid_a_second_launch_and_allow_loops(tmp_path: Path) -> None:
    own = tmp_path / "policy.yaml"
    own.write_text("launches:\n  most: 1\n", encoding="utf-8")
    assert not validate_file(file_of("honest", "two_launches", tmp_path), load_policy(own))["valid"]
    assert validate_file(file_of("honest", "plain", tmp_path), load_policy(own))["valid"]
    own2 = tmp_path / "loops.yaml"
    own2.write_text("launches:\n  in_loops: allow\n", encoding="utf-8")
    assert validate_file(file_of("cheats", "for_of_launches", tmp_path), load_policy(own2))["valid"]
    layers = "for w in self.layers:\n    x = run(copy_kernel, x)\nreturn x"
    (tmp_path / "impl.py").write_text(lab.impl(layers, init="self.layers = nn.ModuleList([nn.ReLU()])"), encoding="utf-8")
    assert validate_file(tmp_path / "impl.py", load_policy(own2))["valid"]
    assert not validate_file(tmp_path / "impl.py")["valid"]


def test_policy_that_does_not_fit_its_schema_is_refused(tmp_path: Path) -> None:
    own = tmp_path / "policy.yaml"
    own.write_text("launches:\n  most: many\n", encoding="utf-8")
    with pytest.raises(ContractError, match="most"):
        load_policy(own)


def test_built_in_policy_fits_its_schema() -> None:
    from pypto_op.documents import schema

    schema.check(dict(load_policy().data), "triton_static_policy")


@pytest.mark.slow
def test_script_prints_the_contract_json(tmp_path: Path) -> None:
    bad = lab.script("validate_triton_impl", str(file_of("cheats", "functional_softmax", tmp_path)), "--json")
    assert bad.returncode == 1
    result = json.loads(bad.stdout)
    assert result["regression_type"] == 3
    assert result["checks"]["triton_kernel_exists"] == {"passed": True, "kernels": ["kernel"], "empty_shells": []}
    assert result["checks"]["kernel_called_from_forward"]["called"] == ["kernel"]
    good = lab.script("validate_triton_impl", str(file_of("honest", "plain", tmp_path)))
    assert (good.returncode, good.stderr) == (0, "")


def test_a_file_nested_too_deeply_is_refused_in_one_line(tmp_path: Path) -> None:
    """libcst's own parser dies of it, which no caller could catch."""
    path = tmp_path / "impl.py"
    path.write_text("x = " + "-" * 100_000 + "1\n")
    result = validate_file(path)
    assert not result["valid"] and "nested too deeply" in result["error"]


PACKAGED = """
import torch
from pack.ops.act import Act


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return Act.apply(x)
"""
ACT = """
import torch
import triton
import triton.language as tl
from pack.ops.tools import contiguous


@triton.jit
def kernel(x_ptr, out_ptr, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out_ptr + i, tl.exp(tl.load(x_ptr + i, mask=i < n)), mask=i < n)


class Act(torch.autograd.Function):
    @staticmethod
    @contiguous
    def forward(ctx, x):
        out = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), B=256)
        return out
"""
TOOLS = """
import functools
import torch


def contiguous(fn):
    @functools.wraps(fn)
    def wrapper(ctx, *args):
        return fn(ctx, *[a.contiguous() if isinstance(a, torch.Tensor) else a for a in args])
    return wrapper
"""


@pytest.mark.parametrize(("tools", "valid"), [(TOOLS, True), (TOOLS.replace("a.contiguous()", "torch.exp(a)"), False)])
def test_a_file_of_a_package_imports_others_from_the_implementations_folder(tools: str, valid: bool, tmp_path: Path) -> None:
    ops = tmp_path / "pack" / "ops"
    ops.mkdir(parents=True)
    (ops / "act.py").write_text(ACT)
    (ops / "tools.py").write_text(tools)
    impl = tmp_path / "x_triton_ascend_impl.py"
    impl.write_text(PACKAGED)
    found = validate_file(impl)
    assert found["valid"] is valid, found
    if not valid:
        assert found["checks"]["no_forbidden_torch_ops"]["violations"][0]["file"] == "tools.py"


@pytest.mark.parametrize(
    ("forward", "valid"),
    [
        ("a, b = map(torch.Tensor.contiguous, (x, x.t()))\nreturn run(copy_kernel, a), run(copy_kernel, b)", True),
        ("return run(copy_kernel, *map(torch.Tensor.exp, (x,)))", False),
        ("return dict(first=run(copy_kernel, x), second=run(copy_kernel, x))", True),
        ("return dict(first=run(copy_kernel, x), second=torch.empty_like(x))", False),
    ],
)
def test_methods_as_functions_and_dicts_by_keyword_are_followed(forward: str, valid: bool, tmp_path: Path) -> None:
    file = tmp_path / "op_triton_ascend_impl.py"
    file.write_text(lab.impl(forward), encoding="utf-8")
    result = validate_file(file)
    assert result["valid"] is valid, result["checks"]


def test_a_check_of_dimensions_that_a_layer_inherits_is_no_computation(tmp_path: Path) -> None:
    file = tmp_path / "op_triton_ascend_impl.py"
    text = lab.impl("self._check_input_dim(x)\nreturn run(copy_kernel, x)").replace(
        "class ModelNew(nn.Module)", "class ModelNew(nn.BatchNorm2d)"
    )
    file.write_text(text, encoding="utf-8")
    assert validate_file(file)["valid"]


@pytest.mark.parametrize(
    ("forward", "valid"),
    [
        ("mask = x.get('mask')\nreturn run(copy_kernel, x['x'] if mask is None else mask)", True),
        ("a, b = x.values()\nreturn run(copy_kernel, a), run(copy_kernel, b)", True),
        ("rows = {key: value.view(-1) for key, value in x.items()}\nreturn run(copy_kernel, rows['x'])", True),
        ("return run(copy_kernel, x.get('x').exp())", False),
        ("a, b = (value * 2 for value in x.values())\nreturn run(copy_kernel, a), run(copy_kernel, b)", False),
        ("return x.get('x', run(copy_kernel, x['y']))", False),
    ],
)
def test_an_argument_that_is_a_dict_is_followed(forward: str, valid: bool, tmp_path: Path) -> None:
    """It has no annotation as a rule, so it is taken for a tensor, which has none of these methods."""
    file = tmp_path / "op_triton_ascend_impl.py"
    file.write_text(lab.impl(forward), encoding="utf-8")
    result = validate_file(file)
    assert result["valid"] is valid, result["checks"]
