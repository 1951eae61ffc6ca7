"""Which backend serves which mode."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pypto_op.vocabulary import Mode

if TYPE_CHECKING:
    from pypto_op.backends.base import Backend


def get_backend(mode: Mode) -> Backend:
    """Return the backend of `mode`; importing it is put off until then, since it may pull in torch."""
    if mode is Mode.SIM:
        from pypto_op.backends.sim import SimBackend

        return SimBackend()
    from pypto_op.backends.npu import NpuBackend

    return NpuBackend()
