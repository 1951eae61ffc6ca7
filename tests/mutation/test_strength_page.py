"""docs/strength.md says what was measured, and each example is in it with what the target asks for."""

from __future__ import annotations

from benchmarks import strength


def test_the_page_is_what_the_results_say():
    assert strength.PAGE.read_text(encoding="utf-8") == strength.page(strength.load())


def test_measured_suites_meet_their_target():
    results = strength.load()
    assert {"rmsnorm", "softmax"} <= set(results)
    for op, found in results.items():
        assert found["score"] >= strength.TARGET, op
        assert all(found["sabotage"].values()), op
        assert found["variants"] and all(found["variants"].values()), op


def test_every_mutant_that_lives_is_shown_with_a_reason():
    page = strength.PAGE.read_text(encoding="utf-8")
    for found in strength.load().values():
        assert len(found["living"]) == found["survived"] + found["equivalent"]
        for mutant in found["living"]:
            assert mutant["detail"] and mutant["detail"] in page
