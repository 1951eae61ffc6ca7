"""Which backend serves which mode."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from pypto_op.modes import REGISTRY
from pypto_op.vocabulary import Mode

if TYPE_CHECKING:
    from pypto_op.backends.base import Backend


def get_backend(mode: Mode) -> Backend:
    """Return the backend of `mode`; importing it is put off until then, since it may pull in torch."""
    module, _, name = REGISTRY[mode].backend.partition(":")
    backend: Backend = getattr(import_module(module), name)()
    return backend
