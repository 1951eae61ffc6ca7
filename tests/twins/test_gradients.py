"""A golden may be a gradient that torch takes: the sums inside torch's backward operators run in other orders, too."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name

from pypto_op.twins.reordering import Reordered

FORWARD: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "layer_norm": lambda x: F.layer_norm(x, x.shape[-1:]),
    "group_norm": lambda x: F.group_norm(x, 2),
    "batch_norm": lambda x: F.batch_norm(x, None, None, training=True),
    "softmax": lambda x: torch.softmax(x, -1),
    "log_softmax": lambda x: torch.log_softmax(x, -1),
    "rms_norm": lambda x: F.rms_norm(x, x.shape[-1:]),
}


@pytest.mark.parametrize("name", FORWARD)
def test_the_sums_of_a_gradient_have_another_order(name: str) -> None:
    generator = torch.Generator().manual_seed(3)
    x, above = torch.randn(2, 130, 96, generator=generator).unbind()
    x.requires_grad_()
    y = FORWARD[name](x)
    (plain,) = torch.autograd.grad(y, x, above, retain_graph=True)
    with Reordered("sequential"):  # the backward alone: its operators hide the sums
        (other,) = torch.autograd.grad(y, x, above)
    assert not torch.equal(other, plain)
    assert torch.allclose(other, plain, rtol=1e-4, atol=1e-5)
