"""Crashes and symptoms of the machine, as logs: a C++ program that crashes here, pypto's own crash, and broken files."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.calling import command
from tests.debug.asking import ask, line_of
from tests.diagnose.device_logs import DeviceLog, all_logs
from tests.telling import told_lines

from pypto_op.bundle_files import bundle_root
from pypto_op.debug import environment
from pypto_op.diagnose import knowledge
from pypto_op.diagnose.search import explain

_PROGRAM = """
#include <execinfo.h>
#include <csignal>
#include <unistd.h>
namespace npu { namespace tile_fwk {
struct Pass { __attribute__((noinline)) int Run(volatile int *where) { return *where; } };
} }
static void told(int) { void *frames[32]; backtrace_symbols_fd(frames, backtrace(frames, 32), 2); _exit(139); }
int main() {
    signal(SIGSEGV, told);
    npu::tile_fwk::Pass pass;
    return pass.Run(nullptr) + 1;
}
"""


@pytest.fixture(scope="module")
def crashed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("g++") is None:
        pytest.skip("no g++")
    folder = tmp_path_factory.mktemp("crash")
    (folder / "crash.cpp").write_text(_PROGRAM)
    subprocess.run(["g++", "-g", "-O0", "-rdynamic", "-no-pie", "crash.cpp", "-o", "crash"], cwd=folder, check=True)
    done = subprocess.run([str(folder / "crash")], capture_output=True, text=True, check=False)
    assert done.returncode == 139
    (folder / "log.txt").write_text("Segmentation fault (core dumped)\n" + done.stderr)
    return folder


def test_a_crash_in_cpp_leads_to_its_line(crashed: Path) -> None:
    answer = ask("host-stacktrace-analyzer", "--log", crashed / "log.txt", "--binary", crashed / "crash", "--json")
    told = answer.result("debug_host_stacktrace_analyzer")
    assert answer.code == 0 and told["signal"] == "Segmentation fault"
    assert told["first_named"] is not None and "npu::tile_fwk::Pass::Run" in told["first_named"], told
    frame = next(one for one in told["native_frames"] if "Pass::Run" in str(one["function"]))
    if shutil.which("addr2line"):
        assert frame["file"] is not None and frame["file"].endswith("crash.cpp") and frame["line"] == 6, told
    else:
        assert any("addr2line" in one for one in told["missing"])


def test_what_binutils_would_tell_is_said_to_be_missing(crashed: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    told = ask("host-stacktrace-analyzer", "--log", crashed / "log.txt", "--json").result("debug_host_stacktrace_analyzer")
    assert told["native_frames"] and any("c++filt" in one for one in told["missing"])
    assert any("addr2line" in one for one in told["missing"])


@pytest.mark.sim
@pytest.mark.usefixtures("numeric")
def test_a_crash_of_pypto_leads_to_the_kernels_line_and_to_the_function_that_crashed(tmp_path: Path) -> None:
    file = tmp_path / "crash_impl.py"
    trap = bundle_root() / "skills/pypto-op-develop/snippets/traps/state_write_consumes.py"
    file.write_text(trap.read_text() + "\n\nbad_wrapper(torch.randn(37, 32))\n")
    command = [sys.executable, "-m", "pypto_op.backends.hostshim", str(file)]
    environment_of = {**os.environ, "PYTHONPATH": str(bundle_root() / "scripts")}
    done = subprocess.run(command, capture_output=True, text=True, env=environment_of, check=False)
    assert done.returncode == -11, done.stderr[-2000:]
    (tmp_path / "log.txt").write_text(done.stderr)
    answer = ask("host-stacktrace-analyzer", "--log", tmp_path / "log.txt", "--json")
    told = answer.result("debug_host_stacktrace_analyzer")
    assert answer.code == 0 and told["kernel_frame"]["line"] == line_of(file, "pypto.assemble(x_tile - new")
    named = "npu::tile_fwk::Sub(" if shutil.which("c++filt") else "_ZN3npu8tile_fwk"
    assert any(frame["function"] and named in frame["function"] for frame in told["native_frames"]), told


def test_a_name_that_pypto_demangled_itself_is_read(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    log.write_text("libtile_fwk_interface.so(npu::tile_fwk::Function::GetSortedOperations() const+0xf38) [0x7f1ae671a098]\n")
    told = ask("host-stacktrace-analyzer", "--log", log, "--json").result("debug_host_stacktrace_analyzer")
    assert told["first_named"] == "npu::tile_fwk::Function::GetSortedOperations() const"


def test_the_fault_handlers_frames_lead_to_the_kernels_line(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    code = "import faulthandler, ctypes; faulthandler.enable()\ndef kernel():\n    ctypes.string_at(0)\n\nkernel()\n"
    (tmp_path / "crash_impl.py").write_text(code)
    done = subprocess.run([sys.executable, str(tmp_path / "crash_impl.py")], capture_output=True, text=True, check=False)
    assert done.returncode == -11
    log.write_text(done.stderr)
    told = ask("host-stacktrace-analyzer", "--log", log, "--json").result("debug_host_stacktrace_analyzer")
    assert told["signal"] == "Segmentation fault"
    assert (told["kernel_frame"]["line"], told["kernel_frame"]["function"]) == (3, "kernel")


@pytest.mark.parametrize("tool", ["pass-error-locator", "memory-overlap-detector", "machine-workspace"])
def test_a_folder_without_artefacts_is_said_in_one_line(tmp_path: Path, tool: str) -> None:
    answer = ask(tool, tmp_path)
    assert answer.code == 2 and "pypto-op debug dump" in answer.stderr
    (tmp_path / "output_1").mkdir()
    answer = ask(tool, tmp_path)
    assert answer.code == 3 and len(told_lines(answer.stderr)) == 1


SYMPTOMS = {
    "npu_library_missing": "ImportError: libhccl.so: cannot open shared object file: No such file or directory",
    "npu_smi_library": "npu-smi: error while loading shared libraries: libc_sec.so: cannot open shared object file",
    "driver_library_missing": "ImportError: libascend_hal.so: cannot open shared object file: No such file or directory",
    "atb_library_missing": "OSError: libatb.so: cannot open shared object file: No such file or directory",
    "fp8_type_missing": "ImportError: cannot import name 'DT_FP8E8M0'",
    "pto_isa_enum_missing": "kernel.cpp:12: error: no member named 'ExpAlgorithm' in namespace 'pto'",
    "pto_isa_too_old": "error: 'TROWEXPANDADD' is not a member of 'pto'",
    "pypto_missing": "ModuleNotFoundError: No module named 'pypto'",
    "undefined_symbol": "ImportError: pypto_impl.so: undefined symbol: _ZN3c105ErrorC2E",
    "dependency_conflict": "pip._vendor.resolvelib.resolvers.ResolutionImpossible",
    "device_unset": "RuntimeError: TILE_FWK_DEVICE_ID is not set",
    "device_busy": "[ERROR] rtSetDevice failed: device is busy",
    "another_device": "[ERROR] RUNTIME(66,python): driver error:internal error, error code is 507899",
    "package_missing": "ModuleNotFoundError: No module named 'einops'",
    "tool_chain_missing": "sh: 1: g++: not found",
}


def test_every_row_of_the_table_is_seen_in_a_log() -> None:
    assert SYMPTOMS.keys() == {row["id"] for row in environment.symptoms()}


@pytest.fixture
def small_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some checks look for a header through the whole home folder, in which a hundred thousand files may lie."""
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


