"""Goldens of the sizes in the reference table of the complexity formula: (lines, S, matmuls, reduces) -> N."""

GELU = """
import torch


def gelu_golden(x):
    inner = x + 0.044715 * x * x * x
    t = torch.tanh(0.7978845608 * inner)
    y = 0.5 * x * (1.0 + t)
    return y
"""

SOFTMAX = """
import torch


def softmax_golden(x):
    x = x.float()
    m = x.amax(dim=-1, keepdim=True)
    e = torch.exp(x - m)
    s = e.sum(dim=-1, keepdim=True)
    y = e / s
    return y
"""

LAYERNORM = """
import torch


def layernorm_golden(x, weight, bias, eps):
    x = x.float()
    mean = x.mean(dim=-1, keepdim=True)
    centred = x - mean
    var = centred.square().mean(dim=-1, keepdim=True)
    normal = centred * torch.rsqrt(var + eps)
    y = normal * weight + bias
    return y
"""

ATTENTION_FWD = """
import torch


def attention_golden(q, k, v):
    s = torch.matmul(q, k.transpose(-1, -2)) / q.shape[-1] ** 0.5
    m = s.amax(dim=-1, keepdim=True)
    p = torch.exp(s - m)
    out = torch.matmul(p, v) / p.sum(dim=-1, keepdim=True)
    return out
"""

ATTENTION_BWD = """
import torch


def attention_bwd_golden(q, k, v, o, do):
    scale = q.shape[-1] ** -0.5
    kt = k.transpose(-1, -2)
    s = q @ kt
    s = s * scale
    m = s.amax(dim=-1, keepdim=True)
    e = torch.exp(s - m)
    total = e.sum(dim=-1, keepdim=True)
    p = e / total
    o2 = p @ v
    dv = p.transpose(-1, -2) @ do
    dp = do @ v.transpose(-1, -2)
    delta = (do * o2).sum(dim=-1, keepdim=True)
    ds = p * (dp - delta)
    ds = ds * scale
    dq = ds @ k
    dk = ds.transpose(-1, -2) @ q
    return dq, dk, dv
"""

FA_FWD = """
import torch


def fa_golden(q, k, v, block):
    length, dim = q.shape
    scale = dim ** -0.5
    out = torch.empty_like(q)
    for start in range(0, length, block):
        stop = min(start + block, length)
        rows = slice(start, stop)
        qi = q[rows].float()
        m = torch.full((stop - start, 1), float("-inf"))
        l = torch.zeros(stop - start, 1)
        o = torch.zeros(stop - start, dim)
        for begin in range(0, length, block):
            end = min(begin + block, length)
            kj = k[begin:end].float()
            vj = v[begin:end].float()
            kt = kj.transpose(-1, -2)
            s = torch.matmul(qi, kt)
            s = s * scale
            highest = s.amax(dim=-1, keepdim=True)
            new = torch.maximum(m, highest)
            p = torch.exp(s - new)
            alpha = torch.exp(m - new)
            row = p.sum(dim=-1, keepdim=True)
            l = l * alpha + row
            o = o * alpha + torch.matmul(p, vj)
            m = new
        o = o / l
        out[rows] = o.to(q.dtype)
    return out
"""

FA_BWD = """
import torch


def fa_bwd_golden(q, k, v, o, do, lse, block):
    length, dim = q.shape
    scale = dim ** -0.5
    q32, k32, v32 = q.float(), k.float(), v.float()
    do32 = do.float()
    delta = (do32 * o.float()).sum(dim=-1, keepdim=True)
    dq = torch.zeros_like(q32)
    dk = torch.zeros_like(k32)
    dv = torch.zeros_like(v32)
    for begin in range(0, length, block):
        cols = slice(begin, min(begin + block, length))
        kj = k32[cols]
        vj = v32[cols]
        dkj = torch.zeros_like(kj)
        dvj = torch.zeros_like(vj)
        for start in range(0, length, block):
            rows = slice(start, min(start + block, length))
            qi = q32[rows]
            doi = do32[rows]
            p = torch.exp(qi @ kj.transpose(-1, -2) * scale - lse[rows])
            dvj = dvj + p.transpose(-1, -2) @ doi
            ds = p * (doi @ vj.transpose(-1, -2) - delta[rows]) * scale
            dkj = dkj + ds.transpose(-1, -2) @ qi
            dq[rows] += ds @ kj
        dk[cols] = dkj
        dv[cols] = dvj
    return dq.to(q.dtype), dk.to(k.dtype), dv.to(v.dtype)
"""

