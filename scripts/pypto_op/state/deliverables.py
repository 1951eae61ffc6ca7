"""What the stages deliver, through its owners: document loaders, the plan, the judge, the composition."""

from __future__ import annotations

import ast
import importlib
import os
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pypto_op
from pypto_op import own_python, python_text
from pypto_op.errors import ContractError, InfraError, Refused
from pypto_op.hashing import parse_object, sha256_file
from pypto_op.state.model import Plan, State, module_count
from pypto_op.state.verdicts import Demand, Question, is_looser
from pypto_op.vocabulary import Decomposition, ExitCode, Mode
from pypto_op.workflow import workflow
from pypto_op.workspace import OpWorkspace, to_run

if TYPE_CHECKING:
    import subprocess


def check_document(ws: OpWorkspace, name: str, state: State) -> None:
    """Let a document's owner check it, and hold its operator's name and number of modules to ours.

    Raises:
        ContractError: missing, malformed, incomplete, or another operator's.
    """
    from pypto_op.documents import schema

    path: Path = getattr(ws, name)
    owner = importlib.import_module(f"pypto_op.documents.{name}")
    document = owner.load(path)
    named = getattr(document, "op_name", None) or getattr(document, "op", None)
    if named != ws.name:
        raise Refused(f"is about the operator {named!r}", file=path, remedy=f"write {ws.name}")
    schema.raise_first(owner.check(path), file=path)
    modules = getattr(document, "total_modules", None)
    if state["plan"] and modules not in (None, module_count(state)):
        raise Refused(f"total_modules is {modules}, the plan has {module_count(state)}", file=path, remedy="write it anew")


def check_tolerances(ws: OpWorkspace) -> None:
    """Hold every case of a suite to SPEC.md: its own atol and rtol may be tighter, not looser (`is_looser`).

    Raises:
        Refused: naming the case.
        ContractError: a document is missing or malformed.
    """
    from pypto_op.judge.cases.contract import load_contract

    contract = load_contract(ws)
    for case in contract.cases:
        if is_looser(contract.policy, case):
            raise Refused(
                f"case {case['id']} allows more (atol {case['atol']:g}, rtol {case['rtol']:g}) than SPEC.md does",
                file=ws.suite,
                where="cases",
                remedy='take SPEC.md\'s; where honest rounding exceeds it, write "policy": "twin@2" in the place of both',
            )


def check_runner(ws: OpWorkspace) -> None:
    """Hold eval/adversarial_runner.py to the bytes that `pypto-op harness new` writes.

    Raises:
        ContractError: it is missing, or somebody changed it.
    """
    from pypto_op.judge import adversarial

    adversarial.check_runner(ws.runner)


def check_test(ws: OpWorkspace, phase: int | None) -> None:
    """Hold a test to the bytes that `pypto-op tests new` writes for the contract, impl and golden that lie there now.

    So a frozen test is one that compares every output by the judge's rule; the package's own tests show that.

    Args:
        phase: k for the test of M_1..M_k; None for the end-to-end test.

    Raises:
        ContractError: it is missing, or somebody changed it.
    """
    from pypto_op.generators.writing import tests

    tests.check_test(ws, phase)


def check_no_debugging(ws: OpWorkspace) -> None:
    """Refuse a tuned kernel that still collects debug data: it slows every launch.

    Raises:
        Refused: naming the line.
        ContractError: the impl cannot be read or parsed.
    """
    from pypto_op.documents.reading import read_text

    for node in ast.walk(python_text.parse(read_text(ws.impl), ws.impl)):
        named = isinstance(node, ast.keyword) and node.arg == "debug_options"
        called = isinstance(node, ast.Attribute) and node.attr == "set_debug_options"
        if named or called:
            line = getattr(node, "lineno", "?")
            raise Refused("still sets debug_options", file=ws.impl, where=f"line {line}", remedy="take them out, measure again")


def check_readme(ws: OpWorkspace) -> None:
    """Hold README.md to the interface that it is to tell: the wrapper and every primary input are named.

    Raises:
        Refused: naming what is not.
        ContractError: README.md or the contract cannot be read.
    """
    from pypto_op.documents import interfaces
    from pypto_op.documents.reading import read_text

    text = read_text(ws.readme)
    names = [ws.wrapper_name(), *(port.name for port in interfaces.load(ws.interfaces).primary_inputs)]
    missing = [name for name in names if not re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text)]
    if missing:
        raise Refused(f"does not say {', '.join(missing)}", file=ws.readme, remedy="tell how the operator is called")


