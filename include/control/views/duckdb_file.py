"""A DuckDB file that has nothing but views; DuckDB checks them when it creates them, with its extension `delta`."""

from __future__ import annotations

import logging
from importlib.util import find_spec
from pathlib import Path

from include.control.views.scripts import View, duckdb_script
from include.errors import first_line

log = logging.getLogger(__name__)


def delta_extension() -> Path | None:
    """Return DuckDB's extension `delta`, which a wheel of PyPI brings; None if the wheel is not installed.

    It is not downloaded from DuckDB's own host. It must be of the version of DuckDB that is installed.
    """
    import duckdb

    spec = find_spec("duckdb_extension_delta")
    places = list(spec.submodule_search_locations or []) if spec else []
    files = [Path(place) / "extensions" / f"v{duckdb.__version__}" / "delta.duckdb_extension" for place in places]
    return next((file for file in files if file.exists()), None)


def write_duckdb_file(file: Path, views: list[View], extension: Path) -> None:
    """Create a DuckDB file with these views, without those that DuckDB cannot open, such as of a damaged table."""
    import duckdb

    with duckdb.connect(file) as connection:
        connection.load_extension(str(extension))
        for view in views:
            try:
                connection.execute(duckdb_script([view]))
            except duckdb.Error as error:
                log.warning("%s: DuckDB cannot open version %s: %s", view.table, view.version, first_line(error))
