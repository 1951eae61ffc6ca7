"""Torch reference of gated_delta_rule_bwd.

Golden function inventory (every operation, in order; BH heads, T tokens, K key size, V value size; per token)
 1. widen            q, k, v, dout [BH, T, *] dtype    -> float32 (float64 stays)
 2. decay            exp of g [BH]                     -> [BH, 1, 1]
 3. decayed state    state decay                       -> [BH, K, V]
 4. read             k^T state                         -> [BH, V]
 5. error            v - read                          -> [BH, V]
 6. write            beta error                        -> u [BH, V]
 7. next state       state + k u^T                     -> [BH, K, V]
 8. dstate           + scale q dout^T                  -> [BH, K, V]   (8 to 16: last token first)
 9. dq               scale state dout                  -> [BH, K]
10. du               dstate^T k                        -> [BH, V]
11. dbeta            sum of du error                   -> [BH]
12. dv               beta du                           -> [BH, V]
13. dk               dstate u - decayed dv             -> [BH, K]
14. dstate           - k dv^T                          -> [BH, K, V]
15. dg               sum of dstate decayed             -> [BH]
16. dstate           dstate decay                      -> [BH, K, V]
17. narrow           dq, dk, dv float32                -> dtype
"""

import math

import torch


def gated_delta_rule_bwd_golden(q, k, v, g, beta, dout):
    """Return (dq, dk, dv, dg, dbeta), the gradients of the gated delta rule, token by token.

    The forward pass begins with a state of zeros [BH, K, V]. Each token scales it by exp(g), replaces what it
    reads at k by beta v + (1 - beta) of it, and returns out = state^T q / sqrt(K).
    q, k: [BH, T, K]. v, dout: [BH, T, V]. float32, float16, bfloat16 or float64. g, beta: [BH, T] float32
    (or float64); g <= 0. dout is the gradient of out. Returns dq, dk [BH, T, K] and dv [BH, T, V] of q's
    dtype, dg and dbeta [BH, T] float32. Accumulates in float32, in float64 for float64 inputs.
    Source of the formula: Yang, Kautz, Hatamizadeh, "Gated Delta Networks", 2024, section 3, differentiated.
    """
    wide = torch.promote_types(q.dtype, torch.float32)
    q_wide, k_wide, v_wide, dout_wide = q.to(wide), k.to(wide), v.to(wide), dout.to(wide)
    heads, tokens, key_size = q.shape
    scale = 1.0 / math.sqrt(key_size)
    decay = torch.exp(g.to(wide)).reshape(heads, tokens, 1, 1)
    state = torch.zeros((heads, key_size, v.shape[2]), dtype=wide, device=q.device)
    kept = []
    for t in range(tokens):
        decayed = state * decay[:, t]  # [BH, K, V]
        error = v_wide[:, t] - torch.einsum("bk,bkv->bv", k_wide[:, t], decayed)
        u = beta[:, t, None].to(wide) * error  # [BH, V]
        state = decayed + k_wide[:, t, :, None] * u[:, None, :]  # [BH, K, V]
        kept.append((decayed, error, u, state))
    dstate = torch.zeros_like(state)
    dq, dk, dv = torch.zeros_like(q_wide), torch.zeros_like(k_wide), torch.zeros_like(v_wide)
    dg, dbeta = torch.zeros_like(g, dtype=wide), torch.zeros_like(beta, dtype=wide)
    for t in reversed(range(tokens)):
        decayed, error, u, state = kept[t]
        dstate = dstate + scale * q_wide[:, t, :, None] * dout_wide[:, t, None, :]  # [BH, K, V]
        dq[:, t] = scale * torch.einsum("bkv,bv->bk", state, dout_wide[:, t])
        du = torch.einsum("bk,bkv->bv", k_wide[:, t], dstate)  # [BH, V]
        dbeta[:, t] = (du * error).sum(dim=-1)
        dv[:, t] = beta[:, t, None].to(wide) * du
        dk[:, t] = torch.einsum("bkv,bv->bk", dstate, u) - torch.einsum("bkv,bv->bk", decayed, dv[:, t])
        dstate = dstate - k_wide[:, t, :, None] * dv[:, t, None, :]
        dg[:, t] = (dstate * decayed).sum(dim=(-2, -1))
        dstate = dstate * decay[:, t]
    return dq.to(q.dtype), dk.to(q.dtype), dv.to(q.dtype), dg, dbeta


def _make_inputs(dtype=torch.float32, heads=2, tokens=129, key_size=32, value_size=16, seed=42):
    """Return (q, k, v, g, beta, dout) of a ragged shape on the CPU; keys have length 1."""
    generator = torch.Generator().manual_seed(seed)
    q, k = (torch.randn((heads, tokens, key_size), generator=generator) for _ in range(2))
    v, dout = (torch.randn((heads, tokens, value_size), generator=generator) for _ in range(2))
    g, beta = (
        -0.3 * torch.rand((heads, tokens), generator=generator),
        torch.rand((heads, tokens), generator=generator),
    )
    k = torch.nn.functional.normalize(k, dim=-1)
    return q.to(dtype), k.to(dtype), v.to(dtype), g, beta, dout.to(dtype)


def _forward(q, k, v, g, beta):
    """Return out [BH, T, V] of the forward pass, for autograd."""
    state = torch.zeros((q.shape[0], q.shape[2], v.shape[2]), dtype=q.dtype)
    out = []
    for t in range(q.shape[1]):
        state = state * torch.exp(g[:, t]).reshape(-1, 1, 1)
        read = torch.einsum("bk,bkv->bv", k[:, t], state)
        state = state + torch.einsum("bk,bv->bkv", k[:, t], beta[:, t, None] * (v[:, t] - read))
        out.append(torch.einsum("bk,bkv->bv", q[:, t], state) / math.sqrt(q.shape[2]))
    return torch.stack(out, dim=1)


def _validate():
    """Check the golden against autograd through the forward recurrence, two shapes, three dtypes."""
    for tokens, key_size, value_size in ((1, 16, 16), (66, 32, 16)):
        for dtype, tolerance in ((torch.float32, 1e-4), (torch.float16, 5e-3), (torch.bfloat16, 4e-2)):
            inputs = _make_inputs(dtype, 2, tokens, key_size, value_size)
            leaves = [tensor.double().requires_grad_() for tensor in inputs[:5]]
            _forward(*leaves).backward(inputs[5].double())
            for gradient, leaf in zip(gated_delta_rule_bwd_golden(*inputs), leaves):
                torch.testing.assert_close(gradient.double(), leaf.grad, rtol=tolerance, atol=tolerance)


if __name__ == "__main__":
    _validate()
    print("gated_delta_rule_bwd_golden agrees with torch's autograd through the recurrence")
