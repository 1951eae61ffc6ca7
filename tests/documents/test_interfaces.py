"""module_interfaces.yaml: each wiring rule fires at its node; live_out; shapes."""

# ruff: noqa: E501 - one broken document a line

import copy

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.quickly import examples

from pypto_op.documents import interfaces, wiring
from pypto_op.errors import ContractError

FLASH_BWD = """
schema_version: 1
op: flash_bwd
primary_inputs:
  - {name: q, shape: [BH, SQ, D], dtype: float32}
  - {name: k, shape: [BH, SK, D], dtype: float32}
  - {name: dout, shape: [BH, SQ, D], dtype: float32}
  - {name: causal, shape: [], dtype: bool}
modules:
  - id: 1
    name: score_grad
    heavy_ops: [matmul, softmax]
    inputs:
      - {name: q, source: primary}
      - {name: k, source: primary, shape: [BH, "SK", "D"], dtype: float32}
      - {name: dout, source: primary}
      - {name: causal, source: primary}
    outputs:
      - {name: ds, shape: [BH, SQ, SK], dtype: float32, accumulator_dtype: float32}
      - {name: dv, shape: [BH, SK, D], dtype: float32}
    live_out: [ds, dv]
  - id: 2
    name: qk_grad
    heavy_ops: [matmul, matmul]
    inputs:
      - {name: ds, source: module_1, shape: [BH, SQ, SK], dtype: float32}
      - {name: q, source: primary}
    outputs:
      - {name: dq, shape: [BH, SQ, D], dtype: float32}
      - {name: dk, shape: [BH, SK, D], dtype: float32}
final_outputs:
  - {name: dq, source: module_2}
  - {name: dk, source: module_2}
  - {name: dv, source: module_1}
composition_verification:
  atol: 1.0e-4
  rtol: 1e-4
  seeds: [3, 17]
  shapes: [{BH: 1, SQ: 16, SK: 16, D: 16}, {BH: 2, SQ: 33, SK: 80, D: 16}]
"""


@pytest.fixture
def data():
    return yaml.safe_load(FLASH_BWD.replace("1e-4", "1.0e-4"))


def write(tmp_path, data):
    path = tmp_path / "module_interfaces.yaml"
    path.write_text(data if isinstance(data, str) else yaml.safe_dump(data))
    return path


def test_load(tmp_path):
    document = interfaces.load(write(tmp_path, FLASH_BWD))
    assert [port.name for port in document.primary_inputs] == ["q", "k", "dout", "causal"]
    assert [(m.id, m.name) for m in document.modules] == [(1, "score_grad"), (2, "qk_grad")]
    assert document.modules[1].inputs[0].shape == ("BH", "SQ", "SK")
    assert document.modules[1].inputs[1].dtype == "float32"
    assert document.symbols == ("BH", "SQ", "D", "SK")
    assert document.composition.rtol == 1e-4 and document.composition.seeds == (3, 17)
    assert interfaces.check(write(tmp_path, FLASH_BWD)) == []


def test_resolve_shapes(tmp_path):
    document = interfaces.load(write(tmp_path, FLASH_BWD))
    shapes = document.resolve_shapes({"BH": 2, "SQ": 48, "SK": 80, "D": 64})
    assert shapes["primary", "causal"] == ()
    assert shapes["module_1", "ds"] == (2, 48, 80)
    with pytest.raises(ContractError, match="needs a size for SK"):
        document.resolve_shapes({"BH": 2, "SQ": 48, "D": 64})


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda d: None, [["ds", "dv"], ["dq", "dk", "dv"]]),
        (lambda d: d["modules"][0].pop("live_out"), [["ds", "dv"], ["dq", "dk", "dv"]]),
        (lambda d: d["modules"][0].update(live_out=["dv", "module_1.ds"]), [["dv", "ds"], ["dq", "dk", "dv"]]),
        (lambda d: d["final_outputs"].reverse(), [["ds", "dv"], ["dv", "dk", "dq"]]),
    ],
)
def test_live_out(data, tmp_path, change, expected):
    change(data)
    document = interfaces.load(write(tmp_path, data))
    assert [[port.name for port in document.live_out(k)] for k in (1, 2)] == expected
    for k in (0, 3):
        with pytest.raises(ContractError, match=f"no M{k}"):
            document.live_out(k)


def test_live_out_defaults_to_own_outputs_then_earlier_final_ones(data, tmp_path):
    third = {"id": 3, "name": "last", "inputs": [{"name": "dq", "source": "module_2"}],
             "outputs": [{"name": "norm", "shape": ["BH"], "dtype": "float32"}]}  # fmt: skip
    data["modules"].append(third)
    data["final_outputs"].append({"name": "norm", "source": "module_3"})
    document = interfaces.load(write(tmp_path, data))
    assert [port.name for port in document.live_out(2)] == ["dq", "dk", "dv"]
    assert [port.name for port in document.live_out(3)] == ["dq", "dk", "dv", "norm"]


