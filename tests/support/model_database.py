"""DuckDB as the model that real tables are compared with."""

import duckdb


def model_database() -> duckdb.DuckDBPyConnection:
    """Return a connection to a new DuckDB in memory, for a few rows.

    It has one thread. With two, DuckDB 1.5.5 ends one of a thousand windows over a few rows of a UNION with an
    internal error (its issue 22352); 1.5.6 does not, but has no package of the Delta extension yet.
    """
    return duckdb.connect(config={"threads": 1})
