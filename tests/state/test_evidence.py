"""Seals bind a verdict to bytes and to the judge."""

import json
import os
import subprocess
import sys

import pytest
from tests.passes import pass_for_bytes

from pypto_op import __version__
from pypto_op.errors import ContractError, InfraError
from pypto_op.hashing import ABSENT, sha256_file
from pypto_op.proof import evidence
from pypto_op.proof.key import KEY_ENV, key_file, load_key
from pypto_op.workspace import OpWorkspace


@pytest.fixture
def key(tmp_path, monkeypatch):
    path = tmp_path / "keys" / "seal.key"
    monkeypatch.setenv(KEY_ENV, str(path))
    return path


@pytest.fixture
def ws(tmp_path, key):
    root = tmp_path / "custom" / "relu"
    (root / "eval").mkdir(parents=True)
    ws = OpWorkspace.at(root)
    for path in (ws.impl, ws.golden, ws.suite, ws.test_inputs, ws.interfaces, ws.spec):
        path.write_text(path.name)
    return ws


def report_for(ws, **changes):
    policy = {"name": "allclose", "version": 1}
    report = {
        "op_name": ws.name,
        "impl_file": ws.impl.name,
        "status": "PASS",
        "cases_total": 2,
        "cases_passed": 2,
        "cases_precision": 2,
        "selection": {"levels": None, "case": None, "complete": True},
        "up_to_module": 1,
        "policy": policy,
        "tool": {"name": "pypto-op", "version": __version__},
        "closure": {"candidate": {}, "golden": {}, "inputs": {}},
        "hashes": {**evidence.file_hashes(ws), "policy": evidence.policy_hash(policy)},
        "seconds": 0.1 + 0.2,
    }
    return {**report, **changes}


def write(ws, report):
    ws.report.write_text(json.dumps(report))


def test_a_sealed_pass_is_found_for_its_bytes_only(ws):
    write(ws, evidence.seal(report_for(ws)))
    assert pass_for_bytes(ws)["cases_passed"] == 2
    for path in (ws.impl, ws.golden, ws.suite, ws.test_inputs, ws.interfaces, ws.spec):
        before = path.read_bytes()
        path.write_bytes(before + b" ")
        assert pass_for_bytes(ws) is None, path.name
        path.write_bytes(before)
    assert pass_for_bytes(ws) is not None


def test_a_report_without_seal_is_not_evidence(ws):
    write(ws, report_for(ws))
    assert pass_for_bytes(ws) is None


@pytest.mark.parametrize(
    "field, value",
    [
        ("status", "FAIL"),
        ("status", "PARTIAL"),
        ("cases_passed", 0),
        ("cases_precision", 0),
        ("selection", {"levels": ["L2"], "case": None, "complete": False}),
        ("op_name", "other"),
    ],
)
def test_a_sealed_report_that_is_no_pass_of_this_operator_does_not_count(ws, field, value):
    write(ws, evidence.seal(report_for(ws, **{field: value})))
    assert pass_for_bytes(ws) is None


@pytest.mark.parametrize("field, value", [("status", "PASS "), ("cases_passed", 3), ("added", 1)])
def test_any_change_of_a_sealed_report_breaks_the_seal(ws, field, value):
    sealed = evidence.seal(report_for(ws))
    assert evidence.check_seal(sealed)
    assert not evidence.check_seal({**sealed, field: value})
    assert not evidence.check_seal({name: v for name, v in sealed.items() if name != "seconds"})


def test_a_seal_survives_the_way_through_a_file(ws):
    sealed = evidence.seal(report_for(ws, extra={"b": [1.5, None, "é"], "a": 1e-300}))
    assert evidence.check_seal(json.loads(json.dumps(sealed, indent=2)))


def test_a_seal_of_another_key_does_not_count(ws, monkeypatch, tmp_path):
    sealed = evidence.seal(report_for(ws))
    write(ws, sealed)
    monkeypatch.setenv(KEY_ENV, str(tmp_path / "other.key"))
    assert pass_for_bytes(ws) is None and not evidence.check_seal(sealed)
    assert evidence.check_seal(evidence.seal(report_for(ws)))


@pytest.mark.parametrize("name", evidence.HASH_NAMES)
def test_what_binds_nothing_is_not_sealed(ws, name):
    report = report_for(ws)
    del report["hashes"][name]
    with pytest.raises(ContractError, match=f"hashes.{name}"):
        evidence.seal(report)
    with pytest.raises(ContractError, match="canonical JSON"):
        evidence.seal(report_for(ws, seconds=float("nan")))


def test_the_policy_named_must_be_the_policy_hashed(ws):
    write(ws, evidence.seal(report_for(ws, policy={"name": "anything_goes", "version": 1})))
    assert pass_for_bytes(ws) is None


def test_the_key_is_private_and_made_once(key):
    first = load_key()
    assert len(first) == 32 and load_key() == first
    assert key.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in key.parent.iterdir()] == ["seal.key"]
    key.chmod(0o644)
    with pytest.raises(InfraError, match="chmod 600"):
        load_key()
    key.chmod(0o600)
    key.write_bytes(b"short")
    with pytest.raises(InfraError, match="damaged"):
        load_key()


def test_eight_processes_make_one_key(key):
    code = "from pypto_op.proof.key import key_id; print(key_id())"
    processes = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) for _ in range(8)]
    assert len({process.communicate()[0] for process in processes}) == 1


def test_the_key_lies_in_the_home_directory_unless_told_otherwise(monkeypatch, tmp_path):
    monkeypatch.delenv(KEY_ENV, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert key_file() == tmp_path / ".local/state/pypto-op/seal.key"


def test_what_is_no_regular_file_is_absent_and_does_not_hang(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert sha256_file(tmp_path / "pipe") == sha256_file(tmp_path) == sha256_file(tmp_path / "no") == ABSENT


def test_a_file_that_cannot_be_read_is_said_as_everywhere_else(tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(ContractError, match="loop: cannot be read .*; its links lead back to themselves; take one away"):
        sha256_file(tmp_path / "loop")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"a": 1, "a": 2}', '{"a": NaN}', '{"a":' * 100000])
def test_a_damaged_report_is_no_evidence(ws, text):
    ws.report.write_text(text)
    assert pass_for_bytes(ws) is None
    with pytest.raises(ContractError) as caught:
        evidence.read_report(ws.report)
    assert "\n" not in str(caught.value) and "evaluation_report.json" in str(caught.value)


@pytest.mark.parametrize("package", ["pypto", "torch"])
def test_a_pass_counts_for_the_versions_that_it_was_made_with(ws, monkeypatch, package):
    """The build of a version is left out, and so is what is not installed where the question is asked."""
    now = {"pypto": "0.2.0", "torch": "2.13.0"}
    monkeypatch.setattr(evidence, "_installed", lambda name: now[name])
    write(ws, evidence.seal(report_for(ws, versions={"pypto": "0.2.0", "torch": "2.13.0+cpu", "g++": "12"})))
    assert pass_for_bytes(ws) is not None
    now[package] = "9.9"
    assert pass_for_bytes(ws) is None
    (stale,) = evidence.stale_hashes(evidence.read_report(ws.report), evidence.file_hashes(ws), ws)
    assert stale.startswith(f"the version of {package} (") and stale.endswith(", now 9.9)")
    now[package] = ""
    assert pass_for_bytes(ws) is not None
