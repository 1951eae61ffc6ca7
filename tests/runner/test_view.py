"""What an agent's shell can write: its workspace, temporary files and caches, whatever program writes it."""

from __future__ import annotations

import os
import shlex
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.runner.running import Running, calls, says

from pypto_op.backends.worker import isolation, linux
from pypto_op.runner import apart, view
from pypto_op.runner.leash import leashed
from pypto_op_lint.concerns import HIDDEN_ENV

needs_name_spaces = pytest.mark.skipif(not isolation.allowed(), reason="this machine allows no mounts of one's own")


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A HOME that lies in no folder for temporary files, with a project, a cache and a file of settings."""
    with tempfile.TemporaryDirectory(dir=Path.home(), prefix="pypto-op-test-") as folder:
        home = Path(folder)
        (home / "project" / "work").mkdir(parents=True)
        (home / ".cache").mkdir()
        (home / ".profile").write_text("mine\n")
        monkeypatch.setenv("HOME", str(home))
        yield home


def said(words: str, workspace: Path, *, narrow: bool = True) -> str:
    with tempfile.TemporaryFile() as out:
        shell = ["bash", "-c", words]
        with leashed(shell, cwd=workspace, env=os.environ, stdout=out, stderr=subprocess.STDOUT, narrow=narrow) as child:
            child.wait(60)
        out.seek(0)
        return out.read().decode()


@needs_name_spaces
def test_a_program_that_an_agent_starts_writes_outside_of_the_workspace(running: Running, home: Path) -> None:
    """Neither the guard nor the record after the call sees it: the kernel refuses."""
    evil, own = home / "project" / "evil.txt", running.workspace / "own.txt"
    words = "; ".join(f"python3 -c \"open('{path}', 'w').write('x')\"" for path in (evil, own))
    running.run([calls(("Bash", {"command": words})), says("done")])
    assert "Read-only file system" in running.told(1) and not evil.exists() and own.read_text() == "x"


@needs_name_spaces
def test_a_program_does_not_see_what_an_evaluation_hides(running: Running, home: Path) -> None:
    """The guard cannot know a path that a program makes up; the folder is empty there, and cannot be uncovered."""
    (home / "hidden").mkdir()
    (home / "hidden" / "golden.py").write_text("Hidden golden")
    running.patch.setenv(HIDDEN_ENV, str(home / "hidden"))
    backwards = str(home / "hidden")[::-1]
    code = f"import os; p = '{backwards}'[::-1]; os.system('umount ' + p); print(os.listdir(p)); open(p + '/golden.py')"
    words = f'python3 -c "{code}"'
    running.run([calls(("Bash", {"command": words})), says("done")])
    assert "[]" in running.told(1) and "FileNotFoundError" in running.told(1) and "Hidden golden" not in running.told(1)


@needs_name_spaces
def test_where_a_command_may_write(home: Path) -> None:
    workspace = home / "project" / "work"
    allowed = [workspace / "a", home / ".cache" / "a", home / "new", Path("/tmp") / f"{home.name}", Path("/dev/null")]
    refused = [home / "project" / "a", home / ".profile", Path("/etc") / home.name]
    words = "; ".join(f"{{ echo x >> {path}; }} 2>/dev/null && echo +{path} || echo -{path}" for path in [*allowed, *refused])
    lines = said(f"{words}; rm -f /tmp/{home.name}; pwd -P", workspace).split()
    assert lines == [*(f"+{path}" for path in allowed), *(f"-{path}" for path in refused), str(workspace)]
    assert (workspace / "a").exists() and (home / ".profile").read_text() == "mine\n"


PAST = {
    "remount": "mount -o remount,bind,rw {place}; echo x > {evil}",
    "unmount": "umount -l {place}; echo x > {evil}",
    "root of the runner": "echo x > /proc/{pid}/root{evil}",
    "folder of the runner": "echo x > /proc/{pid}/cwd/../../../../../../../../{evil}",
    "root of the first": "echo x > /proc/1/root{evil}",
    "its name spaces": "nsenter -t {pid} -m -- sh -c 'echo x > {evil}'",
    "name spaces of its own": "unshare -Urm sh -c 'mount -o remount,bind,rw {place}; umount -l {place}; echo x > {evil}'",
    "as root": "setpriv --reuid 0 --regid 0 --clear-groups sh -c 'mount -o remount,bind,rw {place}; echo x > {evil}'",
}
"""Ways of root past mounts that are read-only, with the tools of util-linux."""


@needs_name_spaces
@pytest.mark.parametrize("way", PAST)
def test_root_does_not_get_past_it(home: Path, way: str) -> None:
    place, evil = home / "project", home / "project" / "evil"
    words = PAST[way].format(place=place, evil=evil, pid=os.getpid())
    told = said(f"{words}; echo still here", place / "work")
    assert told.endswith("still here\n") and not evil.exists(), told


@needs_name_spaces
@pytest.mark.skipif(os.geteuid() != 0, reason="root's rights")
def test_root_has_no_way_round_by_a_disk_or_a_service(home: Path) -> None:
    """A disk's device, the kernel's settings in /sys, and a service that starts a process for whoever asks."""
    work = home / "project" / "work"
    disk = next((path for path in Path("/dev").iterdir() if stat.S_ISBLK(path.lstat().st_mode) and _opens(path)), None)
    if disk:
        assert "Permission denied" in said(f"head -c 1 {disk}", work)
        assert "Permission denied" in said(f"unshare -Urm sh -c 'umount {disk}; head -c 1 {disk}'", work)
    assert "Read-only" in said("echo 1 > /sys/kernel/mm/transparent_hugepage/enabled", work)
    user = Path("/run/user/65533")
    user.mkdir(parents=True)
    try:
        with socket.socket(socket.AF_UNIX) as service:
            service.bind(str(user / "bus"))
            service.listen()
            ask = f"python3 -c \"import socket; socket.socket(socket.AF_UNIX).connect('{user}/bus')\""
            assert "ConnectionRefusedError" in said(ask, work) and said(ask, work, narrow=False) == ""
    finally:
        shutil.rmtree(user)


def _opens(path: Path) -> bool:
    try:
        os.close(os.open(path, os.O_RDONLY))
    except OSError:
        return False
    return True


@needs_name_spaces
@pytest.mark.skipif(os.geteuid() != 0, reason="root's rights")
def test_root_keeps_its_other_rights(home: Path) -> None:
    """It writes what is another's, gives files away, and becomes somebody else."""
    work = home / "project" / "work"
    (work / "theirs").write_text("x")
    os.chown(work / "theirs", 65534, 65534)
    (work / "theirs").chmod(0o600)
    words = "echo y > theirs && touch own && chown 65534 own && setpriv --reuid 65534 --clear-groups id -u"
    assert said(words, work) == "65534\n" and (work / "theirs").read_text() == "y\n" and (work / "own").stat().st_uid == 65534


