"""A verdict is about everything that impl, golden and inputs load from the workspace, not about their own files alone."""

from __future__ import annotations

import os
import py_compile
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.passes import pass_for_bytes

from pypto_op.proof.closure import stale_closure
from pypto_op.report.index import doubt_about
from pypto_op.state.verdicts import check_report
from pypto_op.workspace import OpWorkspace

from .judging import CASES, Answer, place, verify

pytestmark = [pytest.mark.sim, pytest.mark.usefixtures("numeric")]

HEAD = "import sys\nfrom pathlib import Path\nHERE = Path(__file__).resolve().parent\nsys.path.insert(0, str(HERE / 'shared'))\n"
"""Puts a folder of helpers, `shared/`, into the search path of whatever file this is put in front of."""


@pytest.fixture
def ws(clean_workspace: Path) -> OpWorkspace:
    operator = place("sum_diff", clean_workspace, cases=CASES[:1], most=80)
    (operator.root / "shared").mkdir()
    return operator


def judged(ws: OpWorkspace, text: str, **files: str) -> Answer:
    """Judge the operator's kernel with `text` in front of it, and helpers in `shared/`."""
    for name, content in files.items():
        (ws.root / "shared" / f"{name}.py").write_text(content)
    ws.impl.write_text(HEAD + text + "\n" + ws.impl.read_text())
    return verify(ws.root, "--timeout", "60")


# -- recorded, and bound ---------------------------------------------------------------------------------------------

WAYS = """
import importlib, importlib.util, json, os, runpy
import numpy, torch
import constants
from package import tools
importlib.import_module("by_name")
spec = importlib.util.spec_from_file_location("by_path", HERE / "shared" / "by_path.txt.py")
spec.loader.exec_module(importlib.util.module_from_spec(spec))
runpy.run_path(str(HERE / "shared" / "ran.py"))
json.loads((HERE / "shared" / "table.json").read_text())
numpy.load(HERE / "shared" / "array.npy")
torch.load(HERE / "shared" / "weights.pt")
torch.from_file(str(HERE / "shared" / "raw.bin"), size=8, dtype=torch.uint8)
sys.path.insert(0, str(HERE / "shared" / "helpers.zip"))
import zipped
folder = os.open(HERE / "shared", os.O_RDONLY)
os.read(os.open("beside.txt", os.O_RDONLY, dir_fd=folder), 10)
(HERE / "shared" / "linked.txt").read_text()
try:
    import override
except ImportError:
    pass
if os.path.exists(HERE / "shared" / "tuning.json") or list((HERE / "tables").glob("*.json")):
    raise SystemExit
"""
LOADED = [
    "constants.py", "package/__init__.py", "package/tools.py", "by_name.py", "by_path.txt.py", "ran.py", "table.json",
    "array.npy", "weights.pt", "raw.bin", "helpers.zip", "beside.txt", "target.txt",
]  # fmt: skip
APPEARS = [
    "override.py", "override/__init__.py", "constants/__init__.py", "by_name/__init__.py", "tuning.json", "../tables/new.json",
]  # fmt: skip


def furnish(shared: Path) -> None:
    """Lay out what `WAYS` loads."""
    import numpy
    import torch

    (shared / "package").mkdir()
    (shared.parent / "tables").mkdir()
    for name in ("constants.py", "package/__init__.py", "package/tools.py", "by_name.py", "by_path.txt.py", "ran.py"):
        (shared / name).write_text("TWO = 2.0\n")
    (shared / "table.json").write_text("{}")
    numpy.save(shared / "array.npy", numpy.arange(4))
    torch.save(torch.ones(2), shared / "weights.pt")
    for name in ("raw.bin", "beside.txt", "target.txt"):
        (shared / name).write_bytes(b"12345678")
    (shared / "linked.txt").symlink_to("target.txt")
    with zipfile.ZipFile(shared / "helpers.zip", "w") as archive:
        archive.writestr("zipped.py", "Z = 1")


