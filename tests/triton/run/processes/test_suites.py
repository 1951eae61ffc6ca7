"""Interfaces that tasks of public suites have: how they give arguments, what their models hold, which device they name."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.triton import lab

KERNELS = """
@triton.jit
def scale_kernel(x_ptr, h_ptr, out_ptr, n, by, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask) * by + tl.load(h_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x, mask=mask)


@triton.jit
def tanh_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, libdevice.tanh(tl.load(x_ptr + offsets, mask=mask)), mask=mask)


def scaled(x, held, by):
    out = torch.empty_like(x)
    scale_kernel[(triton.cdiv(x.numel(), 64),)](x, held, out, x.numel(), by, BLOCK=64)
    return out
"""
SCALED = "return x * self.by + self.held"
HELD = """
    self.by = by
    self.held = {}
"""
PLAIN = "torch.randn(4, 8)"
X = "[torch.randn(4, 8)]"

# name: (forward, inputs, what get_init_inputs returns, constructor, the implementation's forward, error or "")
ROWS = {
    "keywords_beside_positional": (SCALED, X, "[[], {'by': 3.0}]", PLAIN, "return scaled(x, self.held, self.by)", ""),
    "keywords_alone": (SCALED, X, "{'by': 3.0}", PLAIN, "return scaled(x, self.held, self.by)", ""),
    "both_empty": (SCALED, X, "[[], {}]", PLAIN, "return scaled(x, self.held, self.by)", ""),
    "inputs_by_name": (SCALED, "{'x': torch.randn(4, 8)}", "[3.0]", PLAIN, "return scaled(x, self.held, self.by)", ""),
    "inputs_of_another_name": (SCALED, "{'y': torch.randn(4, 8)}", "[3.0]", PLAIN, "return x", "ReferenceFailed"),
    "held_in_a_list": (
        "return x * self.by + self.held[0]", X, "[3.0]", f"[{PLAIN}]", "return scaled(x, self.held[0], self.by)", "",
    ),
    "state": (
        "self.held = x * self.by + self.held\nreturn self.held", X, "[0.5]", PLAIN,
        "self.held = scaled(x, self.held, self.by)\nreturn self.held", "",
    ),
    "state_forgotten": (
        "self.held = x * self.by + self.held\nreturn self.held", X, "[0.5]", PLAIN, "return scaled(x, self.held, self.by)",
        "PrecisionError",
    ),
    "output_kept": (
        "return x * 2", X, "[]", "None",
        "if self.held is None:\n    self.held = run(copy_kernel, scaled(x, x, 1.0))\nreturn run(copy_kernel, self.held)",
        "PrecisionError",
    ),
    "answer_from_the_constructor": ("return x * 2", X, "[]", "None", "return run(copy_kernel, self.answer)", "PrecisionError"),
    "cuda": (
        "return torch.tanh(x)", "[torch.randn(4, 8).cuda()]", "[]", "None",
        'assert x.is_cuda\nwith torch.cuda.device(x.device):\n'
        '    return run(tanh_kernel, x, torch.empty(4, 8, device="cuda"))',
        "",
    ),
    "cuda_by_its_device": (
        "return torch.tanh(x)", X, "[]", "None",
        'assert x.device.type == "cuda" and "cuda" in str(x.device) and not x.is_cpu\n'
        'assert x.device == torch.device("cuda", x.device.index)\n'
        'with torch.cuda._DeviceGuard(x.device.index), torch.cuda.device_of(x):\n'
        '    return run(tanh_kernel, x.to(x.device), torch.empty(4, 8, device=x.device))',
        "",
    ),
    "asked_of_the_driver": (
        "return torch.tanh(x)", X, "[]", "None",
        'n = triton.runtime.driver.active.utils.get_device_properties(torch.npu.current_device())["num_vectorcore"]\n'
        "return run(tanh_kernel, x.expand(max(1, n) * 0 + 4, 8))", "",
    ),
}  # fmt: skip
ANSWER = "    self.answer = torch.randn(4, 8, generator=torch.Generator().manual_seed(torch.initial_seed())) * 2\n"


@pytest.mark.parametrize("name", sorted(ROWS))
@pytest.mark.slow
def test_row(name: str, place: Path) -> None:
    forward, inputs, init, held, own, expected = ROWS[name]
    reference = lab.task(forward, inputs, init=HELD.format(held)).replace("*xs):\n        x = xs[0]", "x):")
    reference = reference.replace("(self):", "(self, by=1.0):").replace("    return []\n", f"    return {init}\n")
    text = lab.impl(own, init=HELD.format(held) + ANSWER, kernels=KERNELS).replace("(self):", "(self, by=1.0):")
    text = "from triton.language.extra import libdevice\n" + text.replace("*xs):\n        x = xs[0]", "x):")

    result = lab.verify(lab.folder(place, reference, text))

    assert lab.first_error(result) == expected, result["failures"] or result["error"]
    assert result["status"] == ("FAIL" if expected else "PASS")
