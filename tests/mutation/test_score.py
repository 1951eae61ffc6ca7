"""The bound is the exact one."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.quickly import examples

from pypto_op.mutation.score import lower_bound


@pytest.mark.parametrize(
    ("killed", "tried", "bound"),
    # Tables of the Clopper-Pearson interval; with all killed the bound is 0.025 ** (1 / n) in closed form.
    [(1, 1, 0.025), (10, 10, 0.025**0.1), (5, 10, 0.18708602844739), (99, 100, 0.94554061461792), (0, 7, 0.0)],
)
def test_known_values(killed, tried, bound):
    assert lower_bound(killed, tried) == pytest.approx(bound, abs=1e-9)


@settings(max_examples=examples(50))
@given(st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n - 1), st.just(n))))
def test_it_lies_below_the_rate_and_grows_with_it(pair):
    killed, tried = pair
    bound = lower_bound(killed, tried)
    assert 0.0 <= bound <= killed / tried
    assert lower_bound(killed + 1, tried) > bound


@pytest.mark.parametrize(("killed", "tried"), [(2, 1), (-1, 3)])
def test_what_is_no_rate_is_refused(killed, tried):
    with pytest.raises(ValueError, match="is no rate"):
        lower_bound(killed, tried)
