"""A DuckDB file that has nothing but views; DuckDB checks them when it creates them, with its extension `delta`."""

from __future__ import annotations

import logging
from importlib.util import find_spec
from pathlib import Path

from millrace.control.views.scripts import View, duckdb_script, sql_text
from millrace.errors import first_line

log = logging.getLogger(__name__)

_EXISTING = """SELECT format('{}."{}"', schema_name, view_name), comment FROM duckdb_views() WHERE NOT internal"""


def delta_extension() -> Path | None:
    """Return DuckDB's extension `delta`, which a wheel of PyPI brings; None if the wheel is not installed.

    It is not downloaded from DuckDB's own host. It must be of the version of DuckDB that is installed.
    """
    import duckdb

    spec = find_spec("duckdb_extension_delta")
    places = list(spec.submodule_search_locations or []) if spec else []
    files = [Path(place) / "extensions" / f"v{duckdb.__version__}" / "delta.duckdb_extension" for place in places]
    return next((file for file in files if file.exists()), None)


def update_duckdb_file(file: Path, views: list[View], extension: Path) -> None:
    """Bring the views of a DuckDB file up to date; the file is created if there is none.

    DuckDB opens a table when it creates its view. So only views of another version or place are created: the comment of
    a view says of which version it is. A table that DuckDB cannot open, such as a damaged one, has no view.
    """
    import duckdb

    # A check of the extension's signature takes a third of a second at each certificate; its wheel's hash was checked.
    with duckdb.connect(file, config={"allow_unsigned_extensions": True}) as connection:
        connection.load_extension(str(extension))
        existing = dict(connection.execute(_EXISTING).fetchall())
        wanted = {view.named(): view for view in views}
        for name in existing.keys() - wanted.keys():
            connection.execute(f"DROP VIEW {name}")
        for name, view in wanted.items():
            comment = f"version {view.version} of {view.path}"
            if existing.get(name) == comment:
                continue
            try:
                connection.execute(duckdb_script([view]))
                connection.execute(f"COMMENT ON VIEW {name} IS {sql_text(comment)}")
            except duckdb.Error as error:
                connection.execute(f"DROP VIEW IF EXISTS {name}")
                log.warning("%s: DuckDB cannot open version %s: %s", view.table, view.version, first_line(error))