@needs_name_spaces
def test_a_kernel_is_enclosed_inside_of_it_too(home: Path) -> None:
    code = "from pypto_op.backends.worker import isolation; print(isolation.allowed())"
    assert said(f"{sys.executable} -c '{code}'", home / "project" / "work") == "True\n"


@needs_name_spaces
@pytest.mark.sim
def test_pypto_can_be_imported_by_what_starts_there(home: Path) -> None:
    """It makes a folder in HOME when it is imported, and ends its process where it cannot."""
    document = {"pypto": True, "calculator": None, "switch": None}
    code = f"from pypto_op.backends.launcher import Zygote; z = Zygote({document}, {{}}); print(z.namespaces); z.close()"
    assert said(shlex.join([sys.executable, "-c", code]), home / "project" / "work") == "True\n"


def test_a_client_writes_where_it_likes(home: Path) -> None:
    said("echo x > ../by-client", home / "project" / "work", narrow=False)
    assert (home / "project" / "by-client").exists()


@needs_name_spaces
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_somebody_without_rights_has_the_same_view() -> None:
    """As an account that is not root, in a name space of users of its own, by an interpreter that this account can run."""
    python = next((path for path in ("/usr/bin/python3", "/usr/local/bin/python3") if Path(path).exists()), None)
    if python is None:
        pytest.skip("no interpreter that another account can run")
    with tempfile.TemporaryDirectory(prefix="pypto-op-", dir="/tmp") as folder:
        for package in ("pypto_op", "pypto_op/backends", "pypto_op/backends/worker", "pypto_op/runner"):
            (Path(folder) / package).mkdir()
            (Path(folder) / package / "__init__.py").touch()
        for module in (apart, view, linux):
            assert module.__file__
            shutil.copy(module.__file__, Path(folder, *module.__name__.split(".")).with_suffix(".py"))
        Path(folder).chmod(0o777)
        code = (
            f"import os, sys; sys.path.insert(0, {folder!r}); from pypto_op.runner import apart, view\n"
            "print(apart.own_mounts() and view.narrow(os.getcwd(), {}), os.getuid()); open('own', 'w')\n"
            "try:\n open('/var/lib/pypto-op-evil', 'w')\nexcept OSError as error:\n print(error.strerror)\n"
        )
        words, somebody = [python, "-I", "-B", "-c", code], 65534
        done = subprocess.run(
            words, cwd=folder, capture_output=True, text=True, check=False, user=somebody, group=somebody, extra_groups=[]
        )
        assert done.stdout == f"True {somebody}\nRead-only file system\n", done.stdout + done.stderr
        assert (Path(folder) / "own").exists()
