"""Hidden golden: attention with a window, a soft cap and a sink."""

import torch


def window_sink_attn_golden(q, k, v, sink, scale, cap, window):
    """Return [H, T, D]; q, k, v [H, T, D], sink [H]; float32, float64 for float64."""
    scores = cap * torch.tanh(torch.matmul(q, k.transpose(-1, -2)) * (scale / cap))
    places = torch.arange(q.shape[1], device=q.device)
    gap = places.unsqueeze(1) - places.unsqueeze(0)
    scores = scores.masked_fill((gap < 0) | (gap >= window), float("-inf"))
    ground = sink.to(q.dtype).reshape(-1, 1, 1)
    largest = torch.maximum(scores.amax(-1, keepdim=True), ground)
    weights = torch.exp(scores - largest)
    return torch.matmul(weights, v) / (weights.sum(-1, keepdim=True) + torch.exp(ground - largest))


def independent(q, k, v, sink, scale, cap, window):
    """The same as a softmax over the window and one key more, whose value is zero."""
    out = torch.zeros_like(q)
    for h in range(q.shape[0]):
        for t in range(q.shape[1]):
            first = max(0, t - window + 1)
            scores = cap * torch.tanh(k[h, first : t + 1] @ q[h, t] * scale / cap)
            weights = torch.softmax(torch.cat([scores, sink[h : h + 1].to(q.dtype)]), dim=0)[:-1]
            out[h, t] = weights @ v[h, first : t + 1]
    return out