@pytest.mark.parametrize("who", ["candidate", "golden", "inputs"])
def test_every_way_to_load_a_file_is_recorded_and_a_change_makes_the_pass_stale(ws: OpWorkspace, who: str) -> None:
    furnish(ws.root / "shared")
    file = {"candidate": ws.impl, "golden": ws.golden, "inputs": ws.test_inputs}[who]
    place_of = HEAD if who != "inputs" else HEAD.replace(".parent\n", ".parent.parent\n")
    file.write_text(place_of + WAYS + file.read_text())
    report = verify(ws.root, "--timeout", "60").report
    assert report["status"] == "PASS", report["first_failure"] or report["error"]
    assert {f"shared/{name}" for name in LOADED} <= set(report["closure"][who])
    assert report["closure"][who]["shared/tuning.json"] == "absent"
    assert pass_for_bytes(ws) is not None
    for name in (*LOADED, "linked.txt"):
        path = ws.root / "shared" / name
        before = path.read_bytes()
        path.write_bytes(before + b" ")
        assert pass_for_bytes(ws) is None, name
        with pytest.raises(Exception, match="stale"):
            check_report(report, ws, None)
        path.write_bytes(before)
    (ws.root / "shared" / "table.json").rename(ws.root / "gone.json")
    assert pass_for_bytes(ws) is None
    (ws.root / "gone.json").rename(ws.root / "shared" / "table.json")
    for name in APPEARS:
        path = ws.root / "shared" / name
        made = not path.parent.exists()
        path.parent.mkdir(exist_ok=True)
        path.write_text("")
        assert pass_for_bytes(ws) is None, name
        shutil.rmtree(path.parent) if made else path.unlink()
    (ws.root / "shared" / "linked.txt").unlink()
    (ws.root / "other.txt").write_text("other")
    (ws.root / "shared" / "linked.txt").symlink_to("../other.txt")
    assert pass_for_bytes(ws) is None
    (ws.root / "shared" / "linked.txt").unlink()
    (ws.root / "shared" / "linked.txt").symlink_to("target.txt")
    assert pass_for_bytes(ws) is not None, "nothing is different now"


def test_nothing_is_recorded_of_an_operator_that_loads_nothing(ws: OpWorkspace) -> None:
    report = judged(ws, "").report
    assert report["closure"] == {"candidate": {}, "golden": {}, "inputs": {}}


def test_a_file_that_changes_while_it_is_judged_ends_in_no_verdict(ws: OpWorkspace) -> None:
    shared = ws.root / "shared"
    (shared / "table.json").write_text("2.0")
    ws.golden.write_text(
        HEAD + "table = HERE / 'shared' / 'table.json'\ntable.read_text()\ntable.write_text('3.0')\n" + ws.golden.read_text()
    )
    answer = verify(ws.root)
    assert answer.code == 2 and "changed while it was being judged: shared/table.json" in answer.report["error"]["message"]


def test_a_golden_that_is_replaced_for_the_run_and_put_back_ends_in_no_verdict(ws: OpWorkspace) -> None:
    """Before and after the run lies the golden that the report would name; what ran is another, which agrees with the kernel."""
    golden, other, right = ws.golden, ws.root / "other.txt", ws.golden.read_text()
    back = f"import pathlib\n    pathlib.Path({str(golden)!r}).write_text({right!r})\n    return "
    other.write_text(right.replace("x - y", "y - x").replace("return ", back))
    ws.impl.write_text(ws.impl.read_text().replace("x_tile - y_tile", "y_tile - x_tile"))
    swaps = f"    pathlib.Path({str(golden)!r}).write_text(pathlib.Path({str(other)!r}).read_text())\n"
    again = f"\n\nimport pathlib\n_make = make_inputs\n\n\ndef make_inputs(case):\n{swaps}    return _make(case)\n"
    ws.test_inputs.write_text(ws.test_inputs.read_text() + again)
    answer = verify(ws.root)
    assert golden.read_text() == right
    assert answer.code == 2 and "changed while it was being judged: golden" in answer.report["error"]["message"]


def test_a_pass_of_a_copy_that_loads_other_helpers_is_none_of_the_operators_own_file(ws: OpWorkspace) -> None:
    """The same bytes, in another folder: `import scale` finds another file there."""
    away = ws.root / "shared" / "away"
    away.mkdir()
    text = "import scale\n" + ws.impl.read_text().replace("x_tile - y_tile", "x_tile - y_tile * scale.ONE")
    for folder, one in ((ws.root, 3.0), (away, 1.0)):
        (folder / ws.impl.name).write_text(text)
        (folder / "scale.py").write_text(f"ONE = {one}\n")
    report = verify(ws.root, "--impl", str(away / ws.impl.name)).report
    assert report["status"] == "PASS", report["first_failure"] or report["error"]
    assert pass_for_bytes(ws) is None
    assert doubt_about(ws, report) == "of a file that lies elsewhere"
    with pytest.raises(Exception, match="lies elsewhere"):
        check_report(report, ws, None)
    ws.impl.unlink()
    ws.impl.symlink_to(away / ws.impl.name)  # Python looks for helpers beside the link
    assert pass_for_bytes(ws) is None
    assert pass_for_bytes(ws, away / ws.impl.name) is not None


def test_a_golden_that_asks_the_kernel_is_no_reference(ws: OpWorkspace) -> None:
    ws.golden.write_text("from sum_diff_impl import sum_diff_wrapper as sum_diff_golden\n")
    answer = verify(ws.root, "--timeout", "60")
    assert answer.code == 2 and answer.report["status"] == "ERROR", answer.report
    assert "sum_diff_impl.py: is loaded by the golden" in answer.report["error"]["message"]


