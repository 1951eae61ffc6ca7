"""What a candidate may not touch: refused, remembered and classified, with name spaces and without."""

from __future__ import annotations

import builtins
import importlib
import sys
from functools import partial
from pathlib import Path

import pytest
import torch

from pypto_op.backends import launcher, sim
from pypto_op.backends.worker import guard, trusted
from pypto_op.vocabulary import Outcome
from pypto_op.workspace import OpWorkspace

from . import kernels
from .conftest import Run
from .kernels import at_import, host_only

pytestmark = [pytest.mark.sim, pytest.mark.usefixtures("numeric")]

OP = "os.path.dirname(os.path.abspath(__file__))"

TOUCHES = {
    "golden": (f"open({OP} + '/double_golden.py').read()", "open double_golden.py"),
    "golden by another path": (f"open({OP} + '/../double/./double_golden.py').read()", "open double_golden.py"),
    "golden by os.open": (f"os.open({OP} + '/double_golden.py', os.O_RDONLY)", "open double_golden.py"),
    "golden as a module": ("import double_golden", "import double_golden"),
    "inputs": (f"open({OP} + '/eval/test_inputs.py').read()", "open eval/test_inputs.py"),
    "suite": (f"open({OP} + '/eval/adversarial_suite.json').read()", "open eval/adversarial_suite.json"),
    "list of eval": (f"os.listdir({OP} + '/eval')", "list eval"),
    "test": (f"open({OP} + '/test_double.py').read()", "open test_double.py"),
    "state": (f"open({OP} + '/.orchestrator_state.json').read()", "open .orchestrator_state.json"),
    "write beside itself": (f"open({OP} + '/note.txt', 'w')", "write note.txt"),
    "write elsewhere": ("open('/tmp/pypto_op_test_note', 'w')", "write /tmp/pypto_op_test_note"),
    "remove": (f"os.remove({OP} + '/double_golden.py')", "change double_golden.py"),
    "rename": (f"os.rename({OP} + '/double_impl.py', {OP} + '/x.py')", "change double_impl.py"),
    "another program": ("__import__('subprocess').run(['true'])", "start another program"),
    "a shell": ("os.system('true')", "start another program"),
    "the network": (
        "__import__('socket').socket().connect(('127.0.0.1', 9))",
        "use the network",
    ),
    "a library": ("__import__('ctypes').CDLL('libm.so.6')", "load a C library (libm.so.6)"),
}


@pytest.mark.parametrize("enclose", [True, False])
@pytest.mark.parametrize("what", sorted(TOUCHES))
def test_refused_and_named(run: Run, what: str, enclose: bool) -> None:
    statement, offence = TOUCHES[what]
    result = run(host_only(statement), enclose=enclose)
    assert result.outcome is Outcome.FORBIDDEN
    assert result.detail == f"double_impl.py tried to {offence}"
    assert result.outputs == []


def test_at_import_too(run: Run) -> None:
    assert run(at_import("import double_golden")).outcome is Outcome.FORBIDDEN


def test_swallowing_the_refusal_does_not_help(run: Run) -> None:
    source = host_only("try:", "    import double_golden", "except BaseException: pass")
    assert run(source).outcome is Outcome.FORBIDDEN


def test_compiled_golden(run: Run, operator: OpWorkspace) -> None:
    cache = operator.root / "__pycache__"
    cache.mkdir()
    (cache / "double_golden.cpython-311.pyc").write_bytes(b"code")
    result = run(host_only(f"open({OP} + '/__pycache__/double_golden.cpython-311.pyc')"))
    assert result.outcome is Outcome.FORBIDDEN
    for path in cache.iterdir():
        path.unlink()
    cache.rmdir()


def test_through_a_link(run: Run, operator: OpWorkspace, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(operator.golden)
    result = run(host_only(f"open({str(tmp_path / 'link')!r})"))
    assert result.outcome is Outcome.FORBIDDEN
    (tmp_path / "link").unlink()


@pytest.mark.parametrize(
    "statement",
    [
        "open(__file__).read()",
        "open('mine.txt', 'w').write('x'); open('mine.txt').read(); os.remove('mine.txt')",
        "__import__('tempfile').NamedTemporaryFile().close()",
        "import json, math, functools, decimal",
        "print(os.listdir('.'))",
        "open(os.devnull, 'w').write('x')",
        "torch.save(x, 'x.pt'); torch.load('x.pt')",
    ],
)
def test_what_an_honest_candidate_may_do(run: Run, statement: str) -> None:
    result = run(host_only(statement))
    assert result.outcome is Outcome.OK, result.detail


def test_environment_is_scrubbed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "s3cret")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "s3cret")
    result = run(host_only("print(dict(os.environ), open('/proc/self/environ').read())"))
    assert result.outcome is Outcome.OK
    assert "s3cret" not in result.stdout
    assert "TILE_FWK_DEVICE_ID" in result.stdout


