"""The compiler that remembers: the same result as the real one, and no memory of what differs."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from pypto_op.backends import native
from pypto_op.backends.toolchain import find_toolchain

SOURCE = """// hash: 17
/* name 18 */
#include "value.h"
int answer() { return VALUE; }  // not a line of its own
"""


def guarded(*pieces: str) -> str:
    """Return a header like those that pypto writes: a guard around definitions."""
    return "\n".join(("#ifndef VALUE_H", "#define VALUE_H", *pieces, "#endif/*VALUE_H */", ""))


TWO = "#define TWO_FLAG 0\n#if TWO_FLAG\n#define TWO 22\n#else /*TWO_FLAG */\n#define TWO 2\n#endif/*TWO_FLAG */\n"
FORTY = TWO.replace("TWO", "FORTY").replace("2\n", "40\n")
VALUE = "#define VALUE (FORTY + TWO)"


@pytest.fixture
def memo(tmp_path: Path) -> dict[str, str]:
    """The environment of a worker whose real compiler counts its calls in `calls`."""
    tools = find_toolchain()
    if not tools.complete:
        pytest.skip(tools.reason)
    counting = tmp_path / "counting-g++"
    counting.write_text(f'#!/bin/sh\necho x >> "{tmp_path}/calls"\nexec {tools.paths["g++"]} "$@"\n')
    counting.chmod(0o755)
    (tmp_path / "cc").mkdir()
    path = f"{native.ensure(tools).bin_dir}:{os.environ['PATH']}"
    return {"PATH": path, "PYPTO_OP_CXX": str(counting), "PYPTO_OP_CC_CACHE": str(tmp_path / "cc")}


def compile_in(
    folder: Path, environment: dict[str, str], source: str, *, header: str = "#define VALUE 42\n", flags: str = "-O2"
) -> bytes:
    folder.mkdir(exist_ok=True)
    (folder / "value.h").write_text(header)
    (folder / "a.cpp").write_text(source)
    command = f"g++ {flags} -S {folder}/a.cpp -o {folder}/a.s && g++ -c {folder}/a.s -o {folder}/a.o"
    subprocess.run(["sh", "-c", command], env=environment, check=True)
    return (folder / "a.o").read_bytes()


def calls(tmp_path: Path) -> int:
    return len((tmp_path / "calls").read_text().split())


def test_the_same_code_is_compiled_once(tmp_path: Path, memo: dict[str, str]) -> None:
    first = compile_in(tmp_path / "one", memo, SOURCE)
    assert calls(tmp_path) == 2
    again = compile_in(tmp_path / "two", memo, SOURCE.replace("17", "99").replace("18", "98"))
    assert calls(tmp_path) == 2, "running numbers in comment lines do not matter"
    assert again == first


def test_the_order_of_independent_macros_does_not_matter(tmp_path: Path, memo: dict[str, str]) -> None:
    first = compile_in(tmp_path / "one", memo, SOURCE, header=guarded(TWO, FORTY, VALUE))
    before = calls(tmp_path)
    assert compile_in(tmp_path / "two", memo, SOURCE, header=guarded("", FORTY, TWO, "", VALUE)) == first
    assert calls(tmp_path) == before
    assert compile_in(tmp_path / "two", memo, SOURCE, header=guarded(FORTY, TWO.replace("2\n#e", "3\n#e"), VALUE)) != first


@pytest.mark.slow
@pytest.mark.parametrize(
    "pieces",
    [
        (TWO, FORTY.replace("FORTY_FLAG", "TWO_FLAG").replace("#define TWO_FLAG 0", "#define MORE")),
        (TWO.replace("_FLAG 0", "_FLAG MORE"), FORTY.replace("_FLAG 0", "_FLAG 1") + "#define MORE 1"),
        (TWO, FORTY, "#define TWO 2\n#if MORE\n#endif\n"),
        (TWO, FORTY + "#include <stdint.h>\n"),
        (TWO, FORTY + "#undef MORE\n"),
        (TWO, "/*\n#define FORTY 41\n*/\n#define FORTY 40\n"),
    ],
    ids=["asks for another's", "asks by way of another's", "defined twice", "includes", "undefines", "in a comment"],
)
def test_the_order_of_others_does(tmp_path: Path, memo: dict[str, str], pieces: tuple[str, ...]) -> None:
    compile_in(tmp_path / "one", memo, SOURCE, header=guarded(*pieces, VALUE))
    before = calls(tmp_path)
    compile_in(tmp_path / "two", memo, SOURCE, header=guarded(*reversed(pieces), VALUE))
    assert calls(tmp_path) > before


@pytest.mark.parametrize(
    ("source", "more"),
    [
        (SOURCE.replace("VALUE;", "VALUE + 1;"), {}),
        (SOURCE, {"header": "#define VALUE 43\n"}),
        (SOURCE, {"flags": "-O0"}),
        (SOURCE.replace("// hash: 17\n", ""), {}),
        (SOURCE.replace("// hash: 17", "// hash: 17 \\"), {}),
        (SOURCE.replace("/* name 18 */", "/* name */ int other() { return 1; } /* 18 */"), {}),
    ],
)
@pytest.mark.slow
def test_what_differs_is_compiled(tmp_path: Path, memo: dict[str, str], source: str, more: dict[str, str]) -> None:
    compile_in(tmp_path / "one", memo, SOURCE)
    before = calls(tmp_path)
    remembered = compile_in(tmp_path / "two", memo, source, **more)
    assert calls(tmp_path) > before
    plain = {**memo, "PYPTO_OP_CC_CACHE": str(tmp_path / "missing")}
    assert compile_in(tmp_path / "two", plain, source, **more) == remembered


def test_ready_made_headers_change_nothing(tmp_path: Path, memo: dict[str, str]) -> None:
    """Code like pypto's (plain C with the headers included), with and without: the same but for label numbers."""
    source = (
        '#include "value.h"\n#include <stdint.h>\n#include <vector>\n'
        'extern "C" uint64_t Entry(uint64_t* list, int64_t* table) {\n'
        "    for (int64_t i = 0; i < table[0] + VALUE; ++i) list[i] += table[i] * (i % 7);\n"
        "    return list[0];\n}\n"
    )
    flags = "-fPIC -fno-stack-protector -O2 -mno-sse2 -mno-sse"
    compile_in(tmp_path / "one", memo, source, flags=flags)
    command = [memo["PYPTO_OP_CXX"], *flags.split(), "-S", str(tmp_path / "one" / "a.cpp"), "-o", str(tmp_path / "b.s")]
    subprocess.run(command, check=True)
    with_headers, without = (
        re.sub(r"\.LF[BE]\d+", "label", path.read_text()) for path in (tmp_path / "one" / "a.s", tmp_path / "b.s")
    )
    assert with_headers == without


def test_failures_are_not_remembered(tmp_path: Path, memo: dict[str, str]) -> None:
    for _ in range(2):
        with pytest.raises(subprocess.CalledProcessError):
            compile_in(tmp_path / "one", memo, "int x = ;\n")
    assert list((tmp_path / "cc").glob("*.out")) == []
    assert calls(tmp_path) == 2


def test_everything_else_goes_to_the_real_compiler(tmp_path: Path, memo: dict[str, str]) -> None:
    done = subprocess.run(["g++", "--version"], env=memo, capture_output=True, text=True, check=True)
    assert "Free Software Foundation" in done.stdout
    (tmp_path / "m.cpp").write_text("int main() { return 7; }\n")
    subprocess.run(["g++", "m.cpp", "-o", "m"], env=memo, cwd=tmp_path, check=True)
    assert subprocess.run([str(tmp_path / "m")], check=False).returncode == 7


def test_plots_are_not_drawn(memo: dict[str, str]) -> None:
    done = subprocess.run(["python3", "/no/such/script.py"], env=memo, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
