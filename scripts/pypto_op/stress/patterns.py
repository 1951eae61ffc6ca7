# mypy: ignore-errors
# (What eval/test_inputs.py gets a copy of is plain torch without annotations, like the rest of that file.)
"""Patterns that make terms cancel. Plain torch: `pypto-op harness new` copies this text into eval/test_inputs.py."""

import torch

# --- copied from here ---


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


def stressed(made, recipe):
    """Return the inputs (name -> value) of a case after each step of its cancellation recipe, dtypes kept.

    A step: {"input", "pattern": mirror, repeat, plateau or follow, "axis", "gap", "scale", "of" and "sign" (follow)}.
    """
    made = dict(made)
    for step in recipe:
        name = step["input"]
        made[name] = _cancelling(step, made).to(made[name].dtype)
    return made


# --- to here ---
