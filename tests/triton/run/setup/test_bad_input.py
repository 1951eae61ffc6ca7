"""Tasks and outputs that fooled, crashed or falsely failed an earlier verifier, each with its verdict."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.triton import lab

from pypto_op.errors import InfraError
from pypto_op.triton.run.setup.targets import Target, choose

pytestmark = pytest.mark.slow

COPY = "return run(copy_kernel, x)"
X = "[torch.randn(8, 64)]"
SCALE = """
@triton.jit
def add_kernel(x_ptr, out_ptr, n, BY, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) + BY, mask=mask)


def add(x, by):
    out = torch.empty_like(x)
    add_kernel[(triton.cdiv(x.numel(), 512),)](x, out, x.numel(), by, BLOCK=512)
    return out
"""
ADD = """
@triton.jit
def add2_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) + tl.load(y_ptr + offsets, mask=mask), mask=mask)
"""
DROPOUT = """
@triton.jit
def mul_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * tl.load(y_ptr + offsets, mask=mask), mask=mask)
"""
CAST = "return run(copy_kernel, x, torch.empty(x.shape, dtype=torch.{}))"

# name: (reference's forward, inputs, implementation's forward, kernels, error or "" for a PASS)
ROWS: dict[str, tuple[str, str, str, str, str]] = {
    "wrong_shape": ("return x * 1", X, "return run(copy_kernel, x).view(64, 8)", "", "StructureMismatch"),
    "one_axis": ("return x * 1", X, "return run(copy_kernel, x).view(-1)", "", "StructureMismatch"),
    "empty_of_another_shape": ("return x * 1", "[torch.randn(0, 64)]", "return torch.empty(0, 3, 5)", "", "StructureMismatch"),
    "empty_of_the_same_shape": ("return x * 1", "[torch.randn(0, 64)]", "return torch.empty_like(x)", "", ""),
    "float16_for_float32": ("return x * 1", "[torch.ones(8, 64)]", CAST.format("float16"), "", "StructureMismatch"),
    "int8_for_float32": ("return x * 1", "[torch.ones(8, 64)]", CAST.format("int8"), "", "StructureMismatch"),
    "string": ("return x * 1", X, 'run(copy_kernel, x)\nreturn "x"', "", "StructureMismatch"),
    "numpy_array": ("return x * 1", X, "return run(copy_kernel, x).numpy()", "", "BadOutput"),
    "list_of_two": ("return x * 1", X, "return [run(copy_kernel, x), run(copy_kernel, x)]", "", "StructureMismatch"),
    "list_of_one_is_the_tensor": ("return x * 1", X, "return [run(copy_kernel, x)]", "", ""),
    "wrong_float": ("return x * 1, 2.5", X, "return run(copy_kernel, x), 3.5", "", "PrecisionError"),
    "wrong_int": ("return x * 1, 2", X, "return run(copy_kernel, x), 3", "", "ValueMismatch"),
    "dict_of_outputs": (
        'return {"a": x * 1, "b": [x * 1]}',
        X,
        'return {"b": [run(copy_kernel, x)], "a": run(copy_kernel, x)}',
        "",
        "",
    ),
    "dict_with_another_key": ('return {"a": x * 1}', X, 'return {"b": run(copy_kernel, x)}', "", "StructureMismatch"),
    "dict_with_wrong_values": ('return {"a": x + 1}', X, 'return {"a": run(copy_kernel, x)}', "", "PrecisionError"),
    "nested_lists": ("return [x * 1, (x * 1, None)]", X, "return run(copy_kernel, x), [run(copy_kernel, x), None]", "", ""),
    "int64_off_by_one": ("return x + 1", "[torch.randint(99000, 100000, (64,))]", COPY, "", "PrecisionError"),
    "int64_exact": ("return x + 1", "[torch.randint(99000, 100000, (64,))]", "return add(x, 1)", SCALE, ""),
    "int32_beyond_float32": ("return x + 1", "[torch.full((4,), 2**24, dtype=torch.int32)]", COPY, "", "PrecisionError"),
    "uint8": ("return x.clone()", "[torch.randint(0, 256, (64,), dtype=torch.uint8)]", COPY, "", ""),
    "uint16": ("return x.clone()", "[torch.arange(64).to(torch.uint16)]", COPY, "", ""),
    "bool_right": ("return x.clone()", "[torch.rand(64) > 0.5]", COPY, "", ""),
    "bool_wrong": ("return ~x", "[torch.rand(64) > 0.5]", COPY, "", "PrecisionError"),
    "complex_imaginary_part": (
        "return torch.complex(x, x + 0.01)",
        X,
        "out = torch.empty(8, 64, 2)\nrun(copy_kernel, torch.stack([x, x], -1) if False else x.unsqueeze(-1).expand(8, 64, 2)"
        ".contiguous(), out)\nreturn torch.view_as_complex(out)",
        "",
        "PrecisionError",
    ),
    "complex_right": (
        "return torch.complex(x, x)",
        X,
        "out = torch.empty(8, 64, 2)\nrun(copy_kernel, x.unsqueeze(-1).expand(8, 64, 2).contiguous(), out)\n"
        "return torch.view_as_complex(out)",
        "",
        "",
    ),
    "float64_off_by_5e-5": ("return x + 5e-5", "[torch.randn(64, dtype=torch.float64)]", COPY, "", "PrecisionError"),
    "float64_right": ("return x + 5e-5", "[torch.randn(64, dtype=torch.float64) + 9]", "return add(x, 5e-5)", SCALE, ""),
    "tiny_as_zero": (
        "return x * 1e-9",
        X,
        "out = torch.zeros_like(x)\nreturn run(copy_kernel, torch.zeros_like(x), out)",
        "",
        "PrecisionError",
    ),
    "bfloat16_softmax_as_zero": (
        "return torch.softmax(x, -1)",
        "[torch.randn(1, 131072).bfloat16()]",
        "return run(copy_kernel, torch.zeros_like(x))",
        "",
        "PrecisionError",
    ),
    "bfloat16_a_tenth_wrong": (
        "return x * 1",
        "[torch.rand(1000).bfloat16() + 1]",
        "return run(tenth_kernel, x)",
        """
