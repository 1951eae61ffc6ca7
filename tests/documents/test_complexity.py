"""The complexity of goldens: what is counted, what follows, and the reference table of the formula."""

import json

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.quickly import examples

from pypto_op.bundle_files import bundle_root
from pypto_op.documents import complexity, golden
from pypto_op.documents.golden import Signals
from pypto_op.errors import ContractError
from pypto_op.hardware import CHIP

from . import goldens

REFERENCE = [
    ("GELU", (4, 0, 0, 0), 1),
    ("softmax", (6, 0, 0, 2), 1),
    ("layernorm", (7, 0, 0, 2), 1),
    ("attention fwd", (5, 0, 2, 2), 1),
    ("attention bwd", (17, 0, 6, 4), 2),
    ("FA fwd", (28, 1, 2, 1), 1),
    ("FA bwd", (45, 2, 4, 2), 2),
    ("gated delta rule", (40, 2, 4, 2), 2),
    ("mamba ssm", (55, 2, 6, 2), 3),
]


@pytest.mark.parametrize(("name", "counts", "modules"), REFERENCE)
def test_the_formula_gives_the_reference_rows(name, counts, modules):
    lines, state, matmuls, reduces = counts
    assert complexity.decide(Signals(lines, matmuls, reduces, state)).module_count == modules


# (lines, state groups, matmuls, reduces) counted by hand; a softmax that is written out is one reduce.
COUNTED = [
    ("GELU", goldens.GELU, (4, 0, 0, 0), 1),
    ("softmax", goldens.SOFTMAX, (6, 0, 0, 1), 1),
    ("layernorm", goldens.LAYERNORM, (7, 0, 0, 2), 1),
    ("attention fwd", goldens.ATTENTION_FWD, (5, 0, 2, 1), 1),
    ("attention bwd", goldens.ATTENTION_BWD, (17, 0, 6, 2), 2),
    ("FA fwd", goldens.FA_FWD, (28, 1, 2, 1), 1),
    ("FA bwd", goldens.FA_BWD, (26, 2, 5, 1), 2),
    ("gated delta rule", goldens.GATED_DELTA, (21, 2, 7, 3), 2),
    ("layernorm bwd", goldens.LAYERNORM_BWD, (14, 0, 0, 4), 1),
    ("mamba ssm", goldens.MAMBA, (33, 2, 6, 2), 3),
]


@pytest.mark.parametrize(("name", "source", "counts", "modules"), COUNTED)
def test_goldens_are_counted_from_their_source(tmp_path, name, source, counts, modules):
    path = tmp_path / "op_golden.py"
    path.write_text(source)
    params = complexity.analyse(path)
    signals = params.signals
    found = (signals.effective_lines, signals.state_groups, signals.matmuls, signals.cross_tile_reduces)
    assert found == counts
    assert params.module_count == modules


def signals_of(tmp_path, body, head="", parameters="x, y, z"):
    path = tmp_path / "op_golden.py"
    lines = "\n".join("    " + line for line in body.split("\n"))
    path.write_text(f"import torch\nimport torch.nn.functional as F\n{head}\n\ndef op_golden({parameters}):\n{lines}\n")
    return golden.read_signals(path)


@pytest.mark.parametrize(
    ("expression", "count"),
    [
        ("x @ y", 1),
        ("torch.matmul(x, y) + x.mm(y) + torch.bmm(x, y)", 3),
        ("torch.einsum('ij,jk->ik', x, y)", 1),
        ("torch.einsum('ij,jk,kl->il', x, y, z)", 2),
        ("torch.einsum('ij->i', x)", 0),
        ("F.linear(x, y)", 1),
        ("F.scaled_dot_product_attention(x, y, z)", 2),
        ("torch.addmm(x, y, z)", 1),
        ("x * y", 0),
    ],
)
def test_matmuls(tmp_path, expression, count):
    assert signals_of(tmp_path, f"return {expression}").matmuls == count


