"""What each picture shows: a page of the local stack in a window of a size, after some clicks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta

from playwright.sync_api import Page

from demo.run import DOMAIN, LAST

SILVER, GOLD = "silver.flights", "gold.delay_by_weather"
RUN = f"backfill__{LAST + timedelta(days=1)}T00:00:00+00:00"
"""The run of the last day: Airflow names a run after the end of its day."""

LAST_DELIVERED = LAST + timedelta(days=3)
"""The last day whose files have come when the pictures are taken; no run has loaded those after `LAST`."""

_NO_MAP = ".react-flow__minimap, .react-flow__attribution {display: none}"
"""Hides the small map in the corner of a graph, which would cover tasks."""

_MOVES_MS = 1500
"""How long a graph moves after a click."""


@dataclass(frozen=True)
class Picture:
    """A picture.

    Attributes:
        path: the path of the page.
        height: of the window, in pixels.
        width: of the window, in pixels.
        prepare: brings the page into the state that the picture shows.
        part: the element at whose right edge the picture ends; by default that of the window.
    """

    path: str
    height: int
    width: int = 1280
    prepare: Callable[[Page], None] = lambda _: None
    part: str = ""


def _show_tasks(page: Page) -> None:
    """Show all tasks of a run as a graph that fills the window."""
    page.get_by_role("button", name="Show Graph").click()
    page.get_by_role("button", name="Expand all task groups").click()
    page.get_by_role("button", name="Collapse Details Panel").click()
    _fit_graph(page)


def _show_dependencies(page: Page) -> None:
    """Show what an asset is built from, by way of the list of assets."""
    page.get_by_role("link", name=GOLD).click()
    page.get_by_role("button", name="Task Dependencies").click()
    _fit_graph(page)


def _fit_graph(page: Page) -> None:
    page.add_style_tag(content=_NO_MAP)
    page.wait_for_timeout(_MOVES_MS)
    page.locator(".react-flow__controls-fitview").click()
    page.wait_for_timeout(_MOVES_MS)


PICTURES: Mapping[str, Picture] = {
    "airflow.png": Picture(f"/dags/{DOMAIN}/runs/{RUN}", 520, prepare=_show_tasks),
    "assets.png": Picture(f"/assets?name_pattern={GOLD}", 400, 1600, _show_dependencies, ".react-flow"),
    "lakehouse.png": Picture("/lakehouse/tables", 900),
    "overview.png": Picture(f"/lakehouse/tables/{SILVER}", 800),
    "versions.png": Picture(f"/lakehouse/tables/{SILVER}/versions", 680),
    "backfill-plan.png": Picture(f"/lakehouse/backfill-plan/{DOMAIN}?first={LAST}&last={LAST_DELIVERED}", 900),
    "run.png": Picture(f"/lakehouse/runs/{DOMAIN}/{RUN}", 1060),
    "lineage.png": Picture(f"/lakehouse/lineage?table={SILVER}&column=arr_delay_min", 900),
    "quality.png": Picture(f"/lakehouse/tables/{SILVER}/quality", 520),
}
"""Name of a file in `docs/pictures` -> what it shows."""
