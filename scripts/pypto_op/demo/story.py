"""The story, step by step: what each agent of the team does, and what hooks, gates and judge answer."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from pypto_op.demo import planted
from pypto_op.demo.screen import Screen
from pypto_op.demo.tools import Tools
from pypto_op.errors import ContractError, PyptoOpError
from pypto_op.proof import evidence
from pypto_op.report import sources
from pypto_op.report.page import Story
from pypto_op.report.timeline import Kind
from pypto_op.runner.hooks import Hooks
from pypto_op.vocabulary import ExitCode, Role
from pypto_op.workspace import OpWorkspace

PHASE = "M1"


class StoryBroken(PyptoOpError):
    """Something that must be refused went through, or the other way round: the bundle is broken, not the kernel."""

    exit_code = ExitCode.FAIL


@dataclass
class Telling:
    """One run of the demo."""

    example: OpWorkspace  # the complete operator whose files the agents write
    ws: OpWorkspace  # the scratch operator
    harness: Hooks  # writes files through the hooks
    tools: Tools  # runs the bundle's commands
    screen: Screen  # prints and keeps what happens
    story: Story = field(init=False)  # what the report will show
    _mapped: str = field(default="", init=False)

    def __post_init__(self) -> None:
        self.story = Story(self.ws.name, begun=datetime.now(timezone.utc))

    def tell(self) -> None:
        """Tell the whole story.

        Raises:
            StoryBroken: a guard did not fire, or an honest step was refused.
        """
        self._machine()
        self._plan()
        self._lint_refusal()
        self._wrong_kernel()
        self._right_kernel()
        self._finish()

    # -- the parts ------------------------------------------------------------------------------------------

    def _machine(self) -> None:
        self.screen.chapter("What this machine can do")
        with self.screen.busy("looking at the machine") as seconds:
            doctor = self.tools.doctor()
        self.screen.event("doctor", Kind.NOTE, doctor, seconds=seconds())

    def _plan(self) -> None:
        ex = self.example
        self.screen.chapter("From the request to a contract")
        self._state("init")
        for number, agent, files in (
            (1, Role.PLANNER, (ex.spec, ex.api_report)),
            (2, Role.MATHEMATICIAN, (ex.golden, ex.golden_perf_report)),
            (3, Role.ARCHITECT, (ex.design,)),
        ):
            for file in files:
                self._copy(agent, file)
            self._state("complete_stage", stage=number)
        self._copy(Role.DESIGNER, ex.interfaces)
        self._state("submit_design", stage=4)
        for file in (ex.test_inputs, ex.suite):
            self._copy(Role.VERIFIER, file)
        self._state("freeze_plan")
        self._state("complete_stage", stage=4)
        self._state("start_phase", phase=PHASE)
        self._copy(Role.ORCHESTRATOR, ex.memory)

    def _lint_refusal(self) -> None:
        self.screen.chapter("The coder's first draft meets the linter")
        fault = planted.TILE_FROM_ARGUMENT
        reply = self.harness.write(Role.CODER, self.ws.impl, fault.plant(self._kernel()))
        if not reply.refused:
            raise StoryBroken(f"the linter let through a kernel that {fault.what}", file=self.ws.impl)
        self.screen.event("hook", Kind.REFUSAL, f"refuses the draft: it {fault.what}", detail=reply.text)

    def _wrong_kernel(self) -> None:
        self.screen.chapter("A draft that is clean to the linter and wrong")
        fault = planted.DROPPED_TAIL
        self._write(Role.CODER, self.ws.impl, fault.plant(self._kernel()))
        self._copy(Role.CODER, self.example.readme)
        self._copy(Role.VERIFIER, self.example.test)
        attempt = self._state("submit_for_verify", phase=PHASE)["attempt"]
        report = self._verify("First draft: " + fault.what)
        if report["status"] != "FAIL":
            raise StoryBroken(f"the judge called a kernel {report['status']} that {fault.what}", file=self.ws.report)
        self._forged_report()
        self._state("record_verdict", phase=PHASE, attempt=attempt)

    def _forged_report(self) -> None:
        """Somebody writes PASS into the report; the gate sees that the judge did not, and asks the judge itself."""
        honest = self.ws.report.read_bytes()
        self.ws.report.write_text(json.dumps(self._forgery()), encoding="utf-8")
        with self.screen.busy("complete_phase on a report that says PASS") as seconds:
            refusal = self.tools.refused("complete_phase", phase=PHASE)
        if refusal is None:
            raise StoryBroken("a hand-written PASS was accepted", file=self.ws.report)
        title = "refuses a report into which somebody wrote PASS"
        self.screen.event("state", Kind.REFUSAL, title, seconds=seconds(), detail=refusal)
        self.ws.report.write_bytes(honest)

    def _forgery(self) -> dict[str, Any]:
        """The failing report with PASS written over it, and with the hashes of the files as they are now."""
        report = json.loads(self.ws.report.read_text(encoding="utf-8"))
        hashes = {**report["hashes"], **evidence.file_hashes(self.ws)}
        passed = {"status": "PASS", "per_mode_status": dict.fromkeys(report["per_mode_status"], "PASS")}
        checks = [{**check, **passed} for check in report["checks"]]
        total = report["cases_total"]
        return {**report, **passed, "hashes": hashes, "checks": checks, "cases_passed": total, "first_failure": None}

    def _right_kernel(self) -> None:
        self.screen.chapter("The mended kernel")
        self._write(Role.CODER, self.ws.impl, self._kernel())
        attempt = self._state("submit_for_verify", phase=PHASE)["attempt"]
        report = self._verify("After the fix")
        if report["status"] != "PASS":
            raise StoryBroken(f"the judge called an honest kernel {report['status']}", file=self.ws.report)
        self._state("record_verdict", phase=PHASE, attempt=attempt)

    def _finish(self) -> None:
        self.screen.chapter("Through the last gates")
        self._state("complete_stage", stage=5)
        self._state("complete_stage", stage=6)
        with self.screen.busy("asking the cost model") as seconds:
            self.story.perf = self.tools.benchmark(self.ws.root)
        shapes = len(self.story.perf["per_shape_results"])
        self.screen.event("optimizer", Kind.BENCHMARK, f"times {shapes} shapes with the cost model", seconds=seconds())

    # -- helpers --------------------------------------------------------------------------------------------

    def _kernel(self) -> str:
        return self.example.impl.read_text(encoding="utf-8")

    def _copy(self, agent: str, source: Path) -> None:
        target = self.ws.root / source.relative_to(self.example.root)
        self._write(agent, target, source.read_text(encoding="utf-8"))

    def _write(self, agent: str, path: Path, text: str) -> None:
        reply = self.harness.write(agent, path, text)
        name = path.relative_to(self.ws.root)
        if reply.refused:
            raise StoryBroken(f"an honest write was refused: {reply.text}", file=name)
        self.screen.event(agent, Kind.WRITE, f"writes {name}", detail=reply.text)

    def _state(self, action: str, **arguments: Any) -> dict[str, Any]:
        shown = " ".join([action, *(str(v) for k, v in arguments.items() if k in ("stage", "phase"))])
        with self.screen.busy(shown) as seconds:
            result = self.tools.state(action, **arguments)
        self.screen.event("state", Kind.TRANSITION, shown, seconds=seconds())
        return result

    def _verify(self, title: str) -> dict[str, Any]:
        with self.screen.busy("running every case on the real pypto") as seconds:
            report = self.tools.verify(self.ws.root)
        failure = report.get("first_failure") or {}
        passed = f"{report['cases_passed']} of {report['cases_total']} cases pass"
        if report["status"] == "PASS":
            self.screen.event("judge", Kind.VERDICT_PASS, f"PASS: {passed}", seconds=seconds())
        else:
            verdict = f"{report['status']}: {passed}; category {failure.get('failure_category')}"
            self.screen.event("judge", Kind.VERDICT_FAIL, verdict, seconds=seconds(), detail=str(failure.get("summary", "")))
        self.story.verdicts.append((title, report))
        self._keep_heat_map(title)
        return report

    def _keep_heat_map(self, title: str) -> None:
        """Keep the error map of the failing case that tells most, and of the same case after the fix."""
        report = self.story.verdicts[-1][1]
        failing = [str(c["id"]) for c in report["checks"] if c["status"] == "FAIL"]
        for heat_map in sources.error_maps(self.ws, report, [self._mapped] if self._mapped else failing)[:1]:
            self._mapped = heat_map.title
            name = f"{heat_map.title}: {title.split(':', maxsplit=1)[0].lower()}"
            self.story.heat_maps.append(replace(heat_map, title=name))


def open_scratch(out: Path, example: Path) -> tuple[OpWorkspace, OpWorkspace]:
    """Make the scratch workspace `out/custom/<op>/` and return (example, scratch).

    Raises:
        ContractError: `out` exists and is not an earlier demo's, so it is not ours to remove.
    """
    import shutil

    mark = out / ".pypto-op-demo"
    if out.is_symlink() or (out.exists() and not out.is_dir()):
        raise ContractError("is no folder", file=out, remedy="name another --out")
    if out.exists():
        if not mark.is_file() and any(out.iterdir()):
            raise ContractError("the folder is not empty and no earlier demo's", file=out, remedy="name another --out")
        shutil.rmtree(out)
    source = OpWorkspace.at(example)
    root = out / "custom" / source.name
    root.mkdir(parents=True)
    mark.touch()
    return source, OpWorkspace.at(root)