def test_a_helper_outside_the_project_is_recorded_by_its_absolute_path(
    ws: OpWorkspace, tmp_path_factory: pytest.TempPathFactory
) -> None:
    away = tmp_path_factory.mktemp("away") / "elsewhere.py"
    away.write_text("X = 1\n")
    report = judged(ws, f"sys.path.insert(0, {str(away.parent)!r})\nimport elsewhere\n").report
    assert report["status"] == "PASS" and str(away) in report["closure"]["candidate"]
    away.write_text("X = 2\n")
    assert stale_closure(report["closure"], ws.root) == [str(away)]


def test_what_runs_is_the_source_never_byte_code_beside_it(ws: OpWorkspace) -> None:
    """Byte code of another source, with the time and size of this one, would be loaded by Python itself."""
    source = ws.root / "shared" / "scale.py"
    source.write_text("WRONG = 1\n")
    py_compile.compile(str(source), doraise=True)
    status = source.stat()
    text = "import scale\nassert scale.WRONG == 0, 'byte code ran'\n"
    source.write_text("WRONG = 0\n")
    os.utime(source, ns=(status.st_atime_ns, status.st_mtime_ns))
    ws.golden.write_text(HEAD + text + ws.golden.read_text())
    assert judged(ws, text).report["status"] == "PASS"


# -- held to the same as the kernel's file ---------------------------------------------------------------------------

Plant = Callable[[Path], Any]


def _byte_code(shared: Path) -> None:
    (shared / "only.py").write_text("X = 1\n")
    py_compile.compile(str(shared / "only.py"), cfile=str(shared / "only.pyc"))
    (shared / "only.py").unlink()


def _zipped_byte_code(shared: Path) -> None:
    _byte_code(shared)
    with zipfile.ZipFile(shared / "lib.zip", "w") as archive:
        archive.write(shared / "only.pyc", "only.pyc")
    (shared / "only.pyc").unlink()


def _zipped_door(shared: Path) -> None:
    with zipfile.ZipFile(shared / "lib.zip", "w") as archive:
        archive.writestr("only.py", "frame = lambda f: f.f_back\n")


def _library(shared: Path) -> None:
    import libcst.native  # some builds of Python have no library of their own

    shutil.copy(str(libcst.native.__file__), shared / "_mine.so")


def _pickled(shared: Path) -> None:
    import pickle

    class Evil:
        def __reduce__(self) -> tuple[Any, ...]:
            return exec, ("import sys; sys._getframe()",)

    (shared / "table.pkl").write_bytes(pickle.dumps(Evil()))


OWN_LOADER = """
import importlib.machinery, importlib.util
class Mine(importlib.machinery.SourceFileLoader):
    def get_data(self, path):
        return b"X = 1"
spec = importlib.util.spec_from_loader("made_up", Mine("made_up", importlib.__file__))
spec.loader.exec_module(importlib.util.module_from_spec(spec))
"""

REFUSED: dict[str, tuple[str, dict[str, str], Plant | None, str]] = {
    "a back door": (
        "import helper", {"helper": "def f(x):\n    return x.f_back\n"}, None, "`f_back` (line 2) of shared/helper.py",
    ),
    "a back door by path": (
        "import importlib.machinery as m\nm.SourceFileLoader('h', str(HERE / 'shared' / 'helper.py')).load_module()",
        {"helper": "NAME = '__globals__'\n"}, None, "`__globals__` (line 1) of shared/helper.py",
    ),
    "a back door in a zip": ("sys.path.insert(0, str(HERE / 'shared' / 'lib.zip'))\nimport only", {}, _zipped_door, "`f_back`"),
    "a back door in a text": ("import timeit\ntimeit.timeit('(lambda f: f.f_back)', number=1)", {}, None, "`f_back` (line"),
    "frames": (
        "import helper\nhelper.f()", {"helper": "import sys\ndef f():\n    return sys._getframe(1)\n"}, None, "frames of its",
    ),
    "frames from logging": ("import logging\nlogging.currentframe()", {}, None, "frames of its callers"),
    "made-up code": ("import helper", {"helper": "exec('X = 1')\n"}, None, "run code that is not in its file"),
    "byte code": ("import only", {}, _byte_code, "load byte code in the place of a source (shared/only.pyc)"),
    "byte code in a zip": (
        "sys.path.insert(0, str(HERE / 'shared' / 'lib.zip'))\nimport only", {}, _zipped_byte_code, "load byte code",
    ),
    "a library": ("import _mine", {}, _library, "load a C library (shared/_mine.so)"),
    "a loader": (OWN_LOADER, {}, None, "load code by a loader of its own"),
    "a pickle": (
        "import pickle\npickle.loads((HERE / 'shared' / 'table.pkl').read_bytes())", {}, _pickled, "a pickle that names",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_helpers_are_searched_and_guarded_like_the_kernel(ws: OpWorkspace, name: str) -> None:
    text, files, plant, words = REFUSED[name]
    if plant is not None:
        plant(ws.root / "shared")
    first = judged(ws, text, **files).report["first_failure"]
    assert first["reason"] == "forbidden" and words in first["summary"], first
