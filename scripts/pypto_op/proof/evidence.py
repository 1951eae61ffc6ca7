"""Evidence: which bytes a verdict is about, and whether the judge really wrote it.

A verdict counts for exactly the bytes whose sha256 it names. The seal (HMAC-SHA256 over the whole report, see
`key`) tells a report that the judge wrote from one that somebody typed. Standard library only.
"""

from __future__ import annotations

import contextlib
import functools
import hmac
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pypto_op import __version__
from pypto_op.errors import ContractError
from pypto_op.hashing import ABSENT, canonical_json, read_json, sha256_file, sha256_json
from pypto_op.proof.closure import CLOSURE, stale_closure
from pypto_op.proof.draws import failed_cases
from pypto_op.proof.key import key_id, load_key, mac
from pypto_op.proof.writing import write_whole
from pypto_op.vocabulary import Status
from pypto_op.workspace import OpWorkspace, to_run

HASH_NAMES = ("impl", "golden", "suite", "inputs", "interfaces", "policy")
"""What every report names under `hashes`; `policy` is `policy_hash` of the report's own `policy` object."""

INTERRUPTED = "the judge was interrupted"
"""What a report says of a verification that has not ended, or never did."""

_MOST_KEPT = 64  # anybody may fill the folder; nobody shall make a gate read for minutes
_DECIDE_NUMBERS = ("pypto", "torch")
_ALGORITHM = "hmac-sha256"
_DOMAIN = "pypto-op report"


def file_hashes(ws: OpWorkspace, k: int | None = None, *, impl: Path | None = None) -> dict[str, str]:
    """Return the sha256 of every file that a verdict depends on; `ABSENT` where there is none.

    Args:
        k: the phase whose cumulative impl and golden are meant; None for the integrated impl.
        impl: another file in the place of the impl (`pypto-op verify --impl`).

    Returns:
        `impl`, `golden`, `suite`, `inputs`, `interfaces`, and `spec`, which the tolerance comes from.
    """
    files = {
        "impl": impl or (ws.impl if k is None else ws.module_impl(k)),
        "golden": ws.golden if k is None else ws.module_golden(k),
        "suite": ws.suite,
        "inputs": ws.test_inputs,
        "interfaces": ws.interfaces,
        "spec": ws.spec,
    }
    return {name: sha256_file(path) for name, path in files.items()}


def policy_hash(policy: Any) -> str:
    """Return the hash that a report names as `hashes.policy`, of its `policy` object."""
    return sha256_json(policy)


def seal(report: Mapping[str, Any]) -> dict[str, Any]:
    """Return `report` with `seal`, which binds every other field to the key.

    Raises:
        ContractError: the report lacks a hash or the tool version, so a seal would bind nothing.
    """
    body = {name: value for name, value in report.items() if name != "seal"}
    missing = list(_unbound(body))
    if missing:
        raise ContractError(
            f"a report without {', '.join(missing)} cannot be sealed", remedy="this is a fault of pypto-op; report it"
        )
    key = load_key()
    return {**body, "seal": f"{_ALGORITHM}:{key_id(key)}:{mac(_DOMAIN, canonical_json(body), key)}"}


def check_seal(report: Mapping[str, Any]) -> bool:
    """Say whether this account's judge sealed exactly this report, as it was read."""
    parts = str(report.get("seal", "")).split(":")
    if len(parts) != 3 or parts[0] != _ALGORITHM:
        return False
    body = {name: value for name, value in report.items() if name != "seal"}
    if any(_unbound(body)):
        return False
    key = load_key()
    if parts[1] != key_id(key):
        return False
    try:
        return hmac.compare_digest(parts[2].encode(), mac(_DOMAIN, canonical_json(body), key).encode())
    except ContractError:
        return False


def read_report(path: Path) -> dict[str, Any]:
    """Return a report as a dict; its schema is the gate's question.

    Raises:
        ContractError: it is missing, huge, not JSON, no object, or names a key twice.
    """
    return read_json(path, remedy=to_run("verify", path.parent.parent))


def evidence_dir(ws: OpWorkspace) -> Path:
    """Return the folder that keeps sealed reports after `eval/evaluation_report.json` is overwritten."""
    return ws.debug_dir / "evidence"


def sealed_passes(
    ws: OpWorkspace, impl: Path | None = None, k: int | None = None, *, partial: bool = False
) -> Iterator[dict[str, Any]]:
    """Yield the sealed PASSes for the bytes that lie there now: the latest report, then the kept ones.

    There is none while the same bytes are wrong on a draw of another verdict (`draws`).

    Args:
        impl: another file in the place of the impl.
        k: the phase; None for the integrated impl.
        partial: yield what passed on a part of the suite too, for a caller that looks itself at what it covers.
    """
    now = file_hashes(ws, k, impl=impl)
    if ABSENT in (now["impl"], now["golden"]):
        return
    for path in _candidates(ws):
        try:
            report = read_report(path)
        except ContractError:
            continue
        if (
            report.get("op_name") == ws.name
            and _counts(report, partial)
            and not stale_hashes(report, now, ws)
            and (k is None or report.get("up_to_module") == k)
            and lay_there(report, ws, impl, k)
            and check_seal(report)
            and report["tool"]["version"] == __version__
            and not failed_cases(report, ws)
        ):
            yield report


