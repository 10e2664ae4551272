"""Bars of a run as SVG: what became of its rows, and where its time went. The style sheet has their colours."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from millrace.contracts.job.report import RowCounts
from millrace.overview.runs.time_split import Phase, TimeSplit

FATES = ("applied", "unchanged", "superseded", "quarantined", "dropped")
PHASES = list(Phase)

_WIDTH, _LEAST = 200, 1.5
"""The width of a chart, and the least width of a part that is not 0."""

_BAR, _GAP, _TIME_BAR = 6, 2, 12
"""The heights of a bar of rows, of the gap between two of them, and of a bar of time."""


def waterfall(rows: RowCounts) -> Markup:
    """Return a bar for the rows that were read, and below it one for each fate, which begins where the last one ended.

    >>> print(waterfall(RowCounts()))
    <BLANKLINE>
    >>> 'aria-label="5 read: 4 applied, 1 dropped"' in waterfall(RowCounts(read=5, applied=4, dropped=1))
    True
    """
    if not rows.read:
        return Markup("")
    fates = [(name, getattr(rows, name)) for name in FATES if getattr(rows, name)]
    label = f"{rows.read:,} read: {', '.join(f'{count:,} {name}' for name, count in fates)}"
    bars, begin = [_bar(0, 0, _WIDTH, _BAR, "read")], 0.0
    for line, (name, count) in enumerate(fates, 1):
        width = _WIDTH * count / rows.read
        bars.append(_bar(begin, line * (_BAR + _GAP), width, _BAR, f"color-{FATES.index(name)}"))
        begin += width
    return _svg(label, (len(fates) + 1) * (_BAR + _GAP) - _GAP, bars)


def time_bar(split: TimeSplit, longest: float) -> Markup:
    """Return one bar with a part for each phase.

    Args:
        split: the seconds of each phase.
        longest: the seconds of the longest bar on the page, which has the whole width.

    >>> 'aria-label="planning 0.4 s, Spark 12 s"' in time_bar({Phase.PLAN: 0.4, Phase.SPARK: 12.0}, 20.0)
    True
    """
    if not split or longest <= 0:
        return Markup("")
    bars, begin = [], 0.0
    for phase, seconds in split.items():
        width = _WIDTH * seconds / longest
        bars.append(_bar(begin, 0, width, _TIME_BAR, phase_class(phase)))
        begin += width
    return _svg(", ".join(f"{phase.value} {seconds_text(each)}" for phase, each in split.items()), _TIME_BAR, bars)


def phase_class(phase: Phase) -> str:
    """Return the class of the colour of a phase."""
    return f"phase-{PHASES.index(phase)}"


def key(name: str) -> Markup:
    """Return a square in the colour of a class, for a legend."""
    return Markup('<svg class="key" width="10" height="10" aria-hidden="true">{}</svg>').format(
        _bar(0, 0, 10, 10, name)
    )


def seconds_text(seconds: float) -> str:
    """Return seconds as people say them.

    >>> [seconds_text(seconds) for seconds in (0.44, 9.96, 59.7, 61, 7322)]
    ['0.4 s', '10 s', '1 min 0 s', '1 min 1 s', '2 h 2 min']
    """
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    minutes, rest = divmod(whole, 60)
    if minutes >= 60:
        return f"{minutes // 60:,} h {minutes % 60} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def _svg(label: str, height: int, bars: Sequence[Markup]) -> Markup:
    return Markup(
        '<svg class="bars" role="img" aria-label="{}" viewBox="0 0 {} {}" width="{}" height="{}">'
        "<title>{}</title>{}</svg>"
    ).format(label, _WIDTH, height, _WIDTH, height, label, Markup("").join(bars))


def _bar(x: float, y: int, width: float, height: int, name: str) -> Markup:
    return Markup('<rect x="{:.1f}" y="{}" width="{:.1f}" height="{}" class="{}"/>').format(
        min(x, _WIDTH - _LEAST), y, max(width, _LEAST), height, name
    )
