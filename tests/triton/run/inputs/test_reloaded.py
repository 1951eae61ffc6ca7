"""Both models are called with other parameters before the judged call, and get their own ones again."""

from __future__ import annotations

import torch
from torch import nn

from pypto_op.triton.run.inputs import reloaded
from pypto_op.triton.run.processes import model as models


def test_other_parameters_hold_meanwhile() -> None:
    model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))
    model.append(model[0])
    names, weights = reloaded.names(model), models.weights_of(model)
    kept = {name: value.detach().clone() for name, value in weights.items()}
    assert "0.weight" in names and "2.weight" in names and "1.running_mean" not in names
    with reloaded.others(weights, [*names, "of another model"]):
        assert not torch.equal(model[0].weight, kept["0.weight"])
        assert torch.allclose(model[1].weight, torch.full((3,), 0.75))
        other = model[0].weight.detach().clone()
    assert all(torch.equal(weights[name], value) for name, value in kept.items())
    with reloaded.others(weights, names):
        assert torch.equal(model[2].weight, other)


def test_what_is_no_module_has_none() -> None:
    assert reloaded.names(lambda x: x) == []
