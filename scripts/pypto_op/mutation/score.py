"""How sure a kill rate is."""

from __future__ import annotations

CONFIDENCE = 0.95
"""Of the two-sided interval whose lower end is reported."""


def lower_bound(killed: int, tried: int) -> float:
    """Return the lower end of the Clopper-Pearson interval of a rate.

    The exact interval of a binomial proportion (Clopper and Pearson, Biometrika 26, 1934): the lower end is the
    alpha/2 quantile of Beta(killed, tried - killed + 1), with alpha = 1 - `CONFIDENCE`.

    Returns:
        A rate between 0 and 1; 0 when nothing was killed, or tried.

    Raises:
        ValueError: more killed than tried, or a negative number.
    """
    if not 0 <= killed <= tried:
        raise ValueError(f"{killed} of {tried} is no rate")
    if killed == 0:
        return 0.0
    from mpmath import betainc, findroot

    a, b, tail = killed, tried - killed + 1, (1.0 - CONFIDENCE) / 2.0
    root = findroot(lambda p: betainc(a, b, 0, p, regularized=True) - tail, (0.0, 1.0), solver="illinois", tol=1e-12)
    return float(root)
