"""Torch reference of flash_attention_bwd.

Golden function inventory (every operation, in order; BH heads, S positions, D head size)
 1. widen q, k, v, out, dout 5 x [BH, S, D] dtype   -> 5 x [BH, S, D] float32 (float64 stays)
 2. matmul q k^T    [BH, S, D] x [BH, D, S]         -> [BH, S, S]
 3. scale           [BH, S, S] / sqrt(D)            -> [BH, S, S]
 4. causal mask     [BH, S, S], key > query         -> [BH, S, S]   (causal only)
 5. exp(s - lse)    [BH, S, S] - [BH, S, 1]         -> [BH, S, S]
 6. matmul P^T dout [BH, S, S] x [BH, S, D]         -> dv [BH, S, D]
 7. row dot         sum of dout * out over D        -> [BH, S, 1]
 8. matmul dout v^T [BH, S, D] x [BH, D, S]         -> [BH, S, S]
 9. score gradient  P (dP - dot) / sqrt(D)          -> ds [BH, S, S]
10. matmul ds k     [BH, S, S] x [BH, S, D]         -> dq [BH, S, D]
11. matmul ds^T q   [BH, S, S] x [BH, S, D]         -> dk [BH, S, D]
12. narrow          3 x [BH, S, D] float32          -> 3 x [BH, S, D] dtype
"""

import math

import torch


def flash_attention_bwd_golden(q, k, v, out, lse, dout, causal):
    """Return (dq, dk, dv), the gradients of scaled dot-product attention, without tiling.

    q, k, v, out, dout: [BH, S, D] float32, float16, bfloat16 or float64; out and lse [BH, S] are what the
    forward pass returned for q, k, v; dout is the gradient of out. causal: bool, as in the forward pass.
    Returns dq, dk, dv [BH, S, D] of q's dtype. Accumulates in float32, in float64 for float64 inputs.
    Source of the formula: Dao et al., "FlashAttention", 2022, appendix B.2.
    """
    wide = torch.promote_types(q.dtype, torch.float32)
    q_wide, k_wide, v_wide = q.to(wide), k.to(wide), v.to(wide)
    out_wide, dout_wide = out.to(wide), dout.to(wide)
    scale = 1.0 / math.sqrt(q.shape[-1])
    scores = torch.matmul(q_wide, k_wide.transpose(1, 2)) * scale  # [BH, S, S]
    if causal:
        position = torch.arange(q.shape[1], device=q.device)
        future = position.unsqueeze(0) > position.unsqueeze(1)  # [S, S]
        scores = scores.masked_fill(future, float("-inf"))
    weights = torch.exp(scores - lse.to(wide).unsqueeze(-1))  # [BH, S, S]
    dv = torch.matmul(weights.transpose(1, 2), dout_wide)  # [BH, S, D]
    row_dot = (dout_wide * out_wide).sum(dim=-1, keepdim=True)  # [BH, S, 1]
    dweights = torch.matmul(dout_wide, v_wide.transpose(1, 2))  # [BH, S, S]
    ds = weights * (dweights - row_dot) * scale  # [BH, S, S], the gradient of q k^T
    dq = torch.matmul(ds, k_wide)  # [BH, S, D]
    dk = torch.matmul(ds.transpose(1, 2), q_wide)  # [BH, S, D]
    return dq.to(q.dtype), dk.to(q.dtype), dv.to(q.dtype)


def _make_inputs(dtype=torch.float32, heads=2, length=257, head_dim=64, causal=True, seed=42):
    """Return (q, k, v, out, lse, dout, causal) of a ragged shape on the CPU."""
    generator = torch.Generator().manual_seed(seed)
    q, k, v, dout = (torch.randn((heads, length, head_dim), generator=generator).to(dtype) for _ in range(4))
    scores = torch.matmul(q.double(), k.double().transpose(1, 2)) / math.sqrt(head_dim)
    if causal:
        scores = scores + torch.full((length, length), float("-inf"), dtype=torch.float64).triu(1)
    out = torch.matmul(scores.softmax(dim=-1), v.double())
    return q, k, v, out.to(dtype), scores.logsumexp(dim=-1).to(torch.float32), dout, causal


def _validate():
    """Check the golden against autograd through torch's own attention."""
    for length, head_dim in ((1, 16), (129, 32), (257, 64)):
        for dtype, tolerance in ((torch.float32, 1e-4), (torch.float16, 5e-3), (torch.bfloat16, 4e-2)):
            for causal in (False, True):
                q, k, v, out, lse, dout, _ = _make_inputs(dtype, 2, length, head_dim, causal)
                leaves = [tensor.double().requires_grad_() for tensor in (q, k, v)]
                attention = torch.nn.functional.scaled_dot_product_attention(*leaves, is_causal=causal)
                attention.backward(dout.double())
                gradients = flash_attention_bwd_golden(q, k, v, out, lse, dout, causal)
                for gradient, leaf in zip(gradients, leaves):
                    torch.testing.assert_close(gradient.double(), leaf.grad, rtol=tolerance, atol=tolerance)


if __name__ == "__main__":
    _validate()
    print("flash_attention_bwd_golden agrees with torch's autograd through scaled_dot_product_attention")
