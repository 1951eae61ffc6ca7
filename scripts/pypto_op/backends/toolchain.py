"""The C++ tool chain that pypto's calculator and its control-flow code are built with."""

from __future__ import annotations

import functools
import shutil
import subprocess
from dataclasses import dataclass

REQUIRED = ("cmake", "g++", "make", "ld", "objcopy")
"""Programs that must be on PATH; `ld` and `objcopy` come with `g++` in Debian's binutils."""

INSTALL_LINE = "apt-get install -y cmake g++ make"
"""The one line that puts a whole tool chain on a Debian or Ubuntu machine."""


@dataclass(frozen=True)
class Toolchain:
    """What was found on PATH."""

    paths: dict[str, str]  # program to absolute path, for those that are there
    missing: tuple[str, ...]  # the required programs that are not
    versions: dict[str, str]  # program to the first line of its `--version`

    @property
    def complete(self) -> bool:
        """Whether everything required is there."""
        return not self.missing

    @property
    def reason(self) -> str:
        """One line that names what is missing and the remedy; empty when nothing is."""
        if self.complete:
            return ""
        return f"no C++ tool chain ({', '.join(self.missing)} not on PATH); run: {INSTALL_LINE}"


def find_toolchain() -> Toolchain:
    """Look for the tool chain on the PATH of this process; nothing is run more than once."""
    paths = {name: path for name in REQUIRED if (path := shutil.which(name))}
    missing = tuple(name for name in REQUIRED if name not in paths)
    versions = {name: _version(path) for name, path in paths.items() if name in ("cmake", "g++")}
    return Toolchain(paths, missing, versions)


@functools.lru_cache(maxsize=16)
def _version(path: str) -> str:
    try:
        shown = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=20, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    lines = shown.strip().splitlines()
    return lines[0].strip() if lines else "unknown"
