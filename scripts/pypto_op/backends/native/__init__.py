"""Builds the C++ helpers of the simulator: they save time, tell a crash's place, and make memory as strict as a device's.

- `cost_model_switch.cpp`: leaves out pypto's cost model when its figures are not asked for.
- `compiler_memo.cpp`: a `g++` that remembers, for the control-flow code that pypto compiles at each call.
- `crash_frames.cpp`: tells a crash's C++ frames.
- `strict_memory.cpp`: memory as strict as a device's; it lies in the switch's library.
- `byte_views.cpp`: bytes of a view read as another type, row by row; in the same library.
- `kept_turns.cpp`: forgets what pypto keeps of each turn to compare passes; in the same library.
- `program_file.cpp`: leaves out the file of a program where nobody reads it; in the same library.
- `own_thread.cpp`: starts no thread for each leaf function of a program; in the same library.
- `moved_memory.cpp`, `shared_scratch.cpp`: for scripts, two things that the compiled program does; in the same library, as
  all that use `interpreter.h`.

Beside them lies a `python3` that does nothing: pypto starts its plotting scripts by that name.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path

from pypto_op.backends import build_cache
from pypto_op.backends.calculator import run_build
from pypto_op.backends.toolchain import Toolchain
from pypto_op.errors import InfraError

ROOM = "native"
_HERE = Path(__file__).resolve().parent
_SOURCES = (
    "cost_model_switch.cpp",
    "compiler_memo.cpp",
    "crash_frames.cpp",
    "strict_memory.cpp",
    "byte_views.cpp",
    "moved_memory.cpp",
    "kept_turns.cpp",
    "shared_scratch.cpp",
    "program_file.cpp",
    "own_thread.cpp",
)
_HEADER = "interpreter.h"
_SWITCH = "libpypto_op_cost_model_switch.so"
_CRASH_FRAMES = "libpypto_op_crash_frames.so"
_HEADERS = "".join(f"#include <{name}>\n" for name in ("stdint.h", "cstdint", "atomic", "new", "vector"))
"""The standard headers that pypto's control-flow code includes."""

_CONTROL_FLOW_FLAGS = ("-fPIC", "-fno-stack-protector", "-O2", "-mno-sse2", "-mno-sse")
"""The options that pypto compiles it with; with others, gcc leaves the ready-made headers aside."""

_NO_PLOTS = "#!/bin/sh\n# pypto starts its plotting scripts as `python3`; nobody looks at the pictures here\nexit 0\n"


@dataclass(frozen=True)
class NativeTools:
    """What was built."""

    folder: Path  # the cache entry

    @property
    def cost_model_switch(self) -> Path:
        """The library to load with RTLD_GLOBAL before pypto."""
        return self.folder / _SWITCH

    @property
    def crash_frames(self) -> Path:
        """The library that `worker.crashes` loads."""
        return self.folder / _CRASH_FRAMES

    @property
    def bin_dir(self) -> Path:
        """The folder to put first on a worker's PATH: `g++` and `python3`."""
        return self.folder / "bin"


def ensure(toolchain: Toolchain) -> NativeTools:
    """Return the built helpers, building them first if need be (a few seconds).

    Raises:
        InfraError: the compiler failed.
    """
    parts = [toolchain.versions.get("g++", ""), toolchain.paths.get("g++", ""), _NO_PLOTS, _HEADERS]
    parts += _CONTROL_FLOW_FLAGS
    parts += [(_HERE / name).read_text(encoding="utf-8") for name in (*_SOURCES, _HEADER)]
    return NativeTools(build_cache.ensure(ROOM, build_cache.digest_of(*parts), lambda folder: _build(toolchain, folder)))


def _build(toolchain: Toolchain, folder: Path) -> None:
    compiler = toolchain.paths["g++"]
    tools = NativeTools(folder)
    tools.bin_dir.mkdir()
    plain = [compiler, "-std=c++17", "-O2"]
    switch = [*plain, "-shared", "-fPIC", "-D_GLIBCXX_USE_CXX11_ABI=0"]
    switch += [str(_HERE / _SOURCES[place]) for place in (0, *range(3, len(_SOURCES)))]
    run_build([*switch, "-o", str(tools.cost_model_switch), "-ldl"], "building the cost model's switch")
    frames = [*plain, "-shared", "-fPIC", str(_HERE / _SOURCES[2]), "-o", str(tools.crash_frames)]
    run_build(frames, "building the teller of crashes")
    memo = [*plain, str(_HERE / _SOURCES[1]), "-o", str(tools.bin_dir / "g++")]
    run_build(memo, "building the compiler's memory")
    headers = folder / "headers" / "standard.h"
    headers.parent.mkdir()
    headers.write_text(_HEADERS, encoding="utf-8")
    ready = [compiler, *_CONTROL_FLOW_FLAGS, "-x", "c++-header", str(headers), "-o", f"{headers}.gch"]
    with contextlib.suppress(InfraError):  # options of another processor: compiling is slower without, no more
        run_build(ready, "building the standard headers")
    no_plots = tools.bin_dir / "python3"
    no_plots.write_text(_NO_PLOTS, encoding="utf-8")
    no_plots.chmod(0o755)
