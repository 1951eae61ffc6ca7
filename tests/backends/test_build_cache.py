"""The cache of built things: one build for many processes, damage mended, failures told in one line."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pypto_op.backends import build_cache, calculator, toolchain
from pypto_op.errors import InfraError


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYPTO_OP_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def build_slowly(folder: Path) -> None:
    time.sleep(0.2)
    (folder / "deep").mkdir()
    (folder / "deep" / "thing").write_text(f"built by {os.getpid()}")


SCRIPT = """
import os, time
from pypto_op.backends import build_cache
def build(folder):
    time.sleep(0.5)
    (folder / "thing").write_text(f"built by {os.getpid()}")
print((build_cache.ensure("room", "a" * 64, build) / "thing").read_text())
"""


def test_many_processes_get_one_build() -> None:
    command = [sys.executable, "-c", SCRIPT]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    built = {process.communicate()[0] for process in processes}
    assert len(built) == 1
    assert built.pop().startswith("built by")


@pytest.mark.parametrize("damage", ["truncate", "remove", "no manifest", "bad manifest", "empty manifest"])
def test_a_damaged_entry_is_built_again(damage: str) -> None:
    entry = build_cache.ensure("room", "b" * 64, build_slowly)
    thing, manifest = entry / "deep" / "thing", entry / "manifest.json"
    if damage == "truncate":
        thing.write_text("")
    elif damage == "remove":
        thing.unlink()
    elif damage == "no manifest":
        manifest.unlink()
    else:
        manifest.write_text("{" if damage == "bad manifest" else "{}")
    assert not build_cache.is_sound(entry)
    assert build_cache.ensure("room", "b" * 64, build_slowly) == entry
    assert thing.read_text().startswith("built by")
    assert build_cache.is_sound(entry)


def test_an_entry_is_read_again_only_when_it_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each session of a verdict asks; a change that keeps size and date is seen by the time of the change."""
    entry = build_cache.ensure("room", "f" * 64, build_slowly)
    thing = entry / "deep" / "thing"
    assert build_cache.is_sound(entry)
    read: list[Path] = []
    whole = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: read.append(path) or whole(path))
    assert build_cache.is_sound(entry) and read == []
    dates = thing.stat()
    thing.write_text("x" * dates.st_size)
    os.utime(thing, ns=(dates.st_atime_ns, dates.st_mtime_ns))
    assert not build_cache.is_sound(entry) and read == [thing]


def test_a_build_that_fails_leaves_nothing(cache: Path) -> None:
    def fail(folder: Path) -> None:
        (folder / "half").write_text("x")
        raise InfraError("no space")

    with pytest.raises(InfraError, match="no space"):
        build_cache.ensure("room", "c" * 64, fail)
    assert [path.name for path in (cache / "room").iterdir() if path.suffix != ".lock"] == []


def test_drafts_of_killed_builds_are_removed(cache: Path) -> None:
    draft = cache / "room" / ".building-old"
    draft.mkdir(parents=True)
    os.utime(draft, (0, 0))
    build_cache.ensure("room", "d" * 64, build_slowly)
    assert not draft.exists()


def test_keys_do_not_run_into_one_another() -> None:
    assert build_cache.digest_of("ab", "c") != build_cache.digest_of("a", "bc")
    assert build_cache.digest_of("ab") == build_cache.digest_of(b"ab")


def test_no_tool_chain_is_one_line_with_a_remedy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("pypto")
    monkeypatch.setenv("PATH", str(tmp_path))
    found = toolchain.find_toolchain()
    assert found.missing == toolchain.REQUIRED
    ingredients = calculator.find_ingredients()
    assert ingredients is not None
    with pytest.raises(InfraError) as caught:
        calculator.ensure(ingredients)
    words = caught.value.one_line()
    assert "g++" in words
    assert toolchain.INSTALL_LINE in words
    assert "\n" not in words


def test_the_key_follows_everything_that_the_build_depends_on(tmp_path: Path) -> None:
    lib = tmp_path / "lib"
    (lib / "calculator" / "src").mkdir(parents=True)
    source = lib / "calculator" / "src" / "a.cpp"
    source.write_text("1")
    tools = toolchain.Toolchain({"g++": "/usr/bin/g++"}, (), {"g++": "g++ 12"})
    plain = calculator.Ingredients(lib, tmp_path / "torch", "2.13.0+cpu", tools)
    keys = {plain.key}
    newer = toolchain.Toolchain({"g++": "/usr/bin/g++"}, (), {"g++": "g++ 13"})
    keys.add(calculator.Ingredients(lib, tmp_path / "torch", "2.14.0+cpu", tools).key)
    keys.add(calculator.Ingredients(lib, tmp_path / "torch2", "2.13.0+cpu", tools).key)
    keys.add(calculator.Ingredients(lib, tmp_path / "torch", "2.13.0+cpu", newer).key)
    assert plain.key in keys
    source.write_text("2")
    keys.add(plain.key)
    source.rename(source.with_name("b.cpp"))
    keys.add(plain.key)
    assert len(keys) == 6


def test_a_compiler_that_fails_is_told_in_one_line(tmp_path: Path) -> None:
    script = tmp_path / "cc"
    script.write_text("#!/bin/sh\necho working\necho 'x.cpp:3: error: no such thing' >&2\nexit 1\n")
    script.chmod(0o755)
    with pytest.raises(InfraError, match="building it failed: x.cpp:3: error: no such thing"):
        calculator.run_build([str(script)], "building it")
    with pytest.raises(InfraError, match="building it failed"):
        calculator.run_build([str(tmp_path / "missing")], "building it")


def test_a_second_environment_with_the_same_packages_takes_the_same_library(tmp_path: Path) -> None:
    tools = toolchain.find_toolchain()
    keys = []
    for name, size in (("one", "10"), ("two", "10"), ("other", "11")):
        site = tmp_path / name
        for package in ("torch", "pypto"):
            (site / package / "lib").mkdir(parents=True)
            (site / f"{package}-1.0.dist-info").mkdir()
            record = f"{package}/lib/a.so,sha256=abc,{size}\n{package}/x.py,sha256={name},1\n../../bin/tool,sha256={name},1\n"
            (site / f"{package}-1.0.dist-info" / "RECORD").write_text(record)
        keys.append(calculator.Ingredients(site / "pypto" / "lib", site / "torch", "1.0", tools).key)
    assert keys[0] == keys[1] != keys[2]
