"""One small operator from request to `complete_stage` 6, in each real client, by the four dispatches of the orchestrator.

The model is scripted; hooks, gates, linter, judge and kernel are the real ones. Each agent does what its page in
`.agents/` says, in that order, and some things that must be refused on the way.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.clients.installed import claude_environment, needs, opencode_environment, opencode_provider
from tests.clients.test_bundle import BANNER, run_client, run_install
from tests.hooks.conftest import Harness
from tests.hooks.scripted_model import Script, ScriptedModel, scripted_model
from tests.passes import pass_for_bytes
from tests.quickly import needs_package
from tests.state.lab import wrong
from tests.state.operators import Operator

from pypto_op.backends.build_cache import CACHE_ENV, cache_root
from pypto_op.documents.scaffold import Request, new_operator
from pypto_op.proof import evidence
from pypto_op.proof.key import KEY_ENV
from pypto_op.state import audit
from pypto_op.workspace import OpWorkspace

pytestmark = [pytest.mark.client, pytest.mark.slow, pytest.mark.sim, needs_package("mcp")]

OP = "square_add"
DIR = f"custom/{OP}"
Call = dict[str, Any]
Steps = dict[str, dict[str, list[Call]]]
"""For each actor: what it does, turn by turn, each turn under a name."""


@dataclass(frozen=True)
class Client:
    """How a client calls tools and their arguments."""

    tools: dict[str, str]
    fields: dict[str, str]
    mcp: str
    agents: str

    def call(self, tool: str, **fields: Any) -> Call:
        return {"name": self.tools[tool], "input": {self.fields.get(key, key): value for key, value in fields.items()}}

    def sh(self, command: str) -> Call:
        return self.call("bash", command=command, description="x")

    def bundle(self, tool: str, **fields: Any) -> Call:
        return {"name": self.mcp + tool, "input": fields}

    def dispatch(self, agent: str, actor: str, task: str) -> Call:
        prompt = f"[[actor:{actor}]]\n{task}\noperator: {DIR}\nmessage: -"
        return self.call("dispatch", description=actor, prompt=prompt, subagent_type=f"{self.agents}pypto-op-{agent}")


CLAUDE = Client(
    tools={"read": "Read", "write": "Write", "edit": "Edit", "bash": "Bash", "dispatch": "Agent"},
    fields={"path": "file_path", "old": "old_string", "new": "new_string"},
    mcp="mcp__plugin_pypto-op_pypto-op__",
    agents="pypto-op:",
)
OPENCODE = Client(
    tools={name: name for name in ("read", "write", "edit", "bash")} | {"dispatch": "task"},
    fields={"path": "filePath", "old": "oldString", "new": "newString"},
    mcp="pypto-op_",
    agents="",
)


class Contents:
    """What the agents write: the files of the state tests' operator, and MEMORY.md before and after."""

    def __init__(self, folder: Path) -> None:
        made = Operator(folder / "contents" / OP, op=OP, n=1)
        for write in (made.planning, made.golden, made.architecture, made.design, made.integrated):
            write()
        self.root = made.root
        blank = new_operator(Request(OP, ["float32"], [{"N": 32, "D": 32}], ["N"]), folder)
        self.memory = blank.memory.read_text(encoding="utf-8")

    def __getitem__(self, relative: str) -> str:
        return (self.root / relative).read_text(encoding="utf-8")

    @property
    def checklists(self) -> tuple[str, str]:
        """The part of MEMORY.md that the coder fills in: inventory, preflight, self-review."""
        start, end = self.memory.index("| 1 | TODO"), self.memory.index("## Module contracts")
        blank = self.memory[start:end]
        filled = blank.replace("| 1 | TODO | | | | ❌ |", INVENTORY).replace("TODO: a known trap that concerns", "no cast in")
        return blank, re.sub(r"- \[ \] (.*)", r"- [x] \1: line 30", filled)


INVENTORY = "| 1 | square x | [N, D] -> [N, D] | `*` | 21 | ✅ |\n| 2 | add y | [N, D] -> [N, D] | `+` | 27 | ✅ |"


