"""Gold tables of growing lakes after a change of the newest 1 % of the orders, by three sides in one session.

spark-submit growth.py WORK COSTS     WORK: JSON of `folder`, `sizes` and `rounds`

The cost of each run is noted under the name that `series/gold_growth.py` reads. A round with the first size warms up.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks.comparison import require_same_digest
from benchmarks.cost import noted
from benchmarks.refreshing.peers import QUERIES, touched_by_delta_rs, whole_by_spark
from benchmarks.refreshing.shop import Shop
from benchmarks.table_files import linked_copy
from millrace_spark.runtime.entrypoint import start_process
from millrace_spark.runtime.session import own_session

MILLRACE, WHOLE, LIMIT = "Millrace", "whole table by Spark", "delta-rs and DuckDB"
COLUMNS = {
    "gold.by_day": ("day", "country", "orders", "total", "largest"),
    "gold.by_customer": ("customer", "orders", "total", "largest"),
    "gold.by_basket": ("basket", "orders", "total", "largest"),
    "gold.by_segment": ("day", "segment", "orders", "total", "largest"),
    "gold.places": ("id", "day", "customer", "amount", "place"),
    "gold.by_month": ("month", "orders", "total", "largest"),
}
"""Gold table -> the compared columns."""


def main(work: Path, costs: Path) -> None:
    """Make the lakes and change them, then refresh each table by each side in turn."""
    start_process()
    asked = json.loads(work.read_text())
    folder = Path(asked["folder"])
    with own_session({}) as session:
        for rows in asked["sizes"]:
            _create(folder / str(rows), rows)
        for number in range(1, asked["rounds"] + 2):
            for rows in asked["sizes"] if number > 1 else asked["sizes"][:1]:
                for table in QUERIES:
                    _measure(session, folder / str(rows), table, f"{table} {rows}/{number}", costs)


def _create(folder: Path, rows: int) -> None:
    """Make a lake whose orders have changed since its gold tables were computed, but for what `gold.by_month` reads."""
    shop = Shop(folder / "ready")
    shop.create(rows)
    for table in QUERIES:
        shop.refresh(table)
        touched_by_delta_rs(shop.paths, table, folder / "delta-rs" / table)
    shop.change(f"id >= {rows} * 0.99")
    after = Shop(linked_copy(shop.folder, folder / "by_month"))
    after.refresh("gold.by_day")


def _measure(session: SparkSession, folder: Path, table: str, name: str, costs: Path) -> None:
    ready = folder / ("by_month" if table == "gold.by_month" else "ready")
    shop = Shop(linked_copy(ready, folder / "round"))
    spark, delta_rs = folder / "spark" / table, folder / "delta-rs" / table
    with noted(costs, f"{name}/{WHOLE}"):
        whole_by_spark(session, shop.paths, table, spark)
    with noted(costs, f"{name}/{LIMIT}"):
        touched_by_delta_rs(shop.paths, table, delta_rs)
    with noted(costs, f"{name}/{MILLRACE}"):
        shop.refresh(table)
    tables = {WHOLE: spark, LIMIT: delta_rs, MILLRACE: shop.paths.table(table)}
    require_same_digest(COLUMNS[table], {side: f"delta_scan('{path}')" for side, path in tables.items()})
    shutil.rmtree(shop.folder)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
