"""A later file must still hold every function of the modules that were verified before."""

import pytest

from pypto_op.documents.kept_functions import function_hashes, require_kept
from pypto_op.errors import ContractError, Refused

FIRST = '''
def relu_module1_load(x, row):
    """Return a tile."""
    return pypto.view(x, [16, 32], [row, 0])


def _relu_module1_kernel_impl(x, out):
    pypto.assemble(relu_module1_load(x, 0), [0, 0], out)


@lru_cache
def _build(dtype):
    @pypto.frontend.jit
    def relu_module1_kernel(x, out):
        _relu_module1_kernel_impl(x, out)

    return relu_module1_kernel


def relu_module1_wrapper(x):
    return _build(x.dtype)(x)
'''


@pytest.fixture
def hashes(tmp_path):
    def of(source, name="impl.py"):
        (tmp_path / name).write_text(source)
        return function_hashes(tmp_path / name, "relu")

    return of


def test_only_what_must_not_grow_is_hashed(hashes):
    assert set(hashes(FIRST)) == {"relu_load"}


def test_names_comments_docstrings_and_layout_may_differ(hashes, tmp_path):
    later = FIRST.replace("module1", "module12").replace('"""Return a tile."""', '"""Say it otherwise."""')
    later = later.replace("return pypto.view(", "# a comment\n    return pypto.view(\n        ")
    require_kept(hashes(FIRST), hashes(later), file=tmp_path, phase="M1")
    integrated = FIRST.replace("relu_module1_", "relu_")
    require_kept(hashes(FIRST), hashes(integrated), file=tmp_path, phase="M1")


def test_functions_that_grow_may_change_and_new_ones_may_come(hashes, tmp_path):
    later = FIRST.replace("module1", "module12").replace("def _build(dtype)", "def _build(dtype, width)")
    later += "\n\ndef relu_module12_store(x):\n    return x\n"
    require_kept(hashes(FIRST), hashes(later), file=tmp_path, phase="M1")


@pytest.mark.parametrize("change", [("[row, 0]", "[0, row]"), ("16, 32", "16, 33"), ("(x, row)", "(x, row=0)")])
def test_a_changed_function_is_named(hashes, tmp_path, change):
    with pytest.raises(Refused, match="relu_load differs .* M1"):
        require_kept(hashes(FIRST), hashes(FIRST.replace(*change)), file=tmp_path, phase="M1")


def test_a_missing_function_is_named(hashes, tmp_path):
    with pytest.raises(Refused, match="relu_load of M1 is missing"):
        require_kept(hashes(FIRST), hashes("x = 1\n"), file=tmp_path, phase="M1")


@pytest.mark.parametrize("source", ["def broken(:\n", "x = '\0'\n", "(" * 2000])
def test_a_file_that_does_not_parse_is_one_line(hashes, source):
    with pytest.raises(ContractError, match="not valid Python"):
        hashes(source)


def test_a_missing_file_is_one_line(tmp_path):
    with pytest.raises(ContractError, match="no such file; write it first"):
        function_hashes(tmp_path / "none.py", "relu")
