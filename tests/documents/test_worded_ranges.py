"""Limits that SPEC.md says in words: read where they are nothing else, told where they are not, and never guessed."""

from __future__ import annotations

from typing import Any

import pytest

from pypto_op.documents import limit_words, worded_ranges
from pypto_op.documents.rows import Rows

TABLE = "## 5. Inputs\n\n| name | kind | shape | dtype | meaning |\n|---|---|---|---|---|\n{}\n\n## 9. Edge cases\n\n{}\n"
READ = [
    ("values lie between 0.001 and about 100", "0.001 <= x, x <= 100"),
    ("never below 1 and never above 8", "1 <= x, x <= 8"),
    ("values are never less than 1e-3, and at most ~2", "0.001 <= x, x <= 2"),
    ("positive", "0 < x"),
    ("always positive, never more than 10", "0 < x, x <= 10"),
    ("not negative", "0 <= x"),
    ("non-negative", "0 <= x"),
    ("never positive", "x <= 0"),
    ("0 or less", "x <= 0"),
    ("above 0, up to 0.01", "0 < x, x <= 0.01"),
    ("1e-6 by default, above 0, at most 1", "0 < x, x <= 1"),
    ("from 1 on", "1 <= x"),
    ("at least a thousandth", "0.001 <= x"),
    ("up to about 1e4", "-10000 <= x, x <= 10000"),
    ("magnitudes up to 10^4", "-10000 <= x, x <= 10000"),
    ("at most 8 in magnitude", "-8 <= x, x <= 8"),
    ("within ±30", "-30 <= x, x <= 30"),
    ("ranges from -4 to 0", "-4 <= x, x <= 0"),
    ("between −30 and zero", "-30 <= x, x <= 0"),
    ("they never exceed 30", "x <= 30"),
    ("1 by default, from 0 (frozen) to 100", "0 <= x, x <= 100"),
    ("between 0 (nothing stays) and 1 (all stays)", "0 <= x, x <= 1"),
    ("does not exceed 30, and is not below -30", "-30 <= x, x <= 30"),
    ("in (0, 1]", "0 < x, x <= 1"),
    ("smaller than 2**-3", "x < 0.125"),
    ("0 .. P - 1", "0 <= x, x <= P - 1"),
    ("tokens that count, 1 to S", "1 <= x, x <= S"),
    ("< 0.5", "x < 0.5"),
    ("contiguous; 0 <= x < 1", "0 <= x, x < 1"),
    ("x>-2", "-2 < x"),
    ("0 <= x <= S - 1", "0 <= x, x <= S - 1"),
    ("probabilities in [0, 1], contiguous", "0 <= x, x <= 1"),
    ("exponents between 1 and 8", "1 <= x, x <= 8"),
    ("of the model before, likewise between -30 and 0", "-30 <= x, x <= 0"),
    ("queries; x never exceeds 30", "x <= 30"),
    ("at most ten either way", "-10 <= x, x <= 10"),
    ("never more than 8 in either direction", "-8 <= x, x <= 8"),
    ("anywhere from -0.5 to 0.9", "-0.5 <= x, x <= 0.9"),
    ("never below 0.1 or above 100", "0.1 <= x, x <= 100"),
    ("no value is above 10 or below -3", "-3 <= x, x <= 10"),
    ("output of the layer; stays below 200 in magnitude", "-200 < x, x < 200"),
    ("less than 1e4 either way", "-10000 < x, x < 10000"),
    ("magnitudes stay under ten", "-10 < x, x < 10"),
    ("its magnitude never exceeds 8", "-8 <= x, x <= 8"),
    ("training holds it, so it never leaves 0.25 to 4", "0.25 <= x, x <= 4"),
    ("does not leave the range [-1, 2]", "-1 <= x, x <= 2"),
    ("never outside -1 to 1", "-1 <= x, x <= 1"),
    ("anything from 0.01 to 100", "0.01 <= x, x <= 100"),
]
NOT_READ = [
    "values above 10 are clipped",
    "usually between 0 and 1",
    "between 0 and 1, except in padding",
    "0 to S - 1, or -1 for padding",
    "up to 100 where the mask is 1",
    "at most 8 rows",
    "never below 2 in magnitude",
    "leaves 1 to 2 out",
    "mean magnitude stays below 3",
    "anything, from 1 to 2 of them NaN",
    "0 <= r < 1",
    "0 <= x != 3",
    "0 <= x, x < 1, x < 2",
    "between 0 and K",
    "never below 1, never below 2",
    "log of values between 0.1 and 1",
    "rows between 1 and 8",
    "what the norm of x / 4 never exceeds 1 by",
    "at most ten per step",
    "from 0 (exclusive) to 100",
    "from 1 (or -1 for none) to 9",
]
SILENT = [
    "activations, contiguous",
    "the positive key of each query",
    "1 where a token counts, else 0",
    "a matrix of [S, P]",
    "from the first pass",
    "set to zero, routed to one of the experts",
    "what was normalised, in rows of 16",
]
ROWS = [
    ("no row is shorter than 0.1 or longer than 100", "length [0.1, 100]"),
    ("rows are never longer than about 100", "length [0, 100]"),
    ("keys, no row ever shorter than a tenth", "length [0.1, inf]"),
    ("rows have length 1", "length [1, 1]"),
    ("each row has unit norm", "length [1, 1]"),
    ("row norms between 0.1 and 100", "length [0.1, 100]"),
    ("the norm of each row is at least 0.01", "length [0.01, inf]"),
    ("rows of x are L2-normalised", "length [1, 1]"),
    ("not negative; rows add up to one", "sum [1, 1]"),
]
ROWS_NOT_READ = [
    "rows add up to 1",  # of both signs: such rows cannot be drawn
    "rows are normalised",
    "normalized",
    "no key is shorter than 0.1",
    "no row is shorter than 0.1 except in padding",
    "rows have length 1, rows have length 2",
    "the longest row has a norm of 8",
]


