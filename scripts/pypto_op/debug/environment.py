"""`pypto-op debug environment-setup`: a symptom of the machine, its recipe, and one re-run with it.

A log is read by the knowledge base, as `pypto-op diagnose` reads it, so that both name the same. `environment.yaml` adds what a
program can do about an entry: variables for one re-run, and a check.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from pypto_op.diagnose.log_text import LogText, parse_log
from pypto_op.diagnose.search import Hit, diagnose
from pypto_op.diagnose.sources import read_source
from pypto_op.documents import schema
from pypto_op.documents.reading import read_yaml
from pypto_op.errors import ContractError, InfraError

_DATA = Path(__file__).with_name("environment.yaml")
_SKILL = "pypto-environment-setup"
_GENERAL = "通用排查步骤"
_SECONDS = 1800
_SHOWN = 300
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
        raise InfraError(
            f"npu-smi fails: {(done.stderr or done.stdout).strip()[:200]}", remedy="mend what it names, then ask again"
        )
    return sorted(int(one) for one in _FREE.findall(done.stdout))


def examine(log: Path | None, command: Sequence[str] = ()) -> dict[str, Any]:
    """Name the symptoms of a log, or of a command that is run for it, and run the command once more with what mends them.

    Args:
        log: what failed; None: the command's own output.
        command: run again, once, where a recipe sets a variable; () for no run.

    Returns:
        schemas/debug_environment_setup.schema.json; `rerun` is None where nothing was run again.

    Raises:
        ContractError: there is neither log nor command, or the log cannot be read.
        InfraError: the command cannot be started.
    """
    if log is None and not command:
        raise ContractError("neither a log nor a command was given", remedy="name --log FILE, or a command after --")
    notes: list[str] = []
    if log is None:
        first = _run(command, os.environ)
        found = _found_in(parse_log(first[1]))
    else:
        first = None
        words = read_source(log).log
        found, notes = _found_in(words), list(words.notes)
    environment: dict[str, str] = {}
    told = [_recover(row, environment) for row in found.values()]
    rerun = None
    if command and environment:
        code, output = _run(command, {**os.environ, **environment})
        left = list(_found_in(parse_log(output)))
        rerun = {"exit": code, "symptoms": left, "log_line": _log_line(told, code)}
    result = {
        "schema_version": 1,
        "first_exit": first[0] if first is not None else None,
        "symptoms": told,
        "exports": environment,
        "rerun": rerun,
        "notes": notes,
    }
    schema.check(result, "debug_environment_setup")
    return result


def _found_in(log: LogText) -> dict[str, dict[str, Any]]:
    """Return the symptoms that the knowledge base finds in a log, each with the number (None: it has none) and text of its line.

    Of several entries that one line shows the surest counts: the others say less about the same.
    """
    found: dict[str, dict[str, Any]] = {}
    begins: set[int] = set()
    for hit in diagnose(log).hits:
        begin = log.text.rfind("\n", 0, hit.offset + 1) + 1  # a match may begin with the end of the line before
        if hit.from_log and hit.entry.skill == _SKILL and begin not in begins:
            begins.add(begin)
            row = _row_of(hit)
            line = log.text[begin:].partition("\n")[0].strip()
            found.setdefault(row["id"], {**row, "log_line": hit.log[1] or None, "text": line[:_SHOWN]})
    return found


def _row_of(hit: Hit) -> Mapping[str, Any]:
    """Return the row of the table for a hit; for an entry that no row has, one that hands its remedy to a person."""
    entry = hit.entry
    for row in symptoms():
        if entry.id in row["of"] and re.search(row.get("seen", ""), hit.seen):
            return row
    return {
        "id": entry.id.replace("-", "_"),
        "section": _GENERAL,
        "recipe": " ".join(entry.remedy.split()),
        "person": True,
        "check": "pypto-op doctor",
    }


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
        for path in _files_below(folder, export["path_with"]):
            if "containing" not in export:
                return _joined(export, str(path.parent)), ""
            with contextlib.suppress(OSError):
                if export["containing"] in path.read_text(encoding="utf-8", errors="replace"):
                    return _root_of(path), ""
    return None, f"no {export['path_with']} lies below {', '.join(export.get('below', ()))}"


def _files_below(folder: Path, pattern: str) -> list[Path]:
    """Return the files below a folder whose paths end as `pattern` says, in order; `**` stands for any folders.

    Other programs work in such folders: what goes away meanwhile, or may not be read, is passed over.
    """
    parts = [re.escape(part).replace(r"\*", "[^/]*") for part in pattern.replace("**/", "\0").split("\0")]
    ends = re.compile("/" + "(?:[^/]+/)*".join(parts) + r"\Z")
    # A home folder holds a hundred thousand files: only what is found becomes a `Path`.
    places = (f"{place}/{name}" for place, _, names in os.walk(folder) for name in names)
    return sorted(Path(place) for place in places if ends.search(place))


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
        raise InfraError(f"{command[0]} cannot be run: {error}", remedy="give a command that runs in this shell") from error
    return done.returncode, done.stdout.decode(errors="replace")


def _log_line(told: Sequence[Mapping[str, Any]], code: int) -> str:
    names = ", ".join(str(row["id"]) for row in told)
    return f"Env recovery: {names} -> {'; '.join(str(row['recipe']) for row in told)}; re-run: exit {code}"
