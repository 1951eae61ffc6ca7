"""Where the bundle's own data files lie, and how to add an extra to it: it is a checkout, or an installed wheel."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_CHECKOUT = _PACKAGE.parents[1]
_DISTRIBUTION = "pypto-op"


def bundle_root() -> Path:
    """Return the folder that holds `schemas/`, `skills/`, `hooks/` and the rest of the bundle."""
    return _CHECKOUT if is_checkout() else _PACKAGE / "_bundle"


def is_checkout() -> bool:
    """Say whether this code runs from a checkout, where `make setup` installs what is missing."""
    return (_CHECKOUT / "schemas").is_dir()


def schema_path(name: str) -> Path:
    """Return the path of `schemas/<name>.schema.json`."""
    return bundle_root() / "schemas" / f"{name}.schema.json"


def extra_remedy(extra: str = "") -> str:
    """Return what installs the packages of `extra`, such as "sim": a command of the tool that installed this bundle.

    Without an extra it installs the bundle again, with what it needs itself. It names a checkout or the wheel's own
    file, never a bare package name: on a public index that name may be anybody's.
    """
    if is_checkout():
        return f"run `make setup` in {_CHECKOUT}"
    # These tools make the whole environment anew, so what is there already must be named too.
    extras = ",".join(sorted({extra, *_extras_here()} - {""}))
    wanted = shlex.quote(f"{_origin()}[{extras}]" if extras else _origin())
    if (Path(sys.prefix) / "uv-receipt.toml").is_file():
        return f"run `uv tool install --force {wanted}`"
    if (Path(sys.prefix) / "pipx_metadata.json").is_file():
        return f"run `pipx install --force {wanted}`"
    again = "" if extra else "--force-reinstall "
    return f"run `{shlex.quote(sys.executable)} -m pip install {again}{wanted}`"


def extra_of(module: str) -> str | None:
    """Return the extra that brings the import package `module`, or None; of several, the one that any CPU machine can take."""
    found = [extra for extra, packages in _extras().items() if module.lower() in packages]
    return "sim" if "sim" in found else min(found, default=None)


def _extras() -> dict[str, set[str]]:
    """Return the extras that users may add, each with the import names of its packages."""
    from importlib import metadata

    found: dict[str, set[str]] = {}
    try:
        lines = metadata.requires(_DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        return {}
    for line in lines:
        match = re.fullmatch(r"([A-Za-z0-9_.-]+)[^;]*; *extra *== *['\"](\w+)['\"]", line.strip())
        if match and match[2] != "dev":
            found.setdefault(match[2], set()).add(match[1].replace("-", "_").lower())
    return found


def _extras_here() -> list[str]:
    """Return the extras whose packages are all installed."""
    from importlib.util import find_spec

    return [extra for extra, packages in _extras().items() if all(find_spec(package) for package in packages)]


def _origin() -> str:
    """Return the file, folder or address that this wheel was installed from (PEP 610); a placeholder where no one noted it."""
    import json
    from importlib import metadata
    from urllib.parse import unquote, urlsplit

    try:
        noted = metadata.distribution(_DISTRIBUTION).read_text("direct_url.json")
        url = str(json.loads(noted or "{}").get("url", ""))
    except (metadata.PackageNotFoundError, ValueError, AttributeError):
        url = ""
    parts = urlsplit(url)
    return unquote(parts.path) if parts.scheme == "file" else "PATH_OF_THE_WHEEL_FILE"
