"""Small charts in a line of text or in a table, as an SVG of a few shapes."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

_BAR_HEIGHT, _BAR, _GAP, _MOST_BARS = 20, 3, 1, 30
_WIDTH, _HEIGHT, _MARGIN = 160, 28, 4


def sparkline(values: Sequence[int], unit: str, of: str = "runs") -> Markup:
    """Return bars for the last 30 of these values, oldest first; a value of 0 has a flat bar.

    Args:
        values: the values.
        unit: what they count.
        of: what each of them belongs to.

    >>> print(sparkline([], "rows"))
    <BLANKLINE>
    >>> 'aria-label="rows of the last 2 runs: 0, 10"' in sparkline([0, 10], "rows")
    True
    """
    shown = list(values)[-_MOST_BARS:]
    if not shown:
        return Markup("")
    greatest = max(*shown, 1)
    heights = [max(round(_BAR_HEIGHT * value / greatest), 1) for value in shown]
    step = _BAR + _GAP
    bars = "".join(f"M{at * step} {_BAR_HEIGHT}v-{high}h{_BAR}v{high}z" for at, high in enumerate(heights))
    label = f"{unit} of the last {len(shown)} {of}: {', '.join(f'{value:,}' for value in shown)}"
    return Markup(
        '<svg class="spark" role="img" aria-label="{}" width="{}" height="{}"><title>{}</title><path d="{}"/></svg>'
    ).format(label, len(shown) * step, _BAR_HEIGHT, label, bars)


def trend(points: Sequence[tuple[int, float, bool]]) -> Markup:
    """Return a line through what a rule has observed, oldest first; points that did not pass have their own colour.

    Args:
        points: (version, value, whether it passed).

    >>> print(trend([(1, 5.0, True)]))
    <BLANKLINE>
    >>> svg = trend([(1, 5.0, True), (2, 7.5, False)])
    >>> 'aria-label="versions 1 to 2: 5, 7.5; version 2 did not pass"' in svg
    True
    """
    if len(points) < 2:
        return Markup("")
    values = [value for _, value, _ in points]
    least, span = min(values), max(values) - min(values) or 1.0
    step = (_WIDTH - 2 * _MARGIN) / (len(points) - 1)
    places = [
        (_MARGIN + step * at, _HEIGHT - _MARGIN - (value - least) / span * (_HEIGHT - 2 * _MARGIN))
        for at, value in enumerate(values)
    ]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    dots = Markup("").join(
        Markup('<circle cx="{:.1f}" cy="{:.1f}" r="{}" class="{}"/>').format(x, y, 2 if passed else 3, _class(passed))
        for (x, y), (_, _, passed) in zip(places, points, strict=True)
    )
    label = _label(points)
    return Markup(
        '<svg class="trend" role="img" aria-label="{}" width="{}" height="{}"><title>{}</title>'
        '<polyline points="{}"/>{}</svg>'
    ).format(label, _WIDTH, _HEIGHT, label, line, dots)


def _class(passed: bool) -> str:
    return "passed" if passed else "failed"


def _label(points: Sequence[tuple[int, float, bool]]) -> str:
    values = ", ".join(f"{value:.6g}" for _, value, _ in points)
    failed = [str(version) for version, _, passed in points if not passed]
    versions = f"{'versions' if len(failed) > 1 else 'version'} {', '.join(failed)} did not pass"
    return f"versions {points[0][0]} to {points[-1][0]}: {values}" + (f"; {versions}" if failed else "")
