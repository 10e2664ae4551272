"""SQL scripts that create a view for each certified version, in the dialects of DuckDB, Spark and Trino."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from millrace.contracts.lake_path import S3

_HEAD = "-- Views of the certified versions of a lakehouse. Millrace writes this file: your changes would be lost."
_RAW = "_all_versions"


@dataclass(frozen=True, order=True)
class View:
    """A view of one version of a table.

    Attributes:
        table: the table, which is also the name of the view.
        path: its folder, as an absolute path, or its address in a bucket, `s3://...`.
        version: the version.
        certified_by_hand: who has let it pass, when and why; None if its gate has passed it.
    """

    table: str
    path: str
    version: int
    certified_by_hand: str | None = None

    def named(self, suffix: str = "", quote: str = '"') -> str:
        """Return the name in SQL, with the part after the dot quoted: it may be a keyword.

        >>> View("silver.order", "/lake/silver/order", 3).named(), View("silver.x", "/x", 3).named(suffix="_raw")
        ('silver."order"', 'silver_raw."x"')
        """
        layer, name = self.table.split(".")
        return f"{layer}{suffix}.{quote}{name}{quote}"

    @property
    def trino_query(self) -> str:
        """The query of the view in Trino: the table itself is registered in a schema for all versions.

        >>> View("silver.orders", "s3://lake/silver/orders", 3).trino_query
        'SELECT * FROM silver_all_versions."orders" FOR VERSION AS OF 3'
        """
        return f"SELECT * FROM {self.named(_RAW)} FOR VERSION AS OF {self.version}"


def duckdb_script(views: Iterable[View]) -> str:
    """Return a script for DuckDB, which loads its extension `delta` when it is needed, if it can download it.

    The day of a time is that of UTC, and not of the reader's machine.

    >>> print(duckdb_script([View("silver.orders", "/it's/silver/orders", 3)]).split("\\n", 1)[1], end="")
    SET TimeZone = 'UTC';
    CREATE SCHEMA IF NOT EXISTS silver;
    CREATE OR REPLACE VIEW silver."orders" AS FROM delta_scan('/it''s/silver/orders', version => 3);
    """

    def create(view: View) -> str:
        rows = f"FROM delta_scan({sql_text(view.path)}, version => {view.version})"
        return f"CREATE OR REPLACE VIEW {view.named()} AS {rows};"

    return _script(views, "CREATE SCHEMA IF NOT EXISTS {};".format, create, "SET TimeZone = 'UTC';")


def spark_script(views: Iterable[View]) -> str:
    """Return a script for Spark SQL, in a session that has Delta.

    >>> print(spark_script([View("silver.orders", "s3://lake/silver/orders", 3)]).split("\\n", 1)[1], end="")
    CREATE DATABASE IF NOT EXISTS silver;
    CREATE OR REPLACE VIEW silver.`orders` AS SELECT * FROM delta.`s3a://lake/silver/orders` VERSION AS OF 3;
    """

    def create(view: View) -> str:
        path = re.sub("^s3://", "s3a://", view.path).replace("`", "``")
        rows = f"SELECT * FROM delta.`{path}` VERSION AS OF {view.version}"
        return f"CREATE OR REPLACE VIEW {view.named(quote='`')} AS {rows};"

    return _script(views, "CREATE DATABASE IF NOT EXISTS {};".format, create)


def trino_script(views: Iterable[View]) -> str:
    """Return a script for Trino, whose connector for Delta is the current catalog.

    The tables themselves are registered in schemas whose names end in `_all_versions`.

    >>> print(trino_script([View("silver.orders", "s3://lake/silver/orders", 3)]).split("\\n", 1)[1], end="")
    CREATE SCHEMA IF NOT EXISTS silver;
    CREATE SCHEMA IF NOT EXISTS silver_all_versions;
    -- Once: CALL system.register_table('silver_all_versions', 'orders', 's3://lake/silver/orders');
    CREATE OR REPLACE VIEW silver."orders" AS SELECT * FROM silver_all_versions."orders" FOR VERSION AS OF 3;
    """

    def create(view: View) -> str:
        layer, name = view.table.split(".")
        # Trino has no address for a file on disk but this one, which begins at its setting `local.location`.
        address = view.path if view.path.startswith(S3) else f"local://{view.path}"
        call = f"CALL system.register_table('{layer}{_RAW}', '{name}', {sql_text(address)});"
        return f"-- Once: {call}\nCREATE OR REPLACE VIEW {view.named()} AS {view.trino_query};"

    schemas = "CREATE SCHEMA IF NOT EXISTS {0};\nCREATE SCHEMA IF NOT EXISTS {0}" + _RAW + ";"
    return _script(views, schemas.format, create)


def _script(
    views: Iterable[View], create_schema: Callable[[str], str], create_view: Callable[[View], str], *settings: str
) -> str:
    every = sorted(views)
    layers = dict.fromkeys(view.table.partition(".")[0] for view in every)
    return "\n".join([_HEAD, *settings, *map(create_schema, layers), *map(create_view, every), ""])


def sql_text(value: str) -> str:
    """Return a text as a literal of SQL."""
    return "'" + value.replace("'", "''") + "'"
