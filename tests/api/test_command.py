"""`pypto-op api` as it is called: names, words, JSON, unknown names, and the index that is built once."""

from __future__ import annotations

import json
import re

import pytest
from click.testing import CliRunner
from tests import quickly

from pypto_op import cli
from pypto_op.api import docstring, index
from pypto_op.api.commands import api as command
from pypto_op.api.examples import examples
from pypto_op.documents import schema
from pypto_op.errors import ContractError, InfraError

quickly.skip_without("pypto")


def ask(*words):
    done = CliRunner().invoke(command, list(words), standalone_mode=False)
    assert done.exception is None, done.exception
    return done.stdout


@pytest.fixture(scope="module")
def loaded():
    return index.load()


@pytest.mark.slow
def test_every_name_has_an_entry_that_keeps_to_the_schema(loaded):
    assert len(loaded.entries) > 300
    for name in loaded.entries:
        entry = index.describe(name)
        schema.check(entry, "api_entry", file=name)
        assert entry["name"] == name
    functions = [e for e in loaded.entries.values() if e["kind"] in ("function", "method")]
    assert all(entry["signature"] for entry in functions)


@pytest.mark.slow
def test_examples_and_notes_speak_of_names_that_exist(loaded):
    missing = [name for name in (*examples(), *index.notes()) if f"pypto.{name}" not in loaded.entries]
    assert not missing


@pytest.mark.slow
def test_a_page_tells_signature_constraints_dtypes_notes_and_example(loaded):
    page = ask("view")
    for words in ("view(input: Tensor", "valid_shape", "constraints:", "DT_FP16", "notes:", "equals torch", "view_kernel"):
        assert words in page
    assert ask("pypto.view") == page
    assert json.loads(ask("Tensor.view", "--json"))["summary"], "a method has the words of the function"
    assert "CAST_RINT" in ask("CastMode")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("row-wise maximum reduction over an axis", "pypto.amax"),
        ("torch.where", "pypto.where"),
        ("exponential", "pypto.exp"),
        ("matrix multiplication", "pypto.matmul"),
        ("mean", "pypto.sum"),
        ("square root", "pypto.sqrt"),
        ("top k", "pypto.topk"),
        ("rounding dtype conversion cast", "pypto.cast"),
        ("loop", "pypto.loop"),
    ],
)
def test_a_search_by_words_finds_the_operation(words, expected):
    answer = json.loads(ask("--search", words, "--json"))
    assert expected in [row["name"] for row in answer["names"]][:5]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "first"),
    [
        ("argmax", "topk"),
        ("torch.argmin", "topk"),
        ("softmax", "softmax"),
        ("layernorm", "sum"),
        ("nn.LayerNorm", "sum"),
        ("F.layer_norm", "sum"),
        ("layer norm backward", "sum"),
        ("gather", "gather"),
        ("torch.bmm", "matmul"),
        ("masked_fill", "where"),
        ("torch.Tensor.clamp", "clip"),
        ("cumsum", "cumsum"),
    ],
)
def test_a_word_of_torch_leads_to_the_nearest_call(words, first):
    answer = json.loads(ask("--search", words, "--json"))
    assert answer["names"][0]["name"] == f"pypto.{first}"
    assert first in ("softmax", "gather", "cumsum") or first in " ".join(answer["ways"])


@pytest.mark.slow
def test_words_of_torch_lead_to_calls_that_the_wheel_has(loaded):
    words = [word for way in index.all_ways() for word in way.words]
    assert len(set(words)) == len(words) > 80 and all(word.isalnum() and word == word.lower() for word in words)
    for way in index.all_ways():
        named = re.findall(r"pypto\.(\w+)", way.how)
        assert not [call for call in (*way.calls, *named) if f"pypto.{call}" not in loaded.entries], way
        assert set(way.calls) or "nothing near" in way.how
    same = [word for word in words if f"pypto.{word}" in loaded.entries]
    assert not same, "pypto has them by that name"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("matmull", "matmul"),
        ("softmx", "softmax"),
        ("set_vec_tile", "set_vec_tile_shapes"),
        ("reduce_sum", "sum"),
        ("argmax", "topk"),
    ],
)
def test_an_unknown_name_ends_with_exit_code_2_and_the_nearest_names(name, near, capsys, loaded):
    with pytest.raises(SystemExit) as ended:
        cli.main(["api", name])
    err = capsys.readouterr().err
    assert ended.value.code == 2 and near in err and err.count("\n") == 1


@pytest.mark.parametrize("words", [[], ["exp", "--list"], ["--search", "x", "--list"]])
def test_a_wrong_call_ends_with_exit_code_2(words, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(["api", *words])
    assert ended.value.code == 2 and "say one of" in capsys.readouterr().err


@pytest.mark.slow
def test_the_index_is_built_once_and_a_damaged_one_is_built_anew(tmp_path, monkeypatch):
    monkeypatch.setenv("PYPTO_OP_CACHE", str(tmp_path))
    index.load.cache_clear()
    try:
        first = index.load()
        (stored,) = (tmp_path / "api").iterdir()
        assert first.version in stored.name
        monkeypatch.setattr(index, "_build", lambda path: pytest.fail("built twice"))
        index.load.cache_clear()
        assert index.load().entries == first.entries
        monkeypatch.undo()
        monkeypatch.setenv("PYPTO_OP_CACHE", str(tmp_path))
        stored.write_text('{"format": ')
        index.load.cache_clear()
        assert index.load().entries == first.entries
    finally:
        index.load.cache_clear()


def test_without_pypto_one_line_says_so(monkeypatch):
    monkeypatch.setattr(index, "installed_version", lambda: None)
    index.load.cache_clear()
    with pytest.raises(InfraError, match="pypto is not installed"):
        index.load()
    index.load.cache_clear()


def test_docstrings_are_read_by_section():
    text = """Adds two. It must be quick.

    More words here.

    Parameters
    ----------
    input : Tensor
        The first. The supported data types are: DT_FP16.
        Must not be empty.
    dim : int, optional
        The axis.

    Raises
    ------
    ValueError
        If it is bad.

    Examples
    --------
    y = add(x)   # DT_INT8
    """
    import inspect

    found = docstring.parse(inspect.cleandoc(text))
    assert found["summary"] == "Adds two"
    assert [row["name"] for row in found["parameters"]] == ["input", "dim"]
    assert found["dtypes"] == ["DT_FP16"] and found["raises"] == ["ValueError If it is bad."]
    assert "input: Must not be empty" in found["constraints"] and "It must be quick" in found["constraints"]
    assert docstring.parse("")["summary"] == ""


def test_an_unknown_name_without_neighbours_says_how_to_go_on(loaded):
    with pytest.raises(ContractError, match="search by words"):
        index.describe("qqqqqqqq")