def module(data, k):
    return data["modules"][k - 1]


BROKEN = [
    # rule 1: a primary input exists
    (lambda d: module(d, 1)["inputs"][0].update(name="zz"), "modules[0].inputs[0].name: there is no primary input zz"),
    # rule 2: an earlier module, and an output of it
    (lambda d: module(d, 2)["inputs"][0].update(source="module_2"), "modules[1].inputs[0].source: module_2 does not come before module 2"),
    (lambda d: module(d, 1)["inputs"][0].update(source="module_9"), "modules[0].inputs[0].source: module_9 does not come before module 1"),
    (lambda d: module(d, 2)["inputs"][0].update(name="dx"), "modules[1].inputs[0].source: module_1 has no output dx"),
    # rule 3: final outputs
    (lambda d: d["final_outputs"][0].update(source="module_3"), "final_outputs[0].source: module_3: there are 2 modules"),
    (lambda d: d["final_outputs"][0].update(name="dx"), "final_outputs[0].source: module_2 has no output dx"),
    # rule 4: unique (module, name)
    (lambda d: module(d, 2)["outputs"][1].update(name="dq"), "modules[1].outputs[1].name: module_2 already has an output dq"),
    # rule 5: shapes parse and know their symbols
    (lambda d: module(d, 1)["outputs"][0].update(shape=["BH", "SQ/2", 1]), "modules[0].outputs[0].shape[1]: 'SQ/2' is no shape expression"),
    (lambda d: module(d, 1)["outputs"][0].update(shape=["ZZ"]), "modules[0].outputs[0].shape: ZZ is no symbol of the primary inputs"),
    (lambda d: d["primary_inputs"][0].update(shape=["BH", "-1"]), "primary_inputs[0].shape[1]: '-1' is no shape expression"),
    # consumer and producer agree
    (lambda d: module(d, 2)["inputs"][0].update(dtype="float16"), "modules[1].inputs[0].dtype: is float16, module_1 makes float32"),
    (lambda d: module(d, 1)["inputs"][1].update(shape=["BH", "SQ", "D"]), "modules[0].inputs[1].shape: is [BH, SQ, D], primary makes [BH, SK, D]"),
    # ids, names, use, backbone
    (lambda d: module(d, 2).update(id=3), "modules[1].id: is 3"),
    (lambda d: module(d, 2).update(id=1), "modules[1].id: is 1"),
    (lambda d: d["primary_inputs"][1].update(name="q"), "primary_inputs[1].name: q occurs twice"),
    (lambda d: module(d, 2).update(name="score_grad"), "modules[1].name: score_grad occurs twice"),
    (lambda d: d["final_outputs"].append({"name": "dq", "source": "module_2"}), "final_outputs[3].name: dq occurs twice"),
    (lambda d: d["final_outputs"].pop(), "modules[0].outputs[1].name: nobody uses dv"),
    (lambda d: module(d, 2).update(heavy_ops=[]), "modules[1].heavy_ops: a module without a heavy op"),
    (lambda d: module(d, 2).update(heavy_ops=["view"]), "modules[1].heavy_ops[0]: 'view' is no heavy op: use one of matmul, cross_tile_reduce"),
    (lambda d: module(d, 1).update(heavy_ops=["matmul", "cast"]), "modules[0].heavy_ops[1]: 'cast' is no heavy op"),
    (lambda d: module(d, 1).update(heavy_ops=["reduce"]), "'reduce' is no heavy op"),
    # live_out
    (lambda d: module(d, 1).update(live_out=["dv"]), "modules[0].live_out: lacks ds, which score_grad makes and others use"),
    (lambda d: module(d, 1).update(live_out=["ds"]), "modules[0].live_out: lacks dv"),
    (lambda d: module(d, 1).update(live_out=["dq"]), "modules[0].live_out[0]: modules 1..1 make no dq"),
    (lambda d: module(d, 1).update(live_out=["module_2.dq"]), "modules[0].live_out[0]: modules 1..1 make no module_2.dq"),
    (lambda d: module(d, 2).update(live_out=["dk", "dq", "dv"]), "modules[1].live_out: the last module's differs from final_outputs"),
    # composition
    (lambda d: d["composition_verification"]["shapes"][0].pop("SK"), "composition_verification.shapes[0]: gives no size for SK"),
    (lambda d: d["composition_verification"]["shapes"][0].update(ZZ=1), "composition_verification.shapes[0].ZZ: ZZ is no symbol"),
    (lambda d: d.pop("composition_verification"), "composition_verification: is missing: 2 modules need seeds, shapes"),
    (lambda d: d["composition_verification"].update(seeds=[3]), "composition_verification.seeds: has 1 of its own, needs 2"),
    (lambda d: d["composition_verification"]["shapes"].pop(), "composition_verification.shapes: has 1 of its own, needs 2"),
    (lambda d: d["composition_verification"]["shapes"][1].update(BH=1, SQ=16, SK=16), "shapes: has 1 of its own"),
    # nothing left to do
    (lambda d: module(d, 1).update(name="TODO"), "modules[0].name: TODO is left"),
    (lambda d: module(d, 1)["outputs"][0].update(shape=["TODO"]), "modules[0].outputs[0].shape[0]: TODO is left in the row of ds"),
]  # fmt: skip


