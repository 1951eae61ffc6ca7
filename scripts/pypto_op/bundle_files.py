"""Where the bundle's own data files lie: beside the packages in a checkout, inside them in a wheel."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_CHECKOUT = _PACKAGE.parents[1]


def bundle_root() -> Path:
    """Return the folder that holds `schemas/`, `skills/`, `hooks/` and the rest of the bundle."""
    if (_CHECKOUT / "schemas").is_dir():
        return _CHECKOUT
    return _PACKAGE / "_bundle"


def schema_path(name: str) -> Path:
    """Return the path of `schemas/<name>.schema.json`."""
    return bundle_root() / "schemas" / f"{name}.schema.json"
