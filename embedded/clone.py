"""Where this clone of Millrace's repository is: for what is not installed with the packages, as tools and tests."""

from __future__ import annotations

from pathlib import Path

CLONE = Path(__file__).resolve().parents[1]
"""The folder of the clone."""

DEMO = CLONE / "demo"
"""The project of the demo."""


def dag_folders(project: Path) -> dict[str, Path]:
    """Return the folders of the DAG files that run a project, by the names of their bundles.

    A project has DAG files for all that it needs; the general ones of the demo are the clone's.
    """
    own = {"dags-folder": project / "dags"}
    return {**own, "millrace": CLONE / "dags"} if project.resolve() == DEMO else own
