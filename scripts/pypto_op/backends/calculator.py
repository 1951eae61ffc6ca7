"""pypto's own tensor-graph calculator: C++ that must be built against the installed torch.

pypto builds it anew in every process, in a folder that it throws away. Here it is built once per content key and
loaded from the cache, so that a process needs milliseconds instead of half a minute. The build asks pypto's
CMake project for exactly what `pypto._utils.BuildOnlineManager` asks for.
"""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from importlib import metadata, util
from pathlib import Path

from pypto_op import speaking
from pypto_op.backends import build_cache
from pypto_op.backends.toolchain import Toolchain, find_toolchain
from pypto_op.errors import InfraError

ROOM = "calculator"
LIBRARY = "libtile_fwk_calculator.so"
_BUILD_SECONDS = 900
_SOURCES = "calculator"
"""Where pypto 0.2.0 keeps the CMake project, below `pypto/lib`."""


@dataclass(frozen=True)
class Ingredients:
    """Everything that the built library depends on, found without importing torch or pypto."""

    lib_dir: Path  # `pypto/lib` of the installed wheel
    torch_dir: Path  # the installed torch package
    torch_version: str  # its version, local part included
    toolchain: Toolchain  # what was found on PATH

    @property
    def key(self) -> str:
        """Return the content key: sources, torch, pypto's libraries, compiler and machine; not where they lie.

        So a second environment with the same packages takes the same library: the loader finds torch and pypto by the
        names of their libraries, which are loaded before it.
        """
        parts: list[str | bytes] = [
            self.torch_version,
            _installed_bytes(self.torch_dir),
            _installed_bytes(self.lib_dir.parent),
            self.toolchain.versions.get("g++", ""),
            self.toolchain.paths.get("g++", ""),
            platform.machine(),
        ]
        for source in sorted((self.lib_dir / _SOURCES).rglob("*")):
            if source.is_file():
                parts += [str(source.relative_to(self.lib_dir)), source.read_bytes()]
        return build_cache.digest_of(*parts)


def find_ingredients() -> Ingredients | None:
    """Return what the calculator is made of, or None when pypto or torch is not installed."""
    pypto_dir, torch_dir = _package_dir("pypto"), _package_dir("torch")
    if pypto_dir is None or torch_dir is None:
        return None
    try:
        torch_version = _torch_version(torch_dir)
    except OSError:
        return None
    return Ingredients(pypto_dir / "lib", torch_dir, torch_version, find_toolchain())


def other_release(ingredients: Ingredients) -> str:
    """Return why this release of pypto can judge no kernel, with the remedy after a semicolon; "" where it can.

    0.2.1 keeps the calculator in another folder, and hands its numbers over in another way: docs/versions.md.
    """
    if (ingredients.lib_dir / _SOURCES / "CMakeLists.txt").is_file():
        return ""
    version = metadata.version("pypto")
    return f"pypto {version} has no calculator where 0.2.0 has it, so no kernel can be judged with it; install pypto==0.2.0"


def cached(ingredients: Ingredients) -> Path | None:
    """Return the built library when it lies in the cache undamaged."""
    entry = build_cache.entry_path(ROOM, ingredients.key)
    return entry / LIBRARY if build_cache.is_sound(entry) else None


def ensure(ingredients: Ingredients) -> Path:
    """Return the built library, building it first if need be (half a minute on two cores).

    Raises:
        InfraError: there is no tool chain, or the build failed.
    """
    found = cached(ingredients)
    if found is not None:
        return found
    if not ingredients.toolchain.complete:
        raise InfraError(f"pypto's calculator cannot be built: {ingredients.toolchain.reason}")
    with speaking.doing("building pypto's calculator, once on this machine (half a minute on two cores)"):
        entry = build_cache.ensure(ROOM, ingredients.key, lambda folder: _build(ingredients, folder))
    return entry / LIBRARY


def _build(ingredients: Ingredients, folder: Path) -> None:
    work = folder / "work"
    cmake = ingredients.toolchain.paths["cmake"]
    configure = [
        cmake,
        *("-S", str(ingredients.lib_dir / _SOURCES), "-B", str(work), "-DCMAKE_BUILD_TYPE=Release"),
        f"-DCMAKE_CXX_COMPILER={ingredients.toolchain.paths['g++']}",
        f"-DPY3_MOD_TORCH_VERSION={ingredients.torch_version}",
        f"-DPY3_MOD_TORCH_ROOT_PATH={ingredients.torch_dir}",
        f"-DPY3_MOD_TORCH_C_GLIBCXX_USE_CXX11_ABI={_cxx11_abi(ingredients.torch_dir)}",
    ]
    run_build(configure, "configuring pypto's calculator")
    run_build([cmake, "--build", str(work), "-j", "4"], "building pypto's calculator")
    built = sorted(work.rglob(LIBRARY))
    if not built:
        raise InfraError(f"building pypto's calculator left no {LIBRARY}")
    built[0].rename(folder / LIBRARY)
    shutil.rmtree(work)


def run_build(command: list[str], what: str) -> None:
    """Run one build command; raise InfraError with the last line that names an error when it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_BUILD_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InfraError(f"{what} failed: {error}") from error
    if done.returncode == 0:
        return
    lines = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    telling = [line for line in lines if "error" in line.lower()] or lines or ["no output"]
    raise InfraError(f"{what} failed: {telling[0][:300]}", remedy="run `pypto-op doctor`")


def _installed_bytes(folder: Path) -> str:
    """Return what a package's own record says of its libraries and headers; without a record, where it lies."""
    records = sorted(folder.parent.glob(f"{folder.name}-*.dist-info/RECORD"))
    return _recorded(folder, tuple((record, record.stat().st_mtime_ns) for record in records))


@cache
def _recorded(folder: Path, records: tuple[tuple[Path, int], ...]) -> str:
    """Read the records once in a process: there are thousands of lines, and each session asks."""
    name = folder.name
    text = "".join(record.read_text(encoding="utf-8") for record, _ in records)
    lines = [line for line in text.splitlines() if line.startswith((f"{name}/lib/", f"{name}/include/")) and ",sha256=" in line]
    return "\n".join(sorted(lines)) or str(folder)


def _package_dir(name: str) -> Path | None:
    try:
        spec = util.find_spec(name)
    except (ImportError, ValueError):
        return None
    if spec is None or not spec.origin:
        return None
    return Path(spec.origin).resolve().parent


def _torch_version(torch_dir: Path) -> str:
    """Return `torch.__version__` (with its local part, e.g. `2.13.0+cpu`) without importing torch."""
    text = (torch_dir / "version.py").read_text(encoding="utf-8")
    found = re.search(r"^__version__\s*=\s*['\"]([^'\"]+)['\"]", text, re.MULTILINE)
    return found[1] if found else metadata.version("torch")


def _cxx11_abi(torch_dir: Path) -> int:
    """Return torch's `_GLIBCXX_USE_CXX11_ABI`, read from its library so that torch need not be imported."""
    library = torch_dir / "lib" / "libc10.so"
    return int(b"__cxx1112basic_string" in library.read_bytes())
