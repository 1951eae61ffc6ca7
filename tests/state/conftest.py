"""Shared by the state tests: a private key, and a driver of the pure machine that needs no files."""

import hashlib
import secrets
from contextlib import ExitStack

import pytest
from tests import calling, once
from tests.state.lab import Lab

from pypto_op.errors import Refused
from pypto_op.proof.key import KEY_ENV, key_id
from pypto_op.state import arguments, callers, deliverables, store
from pypto_op.state.machine import action_row, step
from pypto_op.state.model import phase_name, phases
from pypto_op.workspace import OpWorkspace

needs_a_person = pytest.mark.skipif(callers.no_person() is not None, reason="needs to run outside every harness")

FREEZES = {
    "complete_stage": {
        1: ["spec_md", "api_report_md"],
        2: ["golden_py"],
        3: ["design_md"],
        4: ["module_interfaces_yaml", "test_inputs_py", "adversarial_suite_json", "adversarial_runner_py"],
        5: ["impl_py", "test_py"],
        6: [],
        7: ["impl_py", "tuning_report_md"],
    }
}


@pytest.fixture(autouse=True)
def private_key(tmp_path_factory, monkeypatch):
    """No test touches the account's own key or runs."""
    folder = tmp_path_factory.mktemp("account")
    monkeypatch.setenv(KEY_ENV, str(folder / "seal.key"))
    monkeypatch.delenv("PYPTO_OP_TOKEN", raising=False)
    return folder / "seal.key"


@pytest.fixture(autouse=True)
def warm_verdicts(monkeypatch):
    """Gates ask for verdicts in this process; the tests that are about the other process put it back."""
    monkeypatch.setattr(deliverables, "in_own_process", calling.module)


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()


class Driver:
    """Drives the pure machine with the facts that an honest tool would find."""

    def __init__(self, *, n=1, by="orchestrator"):
        self.n, self.by, self.state, self.clock = n, by, None, 0

    def facts(self, action, args, verdict="PASS", category="precision"):
        self.clock += 1
        facts = {"time": f"2026-01-01T00:00:{self.clock:06d}", "by": self.by}
        if action in ("init", "adopt"):
            facts |= {"op": "relu", "run_id": "r" * 16, "key_id": "k" * 16, "token_required": False}
        if action == "freeze_plan":
            facts["plan"] = self.plan()
        if action == "complete_stage":
            stage = args["stage"]
            facts["frozen"] = {name: self.frozen(name, stage) for name in FREEZES[action][stage]}
            if stage == 5 and self.n == 1:
                facts["frozen"]["impl_py"]["phase"] = "M1"
        if action in ("complete_stage", "complete_phase", "fail_phase", "record_verdict"):
            facts["verdict"] = {"status": verdict, "report_sha256": digest(str(self.clock))}
            if verdict != "PASS":
                facts["verdict"] |= {"failure_category": category, "summary": "case c1: wrong"}
        if action == "complete_stage" and args["stage"] < 6:
            del facts["verdict"]
        if action in ("complete_phase", "record_verdict"):
            phase = args.get("phase") or args["attempt"].split(".")[0]
            names = ["impl_py"] if self.n == 1 else [f"module_{phase}_{kind}" for kind in ("impl", "golden", "test")]
            facts["frozen"] = {name: {**self.frozen(name, 5), "phase": phase} for name in names}
        if action == "submit_for_verify":
            facts |= {"submitted": {"impl": digest(args["phase"])}, "functions": {}}
        if action == "record_composition":
            facts["composition"] = {"status": "PASS", "pairs": 3}
        if action in ("record_integration", "record_artifact_hash"):
            names = ["impl_py", "test_py"] if action == "record_integration" else [args["name"]]
            facts["frozen"] = {name: self.frozen(name, 5) for name in names}
        return facts

    def frozen(self, name, stage):
        return {"path": name, "sha256": digest(name), "stage": stage}

    def plan(self):
        return {
            "schema_version": 1,
            "op": "relu",
            "decomposition": "single" if self.n == 1 else "staged",
            "module_count": self.n,
            "modules": [{"id": k, "name": f"m{k}"} for k in range(1, self.n + 1)],
            "modes": ["sim"],
            "design_sha256": digest("design"),
            "interfaces_sha256": digest("yaml"),
            "frozen_at": "2026-01-01T00:00:00",
        }

    def do(self, action, *, verdict="PASS", category="precision", **given):
        args = arguments.parse(action_row(action), given)
        self.state = step(self.state, action, args, self.facts(action, args, verdict, category))
        return self.state

    def phase(self, k):
        return phases(self.state)[phase_name(k)]

    def reach(self, stage):
        """Go from nothing to the given stage in progress, stage 5 with all phases pending."""
        self.do("init")
        for number in range(1, stage):
            if number == 4:
                self.do("freeze_plan")
            if number == 5:
                self.construct()
            self.do("complete_stage", stage=number)
        return self  # 8 means that stage 7 is completed too

    def construct(self):
        for k in range(1, self.n + 1):
            self.verify(k)
        if self.n > 1:
            self.do("record_composition")
            self.do("record_integration")

    def submit(self, k):
        if self.phase(k)["status"] == "pending":
            self.do("start_phase", phase=f"M{k}")
        self.do("submit_for_verify", phase=f"M{k}")
        return self.phase(k)["attempt"]

    def verify(self, k):
        self.submit(k)
        self.do("complete_phase", phase=f"M{k}")