@pytest.mark.parametrize(
    ("body", "count"),
    [
        ("return x.sum(-1)", 1),
        ("return torch.softmax(x, -1)", 1),
        ("return F.layer_norm(x, (3,))", 2),
        ("return torch.max(x, y)", 0),
        ("return torch.max(x, dim=-1)", 1),
        ("return x.max(-1).values", 1),
        ("return x.max(y)", 0),
        ("return x.amax(1) + x.mean()", 2),
        ("return max(3, 4) + sum([1, 2])", 0),
        ("m = x.amax(-1)\np = (x - m).exp()\nreturn p / p.sum(-1)", 1),
        ("m = x.amax(-1)\nreturn torch.exp(x - m).sum(-1)", 1),
        ("p = torch.exp(x)\nreturn p.sum(-1)", 1),
        ("m = x.amax(-1)\np = torch.exp(x - m)\nreturn p.sum(-1) + p.sum(0)", 2),
        ("m = x.amax(-1)\np = torch.exp(x - m)\nreturn (p * y).sum(-1)", 2),
        ("return torch.einsum('ij->i', x)", 1),
        ("return x.sum(-1) + (x * y).sum(-1)", 1),
        ("a, b = x.sum(-1), (x * y).mean(dim=-1)\nreturn a, b, y.sum(0)", 2),
        ("m = x.mean(-1)\nreturn ((x - m) ** 2).mean(-1)", 2),
        ("return (x - x.mean(-1)).square().mean(-1)", 2),
        ("m = x.sum(-1)\nm += y\nreturn (x * m).sum(-1)", 2),
    ],
)
def test_cross_tile_reduces(tmp_path, body, count):
    assert signals_of(tmp_path, body).cross_tile_reduces == count


@pytest.mark.parametrize(
    ("body", "groups"),
    [
        ("for i in range(3):\n    x = x + y\nreturn x", 1),
        ("for i in range(3):\n    x += y\nreturn x", 1),
        ("for i in range(3):\n    t = x[i]\n    y[i] = t\nreturn y", 0),
        ("outs = []\nfor i in range(3):\n    outs.append(x[i])\nreturn torch.stack(outs)", 0),
        ("i = 0\nwhile i < 3:\n    t = x[i]\n    i += 1\nreturn t", 0),
        ("for i in range(3):\n    x = x + y\n    z = z * x\nreturn x, z", 1),
        ("for i in range(3):\n    x = x + y\nfor j in range(3):\n    z = z * y\nreturn x, z", 2),
        ("for i in range(3):\n    for j in range(3):\n        x = x + y\nreturn x", 1),
        ("for i in range(3):\n    a = y\n    for j in range(3):\n        a = a + x\n    z[i] = a\nreturn z", 1),
        ("for i in range(3):\n    rows = slice(i, i + 1)\n    z[rows] += y\nreturn z", 0),
        ("for i in range(3):\n    for j in range(3):\n        z[j] += y\nreturn z", 1),
        ("for i in range(3):\n    if i:\n        x = x + y\n    else:\n        x = y\nreturn x", 1),
        ("for i in range(3):\n    a = i\n    b = a + 1\nreturn b", 0),
        ("while True:\n    x = x + y\n    break\nreturn x", 1),
    ],
)
def test_state_groups(tmp_path, body, groups):
    assert signals_of(tmp_path, body).state_groups == groups


def test_layout_and_comments_do_not_change_the_count(tmp_path):
    plain = signals_of(tmp_path, "a = x @ y\nreturn a.sum(-1)")
    spread = signals_of(
        tmp_path, '"""Doc."""\n# comment\n\na = (\n    x\n    @ y  # here\n)\n\nassert a is not None\nreturn a.sum(\n    -1\n)'
    )
    assert spread == plain and plain.effective_lines == 2


def test_helpers_count_per_call_and_once_for_lines(tmp_path):
    helper = "def mix(a, b):\n    c = a @ b\n    return c.sum(-1)\n"
    unused = "def unused(a):\n    return a @ a\n"
    once = signals_of(tmp_path, "return mix(x, y)", head=helper + "\n\n" + unused)
    twice = signals_of(tmp_path, "return mix(x, y) + mix(y, z)", head=helper)
    assert (once.matmuls, once.cross_tile_reduces, once.effective_lines) == (1, 1, 3)
    assert (twice.matmuls, twice.cross_tile_reduces, twice.effective_lines) == (2, 2, 3)