def told(meaning: str, sentence: str = "", dtype: str = "float32", shape: str = "[S, P]", **front: Any) -> worded_ranges.Worded:
    return worded_ranges.of(body(meaning, "", sentence, dtype, shape), front).get("x", worded_ranges.Worded())


def other(meaning: str, of_r: str, was: str = "", now: str = "") -> worded_ranges.Worded:
    """Return what is said of r; `now` stands for `was` in its row."""
    text = body(meaning, of_r)
    row = next(line for line in text.splitlines() if line.startswith("| r |"))
    return worded_ranges.of(text.replace(row, row.replace(was, now)), {}).get("r", worded_ranges.Worded())


def body(of_x: str, of_r: str, sentence: str = "", dtype: str = "float32", shape: str = "[S, P]") -> str:
    rows = [("x", "input", of_x), ("r", "input", of_r), ("y", "output", "new")]
    table = "\n".join(f"| {name} | {kind} | {shape} | {dtype} | {cell} |" for name, kind, cell in rows)
    return TABLE.format(table, sentence)


@pytest.mark.parametrize(("meaning", "said"), READ)
def test_a_limit_in_words_is_a_limit(meaning: str, said: str) -> None:
    """A pooling by powers had no suite, and an optimiser step was tried beyond the words "up to 1e6"."""
    assert ", ".join(told(meaning).said) == said
    assert told(meaning).words and not told(meaning).unread


@pytest.mark.parametrize("meaning", NOT_READ)
def test_what_may_mean_something_else_is_told_and_not_guessed(meaning: str) -> None:
    assert told(meaning).said == () and told(meaning).unread


@pytest.mark.parametrize(("meaning", "said"), ROWS)
def test_a_limit_of_rows_in_words_is_one(meaning: str, said: str) -> None:
    """A backward pass that divides by each row's length was tried on rows of zeros, which it never gets."""
    found = told(meaning)
    assert f"{found.rows.measure} {found.rows.kept}" == said and found.words and not found.unread
    assert said.partition(" ")[0] in found.told("x")


@pytest.mark.parametrize("meaning", ROWS_NOT_READ)
def test_what_may_limit_rows_is_told_and_not_guessed(meaning: str) -> None:
    found = told(meaning)
    assert found.rows == Rows() and found.unread


@pytest.mark.parametrize(
    ("sentence", "said"),
    [
        ("No row of x or y is shorter than 0.1.", ""),
        ("No row of x or r is shorter than 0.1.", "[0.1, inf]"),
        ("The rows of x have unit length.", "[1, 1]"),
        ("Rows of x have unit length where the mask is 1.", ""),
    ],
)
def test_a_sentence_about_rows_is_read(sentence: str, said: str) -> None:
    found = told("activations", sentence)
    assert (str(found.rows.kept) if found.rows != Rows() else "") == said and bool(found.unread) == (not said)


def test_whole_numbers_have_no_rows() -> None:
    assert told("no row is shorter than 3", dtype="int32") == worded_ranges.Worded()


@pytest.mark.parametrize(
    ("meaning", "read"),
    [
        ("row of each token, no two tokens share one; -1 for padding, as often as one likes", True),
        ("positions, all different", True),
        ("distinct", True),
        ("places; no two are the same", True),
        ("each at most once", True),
        ("usually distinct", False),
        ("no two tokens of a sentence share one", False),
        ("a permutation of the rows", False),
    ],
)
def test_numbers_that_stand_once_are_read_or_told(meaning: str, read: bool) -> None:
    """A kernel that looks for the token of each slot was tried on two tokens with one slot, and nobody was told."""
    found = told(meaning, dtype="int32", shape="[S]")
    assert found.rows == Rows(distinct=read) and bool(found.unread) is not read
    assert ("no two of x are the same" in found.told("x")) is read


