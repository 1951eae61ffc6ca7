"""Hostile documents at the gates: one line that names file, place and remedy; the state stays as it was."""

import json

import pytest

from pypto_op.documents.policy import get_policy
from pypto_op.errors import ContractError
from pypto_op.state.service import transition
from pypto_op.state.verdicts import is_looser

pytestmark = [pytest.mark.sim, pytest.mark.slow]  # the snapshots come from the simulator

BOMB = "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nmodules: *c\n"
HUGE = "# " + "x" * 2_000_000


def replaced(old, new):
    def change(text):
        assert old in text
        return text.replace(old, new)

    return change


CASES = {
    "yaml bomb": ("interfaces", lambda text: BOMB, "anchors and aliases"),
    "duplicate key": ("interfaces", replaced("op: chain", "op: chain\nop: chain"), "occurs twice"),
    "a cycle": ("interfaces", replaced("{name: x, source: primary}", "{name: squared, source: module_1}"), "modules"),
    "a module from the future": (
        "interfaces",
        replaced("{name: x, source: primary}", "{name: out, source: module_2}"),
        "modules",
    ),
    "huge contract": ("interfaces", lambda text: text + HUGE, "larger than"),
    "deep contract": ("interfaces", lambda text: "[" * 500 + "]" * 500, "nested|not valid"),
    "not text": ("interfaces", lambda text: "\0\0\0", "NUL|not valid"),
    "code in the contract": ("interfaces", lambda text: "!!python/object/apply:os.system [id]\n", "tag"),
    "another operator's contract": ("interfaces", replaced("op: chain", "op: softmax"), "softmax"),
    "M0 in the contract": ("interfaces", replaced("id: 1", "id: 0"), "modules"),
    "ids with a gap": ("interfaces", replaced("id: 2", "id: 3"), "modules"),
    "suite with a key twice": ("suite", replaced('"op"', '"op": "chain", "op"'), "occurs twice"),
    "suite with NaN": ("suite", replaced('"atol": 1e-06', '"atol": NaN'), "NaN"),
    "suite that allows everything": ("suite", lambda text: loose(text, "L1", 1000), "case L1_16 allows more .* than SPEC.md"),
    "suite that allows a little more": ("suite", lambda text: loose(text, "L4", 1.1), "case L4_48 allows more"),
    "suite that allows too much under stress": ("suite", lambda text: loose(text, "L5", 1.1), "case L5_15 allows more"),
    "suite of another plan": ("suite", replaced('"total_modules": 2', '"total_modules": 1'), "total_modules is 1"),
    "huge suite": ("suite", lambda text: text + " " * 2_000_000, "larger than"),
}


def loose(text, level="L1", factor=1e6):
    suite = json.loads(text)
    for case in suite["cases"]:
        if case["level"] == level:
            case["atol"], case["rtol"] = 1e-6 * factor, 1e-5 * factor
    return json.dumps(suite)


@pytest.mark.parametrize("name", CASES)
def test_it_is_refused_in_one_line(clone, name):
    which, change, words = CASES[name]
    ws = clone("staged4")
    path = getattr(ws, which)
    steps = [("freeze_plan", {}), ("complete_stage", {"stage": 4})]
    if which == "suite":
        transition(ws.root, *steps[0][:1])
    path.write_text(change(path.read_text()))
    before = [file.read_bytes() for file in (ws.state, ws.journal)]
    with pytest.raises(ContractError, match=words) as caught:
        for action, given in steps[which == "suite" :]:
            transition(ws.root, action, **given)
    text = caught.value.one_line()
    assert "\n" not in text and path.name in text and len(text) < 800
    assert [file.read_bytes() for file in (ws.state, ws.journal)] == before


def test_a_case_may_take_the_twin_policy_instead(clone):
    ws = clone("staged4")
    suite = json.loads(ws.suite.read_text())
    for case in suite["cases"]:
        if case["level"] == "L5":
            del case["atol"], case["rtol"]
            case["policy"] = "twin@2"
    ws.suite.write_text(json.dumps(suite))
    transition(ws.root, "freeze_plan")
    assert transition(ws.root, "complete_stage", stage=4)["current_stage"] == 5


@pytest.mark.parametrize("dtype", [{"default": "float32", "scale": "bfloat16"}, {"x": "float32", "y": "bfloat16"}])
def test_the_tolerance_of_another_inputs_dtype_is_no_licence(dtype):
    case = {"level": "L2", "dtype": dtype, "atol": 1e-2, "rtol": 1.6e-2}
    assert is_looser(get_policy(), case), "float32 outputs would be judged by bfloat16's numbers"
    assert not is_looser(get_policy(), {**case, "dtype": {"default": "bfloat16", "scale": "float32"}})
