"""What the tests of documents share."""

from __future__ import annotations

import pytest
from tests.telling import told_lines

from pypto_op import cli


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    """Call `pypto-op ...` in a fresh workspace; return (exit code, stdout, stderr without progress)."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        with pytest.raises(SystemExit) as done:
            cli.main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return done.value.code, captured.out, "".join(f"{line}\n" for line in told_lines(captured.err))

    return call