@triton.jit
def tenth_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, tl.where(offsets % 10 == 0, x * 1.13, x).to(tl.bfloat16), mask=mask)
""",
        "PrecisionError",
    ),
    "all_nan_reference": (
        "return x / 0 * 0",
        X,
        "return run(copy_kernel, torch.full_like(x, float('nan')))",
        "",
        "ReferenceDoubtful",
    ),
    "some_nan_in_place": ("return torch.where(x > 0, x, torch.nan)", X, COPY, "", "PrecisionError"),
    "nested_input_mutated": (
        "return xs[0][0] + 1",
        "[[torch.randn(64)]]",
        "add_kernel[(1,)](x[0], x[0], 64, 1.0, BLOCK=64)\nreturn x[0]",
        SCALE,
        "InputMutated",
    ),
    "reference_mutates_too": (
        "x.add_(1)\nreturn x * 1",
        X,
        "add_kernel[(1,)](x, x, 512, 1.0, BLOCK=512)\nreturn run(copy_kernel, x)",
        SCALE,
        "",
    ),
    "default_dtype_changed": (
        "return torch.ones(4) + x[0, :4]",
        X,
        "return add(x[0, :4].contiguous(), 1.0)",
        SCALE + "\ntorch.set_default_dtype(torch.float64)\n",
        "Forbidden",
    ),
    "non_contiguous_input": (
        "return x.t() + 1",
        "[torch.randn(8, 64).t()]",
        "return add(x.t(), 1.0)",
        SCALE,
        "",
    ),
    "other_arguments": (
        "return x + (xs[1] if xs[2] else 0) + len(xs[3])",
        '[torch.randn(8, 64), 2, True, "ab", None, 1 + 2j, [1, 2.5]]',
        "return add(x, float(xs[1] + len(xs[3])))",
        SCALE,
        "",
    ),
    "tensor_list": (
        "return xs[0][0] + xs[0][1]",
        "[[torch.randn(64), torch.randn(64)]]",
        "out = torch.empty_like(x[0])\nadd2_kernel[(1,)](x[0], x[1], out, 64, BLOCK=64)\nreturn out",
        ADD,
        "",
    ),
    "bare_tensor_inputs": ("return x + 1", "torch.randn(4, 8)", "return add(x, 1.0)", SCALE, ""),
    "expanded_input": ("return x + 1", "[torch.randn(8, 1).expand(8, 64)]", "return add(x.contiguous(), 1.0)", SCALE, ""),
    "sparse_input": ("return x * 1", "[torch.eye(4).to_sparse()]", COPY, "", "ReferenceFailed"),
    "sparse_on_the_way_to_an_input": ("return x * 1", "[torch.eye(4).to_sparse().to_dense() * torch.randn(4)]", COPY, "", ""),
    "sparse_in_the_reference": ("return (x * 1).to_sparse().to_dense()", X, COPY, "", ""),
    "sparse_output": ("return x * 1", X, "return run(copy_kernel, x).to_sparse()", "", "Forbidden"),
    "dict_inputs": ("return x + 1", '{"x": torch.randn(4)}', COPY, "", "ReferenceFailed"),
    "reference_raises": ('raise RuntimeError("no")', X, COPY, "", "ReferenceFailed"),
    "bfloat16_arithmetic": ("return x + 1", "[torch.randn(64).bfloat16()]", "return add(x, 1.0)", SCALE, ""),
    "cast_output_back": ("return (x + 1).half()", X, "return add(x, 1.0).half()", SCALE, ""),
}


@pytest.mark.parametrize("name", sorted(ROWS))
def test_row(name: str, place: Path) -> None:
    reference, inputs, forward, kernels, expected = ROWS[name]
    project = lab.folder(place, lab.task(reference, inputs), lab.impl(forward, kernels=kernels))

    result = lab.verify(project)

    assert lab.first_error(result) == expected, result["failures"] or result["error"]
    assert result["status"] == ("FAIL" if expected else "PASS")


def test_a_reference_that_raises_is_told_with_its_own_error_and_line(place: Path) -> None:
    """It was called `FrozenInstanceError: cannot assign to field '__traceback__'`, a fault of the worker's."""
    project = lab.folder(place, lab.task("return x + xs[1]", X), lab.impl(COPY))
    result = lab.verify(project)
    (failure,) = result["failures"]
    assert failure["error_type"] == "ReferenceFailed"
    assert "IndexError: tuple index out of range" in failure["error_msg"]
    assert "the worker failed" not in failure["error_msg"]


