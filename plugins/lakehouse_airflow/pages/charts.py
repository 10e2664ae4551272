"""Charts as SVG within a page, drawn by pygal without its script and its styles: the style sheet of the pages has both
modes of colour, and a page may run no script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any
from xml.etree.ElementTree import Element

import pygal
from markupsafe import Markup

_SIZE = {"width": 1000, "height": 220}
_MOST_LABELS = 15
_FEWEST = 12
"""The number of bars for which a chart has room, also if it has fewer."""
_QUIET = {
    "js": (),
    "no_prefix": True,
    "disable_xml_declaration": True,
    "explicit_size": False,
    "legend_at_bottom": True,
    "truncate_label": -1,
    "truncate_legend": -1,
    "margin": 4,
    "max_scale": 5,
    "value_formatter": "{:,.15g}".format,
}


def stacked_bars(title: str, labels: Sequence[str], series: Mapping[str, Sequence[int]]) -> Markup:
    """Return a chart with a bar for each label, made of the values of all series, such as the fates of rows.

    Args:
        title: what the chart shows, for screen readers.
        labels: a label for each bar.
        series: name -> a value for each bar; a series without a value other than 0 is left out, and those after it
            keep their colours.

    >>> svg = stacked_bars("rows", ["1"], {"applied": [1], "unchanged": [0], "quarantined": [2]})
    >>> "color-1" in svg, "color-2" in svg
    (False, True)
    """
    # A few bars would be as wide as a third of the page.
    room = [*labels, *[""] * (_FEWEST - len(labels))]
    chart = pygal.StackedBar(**_options(room))
    shown = {name: values for name, values in series.items() if any(values)}
    colours = [f"color-{list(series).index(name)}" for name in shown]
    chart.add_xml_filter(partial(_with_colours, colours))
    return _svg(chart, title, shown)


def lines(title: str, labels: Sequence[str], series: Mapping[str, Sequence[float | None]]) -> Markup:
    """Return a chart with a line for each series; None leaves a gap."""
    chart = pygal.Line(**_options(labels), dots_size=2.5)
    return _svg(chart, title, series)


def _options(labels: Sequence[str]) -> dict[str, Any]:
    every = -(-len(labels) // _MOST_LABELS)
    shown = [label if at % every == 0 else "" for at, label in enumerate(labels)]
    return {**_QUIET, **_SIZE, "title": None, "x_labels": shown}


def _svg(chart: Any, title: str, series: Mapping[str, Sequence[float | None]]) -> Markup:
    for name, values in series.items():
        chart.add(name, list(values))
    chart.add_xml_filter(_without_code)
    # pygal escapes labels and names of series, since it builds a tree of XML.
    svg = Markup(chart.render(is_unicode=True))
    return Markup('<figure class="chart" role="img" aria-label="{}">{}</figure>').format(title, svg)


def _with_colours(colours: Sequence[str], root: Element) -> Element:
    """Give each series its colour, in place of that of its number."""
    numbered = {f"color-{number}": colour for number, colour in enumerate(colours)}
    for each in root.iter():
        if "class" in each.attrib:
            each.set("class", " ".join(numbered.get(name, name) for name in each.attrib["class"].split()))
    return root


def _without_code(root: Element) -> Element:
    """Remove scripts, styles and comments: the page allows none of them."""
    for parent in list(root.iter()):
        parent.attrib.pop("style", None)
        for child in list(parent):
            if not isinstance(child.tag, str) or child.tag.rpartition("}")[2] in ("script", "style", "desc"):
                parent.remove(child)
    return root
