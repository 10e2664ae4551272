"""Two sources of one silver table of orders; each delivers the orders of its own countries."""

from __future__ import annotations

from pathlib import Path

import yaml

from benchmarks.merging.orders import CHANGED, COLUMNS, LOADED, SILVER, arrivals, deliver, uniform

COUNTRIES = {"bronze.orders_eu": ("DE", "FR"), "bronze.orders_us": ("CA", "US")}
"""Source -> its countries."""

_FILES = 8
_UPDATES = 0.9


def deliver_sources(landing: Path, rows: int, changes: int) -> None:
    """Write, of each source, the orders that arrive on the first day, and the changed and new ones of the second.

    Args:
        landing: the landing folder.
        rows: the number of orders of a source.
        changes: the number of events of the second day; nine tenths are of known orders.
    """
    updates = int(changes * _UPDATES)
    for source, countries in COUNTRIES.items():
        for day, sql in ((LOADED, arrivals(rows)), (CHANGED, uniform(updates, changes - updates, rows))):
            own = f"SELECT * EXCLUDE op REPLACE ({list(countries)}[1 + id // 2 % 2] AS country) FROM ({sql})"
            deliver(landing, day, own, _FILES, name_of(source))


def write_source_specs(folder: Path, *, concurrent: bool) -> Path:
    """Write the specs of both sources and of the silver table, which has a stream for each of them or one for both."""
    columns = {name: {"type": kind} for name, kind in COLUMNS.items()}
    sources = [
        {"table": source, **({"partitions": list(countries)} if concurrent else {})}
        for source, countries in COUNTRIES.items()
    ]
    silver: dict[str, object] = {
        "table": SILVER, "sources": sources, "keys": ["country", "id"], "sequence_by": ["ts"],
        "partitioned_by": ["country"], **({"concurrent_by": "country"} if concurrent else {}), "columns": columns,
    }  # fmt: skip
    specs: dict[str, dict[str, object]] = {SILVER: silver}
    for source in COUNTRIES:
        landing = {"landing": name_of(source), "files": "*.parquet", "format": "parquet"}
        specs[source] = {"table": source, "source": landing, "columns": columns}
    for table, spec in specs.items():
        layer, name = table.split(".")
        path = folder / layer / "bench" / f"{name}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump(spec, sort_keys=False))
    return folder


def name_of(source: str) -> str:
    """Return the name of a source's folder.

    >>> name_of("bronze.orders_eu")
    'orders_eu'
    """
    return source.split(".")[1]
