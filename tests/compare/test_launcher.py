"""The seeds' test-file preamble finds the comparison, from a checkout and from an installation."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests import program

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]

PREAMBLE = """
import os, sys
_test_dir = os.path.dirname(os.path.abspath(__file__))
_current, _candidate = _test_dir, None
for _ in range(8):
    _candidate = os.path.join(_current, ".agents", "skills", "pypto-op-verify", "scripts")
    if os.path.isdir(_candidate):
        if _candidate not in sys.path:
            sys.path.insert(0, _candidate)
        break
    _parent = os.path.dirname(_current)
    if _parent == _current:
        _candidate = None
        break
    _current = _parent
if _candidate is None or not os.path.isdir(_candidate):
    raise ImportError("Could not locate detailed_tensor_compare")
import torch
from detailed_tensor_compare import detailed_tensor_compare

"""


def run(script: Path, *arguments: str, python_flags=()) -> subprocess.CompletedProcess:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    if not python_flags:
        return program.with_torch(script, *arguments, env=environment)
    command = [sys.executable, *python_flags, str(script), *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment)


def test_the_preamble_works_below_the_checkout():
    folder = ROOT / "tests" / "compare"
    script = folder / f"_preamble_{os.getpid()}.py"
    script.write_text(
        PREAMBLE + "print(detailed_tensor_compare(torch.ones(2), torch.ones(2), atol=1e-3, rtol=1e-3,"
        ' tensor_name="out0")["all_close"])\n'
    )
    try:
        done = run(script)
    finally:
        script.unlink()
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "True" and "out0" in done.stdout


@pytest.fixture
def elsewhere(tmp_path):
    """A workspace that holds only a copy of the launcher, as one outside the checkout does."""
    scripts = tmp_path / ".agents" / "skills" / "pypto-op-verify" / "scripts"
    scripts.mkdir(parents=True)
    source = ROOT / "skills" / "pypto-op-verify" / "scripts" / "detailed_tensor_compare.py"
    shutil.copy(source, scripts)
    script = tmp_path / "custom" / "relu" / "test_relu.py"
    script.parent.mkdir(parents=True)
    return script


def test_the_launcher_falls_back_to_the_installed_package(elsewhere):
    elsewhere.write_text(PREAMBLE + "import pypto_op.compare as c\nassert detailed_tensor_compare is c.detailed_tensor_compare\n")
    done = run(elsewhere)
    assert done.returncode == 0, done.stderr


def test_without_a_package_the_launcher_says_what_to_install(elsewhere):
    elsewhere.write_text(PREAMBLE.replace("import torch\n", ""))
    done = run(elsewhere, python_flags=["-S"])
    assert done.returncode == 1
    assert "start your file with `pypto-op script FILE`" in done.stderr


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("detailed_tensor_compare(torch.zeros(2), torch.ones(2))", 1),
        ("kept = [detailed_tensor_compare(torch.zeros(2), torch.ones(2))]", 1),
        ("detailed_tensor_compare(torch.ones(2), torch.ones(2))", 0),
        ("r = detailed_tensor_compare(torch.zeros(2), torch.ones(2)); r['all_close']", 0),
        ("r = detailed_tensor_compare(torch.zeros(2), torch.ones(2)); import json; json.dumps(r)", 0),
        ("print(detailed_tensor_compare(torch.zeros(2), torch.ones(2)))", 0),
        ("assert detailed_tensor_compare(torch.zeros(2), torch.ones(2))['all_close']", 1),
    ],
)
def test_a_failing_comparison_that_nobody_reads_ends_in_exit_code_1(elsewhere, line, code):
    elsewhere.write_text(PREAMBLE + f"import atexit; atexit.register(print, 'LAST WORDS')\n{line}\nprint('[PRECISION_PASS]')\n")
    done = run(elsewhere)
    assert done.returncode == code, done.stderr
    assert "LAST WORDS" in done.stdout
    if code and "assert" not in line:
        assert "nobody read the result (tensor)" in done.stderr
