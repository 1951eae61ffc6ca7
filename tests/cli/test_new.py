"""`pypto-op new`: its options take several words with commas, as `--p0` does, or one after another."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from pypto_op.documents import spec
from pypto_op.documents.commands import new


@pytest.mark.parametrize(
    "words",
    [
        ["--dtype", "float32,bfloat16", "--dynamic", "T,H"],
        ["--dtype", "float32", "--dtype", "bfloat16", "--dynamic", "T", "--dynamic", "H"],
        ["--dtype", " float32, bfloat16", "--dynamic", "T, H,"],
    ],
)
def test_several_words(words: list[str], tmp_path: Path) -> None:
    done = CliRunner().invoke(new, ["soft", "--p0", "T=64,H=128", "--into", str(tmp_path), *words], standalone_mode=False)
    assert done.return_value == 0, done.output
    made = spec.load(tmp_path / "custom" / "soft" / "SPEC.md")
    assert (made.supported_dtypes, made.dynamic_axes) == (("float32", "bfloat16"), ("T", "H"))
