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


_CHUNK = 64


def gated_delta_rule_bwd_golden_other_form(q, k, v, g, beta, dout):
    """Return what gated_delta_rule_bwd_golden does, in chunks of 64 tokens: each chunk is products of matrices.

    Its rounding errors are another algorithm's: dg, for one, is a difference of sums, where the golden has an exact 0.
    Source of the formula: Yang, Wang, Zhang, Shen, Kim, "Parallelizing Linear Transformers with the Delta Rule", 2024.
    """
    wide = torch.promote_types(q.dtype, torch.float32)
    scale = 1.0 / math.sqrt(q.shape[2])
    state = torch.zeros((q.shape[0], q.shape[2], v.shape[2]), dtype=wide, device=q.device)
    chunks = []
    for start in range(0, q.shape[1], _CHUNK):
        parts = [part[:, start : start + _CHUNK].to(wide) for part in (q, k, v, g, beta, dout)]
        seen = _replayed(*parts[1:5], state)
        chunks.append((parts, state, seen))
        state = state * seen["faded"] + _turned(parts[1] * seen["onward"]) @ seen["u"]
    dstate = torch.zeros_like(state)
    found = []
    for parts, entering, seen in reversed(chunks):
        gradients, dstate = _reversed(*parts, entering, dstate, seen, scale)
        found.insert(0, gradients)
    dq, dk, dv, dg, dbeta = (torch.cat(pieces, dim=1) for pieces in zip(*found))
    return dq.to(q.dtype), dk.to(q.dtype), dv.to(q.dtype), dg, dbeta


def _turned(matrices):
    """Return matrices [..., N, M] of [..., M, N]."""
    return torch.transpose(matrices, -1, -2)


def _replayed(k, v, g, beta, state):
    """Return what the forward pass computes in one chunk [BH, C, *] that the state [BH, K, V] enters."""
    total = g.cumsum(dim=1)
    between = torch.exp((total[:, :, None] - total[:, None, :]).tril()).tril()  # [BH, C, C]
    into, onward = torch.exp(total)[..., None], torch.exp(total[:, -1:] - total)[..., None]
    plain = ((k @ _turned(k)) * between).tril(-1)
    system = torch.eye(k.shape[1], dtype=k.dtype, device=k.device) + plain * beta[..., None]
    read = (k @ state) * into
    u = torch.linalg.solve_triangular(system, (v - read) * beta[..., None], upper=False, unitriangular=True)
    faded = torch.exp(total[:, -1])[:, None, None]
    return {"between": between, "plain": plain, "system": system, "into": into, "onward": onward} | {
        "read": read,
        "error": v - read,
        "u": u,
        "faded": faded,
    }


def _reversed(q, k, v, g, beta, dout, state, dstate, seen, scale):
    """Return the gradients of one chunk, and the gradient of the state that enters it."""
    strength, between, into = beta[..., None], seen["between"], seen["into"]
    scores = (q @ _turned(k)) * scale
    du = _turned(scores * between) @ dout + (k * seen["onward"]) @ dstate
    dtarget = torch.linalg.solve_triangular(_turned(seen["system"]), du, upper=True, unitriangular=True)
    dmix = -(dtarget @ _turned(seen["u"])).tril(-1)
    dv = dtarget * strength
    dbeta = (dtarget * seen["error"]).sum(-1) + (dmix * seen["plain"]).sum(-1)
    reach = (dout @ _turned(seen["u"])) * between
    from_state = (dout @ _turned(state)) * into * scale
    pull = dmix * between * strength
    leaving = (seen["u"] @ _turned(dstate)) * seen["onward"]
    dk = _turned(reach) @ q * scale + leaving - (dv @ _turned(state)) * into + pull @ k + _turned(pull) @ k
    outgoing = (k * leaving).sum(-1)
    pairs = reach * scores + pull * (k @ _turned(k))
    column = (q * from_state).sum(-1) - (dv * seen["read"]).sum(-1) - outgoing + pairs.sum(-1) - pairs.sum(-2)
    last = outgoing.sum(-1, keepdim=True) + (dstate * state * seen["faded"]).sum((-2, -1))[:, None]
    dg = column.flip(1).cumsum(1).flip(1) + last
    dstate = dstate * seen["faded"] + _turned(q * into) @ dout * scale - _turned(k * into) @ dv
    return (reach @ k * scale + from_state, dk, dv, dg, dbeta), dstate


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
    """Check the golden and its other form against autograd through the forward recurrence, two shapes, three dtypes."""
    for tokens, key_size, value_size in ((1, 16, 16), (66, 32, 16)):
        for dtype, tolerance in ((torch.float32, 1e-4), (torch.float16, 5e-3), (torch.bfloat16, 4e-2)):
            inputs = _make_inputs(dtype, 2, tokens, key_size, value_size)
            leaves = [tensor.double().requires_grad_() for tensor in inputs[:5]]
            _forward(*leaves).backward(inputs[5].double())
            for golden in (gated_delta_rule_bwd_golden, gated_delta_rule_bwd_golden_other_form):
                for gradient, leaf in zip(golden(*inputs), leaves):
                    torch.testing.assert_close(gradient.double(), leaf.grad, rtol=tolerance, atol=tolerance)


if __name__ == "__main__":
    _validate()
    print("gated_delta_rule_bwd_golden agrees with torch's autograd through the recurrence")
