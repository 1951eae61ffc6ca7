"""Inputs that hurt: which of a golden's sums and differences cancel, how badly, and inputs on which they do.

sites.py         names a place in a golden: the source text of the expression that is being computed
conditioning.py  measures the condition number sum|terms| / |sum| at every such place of a running golden
patterns.py      plain torch: mirrored halves, plateaus, followed inputs, from which terms cancel; a case's `recipe`
search.py        finds a recipe that reaches a wanted condition number at a chosen quantile of the cells

backends/worker/cancellation.py does the same inside the reference process, for one operator and one case; judge/stressing.py
is what a suite's author calls: `stress_case` and `stress_sites` (docs/adversarial-inputs.md).
"""