# -- below Python: only name spaces hold ------------------------------------------------------------------------

LIBC = "__import__('gc').collect(); import ctypes; libc = ctypes.PyDLL(None)"


@pytest.fixture
def namespaces(run: Run) -> None:
    run(kernels.GOOD)
    if not all(zygote.namespaces for zygote in launcher.living()):
        pytest.skip("this machine does not allow name spaces")


@pytest.mark.usefixtures("namespaces")
def test_golden_is_empty_for_c_code(run: Run) -> None:
    """`libc.open` raises no audit event."""
    result = run(
        host_only(
            LIBC,
            f"handle = libc.open(os.fsencode({OP} + '/double_golden.py'), 0)",
            "print('read', libc.read(handle, ctypes.create_string_buffer(100), 100))",
        )
    )
    assert result.outcome is Outcome.OK, result.detail
    assert result.stdout.strip() in ("read 0", "read -1")


@pytest.mark.usefixtures("namespaces")
def test_files_outside_are_read_only_for_c_code(run: Run, operator: OpWorkspace) -> None:
    result = run(
        host_only(
            LIBC,
            f"print('wrote', libc.open(os.fsencode({OP} + '/planted.py'), os.O_CREAT | os.O_WRONLY, 0o600))",
            "print('tmp', libc.open(b'/tmp/pypto_op_planted', os.O_CREAT | os.O_WRONLY, 0o600))",
        )
    )
    assert result.stdout.split() == ["wrote", "-1", "tmp", "-1"]
    assert not (operator.root / "planted.py").exists()


@pytest.mark.usefixtures("namespaces")
def test_other_processes_are_out_of_sight(run: Run) -> None:
    result = run(host_only("print(sorted(int(p) for p in os.listdir('/proc') if p.isdigit()))"))
    assert result.stdout.strip() == "[1, 2]"


@pytest.mark.usefixtures("namespaces")
def test_the_enclosure_cannot_be_taken_down(run: Run) -> None:
    result = run(
        host_only(
            LIBC,
            f"print('umount', libc.umount2(os.fsencode({OP} + '/eval'), 2))",
            "print('remount', libc.mount(None, b'/', None, 32 | 4096, None))",
            f"print('again', libc.unshare(0x10020000), libc.umount2(os.fsencode({OP} + '/eval'), 2))",
        )
    )
    words = result.stdout.split()
    assert words[:4] == ["umount", "-1", "remount", "-1"]
    assert words[-1] == "-1"


@pytest.mark.usefixtures("namespaces")
def test_other_sessions_are_out_of_sight(run: Run, operator: OpWorkspace) -> None:
    operator.impl.write_text(host_only("import ctypes; d = os.path.dirname(os.environ['HOME']); print(len(list(os.scandir(d))))"))
    backend = sim.SimBackend()
    with (
        backend.open(operator.impl, "double_wrapper", operator) as one,
        backend.open(operator.impl, "double_wrapper", operator) as two,
    ):
        results = [session.run("case", [torch.ones(2, 32)]) for session in (one, two)]
    for result in results:
        assert result.outcome is Outcome.FORBIDDEN or result.stdout.strip() == "1"


def test_a_package_may_load_its_own_library_while_it_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """torchvision and torchaudio do; code of a candidate that calls such a package may not."""
    package = tmp_path / "brings_a_library"
    package.mkdir()
    library = package / "libown.so"
    library.touch()
    (package / "__init__.py").write_text(
        "import builtins\n"
        f"SAID = [builtins.may_load((path,)) for path in ({str(library)!r}, '/usr/lib/libm.so.6', 'libm.so.6')]\n"
        f"def load(): return builtins.may_load(({str(library)!r},))\n"
    )
    monkeypatch.setattr(trusted, "installed_folders", lambda: (str(tmp_path),))
    monkeypatch.setattr(builtins, "may_load", partial(guard._check_dlopen, None), raising=False)  # noqa: SLF001
    monkeypatch.syspath_prepend(str(tmp_path))
    forget = [function.cache_clear for function in (trusted.trusted_folders, trusted.is_trusted, trusted.is_installed)]
    try:
        for clear in forget:
            clear()
        found = importlib.import_module("brings_a_library")
        assert found.SAID == [None, "load a C library (libm.so.6)", "load a C library (libm.so.6)"]
        assert found.load() == "load a C library (libown.so)"
    finally:
        for clear in forget:
            clear()
        sys.modules.pop("brings_a_library", None)
