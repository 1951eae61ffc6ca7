# mypy: ignore-errors
# (What eval/test_inputs.py gets a copy of is plain torch without annotations, like the rest of that file.)
"""Patterns that make terms cancel; the fold of values into a range, and of rows to a length, sum or order.

Plain torch: `pypto-op harness new` copies this text into eval/test_inputs.py.
"""

import torch

# --- copied from here ---


def within(values, dtype, ends, rows=None):
    """Return floating values in `dtype`, folded into a range: what lies beyond an end turns back there; NaN stays.

    `ends`: least, greatest (-inf, inf: none), and whether each of the two is itself outside; None: no range.
    `rows`: {"length" or "sum": ends of what each row measures, "order": "rising" or "falling"}, or {"one_of": the numbers that
    elements may be}; None: nothing of rows.
    """
    if rows is not None and "one_of" in rows:
        return _one_of(values, dtype, rows["one_of"])
    if rows is not None:
        return _in_rows(values, dtype, ends, rows)
    if ends is None:
        return values.to(dtype)
    low, high, open_low, open_high = ends
    least, greatest = low > -float("inf"), high < float("inf")
    width = high - low
    plain = values.to(torch.float32)
    folded = plain
    if least and greatest:
        turned = (plain - low).clamp(-(2.0**20) * width, 2.0**20 * width)  # a quotient beyond float32 would be NaN
        folded = low + (width - (torch.remainder(turned, 2.0 * width) - width).abs()) if width else torch.full_like(plain, low)
    elif least:
        folded = low + (plain - low).abs()
    elif greatest:
        folded = high - (high - plain).abs()
    stays = ((plain >= low) & (plain <= high)) | ~torch.isfinite(plain)  # beside a far end 1e-3 would lose its digits
    folded = torch.where(stays, plain, folded).to(dtype)
    step = torch.finfo(dtype).eps  # what rounding took over an end, or onto an open one, goes back by a step
    span = min(width, 1.0)
    wide = folded.to(torch.float32)
    if least:
        back = torch.full_like(folded, low + step * (abs(low) or span))
        folded = torch.where(wide <= low if open_low else wide < low, back, folded)
    if greatest:
        back = torch.full_like(folded, high - step * (abs(high) or span))
        folded = torch.where(wide >= high if open_high else wide > high, back, folded)
    return folded


def _one_of(values, dtype, numbers):
    """Return the nearest of a few numbers, in rising order, to each value: the first for -1 and less, the last for 1 and more."""
    known = torch.tensor(numbers, dtype=torch.float32, device=values.device)
    half = (known[-1] - known[0]) / 2.0
    places = known[0] + half * (1.0 + values.to(torch.float32).nan_to_num().clamp(-1.0, 1.0))
    return known[torch.bucketize(places, (known[1:] + known[:-1]) / 2.0)].to(dtype)


def _in_rows(values, dtype, ends, rows):
    """Return values within a range, each row scaled to its length or sum, which is folded like a value, and put in order."""
    measure = next((word for word in ("length", "sum") if word in rows), None)
    if measure is None:
        values = within(values, dtype, ends)
    else:
        values = _measured(within(values, torch.float32, ends), measure, rows[measure]).to(dtype)
        low, high, open_low, _ = ends or (-float("inf"), float("inf"), False, False)
        values = values.clamp(low, high)  # rounding may take the one value of a row over the end
        if low == 0.0 and open_low:  # and the least ones onto 0
            values = torch.where(values == 0.0, torch.full_like(values, torch.finfo(dtype).tiny), values)
    return ordered(values, rows)


def ordered(values, rows):
    """Return values with each row sorted, where `rows` says so."""
    order = (rows or {}).get("order")
    return values if order is None else values.sort(dim=-1, descending=order == "falling").values


def _measured(values, measure, ends):
    """Return float32 values with each row scaled until its length, or sum, lies within `ends`; what is not finite stays."""
    finite = torch.isfinite(values)
    plain = torch.where(finite, values, torch.zeros_like(values))
    largest = plain.abs().amax(dim=-1, keepdim=True)
    shares = plain / torch.where(largest > 0.0, largest, torch.ones_like(largest))  # so that no square leaves float32
    empty = shares.abs().amax(dim=-1, keepdim=True) == 0.0  # a row of zeros has no direction: each element gets the same
    shares = torch.where(empty, torch.ones_like(shares), shares)
    size = shares.norm(dim=-1, keepdim=True) if measure == "length" else shares.sum(dim=-1, keepdim=True)
    wanted = within((size * largest).clamp(max=torch.finfo(torch.float32).max), torch.float32, ends)
    return torch.where(finite, shares * (wanted / size), values)


def _jittered(values, gap):
    """Return float32 values, each off by a relative error between gap / 2 and gap."""
    return values * (1.0 - gap * (0.5 + 0.5 * torch.rand(values.shape, dtype=torch.float32, device=values.device)))


def _joined(values, axis, second, gap):
    """Return the first half along `axis`, then `second`; of an odd size the middle one stays, made small."""
    half = values.shape[axis] // 2
    rest = values.narrow(axis, half, values.shape[axis] - 2 * half) * gap
    return torch.cat([values.narrow(axis, 0, half), rest, second], dim=axis)


def _cancelling(step, made):
    """Return float32 values of one input after one step of a recipe."""
    values, gap = made[step["input"]].to(torch.float32), float(step.get("gap", 0.0))
    pattern, axis = step["pattern"], int(step.get("axis", -1))
    first = values.narrow(axis, 0, values.shape[axis] // 2) if values.dim() else values
    if pattern == "mirror":  # the second half is the first with the other sign: sums over the axis cancel
        values = _joined(values, axis, -_jittered(first, gap), gap)
    elif pattern == "repeat":  # the second half is the first: products with a mirrored partner cancel
        values = _joined(values, axis, first, 1.0)
    elif pattern == "plateau":  # nearly one value along the axis: differences along it cancel
        level = 1.0 + values.narrow(axis, 0, 1).abs()
        values = _jittered(level.expand(values.shape), gap)
    elif pattern == "follow":  # nearly another input, or its negative: their difference, or sum, cancels
        other = made[step["of"]].to(torch.float32)
        values = _jittered(float(step.get("sign", 1.0)) * other.expand(values.shape), gap)
    else:
        raise ValueError(f"unknown pattern {pattern!r}")
    return values * float(step.get("scale", 1.0))


def stressed(made, recipe, ranges=None, rows=None):
    """Return the inputs (name -> value) of a case after each step of its cancellation recipe, dtypes kept.

    `ranges`: name -> the ends that its values stay within; `rows`: name -> what holds for its rows (both as in `within`).

    A step: {"input", "pattern": mirror, repeat, plateau or follow, "axis", "gap", "scale", "of" and "sign" (follow)}.
    """
    made = dict(made)
    for step in recipe:
        name = step["input"]
        made[name] = within(_cancelling(step, made), made[name].dtype, (ranges or {}).get(name), (rows or {}).get(name))
    return made


# --- to here ---
