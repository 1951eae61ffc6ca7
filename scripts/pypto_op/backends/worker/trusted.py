"""Which files are not the user's: the interpreter's own, installed packages, this bundle, and the operating system's.

Everything else that a candidate, a golden or the inputs load counts as their own code or data: it is recorded
(`closure`), and frames of it count as the candidate's (`askers`).
"""

from __future__ import annotations

import os
import site
import sysconfig
from functools import lru_cache
from pathlib import Path

import pypto_op

_PSEUDO = ("/proc", "/sys", "/dev")
_SHARED_MEMORY = "/dev/shm"
_SYSTEM = ("/usr", "/lib", "/lib64", "/bin", "/sbin", "/etc", "/opt", "/var")


def inside(path: str, folder: str) -> bool:
    """Whether an absolute path is `folder` or lies below it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


@lru_cache(maxsize=1)
def installed_folders() -> tuple[str, ...]:
    """Return the folders of the site packages, resolved; the account's own too, where the interpreter looks there."""
    paths = sysconfig.get_paths()
    own = [site.getusersitepackages()] if site.ENABLE_USER_SITE else []
    found = [paths["purelib"], paths["platlib"], *site.getsitepackages(), *own]
    return tuple(dict.fromkeys(os.path.realpath(path) for path in found))


@lru_cache(maxsize=1)
def trusted_folders() -> tuple[str, ...]:
    """Return the folders of the interpreter, of the site packages, and of this bundle's code, resolved."""
    paths = sysconfig.get_paths()
    own = [paths["stdlib"], paths["platstdlib"], str(Path(pypto_op.__file__).parent)]
    return tuple(dict.fromkeys((*(os.path.realpath(path) for path in own), *installed_folders())))


@lru_cache(maxsize=8192)
def is_trusted(file: str) -> bool:
    """Whether a file, or the file name of a code object, is the interpreter's, an installed package's or the bundle's."""
    if file.startswith("<frozen "):
        return True
    resolved = os.path.realpath(file)
    return any(inside(resolved, folder) for folder in trusted_folders())


@lru_cache(maxsize=8192)
def is_installed(file: str) -> bool:
    """Whether a file belongs to an installed package."""
    resolved = os.path.realpath(file)
    return any(inside(resolved, folder) for folder in installed_folders())


def is_systems(resolved: str) -> bool:
    """Whether a file is no user's: a pseudo file, or one of the operating system's that this account cannot change."""
    if any(inside(resolved, folder) for folder in _PSEUDO):
        return not inside(resolved, _SHARED_MEMORY)
    return any(inside(resolved, folder) for folder in _SYSTEM) and not os.access(resolved, os.W_OK)
