"""How the debugger does on planted faults: category, skill, line, blame, processor seconds; writes docs/debugger-strength.md.

`python -m benchmarks faults` measures the faults that have no row yet, and those whose fault or whose kernel changed since, keeps
each at once in benchmarks/results/faults.json (so a run that is broken off goes on where it stopped), and writes the page from
it. A row says which state of the debugger it was measured with, and the page counts those of the last one.
`python -m benchmarks.faults softmax/no_tile rmsnorm ...` measures these again; `--older` those that an earlier state of the
debugger was measured with; `--warm` leaves out the processor seconds, which need processes of their own.
"""

from __future__ import annotations

import atexit
import functools
import json
import shlex
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from benchmarks import faults_page, keeping, process
from benchmarks.planted import ROOT, Fault, failures, home, operators, planted_into, wrong_numbers
from benchmarks.table import Row, Table

RESULTS = Path(__file__).with_name("results") / "faults.json"
PAGE = ROOT / "docs" / "debugger-strength.md"
SHARES = {"softmax": 1, "rmsnorm": 1}
"""Of each operator's wrong numbers every so-manieth is measured; of large kernels fewer."""
OTHER_SHARE = 5
NEAR = 3
SECONDS = 60.0
"""Longest time of a run: what hangs need not hang for the judge's two minutes."""
HANG_SECONDS = 15.0
_READ = ("debug", "diagnose")


def all_faults() -> Iterator[Fault]:
    """Yield what is measured."""
    for op in operators():
        yield from failures(op)
        yield from wrong_numbers(op, SHARES.get(op, OTHER_SHARE))


def run(quick: bool) -> list[Table]:
    """Measure what is stale; `quick`: every tenth fault, and no page."""
    results = {} if quick else load()
    chosen = list(all_faults())[:: 10 if quick else 1]
    for fault in chosen:
        if results.get(fault.id, {}).get("digest") != digest(fault):
            click.echo(f"{fault.id}: {fault.why}", err=True)
            results[fault.id] = measured(fault)
            if not quick:
                store(results)
    if not quick:
        known = {fault.id for fault in chosen}
        results = {name: row for name, row in results.items() if name in known}
        store(results)
        write_page()
    return [table(results)]


def load() -> dict[str, Any]:
    """Return the rows of every fault that was measured."""
    return _kept()["faults"]


def _kept() -> dict[str, Any]:
    return {"yardstick": {}, "debugger": "", "faults": {}} | keeping.load(RESULTS)


def store(results: Mapping[str, Any]) -> None:
    """Keep the rows."""
    rows = {"yardstick": _kept()["yardstick"] or yardstick(), "debugger": debugger(), "faults": dict(sorted(results.items()))}
    keeping.store(RESULTS, rows)


def write_page() -> None:
    """Write docs/debugger-strength.md from the results."""
    PAGE.write_text(page(), encoding="utf-8")


def page() -> str:
    """Return docs/debugger-strength.md as the results say it."""
    kept = _kept()
    return faults_page.page(kept["faults"], kept["yardstick"], kept["debugger"])


def yardstick() -> dict[str, float]:
    """Return how long libcst takes over a kernel of 500 lines here, in ms of processor time, and where the targets were set."""
    import time

    import libcst

    from benchmarks.hooks import LINES, LINES_PER_MILLISECOND, kernel

    text, best = kernel("fa"), float("inf")
    for _ in range(5):
        begun = time.process_time()
        libcst.parse_module(text)
        best = min(best, time.process_time() - begun)
    return {"here": best * 1000, "reference": LINES / LINES_PER_MILLISECOND}


def digest(fault: Fault) -> str:
    """Return a hash of what the debugger is asked about: the fault, what it must say of it, and the operator's other files."""
    told = (fault.case, fault.category, fault.skill, fault.lines, fault.blame, {**planted_into(fault.op), **fault.files})
    return process.digest_of_text(repr(told))[:16]


