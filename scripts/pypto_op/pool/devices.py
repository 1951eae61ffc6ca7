"""The environment variables that tell a process which devices it may use."""

from __future__ import annotations

import os

DEVICE_ENV = "TILE_FWK_DEVICE_ID"
"""Which device a process of pypto's uses, numbered among those that it sees."""

VISIBLE_ENV = "ASCEND_RT_VISIBLE_DEVICES"
"""Which devices of the machine a process sees: `4,5` are its devices 0 and 1."""


def visible() -> tuple[str, ...] | None:
    """Return the machine's numbers of the devices that this process sees, in its own order; None: it sees all."""
    text = os.environ.get(VISIBLE_ENV)
    return None if text is None else tuple(part.strip() for part in text.split(",") if part.strip().isdigit())
