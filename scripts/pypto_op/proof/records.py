"""Keeps sealed results that count for exact bytes, so that nothing is measured twice.

A record names the hashes that it speaks of, and every file that was loaded on the way; it counts while all of them are as they
were. It is sealed with the account's key, each kind under a name of its own, so a record that somebody typed, or took from
another kind, is none. Standard library only.
"""

from __future__ import annotations

import contextlib
import hmac
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pypto_op import __version__
from pypto_op.errors import PyptoOpError
from pypto_op.hashing import canonical_json, read_json, sha256_json
from pypto_op.proof.closure import Loaded, stale_closure
from pypto_op.proof.evidence import harness_hashes
from pypto_op.proof.key import load_key, mac
from pypto_op.proof.writing import write_whole
from pypto_op.vocabulary import Loader
from pypto_op.workspace import OpWorkspace

SELF_TEST = "self_test"
GOLDEN_VALID = "golden_valid"
FOLDER = "records"
_DOMAIN = "pypto-op record "
_MOST_KEPT = 200
EMPTY_CLOSURE: Mapping[str, Mapping[str, str]] = {str(loader): {} for loader in Loader}
"""Of what loads nothing beside the files that are named."""


def package_versions(*names: str) -> dict[str, str]:
    """Return the versions of Python and of installed packages, as part of what a record speaks of; `absent`: not installed."""
    import platform
    from importlib import metadata

    found = {"python": platform.python_version()}
    for name in names:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "absent"
    return found


def keep(
    ws: OpWorkspace, kind: str, about: Mapping[str, str], result: Any, *, closure: Mapping[str, Mapping[str, str]] = EMPTY_CLOSURE
) -> None:
    """Keep what was found out; where it cannot be written, it is found out again.

    Args:
        about: hashes and versions that decide the answer.
        result: the answer, as JSON.
        closure: `Loaded.closure` of what ran.
    """
    body = {"kind": kind, "op_name": ws.name, "tool": __version__, "about": dict(about), "closure": closure, "result": result}
    path = _path(ws, kind, about)
    with contextlib.suppress(OSError, PyptoOpError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps({**body, "seal": _seal(kind, body)}, allow_nan=False))
        kept = sorted(path.parent.glob("*.json"), key=lambda file: file.stat().st_mtime)
        for old in kept[:-_MOST_KEPT]:
            old.unlink(missing_ok=True)


def found(ws: OpWorkspace, kind: str, about: Mapping[str, str]) -> Any:
    """Return what was kept about exactly this, or None."""
    path = _path(ws, kind, about)
    if not path.is_file():
        return None
    try:
        record = read_json(path, remedy="remove it")
        body = {name: value for name, value in record.items() if name != "seal"}
        sealed = hmac.compare_digest(str(record.get("seal")).encode(), _seal(kind, body).encode())
    except PyptoOpError:
        return None
    same = body.get("kind") == kind and body.get("op_name") == ws.name and body.get("tool") == __version__
    if not (sealed and same and body.get("about") == dict(about)) or stale_closure(body.get("closure"), ws.root):
        return None
    return body.get("result")


def keep_self_test(ws: OpWorkspace, result: Mapping[str, Any], loaded: Loaded) -> None:
    """Keep what the self-test of an operator's own harness said of the files that `result` names."""
    about = _about_self_test(ws, result["hashes"])
    if about is not None:
        named = [ws.spec, ws.golden, ws.interfaces, ws.test_inputs, ws.suite, ws.runner]
        keep(ws, SELF_TEST, about, dict(result), closure=loaded.closure(ws, named))


def found_self_test(ws: OpWorkspace) -> Any:
    """Return what the self-test said of the harness as it lies there now, or None."""
    about = _about_self_test(ws, harness_hashes(ws))
    return None if about is None else found(ws, SELF_TEST, about)


def _about_self_test(ws: OpWorkspace, hashes: Mapping[str, str]) -> dict[str, str] | None:
    """Return what decides the answer; None where a module's golden, which the hashes do not name, has a part in it."""
    if any(ws.modules_dir.glob("*_golden.py")):
        return None
    return {**hashes, **package_versions("torch")}


def _path(ws: OpWorkspace, kind: str, about: Mapping[str, str]) -> Path:
    return ws.debug_dir / FOLDER / f"{kind}-{sha256_json(dict(about))[:16]}.json"


def _seal(kind: str, body: Mapping[str, Any]) -> str:
    return mac(_DOMAIN + kind, canonical_json(body), load_key())