@pytest.mark.usefixtures("small_home")
@pytest.mark.parametrize("name", SYMPTOMS)
def test_a_symptom_has_recipe_and_check(tmp_path: Path, name: str) -> None:
    log = tmp_path / "log.txt"
    log.write_text(f"noise\n{SYMPTOMS[name]}\n")
    answer = ask("environment-setup", "--log", log, "--json")
    told = answer.result("debug_environment_setup")
    assert [one["id"] for one in told["symptoms"]] == [name] and told["symptoms"][0]["log_line"] == 2
    assert answer.code in (0, 3) and (answer.code == 3) == bool(told["symptoms"][0]["blocked"])
    page = (bundle_root() / "skills/pypto-environment-setup/references/troubleshooting.md").read_text()
    assert f"## {told['symptoms'][0]['section']}\n" in page


def test_a_row_is_of_entries_that_lead_to_this_skill() -> None:
    known = {entry.id: entry.skill for entry in knowledge.entries()}
    named = [one for row in environment.symptoms() for one in row["of"]]
    assert {known.get(one) for one in named} == {"pypto-environment-setup"}


@pytest.mark.parametrize("log", [log for log in all_logs() if log.skill == "pypto-environment-setup"], ids=lambda log: log.name)
@pytest.mark.usefixtures("small_home")
@pytest.mark.slow
def test_what_diagnose_sends_here_is_a_symptom_here(tmp_path: Path, log: DeviceLog) -> None:
    """One table: whatever `diagnose` calls a fault of the machine has a recipe and a check."""
    path = tmp_path / "device.log"
    path.write_text(log.text, encoding="utf-8")
    hits = [hit for hit in explain(path).hits if hit.entry.skill == "pypto-environment-setup"]
    told = ask("environment-setup", "--log", path, "--json").result("debug_environment_setup")
    assert bool(told["symptoms"]) == bool(hits)
    assert not hits or told["symptoms"][0]["log_line"] == hits[0].log[1]


