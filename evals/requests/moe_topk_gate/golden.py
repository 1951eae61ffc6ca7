"""Hidden golden: the gate of a mixture of experts."""

import torch


def moe_gate_golden(logits, k, route_factor):
    """Return (weights [T, k], index [T, k] int32) of the k most probable experts, largest first."""
    chosen, index = torch.topk(torch.softmax(logits, dim=-1), k, dim=-1)
    return chosen / chosen.sum(-1, keepdim=True) * route_factor, index.to(torch.int32)


def independent(logits, k, route_factor):
    """The same by sorting: the softmax of the chosen logits alone."""
    order = torch.argsort(logits, dim=-1, descending=True)[:, :k]
    return torch.softmax(torch.gather(logits, 1, order), dim=-1) * route_factor, order.to(torch.int32)
