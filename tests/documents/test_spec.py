"""SPEC.md: front matter, its meaning, its sections."""

import pytest

from pypto_op.documents import spec
from pypto_op.errors import ContractError

FRONT = {
    "schema_version": '"1.0"',
    "op_name": "rmsnorm",
    "supported_dtypes": "[fp32, bf16]",
    "p0_shapes": "[{T: 128, H: 256}]",
    "tolerance": "{atol: 1e-6, rtol: 1.6e-2}",
    "dynamic_axes": "[T]",
    "dynamic_axes_ranges": "{T: [1, 4096]}",
}
ENGLISH = """# rmsnorm
## Formula
y = x / rms(x)
## Inputs and outputs
shape and dtype
## Precision
atol, rtol
"""
CHINESE = """# rmsnorm
## 1.4 数学公式
$$y = x$$
## 5. 输入输出规格
shape 与 dtype
## 7. 精度要求
atol / rtol
"""


def write(tmp_path, body=ENGLISH, **changes):
    front = {**FRONT, **changes}
    lines = [f"{key}: {value}" for key, value in front.items() if value is not None]
    path = tmp_path / "SPEC.md"
    path.write_text("---\n" + "\n".join(lines) + "\n---\n" + body)
    return path


def test_load(tmp_path):
    document = spec.load(write(tmp_path))
    assert document.op_name == "rmsnorm"
    assert document.supported_dtypes == ("float32", "bfloat16")
    assert document.p0_shapes == ({"T": 128, "H": 256},)
    assert document.axis_ranges == {"T": (1, 4096)}
    assert document.tolerance_for("float32") == (1e-6, 1.6e-2)
    assert document.policy().id == "allclose@1"


@pytest.mark.parametrize("body", [ENGLISH, CHINESE])
def test_english_and_chinese_documents_are_complete(tmp_path, body):
    assert spec.check(write(tmp_path, body)) == []


DTYPES = "\n## 6. Dtypes\n| input dtype | accumulation dtype | output dtype |\n|---|---|---|\n| bf16 | float32 | {} |\n"


@pytest.mark.parametrize(
    ("rtol", "output", "named"),
    [("1e-5", None, True), ("1e-5", "bfloat16", True), ("1e-5", "fp32", False), ("7.8125e-3", None, False), ("7e-3", None, True)],
)
def test_a_tolerance_finer_than_the_output_s_rounding_is_told_with_the_remedy(tmp_path, rtol, output, named):
    body = ENGLISH + (DTYPES.format(output) if output else "")
    found = [finding.one_line() for finding in spec.check(write(tmp_path, body, tolerance=f"{{atol: 1e-6, rtol: {rtol}}}"))]
    assert bool(found) == named
    assert all("tolerance.bfloat16" in line and "write rtol 1.6e-02" in line and "\n" not in line for line in found)


@pytest.mark.parametrize(
    ("tolerance", "dtype", "numbers"),
    [
        ("{atol: 1e-3, rtol: 1e-3}", "float16", {"atol": 1e-3, "rtol": 1e-3}),
        ("{standard: {atol: 1e-3, rtol: 1e-2}}", "float32", {"atol": 1e-3, "rtol": 1e-2}),
        ("{mode: standard, atol: 1e-3, rtol: 1e-2}", "float32", {"atol": 1e-3, "rtol": 1e-2}),
        (
            "{float32: {atol: 0, rtol: 1e-5}, bf16: {atol: 1e-2, rtol: 1e-2}}",
            "float64",  # of an output only: as loose as the loosest that is named
            {"atol": 1e-2, "rtol": 1e-2},
        ),
        (
            "{float32: {atol: 0, rtol: 1e-5}, bf16: {atol: 1e-2, rtol: 1e-2}}",
            "bfloat16",
            {"atol": 1e-2, "rtol": 1e-2},
        ),
        ("{policy: mere_mare@1}", "float16", {"clamp": 2**-10, "mere": 2**-10, "mare": 10 * 2**-10}),
        (
            "{mare_matrix: {fp16: 0.02}, mere_matrix: {fp16: 0.002}}",
            "float16",
            {"clamp": 2**-10, "mere": 0.002, "mare": 0.02},
        ),
        ("{mode: custom, custom: {rmse_matrix: {fp32: 0.5}}}", "float32", {"rmse": 0.5}),
    ],
)
def test_every_form_of_tolerance_becomes_a_policy(tmp_path, tolerance, dtype, numbers):
    found = spec.load(write(tmp_path, tolerance=tolerance)).policy().for_dtype(dtype)
    assert numbers.items() <= found.items()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"tolerance": "{mode: standard}"}, "tolerance: gives no tolerance"),
        ({"tolerance": "{policy: allclose@7}"}, "allclose@7"),
        ({"tolerance": "{policy: mere_mare@1, atol: 1, rtol: 1}"}, "takes no atol"),
        ({"tolerance": "{atol: 1, rtol: 1, mare_matrix: {fp16: 1}}"}, "stand alone"),
        ({"tolerance": "{float32: {atol: 0, rtol: 0}}"}, "tolerance.bfloat16: is missing"),
        ({"tolerance": "TODO"}, "tolerance: TODO is left"),
        ({"supported_dtypes": "[fp32, float32]"}, "supported_dtypes: names float32 twice"),
        ({"dynamic_axes_ranges": "{S: [1, 2]}"}, "dynamic_axes_ranges.S: S is not in dynamic_axes"),
        ({"dynamic_axes_ranges": "{T: [9, 2]}"}, "begins at 9 and ends at 2"),
        ({"dynamic_axes_ranges": "{T: [1, 100]}"}, "p0_shapes[0].T: 128 is outside its range 1..100"),
        ({"tolerance": None}, "the key 'tolerance' is missing"),
    ],
)
def test_faults_are_told_with_their_place(tmp_path, changes, words):
    path = write(tmp_path, **changes)
    with pytest.raises(ContractError) as caught:
        spec.load(path)
    assert words in caught.value.one_line() and str(path) in caught.value.one_line()
    assert any(words.split(": ")[-1] in finding.one_line() for finding in spec.check(path))


def test_check_names_missing_sections_other_operators_and_todos(tmp_path):
    folder = tmp_path / "custom" / "relu"
    folder.mkdir(parents=True)
    path = write(folder, "# x\n## Formula\nTODO\n")
    lines = [finding.one_line() for finding in spec.check(path)]
    assert any("op_name: 'rmsnorm' is not the name of the directory, 'relu'" in line for line in lines)
    assert any("TODO is left" in line for line in lines)
    assert any("precision is missing" in line for line in lines)
    assert any("does not mention the operator" in line for line in lines)
