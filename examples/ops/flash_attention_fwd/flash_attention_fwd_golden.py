"""Torch reference of flash_attention_fwd.

Golden function inventory (every operation, in order; BH heads, S positions, D head size)
 1. widen q, k, v   3 x [BH, S, D] dtype       -> 3 x [BH, S, D] float32 (float64 stays)
 2. transpose k     [BH, S, D]                 -> [BH, D, S]
 3. matmul q k^T    [BH, S, D] x [BH, D, S]    -> [BH, S, S]
 4. scale           [BH, S, S] / sqrt(D)       -> [BH, S, S]
 5. causal mask     [BH, S, S], key > query    -> [BH, S, S]   (causal only)
 6. row maximum     [BH, S, S]                 -> [BH, S, 1]
 7. subtract        [BH, S, S] - [BH, S, 1]    -> [BH, S, S]
 8. exp             [BH, S, S]                 -> [BH, S, S]
 9. row sum         [BH, S, S]                 -> [BH, S, 1]
10. matmul P v      [BH, S, S] x [BH, S, D]    -> [BH, S, D]
11. divide          [BH, S, D] / [BH, S, 1]    -> [BH, S, D]
12. narrow          [BH, S, D] float32         -> [BH, S, D] dtype
13. log of the sum  [BH, S, 1]                 -> [BH, S, 1]
14. add the maximum [BH, S, 1]                 -> [BH, S, 1]
15. drop an axis    [BH, S, 1]                 -> [BH, S] float32 (float64 stays)
"""

import math

import torch


def flash_attention_fwd_golden(q, k, v, causal):
    """Return (out, lse) of scaled dot-product attention, without tiling.

    q, k, v: [BH, S, D] float32, float16, bfloat16 or float64. causal: bool; True hides keys after the query.
    Returns out [BH, S, D] of q's dtype and lse [BH, S], float32 (float64 for float64 inputs).
    Accumulates in float32, in float64 for float64 inputs.
    Source of the formula: Dao et al., "FlashAttention", 2022, sections 2.2 and 3.1.
    """
    wide = torch.promote_types(q.dtype, torch.float32)
    k_transposed = k.to(wide).transpose(1, 2)  # [BH, D, S]
    scores = torch.matmul(q.to(wide), k_transposed) / math.sqrt(q.shape[-1])  # [BH, S, S]
    if causal:
        length = q.shape[1]
        position = torch.arange(length, device=q.device)
        future = position.unsqueeze(0) > position.unsqueeze(1)  # [S, S]
        scores = scores.masked_fill(future, float("-inf"))
    row_max = scores.amax(dim=-1, keepdim=True)  # [BH, S, 1]
    weights = torch.exp(scores - row_max)  # [BH, S, S]
    row_sum = weights.sum(dim=-1, keepdim=True)  # [BH, S, 1]
    out = torch.matmul(weights, v.to(wide)) / row_sum  # [BH, S, D]
    lse = (row_max + torch.log(row_sum)).squeeze(-1)  # [BH, S]
    return out.to(q.dtype), lse


def _make_inputs(dtype=torch.float32, heads=2, length=257, head_dim=64, causal=True, seed=42):
    """Return (q, k, v, causal) of a ragged shape on the CPU."""
    generator = torch.Generator().manual_seed(seed)
    q, k, v = (torch.randn((heads, length, head_dim), generator=generator).to(dtype) for _ in range(3))
    return q, k, v, causal


def _validate():
    """Check the golden against torch's own attention, in three shapes, three dtypes, both masks."""
    for length, head_dim in ((1, 16), (129, 32), (257, 64)):
        for dtype, tolerance in ((torch.float32, 1e-5), (torch.float16, 1e-3), (torch.bfloat16, 1e-2)):
            for causal in (False, True):
                q, k, v, _ = _make_inputs(dtype, 2, length, head_dim, causal)
                wide = (q.double(), k.double(), v.double())
                reference = torch.nn.functional.scaled_dot_product_attention(*wide, is_causal=causal)
                out, lse = flash_attention_fwd_golden(q, k, v, causal)
                torch.testing.assert_close(out.double(), reference, rtol=tolerance, atol=tolerance)
                scores = torch.matmul(wide[0], wide[1].transpose(1, 2)) / math.sqrt(head_dim)
                if causal:
                    scores = scores + torch.full((length, length), float("-inf"), dtype=torch.float64).triu(1)
                torch.testing.assert_close(lse.double(), scores.logsumexp(dim=-1), rtol=1e-5, atol=1e-5)


if __name__ == "__main__":
    _validate()
    print("flash_attention_fwd_golden agrees with torch's scaled_dot_product_attention")
