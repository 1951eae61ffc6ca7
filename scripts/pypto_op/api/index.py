"""The index of the installed pypto: built once for each version, cached, and asked by name or by words."""

from __future__ import annotations

import difflib
import functools
import json
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pypto_op import own_python
from pypto_op.api.examples import examples
from pypto_op.api.probe import FORMAT
from pypto_op.backends.build_cache import cache_root
from pypto_op.bundle_files import extra_remedy
from pypto_op.documents.reading import read_yaml
from pypto_op.errors import ContractError, InfraError
from pypto_op_lint.pypto_names import asked_for, installed_version, names

NOTES = Path(__file__).with_name("notes.yaml")
TORCH_WORDS = Path(__file__).with_name("torch_words.yaml")
_PROBE_SECONDS = 120
_TORCH = re.compile(r"\b(torch|nn|functional|F|Tensor)\.(?=\w)")
_STOP_WORDS = frozenset(("a", "an", "the", "of", "to", "in", "on", "for", "and", "or", "with", "by", "how", "from", "all"))


@dataclass(frozen=True)
class Index:
    """Everything public in one pypto release."""

    version: str  # the release
    entries: Mapping[str, Mapping[str, Any]]  # dotted name to what is known about it, as `probe.collect` writes it

    def find(self, name: str) -> Mapping[str, Any] | None:
        """Return the entry for `exp`, `pypto.exp`, `Tensor.view` or `jit`; None when there is none."""
        wanted = name.strip().removesuffix("()")
        for path in (wanted, f"pypto.{wanted}", f"pypto.frontend.{wanted}", f"pypto.Tensor.{wanted}", f"pypto.config.{wanted}"):
            if path in self.entries:
                return self.entries[path]
        return None

    def nearest(self, name: str, count: int = 5) -> list[str]:
        """Return the names that look most like `name`, best first."""
        wanted = name.strip().rpartition(".")[2].lower()
        short = {path: path.rpartition(".")[2].lower() for path in self.entries}
        close = difflib.get_close_matches(wanted, sorted(set(short.values())), count, 0.5)
        inside = [
            tail for tail in dict.fromkeys(short.values()) if wanted and (wanted in tail or (len(tail) > 3 and tail in wanted))
        ]
        tails = list(dict.fromkeys([*close, *inside]))
        by_tail: dict[str, str] = {}
        for path, tail in short.items():  # a function stands for the methods of the same name
            if tail in tails and (tail not in by_tail or path.count(".") < by_tail[tail].count(".")):
                by_tail[tail] = path
        return [by_tail[tail] for tail in tails][:count]

    def search(self, words: str, count: int = 10) -> list[Mapping[str, Any]]:
        """Return the entries that fit `words` best: in the name, the summary, the torch expression, the notes.

        Before them come the calls that stand for words of torch (`ways`); behind an operation of pypto's own of that name.
        """
        words = _TORCH.sub("", words)
        named = self.find(words.strip())
        told = [f"pypto.{call}" for way in ways(words) for call in way.calls]
        first = dict.fromkeys([*([named["name"]] if named else []), *told])
        return [self.entries[path] for path in dict.fromkeys([*first, *self._by_score(words, count)])][:count]

    def _by_score(self, words: str, count: int) -> list[str]:
        tokens = [word for word in re.findall(r"[a-z0-9]+", words.lower()) if word not in _STOP_WORDS]
        scored = [(self._score(entry, tokens), path) for path, entry in self.entries.items()]
        best = sorted((row for row in scored if row[0] > 0), key=lambda row: (-row[0], row[1].count("."), row[1]))
        return [path for _, path in best[:count]]

    def _score(self, entry: Mapping[str, Any], tokens: list[str]) -> float:
        tail = entry["name"].rpartition(".")[2].lower()
        shown = examples().get(entry["name"].removeprefix("pypto."))
        fields = [
            (8.0, re.findall(r"[a-z0-9]+", tail)),
            (3.0, re.findall(r"[a-z0-9]+", entry["summary"].lower())),
            (3.0, re.findall(r"[a-z0-9]+", shown.torch.lower()) if shown else []),
            (1.0, re.findall(r"[a-z0-9]+", " ".join(entry["constraints"] + notes_on(entry["name"])).lower())),
        ]
        total = 0.0
        for token in tokens:
            hit = max((weight for weight, field in fields if any(_fits(token, word) for word in field)), default=0.0)
            total += hit + (12.0 if token == tail else 0.0)
        return total - (0.5 if entry["name"].count(".") > 1 else 0.0) if total else 0.0


def _fits(token: str, word: str) -> bool:
    """Say whether two words are the same but for an ending (reduce, reduces, reduction)."""
    shared = min(len(token), len(word))
    return token == word or (shared >= 4 and token[: max(4, shared - 2)] == word[: max(4, shared - 2)])


@functools.cache
def notes() -> dict[str, list[str]]:
    """Return what people learned about an operation, by its name without `pypto.`."""
    found: dict[str, list[str]] = read_yaml(NOTES)["notes"]
    return found