def orchestrator(c: Client, text: Contents) -> dict[str, list[Call]]:
    def state(action: str, **fields: Any) -> list[Call]:
        return [c.bundle("state_transition", action=action, op_dir=DIR, token="{{token}}", **fields)]

    return {
        "new": [c.sh(f"pypto-op new {OP} --dtype float32 --p0 N=32,D=32 --dynamic N")],
        "init": [c.bundle("state_transition", action="init", op_dir=DIR, max_stage=6)],
        "too early": state("complete_stage", stage=1),
        "plan": [c.dispatch("planner", "planner", "task: plan")],
        "stage 1": state("complete_stage", stage=1),
        "stage 2": state("complete_stage", stage=2),
        "stage 3": state("complete_stage", stage=3),
        "design": state("submit_design", stage=4),
        "harness": [c.dispatch("verifier", "harness", "task: harness")],
        "freeze": state("freeze_plan"),
        "stage 4": state("complete_stage", stage=4),
        "begin": state("start_phase", phase="M1"),
        "kernel": [c.dispatch("coder", "coder", "task: kernel\nphase: M1")],
        "submit": state("submit_for_verify", phase="M1"),
        "no verdict yet": state("complete_stage", stage=5),
        "verdict": [c.dispatch("verifier", "verdict", "task: verdict\nphase: M1\nattempt: {{attempt}}")],
        "record": state("record_verdict", attempt="{{attempt}}"),
        "stage 5": state("complete_stage", stage=5),
        "stage 6": state("complete_stage", stage=6),
        "report": [c.sh(f"pypto-op report {DIR}")],
    }


def planner(c: Client, text: Contents) -> dict[str, list[Call]]:
    documents = ("SPEC.md", "API_REPORT.md", "DESIGN.md", f"{OP}_golden.py")
    fresh = ("GOLDEN_PERF_REPORT.md",)
    yaml = "eval/module_interfaces.yaml"
    return {
        "read": [c.call("read", path=f"{DIR}/{name}") for name in documents],
        "documents": [c.call("write", path=f"{DIR}/{name}", content=text[name]) for name in (*documents, *fresh)],
        "interfaces": [c.sh(f"pypto-op design-params {DIR}/{OP}_golden.py && pypto-op interfaces new {DIR}")],
        "read yaml": [c.call("read", path=f"{DIR}/{yaml}")],
        "yaml": [c.call("write", path=f"{DIR}/{yaml}", content=text[yaml])],
        "check": [
            c.sh(f"pypto-op interfaces check {DIR}"),
            *(c.bundle("lint", path=DIR, event="complete-stage", stage=stage) for stage in (1, 2, 3)),
        ],
    }


def harness_task(c: Client, text: Contents) -> dict[str, list[Call]]:
    return {"made": [c.sh(f"pypto-op harness new {DIR}")]}


def coder(c: Client, text: Contents) -> dict[str, list[Call]]:
    kernel, impl = text[f"{OP}_impl.py"], f"{DIR}/{OP}_impl.py"
    unreadable = kernel.replace("@pypto.frontend.jit", "@p.frontend.jit").replace("import pypto\n", "import pypto as p\n")
    suite = f"{DIR}/eval/adversarial_suite.json"
    before, after = text.checklists
    return {
        "refused by lint": [c.call("write", path=impl, content=unreadable)],
        "wrong": [c.call("write", path=impl, content=wrong(kernel))],
        "tried": [c.sh(f"pypto-op verify {DIR} --modes sim --levels L1,L2")],
        "right": [
            c.call("write", path=impl, content=kernel),
            c.call("write", path=f"{DIR}/README.md", content=text["README.md"]),
        ],
        "read": [c.call("read", path=f"{DIR}/MEMORY.md"), c.call("read", path=suite)],
        "review": [c.call("edit", path=f"{DIR}/MEMORY.md", old=before, new=after)],
        "easier suite": [c.call("write", path=suite, content="{}")],
    }


def verdict_task(c: Client, text: Contents) -> dict[str, list[Call]]:
    return {
        "tests": [c.sh(f"pypto-op tests new {DIR}")],
        "verify": [c.bundle("verify", op_dir=DIR)],
        "lint": [c.bundle("lint", path=DIR, event="submit-for-verify", phase="M1")],
    }


def steps_of(client: Client, text: Contents) -> Steps:
    actors = {"main": orchestrator, "planner": planner, "harness": harness_task, "coder": coder, "verdict": verdict_task}
    return {actor: make(client, text) for actor, make in actors.items()}


