"""A small bar chart in a line of text: one bar a run, as an SVG of a single path."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

_HEIGHT, _BAR, _GAP, _MOST = 20, 3, 1, 30


def sparkline(values: Sequence[int], unit: str) -> Markup:
    """Return bars for the last 30 of these values, oldest first; a run without rows has a flat bar.

    >>> print(sparkline([], "rows"))
    <BLANKLINE>
    >>> 'aria-label="rows of the last 2 runs: 0, 10"' in sparkline([0, 10], "rows")
    True
    """
    shown = list(values)[-_MOST:]
    if not shown:
        return Markup("")
    greatest = max(*shown, 1)
    heights = [max(round(_HEIGHT * value / greatest), 1) for value in shown]
    bars = "".join(f"M{at * (_BAR + _GAP)} {_HEIGHT}v-{height}h{_BAR}v{height}z" for at, height in enumerate(heights))
    label = f"{unit} of the last {len(shown)} runs: {', '.join(f'{value:,}' for value in shown)}"
    return Markup(
        '<svg class="spark" role="img" aria-label="{}" width="{}" height="{}"><title>{}</title><path d="{}"/></svg>'
    ).format(label, len(shown) * (_BAR + _GAP), _HEIGHT, label, bars)