def test_dropout_copied_verbatim_passes(place: Path) -> None:
    """The generator is seeded anew before each forward, so both sides draw the same mask."""
    reference = "return x * torch.nn.functional.dropout(torch.ones(8, 64), 0.5)"
    forward = "out = torch.empty_like(x)\nmul_kernel[(1,)](x, self.mask, out, 512, BLOCK=512)\nreturn out"
    init = "self.mask = torch.ones(8, 64)"
    project = lab.folder(place, lab.task(reference, X), lab.impl(forward, kernels=DROPOUT, init=init))
    assert lab.first_error(lab.verify(project)) == "PrecisionError"  # a mask of ones is wrong, so the reference really drops


def test_weights_are_copied_by_name_past_an_extra_parameter(place: Path) -> None:
    reference = lab.task("return x + self.w", X, init="self.w = nn.Parameter(torch.randn(8, 64))")
    init = "self.extra = nn.Parameter(torch.randn(3))\nself.w = nn.Parameter(torch.randn(8, 64))"
    forward = "out = torch.empty_like(x)\nadd2_kernel[(1,)](x, self.w, out, 512, BLOCK=512)\nreturn out"
    result = lab.verify(lab.folder(place, reference, lab.impl(forward, kernels=ADD, init=init)))
    assert result["status"] == "PASS", result["failures"]
    assert result["cases"][0]["weights"] == "some by name"


GROUPS = """

def get_input_groups():
    {body}
"""


def test_generator_of_groups_is_streamed(place: Path) -> None:
    more = GROUPS.format(body="for n in (4, 8, 16):\n        yield [torch.randn(n)]")
    project = lab.folder(place, lab.task("return x + 1", X, more=more), lab.impl("return add(x, 1.0)", kernels=SCALE))
    result = lab.verify(project)
    assert (result["status"], result["total_cases"], result["passed_cases"]) == ("PASS", 3, 3)
    assert [case["input_desc"][0]["shape"] for case in result["cases"]] == [[4], [8], [16]]


