"""Two real operators at every step of their way, judged by the real judge in the simulator, kept as snapshots.

Building them costs some runs of the judge, so it is done once for all test processes; a test works on a clone.
"""

import os
import shutil
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

from tests import calling
from tests.state.operators import Operator

from pypto_op.proof.key import KEY_ENV
from pypto_op.state import deliverables
from pypto_op.state.deliverables import run_judge
from pypto_op.state.service import transition
from pypto_op.workspace import OpWorkspace

SINGLE, STAGED = "square_add", "chain"


@contextmanager
def account(key):
    """Work under a key, and let nobody's token in."""
    before = {name: os.environ.pop(name, None) for name in (KEY_ENV, "PYPTO_OP_TOKEN")}
    os.environ[KEY_ENV] = str(key)
    try:
        yield
    finally:
        os.environ.pop(KEY_ENV)
        os.environ.update({name: value for name, value in before.items() if value is not None})


class Lab:
    """Builds and hands out the snapshots of one folder."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.key = self.folder / "account" / "seal.key"

    def build(self):
        with account(self.key), mock.patch.object(deliverables, "in_own_process", calling.module):
            self._single()
            self._staged()

    def _keep(self, op, name):
        shutil.copytree(op.root, self.folder / name / op.op)

    def _new(self, op, n):
        return Operator(self.folder / "work" / "custom" / op, op=op, n=n)

    def _upstream(self, op):
        transition(op.root, "init")
        for stage, write in enumerate((op.planning, op.golden, op.architecture), 1):
            write()
            self._keep(op, f"stage{stage}") if op.op == SINGLE else None
            transition(op.root, "complete_stage", stage=stage)
        op.design()
        self._keep(op, "stage4" if op.op == SINGLE else "staged4")
        transition(op.root, "freeze_plan")
        transition(op.root, "complete_stage", stage=4)

    def _single(self):
        op = self._new(SINGLE, 1)
        self._upstream(op)
        op.integrated()
        op.review(1)
        transition(op.root, "start_phase", phase="M1")
        self._keep(op, "begun")
        transition(op.root, "submit_for_verify", phase="M1")
        self._keep(op, "awaiting")
        self._wrong_attempt()
        ws = OpWorkspace.at(op.root)
        assert run_judge(ws, ["--modes", "sim"])["status"] == "PASS"
        self._keep(op, "passed")
        transition(op.root, "complete_phase", phase="M1")
        self._keep(op, "verified")
        transition(op.root, "complete_stage", stage=5)
        self._keep(op, "stage6")
        transition(op.root, "complete_stage", stage=6)
        op.tuning()
        self._keep(op, "stage7")
        transition(op.root, "complete_stage", stage=7)
        self._keep(op, "finished")

    def _wrong_attempt(self):
        """The first attempt with a wrong kernel, and the judge's FAIL for it."""
        with self.clone("begun", self.folder / "wrong_work") as ws:
            ws.impl.write_text(wrong(ws.impl.read_text()))
            transition(ws.root, "submit_for_verify", phase="M1")
            assert run_judge(ws, ["--modes", "sim"])["status"] == "FAIL"
            shutil.copytree(ws.root, self.folder / "failed" / SINGLE)

    def _staged(self):
        op = self._new(STAGED, 2)
        self._upstream(op)
        for k in (1, 2):
            transition(op.root, "start_phase", phase=f"M{k}")
            op.module(k)
            transition(op.root, "submit_for_verify", phase=f"M{k}")
            transition(op.root, "complete_phase", phase=f"M{k}")
            self._keep(op, f"module{k}")
        op.integrated()
        self._keep(op, "integrated")
        transition(op.root, "record_composition")
        self._keep(op, "composed")
        transition(op.root, "record_integration")
        transition(op.root, "complete_stage", stage=5)
        self._keep(op, "staged6")
        transition(op.root, "complete_stage", stage=6)
        self._keep(op, "staged7")

    @contextmanager
    def clone(self, name, into):
        """Yield the workspace of a copy, under a copy of the key: the copy's runs are remembered apart."""
        (source,) = (self.folder / name).iterdir()
        root = Path(into) / "custom" / source.name
        shutil.copytree(source, root)
        key = Path(into) / "account" / "seal.key"
        key.parent.mkdir()
        shutil.copy2(self.key, key)
        with account(key):
            yield OpWorkspace.at(root)


def wrong(source):
    """Return the kernel with a fault that no lint rule sees."""
    changed = source.replace("return tile * tile", "return tile * tile * 1.01")
    assert changed != source
    return changed