def test_a_todo_that_its_rule_names_is_told_once(data, tmp_path):
    module(data, 1)["outputs"][0].update(dtype="TODO")
    (one,) = interfaces.check(write(tmp_path, data))
    assert one.one_line().startswith("modules[0].outputs[0].dtype: 'TODO' is not one of")


@pytest.mark.parametrize(("change", "expected"), BROKEN)
def test_each_rule_fires_at_its_node(data, tmp_path, change, expected):
    change(data)
    path = write(tmp_path, data)
    assert any(expected in finding.one_line() for finding in interfaces.check(path))
    with pytest.raises(ContractError) as caught:
        interfaces.load(path)
    assert str(path) in caught.value.one_line() and "\n" not in caught.value.one_line()


def test_every_rule_is_exercised_by_a_broken_document(data):
    silent = []
    for rule in wiring.RULES:
        fired = False
        for change, _ in BROKEN:
            broken = copy.deepcopy(data)
            change(broken)
            fired = fired or bool(list(rule(broken)))
        if not fired:
            silent.append(rule.__name__)
    assert silent == []


@pytest.mark.parametrize("text", ["", "[]", "text", "op: x", "modules: 3"])
def test_documents_of_another_form_are_refused(tmp_path, text):
    with pytest.raises(ContractError):
        interfaces.load(write(tmp_path, text))


def test_the_golden_must_take_and_return_the_same(tmp_path):
    from pypto_op.workspace import OpWorkspace

    op_dir = tmp_path / "custom" / "flash_bwd"
    (op_dir / "eval").mkdir(parents=True)
    ws = OpWorkspace.at(op_dir)
    ws.interfaces.write_text(FLASH_BWD)
    document = interfaces.load(ws.interfaces)
    assert interfaces.check_signature(document, ws) == []
    ws.golden.write_text("def flash_bwd_golden(q, k, dout, causal):\n    return q, k, dout\n")
    assert interfaces.check_signature(document, ws) == []
    ws.golden.write_text("def flash_bwd_golden(k, q, dout, causal=False):\n    return q, k\n")
    lines = [finding.one_line() for finding in interfaces.check_signature(document, ws)]
    assert lines == [
        "primary_inputs: are q, k, dout, causal; the golden takes k, q, dout, causal",
        "final_outputs: has 3; the golden returns 2",
    ]


DESIGN = """---
schema_version: "2.1"
op_name: flash_bwd
dynamic_axes: [SQ]
---
# flash_bwd
Decision: module_count = 2{override}

| module | heavy ops | boundary tensor (name, shape) | CU |
|---|---|---|---|
| M1 | products | `ds` [BH, SQ, SK] | 1.1 |
| M2 | products | dq, dk | 0.9 |
"""

SPEC = """---
schema_version: "1.0"
op_name: flash_bwd
supported_dtypes: [float32]
p0_shapes:
  - {{BH: 2, SQ: 128, SK: 128, D: 64}}
tolerance:
  float32: {{atol: 1.0e-5, rtol: 1.0e-5}}
dynamic_axes: {dynamic}
shape_constraints: {constraints}
---
# flash_bwd
"""


def operator(tmp_path, data, *, override="", design=DESIGN, spec=""):
    """Return the contract of an operator that has a DESIGN.md, and a SPEC.md where one is given."""
    folder = tmp_path / "custom" / "flash_bwd"
    (folder / "eval").mkdir(parents=True)
    (folder / "DESIGN.md").write_text(design.format(override=override))
    if spec:
        (folder / "SPEC.md").write_text(spec)
    return write(folder / "eval", data)