@pytest.fixture
def driver():
    return Driver


@pytest.fixture
def planted(tmp_path):
    """Return a maker of operators whose state on disk is at a given stage, with real journal and frozen files."""

    def plant(stage=5, *, n=1, name="relu", at=None):
        root = (at or tmp_path) / "custom" / name
        root.mkdir(parents=True)
        ws = OpWorkspace.at(root)
        replant(ws, Driver(n=n), stage)
        return ws

    return plant


def replant(ws, driver, stage):
    """Commit, one by one, the steps that lead to a stage; the frozen files really have the bytes named."""
    do = driver.do

    def commit(action, **given):
        verdict = {key: given.pop(key) for key in ("verdict", "category") if key in given}
        args = arguments.parse(action_row(action), given)
        with store.locked(ws):
            loaded = store.load(ws)
            facts = driver.facts(action, args, **verdict)
            if action == "init":
                facts |= {"op": ws.name, "key_id": key_id(), "run_id": secrets.token_hex(8)}
            for row in facts.get("frozen", {}).values():
                (ws.root / row["path"]).write_text(row["path"])
            driver.state = step(loaded.state, action, args, facts)
            store.commit(ws, loaded.tail, driver.state, action=action, args=args, facts=facts)
        return driver.state

    driver.do = commit
    if stage:
        driver.reach(stage)
    driver.do = do
    driver.commit = commit
    return driver


def pytest_collection_modifyitems(items):
    """The first test that needs the lab waits until it is built: operators are judged there, which takes minutes."""
    for item in items:
        if "lab" in getattr(item, "fixturenames", ()):
            for mark in (pytest.mark.timeout(1500), pytest.mark.sim, pytest.mark.slow):
                item.add_marker(mark)


@pytest.fixture(scope="session")
def lab(tmp_path_factory, worker_id):
    """Real operators at every step; built once, by whichever test process comes first."""
    return Lab(once.folder_of(tmp_path_factory, worker_id, "state_lab", lambda folder: Lab(folder).build()))


@pytest.fixture
def clone(lab, tmp_path):
    """Return a function that yields a private copy of a snapshot, under the lab's key."""
    with ExitStack() as stack:
        yield lambda name: stack.enter_context(lab.clone(name, tmp_path / f"clone_{len(list(tmp_path.iterdir()))}"))


def refused(call, *words):
    with pytest.raises(Refused) as caught:
        call()
    text = str(caught.value)
    assert "\n" not in text and ";" in text, "one line with a remedy"
    for word in words:
        assert word in text, text