def test_what_diagnose_knows_to_be_no_fault_of_the_machine_is_none_here(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    log.write_text("[INFO] libhccl.so: cannot open shared object file: handled\nCMake: g++: not found, skipped\n")
    assert command("diagnose", log).code == 3
    assert ask("environment-setup", "--log", log).code == 1


@pytest.fixture
def chips(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An npu-smi that prints a table in the real one's form: chips 2 and 5 run nothing."""
    tool = tmp_path / "bin" / "npu-smi"
    tool.parent.mkdir()
    rows = "\n".join(f"| No running processes found in NPU {one}     |" for one in (5, 2))
    tool.write_text(f"#!/bin/sh\ncat <<'E'\n{rows}\nE\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:{os.environ['PATH']}")
    return tool


def test_idle_chips(chips: Path) -> None:
    assert ask("environment-setup", "--idle").stdout == "2 5\n"
    chips.write_text("#!/bin/sh\nexit 1\n")
    assert ask("environment-setup", "--idle").code == 3


def test_a_command_is_run_once_more_with_what_mends_it(chips: Path) -> None:
    needs = 'test -n "$TILE_FWK_DEVICE_ID" && exit 0; echo "TILE_FWK_DEVICE_ID is not set" >&2; exit 7'
    answer = ask("environment-setup", "--json", "--", "sh", "-c", needs)
    told = answer.result("debug_environment_setup")
    assert answer.code == 0 and told["first_exit"] == 7 and told["exports"] == {"TILE_FWK_DEVICE_ID": "2"}
    assert told["rerun"]["exit"] == 0 and "\n" not in told["rerun"]["log_line"]
    answer = ask("environment-setup", "--", "sh", "-c", "echo TILE_FWK_DEVICE_ID is not set; exit 1")
    assert answer.code == 3, "a fault of the machine never exits with 1"


def test_numbers_in_passing_are_no_codes(tmp_path: Path) -> None:
    """A log is full of steps, streams and sizes that are also codes of errors."""
    log = tmp_path / "device.log"
    calm = [f"[INFO] RUNTIME(66,python): [stream.cc:653] 66 Setup: stream ok id={code}" for code in (507015, 507899, 107020)]
    log.write_text("\n".join([*calm, "step 507018: loss 0.5", "[INFO] device 3 is not busy"]) + "\n")
    told = json.loads(ask("aicore-error-locator", "--log", log, "--json").stdout)
    assert told["codes"] == [] and told["side"] == "unknown"
    assert "no symptom" in ask("environment-setup", "--log", log).stdout
    wrong = ask("aicore-error-locator", "--log", log, "--run-dir", tmp_path / "nosuch")
    assert wrong.code == 2 and "no such folder" in wrong.stderr
    with log.open("a") as file:
        file.write("[ERROR] RUNTIME(66,python): aicore error, errcode 507015, vector core exception\n")
    assert json.loads(ask("aicore-error-locator", "--log", log, "--json").stdout)["codes"] == ["507015"]


def test_a_folder_that_goes_away_while_a_file_is_looked_for_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It looks through the whole home folder, in which other programs work."""
    header = tmp_path / "pto-isa" / "include" / "pto" / "npu" / "binary.hpp"
    (tmp_path / "away").mkdir()
    header.parent.mkdir(parents=True)
    header.write_text("enum class DivAlgorithm, ExpAlgorithm;")
    (header.parent / "broken.hpp").symlink_to(tmp_path / "nowhere")
    real = os.scandir

    def scandir(path: Any = ".") -> Any:
        if Path(os.fsdecode(path)).name == "away":
            raise FileNotFoundError(2, "No such file or directory", path)
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    monkeypatch.setenv("HOME", str(tmp_path))
    log = tmp_path / "device.log"
    log.write_text("tileop/vector/binary.h:75:31: error: use of undeclared identifier 'ExpAlgorithm'\n1 error generated.\n")
    told = ask("environment-setup", "--log", log, "--json").result("debug_environment_setup")
    assert told["exports"] == {"PTO_TILE_LIB_CODE_PATH": str(tmp_path / "pto-isa")}
