"""Rules, names and `api` answer for the pypto that is asked for, installed or not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.calling import command

from pypto_op_lint import pypto_names
from pypto_op_lint.examples import BODY, impl

NEXT = "0.2.1"


def blocked(tmp_path: Path, text: str, *words: str) -> list[str]:
    """Return the rules that block a kernel's file."""
    file = tmp_path / "demo_impl.py"
    file.write_text(text)
    done = command("lint", "--json", file, *words)
    found = json.loads(done.stdout)["findings"]
    return sorted({one["rule_id"] for one in found if one["severity"] in ("S0", "S1") and one["status"] == "FAIL"})


@pytest.mark.parametrize("decorator", ["@pypto.jit", '@pypto.jit(runtime_options={"run_mode": pypto.RunMode.NPU})'])
def test_a_kernel_of_the_next_release(tmp_path: Path, decorator: str) -> None:
    text = impl(decorator=decorator)
    assert blocked(tmp_path, text, "--pypto", NEXT) == blocked(tmp_path, impl()) == []
    assert {"OL01", "OL55"} <= set(blocked(tmp_path, text, "--pypto", "0.2.0"))


@pytest.mark.parametrize("parameters", ["x: pypto.Tensor[...],\nout: pypto.Tensor[...],\n", ""])
def test_idioms_of_the_next_releases_examples(tmp_path: Path, parameters: str) -> None:
    """A kernel whose annotations leave shape and dtype to the call, options by name, three numbers for the cube's k."""
    body = BODY.replace("pypto.set_vec_tile_shapes(64, 128)\n", _CUBE)
    options = 'OPTIONS = {"run_mode": pypto.RunMode.NPU}\n\n\n'
    words = {"parameters": parameters} if parameters else {}
    text = impl(body, before=options, decorator="@pypto.jit(runtime_options=OPTIONS)", **words)
    assert blocked(tmp_path, text, "--pypto", NEXT) == []


_CUBE = "pypto.set_vec_tile_shapes(64, 128)\npypto.set_cube_tile_shapes([16, 16], [64, 128, 64], [64, 64])\n"


def test_two_kernels_are_two_whatever_the_decorator_is_called(tmp_path: Path) -> None:
    second = "@pypto.jit\ndef second(x: pypto.Tensor([64, 64], pypto.DT_FP32)):\n    pypto.set_vec_tile_shapes(64, 64)\n\n\n"
    assert "OL01" in blocked(tmp_path, impl(before=second), "--pypto", NEXT)


def test_a_name_of_the_next_release(tmp_path: Path) -> None:
    text = impl(BODY.replace("pypto.exp(tile)", "pypto.erf(tile)"))
    assert text != impl()
    assert blocked(tmp_path, text, "--pypto", NEXT) == []
    assert blocked(tmp_path, text, "--pypto", "0.2.0") == ["OL55"]
    assert blocked(tmp_path, text.replace("pypto.erf(", "pypto.erv("), "--pypto", NEXT) == ["OL55"]


@pytest.mark.parametrize(("old", "new", "told"), [
    ("pypto.min(", "min(", False),
    ("pypto.exp(tile)", "max(tile, x)", True),
])  # fmt: skip
def test_pythons_own_min_of_two_is_pyptos_since_then(tmp_path: Path, old: str, new: str, told: bool) -> None:
    text = impl(BODY.replace(old, new), before="import functools\n")
    assert ("OL06" in blocked(tmp_path, text, "--pypto", NEXT)) is told
    assert "OL06" in blocked(tmp_path, text, "--pypto", "0.2.0")


def test_a_release_that_nobody_knows(tmp_path: Path) -> None:
    file = tmp_path / "demo_impl.py"
    file.write_text(impl())
    for words in (("lint", file), ("api", "exp")):
        done = command(*words, "--pypto", "7.1")
        assert done.code == 2 and done.stderr.count("\n") == 1, done
        assert "the names of pypto 7.1 are not known; ask for one of 0.2.0, 0.2.1" in done.stderr


def test_api_tells_the_next_releases_names() -> None:
    done = command("api", "erf", "--pypto", NEXT)
    assert done.code == 0 and "erf(self)" in done.stdout and "0.2.1 is not installed" in done.stdout
    assert command("api", "erv", "--pypto", NEXT).code == 2
    listed = json.loads(command("api", "--list", "--json", "--pypto", NEXT).stdout)
    assert listed["pypto_version"] == NEXT and "pypto.Tensor.cumprod" in {row["name"] for row in listed["names"]}


def test_the_question_ends_with_the_command() -> None:
    before = pypto_names.names().version
    with pypto_names.asked_for(NEXT):
        assert pypto_names.names().version == NEXT
    assert pypto_names.names().version == before


def test_sources_tell_what_the_installed_release_tells(tmp_path: Path) -> None:
    """A little package in the shape of pypto's: compiled names from a stub, functions and classes from Python."""
    package = tmp_path / "pypto"
    package.mkdir()
    (package / "pypto_impl.pyi").write_text(
        "import enum\nclass Mode(enum.Enum):\n    A = ...\n    B: int\nclass Raw:\n    X: Raw\n"
        "def add(a: int, mode: Mode = Mode.A) -> int: ...\n"
    )
    (package / "_loader.py").write_text("raise RuntimeError('no shared libraries here')\n")
    (package / "frontend.py").write_text("def jit(function=None, **options):\n    return function\n")
    (package / "__init__.py").write_text(
        "from . import _loader, frontend\nfrom .pypto_impl import Mode\nfrom . import pypto_impl\njit = frontend.jit\n"
        "class Tensor:\n    def exp(self) -> 'Tensor': ...\ndef exp(x: Tensor, *, scale: float = 1.0) -> Tensor: ...\n"
        "LIMIT = pypto_impl.not_in_the_stub.deeper | 3\n"
    )
    table = tmp_path / "table.json"
    from tests import program

    done = program.python("-m", "tests.lint.pypto_sources", tmp_path, "9.9", table)
    assert done.returncode == 0, done.stderr
    found = json.loads(table.read_text())
    assert found["aliases"] == {"pypto.jit": "pypto.frontend.jit"} and found["pypto_version"] == "9.9"
    assert found["members"]["pypto.Mode"] == ["A", "B", "name", "value"] and "pypto.pypto_impl" not in found["members"]
    assert found["parameters"]["pypto.exp"] == ["x", "scale"] and "pypto.exp" in found["returns_tensor"]