def test_of_several_rows_nobody_knows_in_which_a_number_stands_once() -> None:
    assert told("all different", dtype="int32").unread
    assert told("experts of each token, none named twice", dtype="int32").unread


@pytest.mark.parametrize("meaning", ["experts, no row names one twice", "distinct within each row", "no repeats in a row"])
def test_numbers_that_stand_once_in_each_row_are_read(meaning: str) -> None:
    """Lists of experts were drawn with one of them twice, and nobody was told."""
    found = told(meaning, dtype="int32")
    assert found.rows == Rows(distinct=True) and not found.unread


def test_likewise_says_what_the_row_above_says() -> None:
    assert other("between 0 and 8", "r's partner, likewise").said == ("0 <= r", "r <= 8")
    assert str(other("no row is longer than 100", "likewise, contiguous").rows.kept) == "[0, 100]"
    assert other("usually below 8", "likewise").unread and not other("activations", "likewise, contiguous").unread


def test_likewise_beside_another_shape_says_the_limits_of_values() -> None:
    """The state before the first token was drawn above what "likewise" allowed, and nobody was told."""
    assert other("never above 60 in magnitude", "what came before; likewise", "[S, P]", "[P]").said == ("-60 <= r", "r <= 60")
    assert other("never above 60 in magnitude", "likewise", "[S, P] | float32", "[P] | int32").unread
    assert other("never above 60", "likewise", "[S, P]", "[]").unread
    kept = other("no row is longer than 100", "likewise", "[S, P]", "[P]")
    assert kept.unread and kept.rows == Rows()


@pytest.mark.parametrize("meaning", SILENT)
def test_what_is_no_limit_says_nothing(meaning: str) -> None:
    assert told(meaning) == worded_ranges.Worded()


@pytest.mark.parametrize(
    ("sentence", "said"),
    [
        ("- `x` is never below 1 and never above 8. x = 1 is the mean.", "1 <= x, x <= 8"),
        ("The values of x lie between\n  -4 and 4.", "-4 <= x, x <= 4"),
        ("x must lie between 0.25 and 8, else the wrapper raises ValueError.", "0.25 <= x, x <= 8"),
        ("y is never below 1.", ""),
        ("x and r lie between 0 and 1.", "0 <= x, x <= 1"),
        ("x and y lie between 0 and 1.", ""),
        ("x values are positive; at most 4 for now.", "0 < x"),
        ("x is positive, at most 4.", "0 < x, x <= 4"),
        ("All exponents `x` lie between 1 and 8.", "1 <= x, x <= 8"),
        ("The input x never goes below 0.001.", "0.001 <= x"),
        ("x is the logarithm of values between 0.1 and 1.", ""),
        ("- x is negative: the result is 0.", ""),
        ("x is above 8 where the mask is 1.", ""),
        ("Where x is below 0, the result is 0.", ""),
        ("- x is above 8; the wrapper raises ValueError.", ""),
        ("x above 8 raises ValueError.", ""),
        ("x is at most 8 tokens long.", ""),
    ],
)
def test_a_sentence_about_an_input_is_read(sentence: str, said: str) -> None:
    assert ", ".join(told("activations", sentence).said) == said


@pytest.mark.parametrize(
    ("sentence", "unread"),
    [
        ("A softplus comes before, so x never falls much below 0.001.", True),
        ("Nobody has seen a model whose x lies outside 1 to 8.", True),
        ("If x stays above 8, the result is 0.", False),
        ("The mean of x is at most 8 tokens behind r.", True),
        ("x = 1 is the mean of 4 rows.", False),
    ],
)
def test_a_sentence_in_another_form_is_told(sentence: str, unread: bool) -> None:
    found = told("activations", sentence)
    assert found.said == () and bool(found.unread) is unread


def test_the_front_matter_goes_before_words_end_by_end() -> None:
    assert told("between 0 and 8", shape_constraints=["1 <= x"]).said == ("x <= 8",)
    assert told("between 0 and 8", input_ranges={"x": "[2, 4]"}) == worded_ranges.Worded()
    assert told("at most 8 rows", shape_constraints=["x <= 4"]) == worded_ranges.Worded()


def test_a_default_outside_shows_that_something_else_is_meant() -> None:
    assert told("above 0, up to 4", default_params={"x": 1.0}).said == ("0 < x", "x <= 4")
    assert told("above 0, up to 4", default_params={"x": 0.0}).unread == ("above 0", "up to 4")


def test_a_number_is_one_with_its_exponent() -> None:
    assert limit_words.clause("up to 1e", ()) is None
    assert limit_words.clause("below 0x10", ()) is None
    assert limit_words.clause("at most 65504", ()) == limit_words.Limits(high="65504")