def script(steps: Steps) -> Script:
    return {actor: [{"tools": calls} for calls in turns.values()] for actor, turns in steps.items()}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Harness]:
    """An empty workspace, a private key, and this machine's calculator, which is built already."""
    key = str(tmp_path / "seal.key")
    monkeypatch.setenv(KEY_ENV, key)
    made = Harness(tmp_path / "work", tmp_path / "cache", {KEY_ENV: key, CACHE_ENV: str(cache_root())})
    made.workspace.mkdir()
    made.cache.mkdir()
    yield made
    made.stop_servers()


def judge(model: ScriptedModel, steps: Steps, workspace: Path) -> None:
    """What must be so in either client."""

    def told(actor: str, turn: str) -> str:
        return model.told(actor, list(steps[actor]).index(turn) + 1)

    assert "module_count = 1" in told("planner", "interfaces")
    assert told("planner", "check").replace(" ", "").count('"ok":true') == 3
    assert BANNER not in told("main", "new"), "the blank documents are nobody's fault"
    for turn, (call, *_) in steps["main"].items():
        if "action" in call["input"]:
            went = '"ok":true' in told("main", turn).replace(" ", "")
            assert went == (turn not in ("too early", "no verdict yet")), (turn, told("main", turn))
    assert "SPEC.md" in told("main", "too early") and "TODO" in told("main", "too early")
    assert BANNER in told("coder", "refused by lint") and BANNER not in told("coder", "right")
    assert "FAIL" in told("coder", "tried")
    assert '"status":"PASS"' in told("verdict", "verify").replace(" ", "") and "SKIPPED" in told("verdict", "verify")
    assert "frozen" in told("coder", "easier suite")
    assert "M1 is awaiting_verify" in told("main", "no verdict yet")
    ws = OpWorkspace.at(workspace / DIR)
    state = json.loads(ws.state.read_text(encoding="utf-8"))
    assert [state["stage_status"][str(stage)] for stage in range(1, 7)] == ["completed"] * 6
    audited = audit.audit(ws.root)
    done = [row["action"] for row in audited["history"]]
    assert audited["ok"] and done.count("complete_stage") == 6, "what was refused is no line of the journal"
    (verdict,) = (row for row in audited["history"] if row["action"] == "record_verdict")
    assert verdict["verdict"] == "PASS" and f"attempt: {verdict['args']['attempt']}" in model.told("verdict", 0)
    report = pass_for_bytes(ws)
    assert report is not None and evidence.check_seal(report) and report["cases_total"] >= 10
    memory = ws.memory.read_text(encoding="utf-8")
    assert f"| M1 | {OP}_impl.py | out | 1e-05 | 1e-06 | true |" in memory and "| M1 | square_add: square x and add y |" in memory
    assert (ws.root / "eval/report.html").is_file() and "report.html" in told("main", "report")


def test_claude_code(place: Harness, tmp_path: Path) -> None:
    claude = needs("claude")
    steps = steps_of(CLAUDE, Contents(tmp_path))
    with scripted_model(script(steps)) as model:
        environment = claude_environment(place.environment(), model.port)
        run_install(place.workspace, "claude", env=environment)
        command = [claude, "-p", "[[actor:main]] go", "--agent", "pypto-op:pypto-op-orchestrator", "--model", "claude-sonnet-4-5"]
        allowed = f"Bash,Write,Edit,Read,Agent,Skill,{CLAUDE.mcp}state_transition,{CLAUDE.mcp}verify,{CLAUDE.mcp}lint"
        run_client([*command, "--permission-mode", "acceptEdits", "--allowedTools", allowed], place.workspace, environment)
    judge(model, steps, place.workspace)


def test_opencode(place: Harness, tmp_path: Path) -> None:
    opencode = needs("opencode")
    steps = steps_of(OPENCODE, Contents(tmp_path))
    environment = opencode_environment(place.environment(), tmp_path / "home")
    environment["OPENCODE_CONFIG"] = str(tmp_path / "opencode.json")
    run_install(place.workspace, "opencode", env=environment)
    with scripted_model(script(steps)) as model:
        (tmp_path / "opencode.json").write_text(json.dumps(opencode_provider(model.port)))
        command = [opencode, "run", "--format", "json", "--agent", "pypto-op-orchestrator", "[[actor:main]]"]
        run_client(command, place.workspace, environment)
    judge(model, steps, place.workspace)
