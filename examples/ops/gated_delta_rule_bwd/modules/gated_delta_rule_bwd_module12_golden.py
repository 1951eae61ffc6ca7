# Derived from module_interfaces.yaml - do not hand-edit. On YAML changes, regenerate.
# generated during Phase M2 scaffolding; do not hand-edit below the header
"""Cumulative golden of M1..M2 of gated_delta_rule_bwd, and the probe of its reverse scan."""

import math

import torch

CHUNK = 64


def gated_delta_rule_bwd_module12_golden(q, k, v, g, beta, dout):
    """Return (dq, dk, dv, dg, dbeta), the live outputs of M2, as gated_delta_rule_bwd_golden does."""
    return _backward(q, k, v, g, beta, dout)[0]


def module_2_inspect(q, k, v, g, beta, dout):
    """Return {"dstate": [BH, 1, (T + 63) // 64, K, V]}: the gradient of the state that leaves each chunk.

    In the order of the reverse scan: iteration 0 is the last chunk, whose dstate is 0.
    """
    carried = _backward(q, k, v, g, beta, dout)[1]
    tokens = q.shape[1]
    ends = [min(start + CHUNK, tokens) - 1 for start in range(0, tokens, CHUNK)]
    return {"dstate": torch.stack([carried[end] for end in reversed(ends)], dim=1).unsqueeze(1)}


def _backward(q, k, v, g, beta, dout):
    """Return (gradients, carried): the five gradients, and the gradient of the state after each token."""
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
    carried = [dstate] * tokens
    for t in reversed(range(tokens)):
        decayed, error, u, state = kept[t]
        carried[t] = dstate
        dstate = dstate + scale * q_wide[:, t, :, None] * dout_wide[:, t, None, :]  # [BH, K, V]
        dq[:, t] = scale * torch.einsum("bkv,bv->bk", state, dout_wide[:, t])
        du = torch.einsum("bk,bkv->bv", k_wide[:, t], dstate)  # [BH, V]
        dbeta[:, t] = (du * error).sum(dim=-1)
        dv[:, t] = beta[:, t, None].to(wide) * du
        dk[:, t] = torch.einsum("bkv,bv->bk", dstate, u) - torch.einsum("bkv,bv->bk", decayed, dv[:, t])
        dstate = dstate - k_wide[:, t, :, None] * dv[:, t, None, :]
        dg[:, t] = (dstate * decayed).sum(dim=(-2, -1))
        dstate = dstate * decay[:, t]
    return (dq.to(q.dtype), dk.to(q.dtype), dv.to(q.dtype), dg, dbeta), carried
