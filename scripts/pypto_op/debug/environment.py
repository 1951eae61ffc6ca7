"""`pypto-op debug environment-setup`: a symptom of the machine, its recipe, and one re-run with it."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from pypto_op.diagnose import credible
from pypto_op.documents import schema
from pypto_op.documents.reading import read_yaml
from pypto_op.errors import ContractError, InfraError

_DATA = Path(__file__).with_name("environment.yaml")
_LONGEST_LINE = 4000
_SECONDS = 1800
_FREE = re.compile(r"No running processes found in NPU (\d+)")


@lru_cache(maxsize=1)
def symptoms() -> list[dict[str, Any]]:
    """Return the table of symptoms (schemas/environment_symptoms.schema.json)."""
    data = read_yaml(_DATA)
    schema.check(data, "environment_symptoms", file=_DATA)
    return list(data["symptoms"])


def idle_chips() -> list[int]:
    """Return the ids of the chips that run no process.

    Raises:
        InfraError: `npu-smi` is missing or fails.
    """
    try:
        done = subprocess.run(["npu-smi", "info"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InfraError("npu-smi is missing or does not answer", remedy="this needs a machine with an NPU") from error
    if done.returncode != 0:
        raise InfraError(f"npu-smi fails: {(done.stderr or done.stdout).strip()[:200]}")
    return sorted(int(one) for one in _FREE.findall(done.stdout))


def examine(log: Path | None, command: Sequence[str] = ()) -> dict[str, Any]:
    """Name the symptoms of a log, or of a command that is run for it, and run the command once more with what mends them.

    Args:
        log: what failed; None: the command's own output.
        command: run again, once, where a recipe sets a variable; () for no run.

    Returns:
        schemas/debug_environment_setup.schema.json; `rerun` is None where nothing was run again.

    Raises:
        ContractError: there is neither log nor command.
        InfraError: the command cannot be started.
    """
    if log is None and not command:
        raise ContractError("neither a log nor a command was given", remedy="name --log FILE, or a command after --")
    if log is None:
        first = _run(command, os.environ)
        found = _found_in(first[1].splitlines())
    else:
        first = None
        found = _found_in(_lines(log))
    environment: dict[str, str] = {}
    told = [_recover(row, environment) for row in found.values()]
    rerun = None
    if command and environment:
        code, output = _run(command, {**os.environ, **environment})
        left = list(_found_in(output.splitlines()))
        rerun = {"exit": code, "symptoms": left, "log_line": _log_line(told, code)}
    result = {
        "schema_version": 1,
        "first_exit": first[0] if first is not None else None,
        "symptoms": told,
        "exports": environment,
        "rerun": rerun,
    }
    schema.check(result, "debug_environment_setup")
    return result


def _found_in(lines: Sequence[str] | Iterator[str]) -> dict[str, dict[str, Any]]:
    """Return the rows of the table whose pattern stands in a line, each with the number and text of the first such line."""
    patterns = [(row, re.compile(row["pattern"])) for row in symptoms()]
    found: dict[str, dict[str, Any]] = {}
    for number, line in enumerate(lines, 1):
        for row, pattern in patterns:
            told = pattern.search(line) if row["id"] not in found else None
            if told is not None and credible.counts(line, told):
                found[row["id"]] = {**row, "log_line": number, "text": line.strip()[:300]}
    return found


def _lines(log: Path) -> Iterator[str]:
    try:
        with log.open(encoding="utf-8", errors="replace") as file:
            yield from iter(lambda: file.readline(_LONGEST_LINE), "")
    except OSError as error:
        raise ContractError(f"cannot be read: {error.strerror}", file=log) from error


def _recover(row: Mapping[str, Any], environment: dict[str, str]) -> dict[str, Any]:
    """Work out the variables of a recipe; return what is told of the symptom."""
    blocked = "a person must do this" if row.get("person") else ""
    for export in row.get("exports", ()):
        value, reason = _value(export)
        if value is None:
            blocked = blocked or reason
        else:
            environment[export["name"]] = value
    told = {key: row[key] for key in ("id", "section", "recipe", "check", "log_line", "text")}
    return {**told, "blocked": blocked or None}


def _value(export: Mapping[str, Any]) -> tuple[str | None, str]:
    if "value" in export:
        return str(export["value"]), ""
    if export.get("idle_chip"):
        try:
            chips = idle_chips()
        except InfraError as error:
            return None, error.one_line()
        return (str(chips[0]), "") if chips else (None, "no chip is idle")
    for base in export.get("below", ()):
        folder = Path(os.path.expandvars(base))
        if "$" in str(folder) or not folder.is_dir():
            continue
        for path in sorted(folder.rglob(export["path_with"])):
            if "containing" not in export:
                return _joined(export, str(path.parent)), ""
            if export["containing"] in path.read_text(encoding="utf-8", errors="replace"):
                return _root_of(path), ""
    return None, f"no {export['path_with']} lies below {', '.join(export.get('below', ()))}"


def _joined(export: Mapping[str, Any], folder: str) -> str:
    old = os.environ.get(export["name"], "") if export.get("prepend") else ""
    return f"{folder}:{old}" if old else folder


def _root_of(path: Path) -> str:
    """Return the copy of pto-isa that a header lies in: the folder above `include`."""
    above = [parent.parent for parent in path.parents if parent.name == "include"]
    return str(above[-1] if above else path.parent)


def _run(command: Sequence[str], environment: Mapping[str, str]) -> tuple[int, str]:
    try:
        done = subprocess.run(
            [*command], env=dict(environment), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InfraError(f"{command[0]} cannot be run: {error}") from error
    return done.returncode, done.stdout.decode(errors="replace")


def _log_line(told: Sequence[Mapping[str, Any]], code: int) -> str:
    names = ", ".join(str(row["id"]) for row in told)
    return f"Env recovery: {names} -> {'; '.join(str(row['recipe']) for row in told)}; re-run: exit {code}"
