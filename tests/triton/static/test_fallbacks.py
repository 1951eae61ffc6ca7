"""What a wrapper does with a tensor that lies on no device: no judged call comes there, so PyTorch may compute there."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.triton import lab

from pypto_op.triton.static.policy import load_policy
from pypto_op.triton.static.validate import read_file

FILE = """
@triton.jit
def exponential(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.exp(tl.load(x_ptr + i, mask=i < n)), mask=i < n)


def launched(x):
    out = torch.empty_like(x)
    exponential[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)
    return out


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor):
        if CONDITION:
            return torch.exp(x)  # otherwise
        return launched(x)
"""


@pytest.mark.parametrize(
    ("condition", "right"),
    [
        ("not x.is_cuda", True),
        ("x.is_cpu", True),
        ("x.device.type != 'cuda'", True),
        ("x.device.type == 'cpu' or x.numel() < 0 and not x.contiguous().is_cuda", False),  # whether it is empty nobody knows
        ("x.is_cuda", False),
        ("not x.is_npu", False),
        ("x.device.type == 'cuda'", False),
        ("not torch.empty(1).is_cuda", False),
        ("(y := x.to('cpu')).is_cpu", False),
        ("not x.is_cuda or x.shape[0] > 4", False),
        ("isinstance(x, (list, tuple))", True),
        ("isinstance(x, float)", True),
        ("isinstance(x.contiguous().view(-1), list)", True),
        ("not isinstance(x, list)", False),
        ("isinstance(x, (list, torch.Tensor))", False),
        ("isinstance(torch.empty_like(x), list)", False),
    ],
)
def test_pytorch_may_compute_where_an_input_lies_on_no_device(condition: str, right: bool, tmp_path: Path) -> None:
    place = tmp_path / "impl.py"
    place.write_text(lab.IMPORTS + FILE.replace("CONDITION", condition), encoding="utf-8")
    reading = read_file(place, load_policy(None))
    assert reading.result["valid"] is right
    lines = place.read_text(encoding="utf-8").splitlines()
    fallback = next(number for number, line in enumerate(lines, 1) if "# otherwise" in line)
    assert not right or fallback not in {line for _, line, _ in reading.executed}  # so a call that comes there is refused


@pytest.mark.parametrize(
    ("sizes", "right"),
    [
        ("n = int(torch.prod(torch.tensor(x.shape[1:])).item())", True),
        ("n = torch.tensor(x.shape[:-1]).prod().item()", True),
        ("n = max(torch.tensor([3, 4]).tolist())", True),
        ("n = int(torch.prod(torch.tensor(x.shape[1:])))", True),
        ("slope = torch.tensor(0.25, dtype=x.dtype, device=x.device).item()", True),
        ("slope = float(torch.tensor(0.25))", True),
        ("n = int(torch.prod(x).item())", False),
        ("n = float(x[0])", False),
        ("t = torch.tensor([1.0, 2.0]); t.copy_(x[:2]); n = t.sum().item()", False),
        ("t = torch.tensor([1.0]); exponential[(1,)](x, t, 1, BLOCK=64); n = t.sum().item()", False),
        ("n = torch.tensor([x[0].item()]).sum().item()", False),
        ("n = torch.empty(4, dtype=torch.int64).sum().item()", False),  # what memory held before nobody knows
        ("y = torch.exp(torch.tensor([1.0, 2.0]))", False),
    ],
)
def test_numbers_of_the_host_may_go_through_a_tensor(sizes: str, right: bool, tmp_path: Path) -> None:
    text = FILE.replace("if CONDITION:", "if False:").replace("return launched(x)", f"{sizes}\n        return launched(x)")
    (tmp_path / "impl.py").write_text(lab.IMPORTS + text, encoding="utf-8")
    assert read_file(tmp_path / "impl.py", load_policy(None)).result["valid"] is right
