"""Charts of the report, drawn by matplotlib as SVG text that is put into the page."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

_INK = "#24324a"
_MUTED = "#7b879b"
_BLUE = "#2f6fed"


def _figure(width: float, height: float) -> tuple[Any, Any]:
    # The object-oriented interface: no global state and no display is needed.
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasSVG(figure)
    figure.patch.set_alpha(0.0)
    axes = figure.add_subplot()
    axes.patch.set_alpha(0.0)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(_MUTED)
    axes.tick_params(colors=_MUTED, labelsize=8)
    return figure, axes


def _svg(figure: Any) -> str:
    buffer = io.StringIO()
    # `none` keeps text as text: small, and searchable in the page.
    import matplotlib

    with matplotlib.rc_context({"svg.fonttype": "none", "font.family": "sans-serif"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]


def heat_map(cells: Sequence[Sequence[float]], *, rows: str, columns: str) -> str:
    """Draw where the error lies.

    Args:
        cells: error divided by what is allowed, the largest of each cell; above 1 the element fails.
        rows: what the vertical axis counts.
        columns: what the horizontal axis counts.

    Returns:
        An `<svg>` element. Blue is within tolerance, red outside; the scale is logarithmic.
    """
    import numpy as np
    from matplotlib.colors import TwoSlopeNorm

    values = np.log10(np.clip(np.nan_to_num(np.asarray(cells, dtype=float), posinf=1e6), 1e-4, 1e4))
    figure, axes = _figure(6.2, 2.7)
    image = axes.imshow(values, aspect="auto", cmap="RdBu_r", norm=TwoSlopeNorm(0.0, -4.0, 4.0), interpolation="nearest")
    bar = figure.colorbar(image, ax=axes, ticks=[-4, -2, 0, 2, 4], fraction=0.05)
    bar.ax.set_yticklabels(["1e-4", "1e-2", "1 (limit)", "1e2", "1e4"], fontsize=7, color=_MUTED)
    bar.outline.set_visible(False)
    axes.set_xlabel(columns, fontsize=8, color=_INK)
    axes.set_ylabel(rows, fontsize=8, color=_INK)
    return _svg(figure)


def cost_bars(labels: Sequence[str], times: Sequence[float], utilisation: Sequence[float | None]) -> str:
    """Draw the cost model's end-to-end time per shape, and the share of the cores that it keeps busy.

    Args:
        labels: one name a shape.
        times: end-to-end time, in the cost model's unit.
        utilisation: percent of the AI cores' time in use, or None where it is not known.
    """
    figure, axes = _figure(6.2, 0.42 * len(labels) + 0.9)
    places = range(len(labels))
    axes.barh(places, times, color=_BLUE, height=0.58)
    axes.set_yticks(list(places), labels=list(labels), fontsize=8, color=_INK)
    axes.invert_yaxis()
    axes.set_xlabel("end to end, microseconds of the cost model", fontsize=8, color=_INK)
    longest = max(times, default=1.0) or 1.0
    axes.set_xlim(0, longest * 1.28)
    for place, (time, used) in enumerate(zip(times, utilisation, strict=True)):
        note = f"{time:.3g}" + (f"   {used:.0f} % busy" if used is not None else "")
        axes.text(time + longest * 0.015, place, note, va="center", fontsize=8, color=_INK)
    return _svg(figure)