def lay_there(report: Mapping[str, Any], ws: OpWorkspace, impl: Path | None = None, k: int | None = None) -> bool:
    """Whether the file that was judged lay where the one that is asked about does, so that it loads the same helpers.

    A copy of an earlier impl (`impl`) may also have the PASS that it had as the operator's own.
    """
    own = ws.impl if k is None else ws.module_impl(k)
    judged = report.get("impl_file")
    return isinstance(judged, str) and _place(ws.root / judged) in {_place(path) for path in (own, impl) if path is not None}


def _place(path: Path) -> Path:
    """Return where a file lies; of its own links none is followed, since helpers are looked for beside the link."""
    return path.parent.resolve() / path.name


def _counts(report: Mapping[str, Any], partial: bool) -> bool:
    """Whether a report says that outputs passed with numbers compared: on the whole suite, or on a part where that will do."""
    selection = report.get("selection")
    if not isinstance(selection, Mapping) or selection.get("inspect") or "seed" in selection:
        return False
    whole = report.get("status") == Status.PASS and selection.get("complete") is True
    part = partial and report.get("status") == Status.PARTIAL
    return (whole or part) and _positive(report.get("cases_passed")) and _positive(report.get("cases_precision"))


def keep(ws: OpWorkspace, report: Mapping[str, Any]) -> Path | None:
    """Keep a sealed report under `evidence_dir`, so that it still counts after the next verdict was written.

    Returns:
        Where it lies now, None where it was kept before.

    Raises:
        OSError: the file cannot be written.
    """
    folder = evidence_dir(ws)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{sha256_json(report)[:16]}.json"
    if path.exists():
        return None
    write_whole(path, json.dumps(report, allow_nan=False))
    return path


def keep_whole(ws: OpWorkspace, path: Path) -> Path | None:
    """Keep the sealed PASS of the whole suite that lies at `path`, which a run that is interrupted or judges less would replace.

    Returns:
        Where it lies now; None where there is none, or where it was kept before. A run on the whole that ends removes it.
    """
    with contextlib.suppress(ContractError, OSError):
        report = read_report(path)
        if _counts(report, partial=False) and check_seal(report):
            return keep(ws, report)
    return None


def stale_hashes(report: Mapping[str, Any], now: Mapping[str, str], ws: OpWorkspace) -> list[str]:
    """Return the names of the files whose bytes are not those that the report names, and the packages with another version.

    Args:
        now: `file_hashes` of the same phase and impl.
        ws: the operator; what impl, golden and inputs loaded beside is looked at there.
    """
    named = report.get("hashes")
    if not isinstance(named, Mapping):
        return list(HASH_NAMES)
    stale = [name for name in HASH_NAMES if name != "policy" and named.get(name) != now[name]]
    if "spec" in named and named["spec"] != now["spec"]:
        stale.append("spec")
    if named.get("policy") != policy_hash(report.get("policy")):
        stale.append("policy")
    return stale + stale_closure(report.get(CLOSURE), ws.root) + list(_other_versions(report.get("versions")))


def changed_since(report: Mapping[str, Any], ws: OpWorkspace) -> list[str]:
    """Return what `stale_hashes` names of the impl and the phase that a report is about."""
    impl = ws.root / report["impl_file"]
    phase = None if impl == ws.impl else report["up_to_module"] or None
    return stale_hashes(report, file_hashes(ws, phase, impl=impl), ws)


def _other_versions(named: Any) -> Iterator[str]:
    """Yield the packages that decide numbers and are installed in another version than the one that a report names.

    The build of a version (`+cpu`) is left out: not everybody who asks for a version tells it.
    """
    for package in _DECIDE_NUMBERS if isinstance(named, Mapping) else ():
        then, now = str(named.get(package, "")), _installed(package)
        if then and now and then.partition("+")[0] != now.partition("+")[0]:
            yield f"the version of {package} ({then}, now {now})"


@functools.cache
def _installed(package: str) -> str:
    """Return the version of an installed package, "" where there is none: then another machine has judged."""
    from importlib import metadata

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def _unbound(body: Mapping[str, Any]) -> Iterator[str]:
    hashes = body.get("hashes")
    for name in HASH_NAMES:
        if not isinstance(hashes, Mapping) or not isinstance(hashes.get(name), str):
            yield f"hashes.{name}"
    if not isinstance(body.get(CLOSURE), Mapping):
        yield CLOSURE
    tool = body.get("tool")
    if not isinstance(tool, Mapping) or not isinstance(tool.get("version"), str):
        yield "tool.version"


def _candidates(ws: OpWorkspace) -> Iterator[Path]:
    yield ws.report
    kept = [path for path in evidence_dir(ws).glob("*.json") if path.is_file()]
    newest = sorted(kept, key=lambda path: path.stat().st_mtime, reverse=True)
    yield from newest[:_MOST_KEPT]


def _positive(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def composition_hashes(ws: OpWorkspace, n: int) -> dict[str, str]:
    """Return the hashes of the files that the composition of `n` modules depends on."""
    files = {"golden": ws.golden, "module_golden": ws.module_golden(n), "interfaces": ws.interfaces, "inputs": ws.test_inputs}
    return {name: sha256_file(path) for name, path in files.items()}


def harness_hashes(ws: OpWorkspace) -> dict[str, str]:
    """Return the hashes of the files that the self-test of a harness depends on."""
    files = {
        "spec": ws.spec,
        "golden": ws.golden,
        "interfaces": ws.interfaces,
        "inputs": ws.test_inputs,
        "suite": ws.suite,
        "runner": ws.runner,
    }
    return {name: sha256_file(path) for name, path in files.items()}