@dataclass(frozen=True)
class Way:
    """How something of torch is said in pypto."""

    words: tuple[str, ...]  # what people type, without prefix, underscores and case
    calls: tuple[str, ...]  # the nearest operations, without `pypto.`; () where there is none
    how: str  # one line


@functools.cache
def all_ways() -> tuple[Way, ...]:
    """Return every way of `torch_words.yaml`."""
    return tuple(Way(tuple(row["words"]), tuple(row["calls"]), row["how"]) for row in _torch_words()["ways"])


@functools.cache
def _torch_words() -> dict[str, Any]:
    found: dict[str, Any] = read_yaml(TORCH_WORDS)
    return found


def ways(words: str) -> list[Way]:
    """Return how pypto says what is asked for: `torch.argmax`, `layer_norm`, `LayerNorm`, or `layer norm` among other words."""
    parts = [re.sub(r"[^a-z0-9]", "", part.lower()) for part in _TORCH.sub("", words).split()]
    alone = parts if len(parts) == 1 else [part for part in parts if part not in _torch_words()["plain_english"]]
    asked = {*alone, *("".join(pair) for pair in zip(parts, parts[1:], strict=False))}
    return [way for way in all_ways() if asked & set(way.words)]


def notes_on(path: str) -> list[str]:
    """Return the notes on a dotted name; a method has those of the function."""
    return notes().get(path.removeprefix("pypto.").removeprefix("Tensor."), [])


@functools.cache
def load(release: str | None = None) -> Index:
    """Return the index of the installed pypto; built in a process of its own when this version has none yet.

    Args:
        release: another release, of which names and parameters are known.

    Raises:
        ContractError: nothing is known of that release.
        InfraError: pypto is not installed, or it cannot be imported.
    """
    version = installed_version()
    if release not in (None, version):
        return _from_names(str(release))
    if version is None:
        raise InfraError("pypto is not installed", remedy=extra_remedy("sim"))
    path = cache_root() / "api" / f"pypto-{version}-{FORMAT}.json"
    data = _read(path)
    if data is None:
        _build(path)
        data = _read(path)
    if data is None:
        raise InfraError("the index could not be read back", file=path, remedy="check the folder's rights, or set PYPTO_OP_CACHE")
    return Index(data["pypto_version"], data["entries"])


def _from_names(release: str) -> Index:
    """Return what a release's table of names tells: functions with their parameters, classes with their members."""
    with asked_for(release):
        table = names()
    entries: dict[str, dict[str, Any]] = {}
    for owner, public in table.members.items():
        for name in public:
            path = f"{owner}.{name}"
            parameters = table.parameters.get(path)
            inner = sorted(table.members.get(path, ()))
            kind = "method" if owner == "pypto.Tensor" and parameters else "function" if parameters is not None else ""
            entries[path] = {
                "name": path,
                "kind": kind or ("class" if inner else "value"),
                "signature": f"{name}({', '.join(parameters)})" if parameters is not None else "",
                "summary": f"known by its name alone: pypto {release} is not installed",
                **{key: [] for key in ("parameters", "raises", "constraints", "dtypes")},
                "returns": "",
                "members": inner,
            }
    return Index(release, entries)


def describe(name: str, release: str | None = None) -> dict[str, Any]:
    """Return everything about one name, as `schemas/api_entry.schema.json` describes it.

    Raises:
        ContractError: pypto has no such name; the message lists the nearest ones.
        InfraError: as `load`.
    """
    index = load(release)
    entry = index.find(name)
    if entry is None:
        near = [path.removeprefix("pypto.") for path in index.nearest(name)]
        remedy = f"nearest: {', '.join(near)}" if near else "search by words with `pypto-op api --search WORDS`"
        told = ways(name)
        raise ContractError(f"pypto {index.version} has no {name[:60]!r}", remedy=told[0].how if told else remedy)
    twin = index.entries.get(entry["name"].replace("pypto.Tensor.", "pypto.")) or {}
    merged = {
        **entry,
        **{key: entry[key] or twin.get(key, entry[key]) for key in ("summary", "parameters", "constraints", "dtypes")},
    }
    shown = examples().get(merged["name"].removeprefix("pypto.").removeprefix("Tensor."))
    return {
        "schema_version": 1,
        "pypto_version": index.version,
        **{key: merged[key] for key in ("name", "kind", "signature", "summary", "parameters", "returns", "raises", "members")},
        "constraints": merged["constraints"],
        "notes": notes_on(merged["name"]),
        "dtypes_documented": merged["dtypes"],
        "dtypes_run": sorted({port.torch_dtype for port in (*shown.inputs, shown.out)}) if shown else [],
        "example": shown.source() if shown else None,
        "equals": shown.torch if shown else None,
    }


def _read(path: Path) -> Any:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return data if isinstance(data, dict) and data.get("format") == FORMAT else None


def _build(path: Path) -> None:
    command = own_python.running("pypto_op.api.probe", str(path))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(command, timeout=_PROBE_SECONDS, capture_output=True, text=True, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InfraError(f"the index of pypto could not be built ({type(error).__name__})", file=path) from None
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1][:200]
        raise InfraError(f"pypto cannot be imported: {last}", remedy="run `pypto-op doctor`")