def make_plan(ws: OpWorkspace, modes: list[str] | None, time: str) -> Plan:
    """Return the plan that DESIGN.md 0.3 and module_interfaces.yaml agree on.

    Raises:
        ContractError: one of them is missing or malformed.
        Refused: they name different numbers of modules, or the ids are not 1..N.
    """
    from pypto_op.documents import design, interfaces

    count = design.load(ws.design).module_count
    wiring = interfaces.load(ws.interfaces)
    ids = [module.id for module in wiring.modules]
    if not 1 <= count <= workflow().limits.max_modules:
        raise Refused(f"module_count is {count}", file=ws.design, where="0.3", remedy="decide on 1 to 32 modules")
    if ids != list(range(1, count + 1)):
        raise Refused(
            f"has the modules {ids}, DESIGN.md 0.3 decides on {count}",
            file=ws.interfaces,
            where="modules",
            remedy=f"number them 1..{count}, or let the architect decide anew",
        )
    path = Decomposition.SINGLE if count == 1 else Decomposition.STAGED
    return Plan(
        schema_version=1,
        op=ws.name,
        decomposition=str(path),
        module_count=count,
        modules=[{"id": module.id, "name": module.name} for module in wiring.modules],
        modes=modes or [str(Mode.SIM)],
        design_sha256=sha256_file(ws.design),
        interfaces_sha256=sha256_file(ws.interfaces),
        frozen_at=time,
    )


def report_path(ws: OpWorkspace, named: str | None) -> Path:
    """Return the report that `record_verdict` names; default: the latest.

    Raises:
        Refused: it lies outside the operator's directory.
    """
    if named is None:
        return ws.report
    path = Path(named)
    path = (path if path.is_absolute() else Path.cwd() / path).resolve()
    if not path.is_relative_to(ws.root):
        raise Refused("lies outside the operator's directory", file=named, remedy=f"name {ws.report}")
    return path


def answer(ws: OpWorkspace, asked: Demand | Question) -> Mapping[str, Any]:
    """Let the judge answer what a gate asked, for the bytes that lie there now.

    Raises:
        ContractError: a document or a golden is missing or broken.
        InfraError: there is no answer at all.
    """
    if isinstance(asked, Demand):
        return judge(ws, asked)
    if asked is Question.SELF_TEST:
        return self_test(ws)
    told = run_judge(ws, ["--compose"])
    return {key: told[key] for key in ("status", "pairs", "summary", "hashes")}


def judge(ws: OpWorkspace, demand: Demand) -> Mapping[str, Any]:
    """Let the judge look at the bytes that lie there now.

    Raises:
        InfraError: the judge gave no verdict at all.
    """
    words = ["--modes", ",".join(demand.modes)]
    if demand.phase is not None:
        words += ["--up-to-module", str(demand.phase)]
    if demand.levels is not None:
        words += ["--levels", ",".join(demand.levels)]
    return run_judge(ws, words)


def run_judge(ws: OpWorkspace, words: list[str]) -> dict[str, Any]:
    """Return what `pypto-op verify` says with these options: one JSON object.

    In a process of its own, so that neither torch nor what a kernel prints gets into the caller, which may be a
    server.

    Raises:
        ContractError: the options make no sense, or a document or a golden is missing or broken.
        InfraError: the judge gave no answer at all.
    """
    done = in_own_process(["pypto_op.cli", "verify", str(ws.root), "--json", "--quiet", *words])
    try:
        return parse_object(done.stdout)
    except ValueError:
        last = (done.stderr.decode(errors="replace").strip().splitlines() or ["no output"])[-1][:400]
    if done.returncode == ExitCode.CONTRACT:
        raise ContractError(last.removeprefix("pypto-op: ").removeprefix("Error: "), remedy="mend it and repeat")
    remedy = f"{to_run(f'verify {shlex.join(words)}', ws.root)} by hand"
    raise InfraError(f"the judge ended with {done.returncode} and no answer ({last})", file=ws.root, remedy=remedy)


def self_test(ws: OpWorkspace) -> dict[str, Any]:
    """Return what `pypto-op verify --self-test` says: is the harness fit to judge a kernel that does not exist yet?

    What it said of these very bytes is not asked again (`proof.records`).

    Raises:
        ContractError: the question makes no sense for this operator.
        InfraError: there is no answer at all.
    """
    from pypto_op.proof import records

    if (kept := records.found_self_test(ws)) is not None:
        return dict(kept)
    return run_judge(ws, ["--self-test"])


def in_own_process(words: list[str]) -> subprocess.CompletedProcess[bytes]:
    """Run a module of ours, named by the first word, in a process of its own."""
    import subprocess  # as slow to import as a whole transition without it

    packages = str(Path(pypto_op.__file__).resolve().parents[1])
    paths = [packages, *filter(None, [os.environ.get("PYTHONPATH")])]
    return subprocess.run(
        own_python.running(*words),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        check=False,
    )
