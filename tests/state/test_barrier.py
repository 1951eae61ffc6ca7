"""The information barrier, as a whole: what the judge's goldens hold turns up in nothing that the coder can read."""

import json
import shutil
import struct

import pytest
from tests.calling import command
from tests.state.operators import MODULE_GOLDEN

from pypto_op.state import service
from pypto_op.state.service import transition
from pypto_op_lint.guard.roles import glob_regex, load_roles

pytestmark = [pytest.mark.sim, pytest.mark.slow]

VALUE = 31415.9375  # exact in float32, so that its bytes are known too
WORDS = "canary_of_the_judge"
GOLDEN = MODULE_GOLDEN.replace("def ", f"# {WORDS}\ndef ", 1)


def test_a_canary_in_a_module_golden_stays_with_the_judge(clone, capfd):
    ws, other = clone("module1"), clone("module2")
    transition(ws.root, "start_phase", phase="M2")
    for path in (other.module_impl(2), other.module_test(2)):
        shutil.copyfile(path, ws.modules_dir / path.name)
    shutil.copyfile(other.memory, ws.memory)
    ws.module_golden(2).write_text(GOLDEN.format(name="chain_module12", k=2, value=f"x * 0 + {VALUE}"))
    attempt = transition(ws.root, "submit_for_verify", phase="M2")["attempt"]
    said = [verify(ws, capfd)]
    failed = transition(ws.root, "record_verdict", attempt=attempt)
    assert failed["phase_status"] == "in_debug"
    said += [json.dumps(failed), json.dumps(service.status(ws.root))]
    for canary in (WORDS.encode(), b"31415.9", b"3.14159", struct.pack("<f", VALUE), struct.pack("<d", VALUE)):
        for text in said:
            assert canary not in text.encode(), text
        for path in readable_by_the_coder(ws):
            assert canary not in path.read_bytes(), path


def verify(ws, capfd):
    """Return all that the command and whatever it starts print, its report included."""
    capfd.readouterr()
    done = command("verify", ws.root, "--up-to-module", "2", "--modes", "sim", "--levels", "L1,L2,L3")
    assert done.code == 1, done.stderr
    below = capfd.readouterr()
    return done.stdout + done.stderr + below.out + below.err + ws.report.read_text()


def readable_by_the_coder(ws):
    """Yield the operator's files that the role table does not deny to the coder."""
    denied = load_roles().roles["pypto-op-coder"].reads_denied
    files = [path for path in ws.root.rglob("*") if path.is_file()]
    names = [path.relative_to(ws.root).as_posix() for path in files]
    kept = [path for path, name in zip(files, names, strict=True) if not any(glob_regex(g, ws.name).match(name) for g in denied)]
    assert ws.module_golden(2) not in kept, "the table denies the golden itself"
    assert {ws.report, ws.journal, ws.state} <= set(kept)
    return kept