AGAINST_DESIGN = [
    (lambda d: module(d, 1)["outputs"][0].update(name="score") or module(d, 1).update(live_out=["score", "dv"])
        or module(d, 2)["inputs"][0].update(name="score"), "score_grad hands on score; DESIGN.md 0.5 gives M1 the boundary ds", False),
    (lambda d: module(d, 1)["outputs"][0].update(name="score") or module(d, 1).update(live_out=["score", "dv"])
        or module(d, 2)["inputs"][0].update(name="score"), "DESIGN.md 0.5 gives M1 the boundary ds; score_grad makes dv, score", False),
    (lambda d: module(d, 2)["outputs"][1].update(name="dkey") or d["final_outputs"][1].update(name="dkey"), "gives M2 the boundary dk", False),
    (lambda d: module(d, 1).update(cu=0.1), "modules[0].cu: score_grad has 0.1 units, too thin: 0.5 to 1.5 are allowed", True),
    (lambda d: module(d, 2).update(cu=1.9), "modules[1].cu: qk_grad has 1.9 units, too thick", True),
    (lambda d: module(d, 1).update(cu=1.3), "modules[0].cu: score_grad has 1.3 units; DESIGN.md 0.5 gives M1 1.1", False),
    (lambda d: module(d, 2).pop("heavy_ops"), "modules[1].heavy_ops: qk_grad names no heavy op: name one or more of matmul", True),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected", "advice"), AGAINST_DESIGN)
def test_the_contract_is_held_to_the_design(data, tmp_path, change, expected, advice):
    change(data)
    lines = [finding.one_line() for finding in interfaces.check(operator(tmp_path / "a", data))]
    assert any(expected in line for line in lines), lines
    path = operator(tmp_path / "b", data, override=", override: the user wants two")
    assert any(expected in finding.one_line() for finding in interfaces.check(path)) is not advice


def test_a_contract_as_designed_is_clean_and_another_number_of_modules_is_not(data, tmp_path):
    module(data, 1)["cu"], module(data, 2)["cu"] = 1.1, 0.9
    assert interfaces.check(operator(tmp_path / "a", data)) == []
    three = operator(tmp_path / "b", data, design=DESIGN.replace("module_count = 2", "module_count = 3"))
    assert [f.one_line() for f in interfaces.check(three)] == ["modules: are 2; DESIGN.md 0.3 decides on 3: write that many"]


@pytest.mark.parametrize(
    ("dynamic", "constraints", "ragged"),
    [
        ("[SQ]", "[]", True),
        ("[BH]", "[]", False),
        ("[]", "[]", False),
        ("[]", '["SK % 8 == 0"]', True),
        ("[SQ]", '["SQ % 16 == 0"]', False),
        ("[SQ]", '["SQ == SK"]', True),
        ("[SQ]", '["a sentence for people"]', True),
    ],
)
def test_a_composition_ends_in_a_partial_tile_where_the_operator_may(data, tmp_path, dynamic, constraints, ragged):
    spec = SPEC.format(dynamic=dynamic, constraints=constraints)
    data["composition_verification"]["shapes"][1].update(BH=3, SQ=48, SK=48)
    lines = [finding.one_line() for finding in interfaces.check(operator(tmp_path / "a", data, spec=spec))]
    assert any("composition_verification.shapes: none ends in a partial tile: give one of S" in line for line in lines) is ragged
    data["composition_verification"]["shapes"][1].update(SQ=40, SK=40)
    assert interfaces.check(operator(tmp_path / "b", data, spec=spec)) == []


@settings(max_examples=examples(150))
@given(st.data())
@pytest.mark.slow
def test_a_document_with_a_replaced_node_never_breaks_the_loader(tmp_path_factory, data):
    document = yaml.safe_load(FLASH_BWD.replace("1e-4", "1.0e-4"))
    nodes = list(_nodes(document))
    parent, key = data.draw(st.sampled_from(nodes))
    values = [None, 0, -1, 1.5, "", "x", "module_1", "primary", [], {}, [1], {"a": 1}, True, 10**30, "S//0"]
    parent[key] = data.draw(st.sampled_from(values))
    path = write(tmp_path_factory.mktemp("fuzz"), document)
    try:
        loaded = interfaces.load(path)
    except ContractError as error:
        assert "\n" not in error.one_line()
    else:
        # Another size may take the only shape away that ends in a partial tile; nothing else is left to say.
        assert [one for one in interfaces.check(path) if "partial tile" not in one.problem] == []
        for k in range(1, loaded.total_modules + 1):
            assert loaded.live_out(k)


def _nodes(value):
    if isinstance(value, dict):
        for key, item in value.items():
            yield value, key
            yield from _nodes(item)
    elif isinstance(value, list):
        for key, item in enumerate(value):
            yield value, key
            yield from _nodes(item)