def test_no_cases_at_all_is_no_pass(place: Path) -> None:
    project = lab.folder(place, lab.task("return x", X, more=GROUPS.format(body="return []")), lab.impl(COPY))
    result = lab.verify(project)
    assert (result["status"], result["total_cases"]) == ("FAIL", 0)


def test_a_crash_in_one_case_does_not_stop_the_others(place: Path) -> None:
    more = GROUPS.format(body="return [[torch.randn(n)] for n in (4, 8, 16)]")
    forward = "if x.shape[0] == 8:\n    raise ValueError('eight')\nreturn add(x, 1.0)"
    project = lab.folder(place, lab.task("return x + 1", X, more=more), lab.impl(forward, kernels=SCALE))
    result = lab.verify(project)
    assert (result["total_cases"], result["passed_cases"], result["failed_cases"]) == (3, 2, 1)
    failure = result["failures"][0]
    assert (failure["case_idx"], failure["error_type"]) == (2, "ValueError")
    assert "eight" in failure["error_msg"]
    assert failure["input_desc"] == [{"type": "tensor", "shape": [8], "dtype": "torch.float32"}]


DATA_TASK = """
    import json
    import os

    import torch
    import torch.nn as nn


    class Model(nn.Module):
        def forward(self, x):
            return x + 1


    def get_input_groups():
        path = os.path.join(os.path.dirname(__file__), {name})
        with open(path) as lines:
            return [[torch.randn(json.loads(line)["inputs"][0]["shape"])] for line in lines]


    def get_init_inputs():
        return []
"""


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('open(__file__.replace("expo_torch.py", "3_Relu.json"))', "{place}/3_Relu.json'; copy the task's data file there"),
        ("import einops_of_another_machine", "No module named 'einops_of_another_machine'; the task needs it: install it"),
    ],
)
def test_what_a_task_lacks_is_named_with_its_remedy(line: str, words: str, place: Path) -> None:
    result = lab.verify(lab.folder(place, f"{line}\n" + lab.task("return x", X), lab.impl(COPY)))
    assert result["status"] == "ERROR"
    assert words.format(place=place) in result["error"]


@pytest.mark.parametrize(
    ("asked", "there"),
    [
        ('"3_Relu.json"', "3_Relu.json"),
        ('"3_Relu.json"', "expo_torch.json"),
        ('os.path.basename(__file__).replace(".py", ".json")', "3_Relu.json"),
        ('os.path.basename(__file__).replace(".py", ".json")', "expo_torch.json"),
    ],
)
def test_data_files_under_both_naming_conventions(asked: str, there: str, place: Path) -> None:
    project = lab.folder(place, DATA_TASK.replace("{name}", asked), lab.impl("return add(x, 1.0)", kernels=SCALE))
    lines = [json.dumps({"inputs": [{"name": "x", "type": "tensor", "shape": [n]}]}) for n in (4, 8)]
    (place / there).write_text("\n".join(lines) + "\n", encoding="utf-8")
    result = lab.verify(project, seeds=1)
    assert (result["status"], result["total_cases"]) == ("PASS", 2), result["error"] or result["failures"]


@pytest.mark.parametrize(
    ("triton", "numpy", "runs"), [("3.6.0", "2.5.2", False), ("3.7.1", "2.5.2", True), ("3.6.0", "2.4.6", True)]
)
def test_an_interpreter_that_cannot_count_is_told_before_a_kernel_is_blamed(
    triton: str, numpy: str, runs: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, version in (("triton", triton), ("numpy", numpy)):
        told = tmp_path / f"{name}-{version}.dist-info" / "METADATA"
        told.parent.mkdir()
        told.write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    if runs:
        assert choose("interpret").target is Target.INTERPRET
        return
    with pytest.raises(InfraError, match="NumPy 2.5 or later") as raised:
        choose("interpret")
    assert "numpy<2.5" in str(raised.value.remedy)
