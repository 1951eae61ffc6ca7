"""`pypto-op new`: its options take several words with commas, as `--p0` does, or one after another."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from pypto_op.documents import spec
from pypto_op.documents.commands import check, new
from pypto_op.errors import ContractError


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


@pytest.mark.parametrize("folder", ["custom", "custom/soft", "custom/soft/eval"])
def test_an_operator_is_not_made_among_operators(folder: str, tmp_path: Path) -> None:
    """From a subfolder of a workspace, custom/custom/OP would be made, which no other command looks at."""
    assert CliRunner().invoke(new, ["soft", "--into", str(tmp_path)], standalone_mode=False).return_value == 0
    done = CliRunner().invoke(new, ["hard", "--into", str(tmp_path / folder)], standalone_mode=False)
    assert isinstance(done.exception, ContractError) and f"run it in {tmp_path}, or name that" in done.exception.one_line()
    assert not list(tmp_path.rglob("hard"))


@pytest.mark.parametrize("folder", ["custom", "custom/projects", "mine/custom/deep"])
def test_a_workspace_may_lie_in_a_folder_of_that_name(folder: str, tmp_path: Path) -> None:
    (tmp_path / folder).mkdir(parents=True)
    done = CliRunner().invoke(new, ["soft", "--into", str(tmp_path / folder)], standalone_mode=False)
    assert done.return_value == 0, done.output


@pytest.mark.parametrize(("target", "fits"), [("elsewhere/soft", True), ("elsewhere/real", False)])
def test_a_link_to_an_operator_leads_to_a_folder_of_its_name(target: str, fits: bool, tmp_path: Path) -> None:
    """The files of an operator bear its folder's name, so behind another one none of them would be found."""
    CliRunner().invoke(new, ["soft", "--into", str(tmp_path)], standalone_mode=False)
    link, real = tmp_path / "custom" / "soft", tmp_path / target
    real.parent.mkdir()
    link.rename(real)
    link.symlink_to(real)
    done = CliRunner().invoke(check, [str(link)], standalone_mode=False)
    if fits:
        assert done.exception is None and done.return_value == 1, "its documents are still to be written"
    else:
        assert isinstance(done.exception, ContractError) and "call that folder soft, too" in done.exception.one_line()


def test_another_name_for_an_operator_is_a_link_as_good(tmp_path: Path) -> None:
    CliRunner().invoke(new, ["soft", "--into", str(tmp_path)], standalone_mode=False)
    (tmp_path / "latest").symlink_to("custom/soft")
    done = CliRunner().invoke(check, [str(tmp_path / "latest")], standalone_mode=False)
    assert done.exception is None and done.return_value == 1