@functools.cache
def debugger() -> str:
    """Return a hash of the debugger's code and knowledge."""
    rooms = [ROOT / "scripts" / "pypto_op" / room for room in _READ]
    return process.digest_of(*(path for room in rooms for path in sorted(room.rglob("*")) if path.suffix in _SOURCES))[:16]


_SOURCES = (".py", ".yaml")


def measured(fault: Fault, *, warm: bool = False) -> dict[str, Any]:
    """Plant a fault, verify, and ask the debugger; return what it said, what it should have said, and what that took."""
    from pypto_op.backends.base import Limits
    from pypto_op.judge.cases.request import Request
    from pypto_op.judge.verify import verify_operator
    from pypto_op.vocabulary import Mode
    from pypto_op.workspace import OpWorkspace

    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "custom" / fault.op
        shutil.copytree(_with_a_suite(fault.op), root, ignore=shutil.ignore_patterns("__pycache__", "_debug"))
        for name, text in fault.files.items():
            (root / name).write_bytes(text)
        limits = Limits(case_seconds=HANG_SECONDS if fault.kind == "hang" else SECONDS)
        report = verify_operator(OpWorkspace.at(root), Request(modes=[Mode.SIM], case=fault.case, limits=limits))
        row = {"digest": digest(fault), "debugger": debugger(), "kind": fault.kind, "why": fault.why}
        row |= {"status": report["status"], "cpu": {}}
        if report["status"] not in ("FAIL", "ERROR"):
            return {**row, "said": {}, **_judged(fault, {})}
        before = 0.0 if warm else yardstick()["here"]
        said = _said(fault, root, warm, row["cpu"])
        if not warm:
            row["yardstick"] = (before + yardstick()["here"]) / 2
    return {**row, "said": said, **_judged(fault, said)}


@functools.cache
def _with_a_suite(op: str) -> Path:
    """Return the operator's folder, or, where it has no suite, a copy that was given one; it goes with this process.

    Nothing is tried on the golden, which takes half a minute: one case is judged, and would gain but a note of its power.
    """
    source = home(op)
    if (source / "eval" / "adversarial_suite.json").is_file():
        return source
    keeper = tempfile.TemporaryDirectory()
    atexit.register(keeper.cleanup)
    root = Path(keeper.name) / "custom" / op
    shutil.copytree(source, root, ignore=shutil.ignore_patterns("__pycache__", "_debug"))
    made = process.command(["harness", "new", "--no-rehearsal", str(root)], ROOT)
    if made.code != 0:
        raise click.ClickException(f"{op}: pypto-op harness new ended with {made.code}: {made.last_lines(3)}")
    return root


def _said(fault: Fault, root: Path, warm: bool, cpu: dict[str, float]) -> dict[str, Any]:
    """Ask triage, diagnose, and what triage names of precision-compare."""
    routed = _ask(["triage", str(root), "--json"], warm, cpu)
    named = _ask(["diagnose", str(root), "--json"], warm, cpu)
    hits = named.get("hits") or []
    said = {name: routed.get(name) for name in ("category", "skill", "row")}
    said |= {"hit": hits[0]["id"] if hits else None, "line": _line_of(fault, hits, routed), "blame": None, "others": []}
    commands = [shlex.split(line)[1:] for line in routed.get("next", ())]
    compare = next((words for words in commands if words[:2] == ["debug", "precision-compare"]), None)
    if compare is not None:
        found = _ask([*compare, "--json"], warm, cpu)
        places = [row["line"] for row in found.get("divergences", ())]
        said |= {
            "line": places[0] if places else said["line"],
            "others": places[1:],
            "blame": (found.get("blame") or {}).get("who"),
        }
        said["compare"] = found.get("error") or [f"{row['kind']} {row['opcode']}" for row in found.get("divergences", ())]
    return said


def _line_of(fault: Fault, hits: Sequence[Mapping[str, Any]], routed: Mapping[str, Any]) -> int | None:
    """Return the kernel's line that diagnose names, else the one in the verdict's words."""
    import re

    for hit in hits[:1]:
        if hit.get("kernel_line"):
            return int(hit["kernel_line"])
    words = " ".join(signal["says"] for signal in routed.get("signals", ()))
    found = re.search(rf"{fault.op}_impl\.py:(\d+)", words)
    return int(found[1]) if found else None


