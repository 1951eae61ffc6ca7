"""Shape expressions: right values, and nothing but arithmetic."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.quickly import examples

from pypto_op.documents import shape_expr
from pypto_op.errors import ContractError

SIZES = {"S": 100, "BT": 16, "D": 3}


@pytest.mark.parametrize(
    ("text", "value"),
    [(5, 5), ("S", 100), ("2*D", 6), ("(S + BT - 1)//BT", 7), ("S//BT*BT", 96), ("S - 0", 100), (" D ", 3)],
)
def test_values(text, value):
    assert shape_expr.parse(text).value(SIZES) == value


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "S/BT", "S**2", "-S", "+S", "~S", "S%2", "f(S)", "S.x", "S[0]", "1.5", "'a'", "S if D else BT",
        "lambda: 1", "S,D", "[S]", "S == D", "__import__('os')", "(yield)", "S:=1", "True", "1_0j", "S\nD", "S #x",
        "S\\\n+D", "２*S", "Ｓ", "1" * 300, "+".join(["1"] * 100), str(2**41),
        True, None, 1.5, [1], {"a": 1}, -1,
    ],
)  # fmt: skip
def test_everything_else_is_refused(text):
    with pytest.raises(ContractError) as caught:
        shape_expr.parse(text)
    assert "\n" not in caught.value.one_line()


@pytest.mark.parametrize(("text", "words"), [("D - S", "gives -97"), ("S//(D - 3)", "divides by zero"), ("X", "size for X")])
def test_bad_values_are_refused(text, words):
    with pytest.raises(ContractError, match=words):
        shape_expr.parse(text).value(SIZES)


def test_symbols_and_canonical_form():
    parsed = shape_expr.parse("( S+ BT )// BT")
    assert parsed.symbols == {"S", "BT"}
    assert parsed.canonical() == shape_expr.parse("(S + BT)//BT").canonical()


EXPRESSIONS = st.recursive(
    st.integers(0, 50).map(str) | st.sampled_from(sorted(SIZES)),
    lambda inner: st.tuples(inner, st.sampled_from(["+", "-", "*", "//"]), inner).map(
        lambda parts: f"({parts[0]} {parts[1]} {parts[2]})"
    ),
    max_leaves=6,
)


@settings(max_examples=examples(200))
@given(EXPRESSIONS)
def test_values_agree_with_python(text):
    parsed = shape_expr.parse(text)
    try:
        expected = eval(text, {"__builtins__": {}}, SIZES)  # noqa: S307 - the oracle, on generated arithmetic
    except ZeroDivisionError:
        expected = -1
    if 0 <= expected <= shape_expr.MAX_SIZE:
        assert parsed.value(SIZES) == expected
    else:
        with pytest.raises(ContractError):
            parsed.value(SIZES)


@settings(max_examples=examples(300))
@given(st.text(max_size=60))
def test_no_text_breaks_the_parser(text):
    try:
        shape_expr.parse(text)
    except ContractError as error:
        assert "\n" not in error.one_line()


def test_a_text_is_parsed_once_however_it_is_written() -> None:
    assert shape_expr.parse("S + 1") is shape_expr.parse(" S + 1 ")
    assert shape_expr.parse(7).value({}) == shape_expr.parse("7").value({}) == 7
    for _ in range(2):  # what is refused is refused each time
        with pytest.raises(ContractError):
            shape_expr.parse("S ** 2")