def test_recursion_and_deep_call_chains_end(tmp_path):
    chain = "\n".join(f"def f{n}(x):\n    return f{n + 1}(x) + f{n + 1}(x)" for n in range(60))
    head = chain + "\ndef f60(x):\n    return op_golden(x, x, x) @ x\n"
    assert signals_of(tmp_path, "return f0(x)", head=head).matmuls == 2**60


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def other(x):\n    return x\n", "has no function *_golden"),
        ("def broken(:\n", "line 1: not valid Python"),
        ("x = " + "(" * 500 + "1" + ")" * 500, "not valid Python"),
    ],
)
def test_files_that_are_no_golden_are_refused(tmp_path, text, words):
    path = tmp_path / "op_golden.py"
    path.write_text(text)
    with pytest.raises(ContractError) as caught:
        complexity.analyse(path)
    assert words in caught.value.one_line()


@pytest.mark.parametrize(
    ("total", "lines", "modules"),
    [(1.29, 100, 1), (1.3, 100, 1), (1.49, 100, 1), (1.5, 100, 2), (2.5, 100, 3), (3.5, 100, 4), (9.0, 13, 2), (99.0, 9999, 32)],
)
def test_rounding_is_half_up_and_capped(total, lines, modules, monkeypatch):
    monkeypatch.setattr(complexity, "LINES_PER_UNIT", lines / total)
    assert complexity.decide(Signals(lines, 0, 0, 0)).module_count == modules


@settings(max_examples=examples(200))
@given(*[st.integers(0, 500)] * 4)
def test_any_signals_give_a_sensible_plan(lines, matmuls, reduces, groups):
    params = complexity.decide(Signals(lines, matmuls, reduces, groups))
    assert 1 <= params.module_count <= 32
    assert params.module_count == 1 or params.module_count <= -(-lines // 12)
    assert (params.tile_baseline["cube"] is None) == (matmuls == 0)
    json.dumps(params.as_dict(), allow_nan=False)


@pytest.mark.parametrize(("dtype", "alignment"), [("fp32", 8), ("bf16", 16), ("float16", 16), ("int8", 32), ("int64", 4)])
def test_tiles_fit_the_buffer_and_name_their_alignment(dtype, alignment):
    tiles = complexity.decide(Signals(9, 1, 1, 0), dtype=dtype).tile_baseline
    assert tiles["tail_alignment"] == alignment and tiles["cube"] == [[128, 128]] * 3
    assert tiles["bytes_used"] <= CHIP.ub
    with pytest.raises(ContractError, match="no dtype"):
        complexity.decide(Signals(9, 1, 1, 0), dtype="fp4")


def test_the_tail_is_aligned_for_the_narrowest_dtype_of_the_spec():
    golden = bundle_root() / "examples" / "ops" / "softmax" / "softmax_golden.py"
    tiles = complexity.analyse(golden).tile_baseline
    assert (tiles["dtype"], tiles["tail_alignment"]) == ("float32", 16) and tiles["tail_dtype"] in ("float16", "bfloat16")


def test_the_command_prints_the_line_that_design_md_needs(tmp_path):
    from pypto_op.cli import root

    path = tmp_path / "op_golden.py"
    path.write_text(goldens.MAMBA)
    done = CliRunner().invoke(root, ["design-params", str(path)], standalone_mode=False)
    assert "Decision: module_count = 3, staged (L1)" in done.output
    done = CliRunner().invoke(root, ["design-params", str(path), "--json", "--state-groups", "0", "--cross-tile-reduce", "0"])
    data = json.loads(done.output)
    assert data["signals"]["loop_carried_state_groups"] == 0 and data["module_count"] == 2
    assert {"total_complexity", "decomposition_level", "tile_baseline"} <= set(data)