def _ask(words: Sequence[str], warm: bool, cpu: dict[str, float]) -> dict[str, Any]:
    """Run `pypto-op WORDS`, in a process of its own unless `warm`; note its processor seconds; return its JSON."""
    if warm:
        from tests.calling import command

        text = command(*words).stdout
    else:
        done = process.command(words, ROOT, apart=True)
        text = done.output
        cpu[" ".join(words[: 2 if words[0] == "debug" else 1])] = done.cpu_seconds
    try:
        return dict(json.loads(text))
    except ValueError:
        return {"error": text.strip()[-300:]}


def _judged(fault: Fault, said: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was right; None: it was not asked."""

    def near(line: int | None) -> bool:
        return line is not None and any(abs(line - one) <= NEAR for one in fault.lines)

    wanted = {"category": fault.category, "skill": fault.skill, "lines": list(fault.lines), "blame": fault.blame}
    right = {
        "category": said.get("category") == fault.category,
        "skill": said.get("skill") == fault.skill,
        "line": near(said.get("line")) if fault.lines else None,
        "line_among": any(near(one) for one in (said.get("line"), *said.get("others", ()))) if fault.lines else None,
        "blame": said.get("blame") == fault.blame if fault.blame and said.get("blame") is not None else None,
    }
    if fault.blame and fault.blame != "kernel":
        right["blame"] = said.get("blame") == fault.blame
    return {"wanted": wanted, "right": right}


def table(results: Mapping[str, Any]) -> Table:
    """Return the figures beside their targets."""
    rows = []
    for name, target in faults_page.TARGETS.items():
        good, asked = faults_page.count(results.values(), name)
        rows.append(Row(name, {"right": good, "asked": asked, "share": good / asked if asked else 0.0}, target, "share", True))
    return Table("planted faults", "faults; share", rows, ["docs/debugger-strength.md"])


@click.command()
@click.argument("chosen", nargs=-1)
@click.option("--warm", is_flag=True, help="Ask in this process: faster, without processor seconds.")
@click.option("--older", is_flag=True, help="Of these only the ones that an earlier state of the debugger was measured with.")
@click.option("--to", "to", type=click.Path(path_type=Path), help="Keep the rows there in place of the results.")
@click.option("--merge", type=click.Path(path_type=Path, exists=True), multiple=True, help="Take over rows that --to kept.")
@click.option("--page", "page_only", is_flag=True, help="Only write the page from the results that there are.")
def main(chosen: Sequence[str], warm: bool, older: bool, to: Path | None, merge: Sequence[Path], page_only: bool) -> None:
    """Measure operators or single faults, whatever the results hold."""
    results = load() if to is None else {}
    known = {fault.id: fault for fault in all_faults()}
    for path in merge:
        for name, row in json.loads(path.read_text(encoding="utf-8")).items():
            if name in known:  # judged again, as the fixtures say it now
                cpu = row["cpu"] or results.get(name, {}).get("cpu", {})
                results[name] = {**row, "cpu": cpu, "kind": known[name].kind, **_judged(known[name], row["said"])}
    for fault in () if page_only or merge else known.values():
        known_now = older and load().get(fault.id, {}).get("debugger") == debugger()
        if (not chosen or fault.op in chosen or fault.id in chosen) and not known_now:
            row = results[fault.id] = measured(fault, warm=warm)
            marks = " ".join(
                f"{name}={'-' if right is None else 'ok' if right else 'NO'}" for name, right in row["right"].items()
            )
            click.echo(
                f"{fault.id} [{row['kind']}] {row['status']} {marks} said={row['said']} wanted={row['wanted']} {row['cpu']}"
            )
            if to is None:
                store(results)
            else:
                keeping.store(to, results)
    if to is None:
        store(results)
        write_page()


if __name__ == "__main__":
    main()
