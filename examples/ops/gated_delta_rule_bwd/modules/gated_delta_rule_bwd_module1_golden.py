# Derived from module_interfaces.yaml - do not hand-edit. On YAML changes, regenerate.
# generated during Phase M1 scaffolding; do not hand-edit below the header
"""Cumulative golden of M1 of gated_delta_rule_bwd: the forward pass, replayed."""

import torch

CHUNK = 64


def gated_delta_rule_bwd_module1_golden(k, v, g, beta):
    """Return (states, u), the live outputs of M1.

    Arguments as in gated_delta_rule_bwd_golden. states: [BH, (T + 63) // 64, K, V], before each chunk
    of 64 tokens. u: [BH, T, V], what each token writes. Both float32, float64 for float64 inputs.
    """
    wide = torch.promote_types(k.dtype, torch.float32)
    k_wide, v_wide = k.to(wide), v.to(wide)
    heads, tokens, key_size = k.shape
    decay = torch.exp(g.to(wide)).reshape(heads, tokens, 1, 1)
    state = torch.zeros((heads, key_size, v.shape[2]), dtype=wide, device=k.device)
    states, writes = [], []
    for t in range(tokens):
        if t % CHUNK == 0:
            states.append(state)
        state = state * decay[:, t]
        read = torch.einsum("bk,bkv->bv", k_wide[:, t], state)
        u = beta[:, t, None].to(wide) * (v_wide[:, t] - read)  # [BH, V]
        state = state + k_wide[:, t, :, None] * u[:, None, :]
        writes.append(u)
    return torch.stack(states, dim=1), torch.stack(writes, dim=1)
