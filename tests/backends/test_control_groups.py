"""A container has a share of its host: workers are as many as that share allows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pypto_op.backends import control_groups, cores, memory
from pypto_op.judge.running.runner import worker_count

GIB = 2**30


def _laid(folder: Path, own: str, files: dict[str, str]) -> tuple[Path, Path]:
    for name, text in files.items():
        path = folder / "groups" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / "cgroup").write_text(own)
    return folder / "cgroup", folder / "groups"


CORES = {
    "second version": ("0::/a/b\n", {"a/b/cpu.max": "150000 100000\n", "a/cpu.max": "max 100000\n"}, {2}),
    "a group above": ("0::/a/b\n", {"a/b/cpu.max": "max 100000\n", "a/cpu.max": "800000 100000\n"}, {8}),
    "the root of a container": ("0::/kubepods/pod1\n", {"cpu.max": "400000 100000\n"}, {4}),
    "first version": (
        "9:memory:/m\n4:cpu,cpuacct:/c\n0::/\n",
        {"cpu,cpuacct/c/cpu.cfs_quota_us": "50000\n", "cpu,cpuacct/c/cpu.cfs_period_us": "100000\n"},
        {1},
    ),
    "all of the first": ("4:cpu:/\n", {"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, set()),
    "damaged": ("nothing\n0::/a\n", {"a/cpu.max": "many\n"}, set()),
}


@pytest.mark.parametrize("kind", CORES)
def test_how_many_cores_a_group_may_take(kind: str, tmp_path: Path) -> None:
    own, files, found = CORES[kind]
    assert {*control_groups.cores(*_laid(tmp_path, own, files))} == found


MEMORY = {
    "second version": (
        "0::/a\n",
        {"a/memory.max": f"{8 * GIB}\n", "a/memory.current": f"{6 * GIB}\n", "a/memory.stat": f"anon 5\ninactive_file {GIB}\n"},
        {3072},
    ),
    "first version": (
        "4:memory:/\n",
        {"memory/memory.limit_in_bytes": f"{4 * GIB}", "memory/memory.usage_in_bytes": f"{5 * GIB}"},
        {0},
    ),
    "no limit": ("0::/a\n", {"a/memory.max": "max\n", "a/memory.current": "5\n"}, set()),
}


@pytest.mark.parametrize("kind", MEMORY)
def test_how_much_memory_a_group_may_still_take(kind: str, tmp_path: Path) -> None:
    own, files, found = MEMORY[kind]
    assert {*control_groups.free_mb(*_laid(tmp_path, own, files))} == found


def test_another_system_grants_all(tmp_path: Path) -> None:
    assert [*control_groups.cores(tmp_path / "none", tmp_path)] == []


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="Linux alone binds a process so")
def test_a_bound_process_counts_its_own_cores() -> None:
    one = min(os.sched_getaffinity(0))
    code = f"import os; os.sched_setaffinity(0, {{{one}}}); from pypto_op.backends.cores import usable; print(usable())"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "1\n"


def test_lanes_are_as_many_as_the_groups_allow(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [{"id": f"L1_{number}", "shape": {"B": number}, "dtype": "float32"} for number in range(1, 40)]
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(64))
    monkeypatch.setattr(control_groups, "free_mb", lambda: iter([10**6]))
    monkeypatch.setattr(control_groups, "cores", lambda: iter([3, 2]))
    assert (cores.usable(), worker_count(cases)) == (2, 2)
    monkeypatch.setattr(control_groups, "free_mb", lambda: iter([100]))
    assert (memory.available_mb(), worker_count(cases)) == (100, 1)