GATED_DELTA = """
import torch


def l2_normalise(x):
    return x * torch.rsqrt(x.square().sum(dim=-1, keepdim=True) + 1e-6)


def gated_delta_golden(q, k, v, beta, gate, chunk):
    length, dim = q.shape
    q = l2_normalise(q.float()) * dim ** -0.5
    k = l2_normalise(k.float())
    state = torch.zeros(dim, v.shape[-1])
    out = torch.empty(length, v.shape[-1])
    lower = torch.tril(torch.ones(chunk, chunk), -1)
    for start in range(0, length, chunk):
        rows = slice(start, start + chunk)
        decay = gate[rows].cumsum(0)
        kb = k[rows] * beta[rows]
        ratio = torch.exp(decay[:, None] - decay[None, :])
        system = kb @ k[rows].transpose(-1, -2) * ratio * lower
        solved = torch.eye(chunk)
        for i in range(1, chunk):
            solved = solved - system[i : i + 1].transpose(-1, -2) * solved[i - 1 : i]
        value = solved @ (v[rows] * beta[rows] - kb * decay.exp()[:, None] @ state)
        local = (q[rows] @ k[rows].transpose(-1, -2)) * ratio * (lower + torch.eye(chunk))
        out[rows] = q[rows] * decay.exp()[:, None] @ state + local @ value
        state = state * decay[-1].exp() + (k[rows] * (decay[-1] - decay).exp()[:, None]).transpose(-1, -2) @ value
    return out.to(v.dtype), state
"""

MAMBA = """
import torch
import torch.nn.functional as F


def mamba_golden(x, w_in, conv_w, w_dt, w_b, w_c, a_log, d, w_out, norm_w, dt_bias, width):
    x32 = x.float()
    scale = torch.rsqrt(x32.square().mean(dim=-1, keepdim=True) + 1e-5)
    hidden = x32 * scale * norm_w
    both = torch.matmul(hidden, w_in)
    u, z = both.chunk(2, dim=-1)
    window = torch.zeros(width, u.shape[-1])
    mixed = []
    for t in range(u.shape[0]):
        window = torch.cat([window[1:], u[t : t + 1]])
        step = (window * conv_w).sum(dim=0)
        mixed.append(step)
    u = torch.stack(mixed)
    u = u * torch.sigmoid(u)
    dt = torch.matmul(u, w_dt)
    dt = dt + dt_bias
    dt = F.softplus(dt)
    b = torch.matmul(u, w_b)
    c = torch.matmul(u, w_c)
    a = -torch.exp(a_log)
    state = torch.zeros(u.shape[-1], b.shape[-1])
    rows = []
    for t in range(u.shape[0]):
        decay = torch.exp(dt[t, :, None] * a)
        inject = (dt[t] * u[t])[:, None] * b[t][None, :]
        state = decay * state + inject
        y = torch.mv(state, c[t])
        rows.append(y)
    y = torch.stack(rows)
    y = y + u * d
    y = y * (z * torch.sigmoid(z))
    out = torch.matmul(y, w_out)
    out = out.to(x.dtype)
    return out, state
"""

LAYERNORM_BWD = """
import torch


def layernorm_bwd_golden(dy, x, weight, eps):
    wide = torch.promote_types(x.dtype, torch.float32)
    dy32 = dy.to(wide)
    x32 = x.to(wide)
    centred = x32 - x32.mean(dim=-1, keepdim=True)
    variance = centred.square().mean(dim=-1, keepdim=True)
    rstd = torch.rsqrt(variance + eps)
    normed = centred * rstd
    weighted = dy32 * weight.to(wide)
    along = (weighted * normed).mean(dim=-1, keepdim=True)
    level = weighted.mean(dim=-1, keepdim=True)
    dx = (weighted - normed * along - level) * rstd
    dweight = (dy32 * normed).sum(dim=0)
    dbias = dy32.sum(dim=0)
    return dx.to(x.dtype), dweight, dbias
"""
