"""Rules of thumb: the assignments that a search tries first, most promising first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pypto_op.tuning.choice import Choice, Kind

_UNROLL, _MERGE = "[4, 2, 1]", "{-1: 4}"


def rules(choices: Mapping[str, Choice], *, slow: bool = False) -> Iterator[dict[str, str]]:
    """Yield assignments; some may be against the limits, or say nothing new.

    Fewer steps of a loop come first, since a step that waits for the one before costs most; then fewer and larger tasks at the
    same work, then more of them at once: which one helps depends on how far the shapes fill the machine.

    Args:
        slow: it compiles slowly; unrolled, which multiplies that, it comes last.
    """
    rows = _of(choices, Kind.ROWS)
    unrolled = {choice.key: _UNROLL for choice in _of(choices, Kind.UNROLL) if _UNROLL in choice.options}
    fewer = [unrolled, {**_scaled(rows, 2.0), **unrolled}] if unrolled else []
    yield from [_scaled(rows, 2.0), _scaled(rows, 4.0)] if slow else fewer
    lead = [c for c in _of(choices, Kind.VECTOR_TILE) if not c.under and not _is_last(choices, c)]
    wide = [c for c in _of(choices, Kind.VECTOR_TILE) if not c.under and _is_last(choices, c)]
    cube = _of(choices, Kind.CUBE_TILE)
    for factor in (0.5, 0.25, 2.0):
        yield _scaled(lead, factor)
    for lead_factor, wide_factor in ((0.5, 2.0), (0.25, 4.0), (1.0, 2.0)):
        yield {**_scaled(lead, lead_factor), **_scaled(wide, wide_factor)}
    for factor in (0.5, 0.25):
        yield {**_scaled(rows, factor), **_scaled(lead, factor), **_scaled(wide, 1 / factor)}
    yield {choice.key: size for choice, size in zip(cube, _cube(cube), strict=False) if size in choice.options}
    for factor in (2.0, 0.5, 4.0, 0.25):
        yield _scaled(rows, factor)
    for one in rows if len(rows) > 1 else []:
        for factor in (2.0, 4.0, 0.5):
            yield _scaled([one], factor)
    yield {choice.key: choice.options[-1] for choice in _of(choices, Kind.HOIST, Kind.CAST) if not choice.under}
    for factor in (2.0, 4.0, 0.5):
        for group in ([one] for one in rows):
            yield {**_scaled(group, factor), **follow(choices, _scaled(group, factor))}
    yield {choice.key: _MERGE for choice in _of(choices, Kind.PASS_OPTION) if _MERGE in choice.options}
    for choice in _of(choices, Kind.LOOP_ORDER):
        yield {choice.key: choice.options[-1]}

    yield from fewer if slow else []


def follow(choices: Mapping[str, Choice], rows: Mapping[str, str], now: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return what the numbers of tiles become that say the same as rows per step, when those change.

    Args:
        rows: key of a choice about rows -> what it becomes.
        now: what an assignment takes; the kernel's own where nothing is said.
    """
    now, found = now or {}, {}
    for key, option in rows.items():
        for choice in _of(choices, Kind.VECTOR_TILE, Kind.CUBE_TILE):
            if choice.taken(now) == choices[key].taken(now) and option in choice.options and not choice.under:
                found[choice.key] = option
    return found


def _of(choices: Mapping[str, Choice], *kinds: Kind) -> list[Choice]:
    return [choice for choice in choices.values() if choice.kind in kinds]


def _is_last(choices: Mapping[str, Choice], choice: Choice) -> bool:
    """Whether a choice is about the last axis of its tile: the key ends in the place of the number."""
    stem, _, place = choice.key.rpartition(" [")
    return f"{stem} [{int(place[:-1]) + 1}]" not in choices


def _scaled(choices: list[Choice], factor: float) -> dict[str, str]:
    """Return each numeric choice times a factor, where that is an option."""
    found = {}
    for choice in choices:
        if choice.now.isdigit():
            wanted = str(int(int(choice.now) * factor))
            if wanted in choice.options:
                found[choice.key] = wanted
    return found


def _cube(cube: list[Choice]) -> list[str]:
    """Return large tiles for each product: [128, 256], [64, 256], [128, 256] fills L0C and half of L1."""
    return ["128", "256", "64", "256", "128", "256"] * (len(cube) // 6 + 1)
