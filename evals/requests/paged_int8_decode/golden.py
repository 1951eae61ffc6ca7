"""Hidden golden: attention of one token per sequence over a paged int8 cache."""

import torch


def paged_attn_golden(q, k_cache, v_cache, k_scale, v_scale, block_table, lengths, scale):
    """Return [B, HQ, D] of q's dtype; float32 inside, float64 for float64."""
    wide = torch.promote_types(q.dtype, torch.float32)
    batches, query_heads, width = q.shape
    heads, table = k_cache.shape[2], block_table.to(torch.int64)
    k = (k_cache[table].flatten(1, 2).to(wide) * k_scale.to(wide).reshape(-1, 1)).transpose(1, 2)
    v = (v_cache[table].flatten(1, 2).to(wide) * v_scale.to(wide).reshape(-1, 1)).transpose(1, 2)
    scores = torch.matmul(q.to(wide).reshape(batches, heads, -1, width), k.transpose(-1, -2)) * scale
    behind = torch.arange(k.shape[2], device=q.device) >= lengths.to(torch.int64).reshape(-1, 1, 1, 1)
    weights = torch.softmax(scores.masked_fill(behind, float("-inf")), dim=-1)
    return torch.matmul(weights, v).reshape(batches, query_heads, width).to(q.dtype)


def independent(q, k_cache, v_cache, k_scale, v_scale, block_table, lengths, scale):
    """The same, token by token, over the tokens that count."""
    out, share = torch.zeros_like(q), q.shape[1] // k_cache.shape[2]
    page = k_cache.shape[1]
    for b in range(q.shape[0]):
        for h in range(q.shape[1]):
            at = [(int(block_table[b, t // page]), t % page) for t in range(int(lengths[b]))]
            k = torch.stack([k_cache[p, r, h // share].to(q.dtype) * k_scale[h // share] for p, r in at])
            v = torch.stack([v_cache[p, r, h // share].to(q.dtype) * v_scale[h // share] for p, r in at])
            out[b, h] = torch.softmax(k @ q[b, h] * scale, dim=0) @ v
    return out
