"""Compare what other libraries read from the tables of the readers' tests with what Spark reads.

    python -m tests.foreign_readers            # minutes: prints the list of differences, and counts
    python -m tests.foreign_readers --write    # writes the list into docs/guides/read-a-table.md

Each reader gets the path of a table and a version, as the guide says, and filters on each column in each state. It runs
in a process of its own, which it may end.
"""

from __future__ import annotations

import importlib.util
import multiprocessing
import os
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from importlib.metadata import version as version_of
from pathlib import Path

import typer

from include.control.log.stored_tables import open_table
from include.paths import LakehousePaths
from tests.support.reading.predicates import Predicate, read_value
from tests.support.reading.value_tables import BY_VALUE, PLAIN, STATES, change, create, filters_of, ids_of_spark
from tests.support.spark.shared_server import choose_server_address, shared_server

GUIDE = Path("docs/guides/read-a-table.md")
BEGIN, END = "<!-- made by `make readers` -->\n", "<!-- end of what `make readers` made -->\n"
PATIENCE_S = 300
FILTERS_OF_A_COLUMN = 2

Answer = list[int] | str
"""The ids of the rows that were found, or the error."""


def by_duckdb(path: str, version: int) -> Callable[[Predicate], list[int]]:
    import duckdb

    from include.control.views.duckdb_file import delta_extension

    lake = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    lake.load_extension(str(delta_extension()))
    lake.execute("SET TimeZone = 'UTC'")
    source = f"delta_scan('{path}', version => {version})"
    return lambda one: [row[0] for row in lake.sql(f"SELECT id FROM {source} WHERE {one.duckdb}").fetchall()]


def by_polars(path: str, version: int) -> Callable[[Predicate], list[int]]:
    import polars as pl

    frame = pl.scan_delta(path, version=version)
    return lambda one: frame.filter(one.polars()).select("id").collect()["id"].to_list()


def by_dataset(path: str, version: int) -> Callable[[Predicate], list[int]]:
    from deltalake import DeltaTable

    rows = DeltaTable(path, version=version).to_pyarrow_dataset()
    return lambda one: rows.to_table(columns=["id"], filter=one.arrow())["id"].to_pylist()


def by_query_builder(path: str, version: int) -> Callable[[Predicate], list[int]]:
    import pyarrow as pa
    from deltalake import DeltaTable, QueryBuilder

    reader = QueryBuilder().register("stored", DeltaTable(path, version=version))
    return lambda one: pa.table(reader.execute(f"SELECT id FROM stored WHERE {one.datafusion}"))["id"].to_pylist()


def by_daft(path: str, version: int) -> Callable[[Predicate], list[int]]:
    import daft

    frame = daft.read_deltalake(path, version=version)

    def read(one: Predicate) -> list[int]:
        name, *fields = one.column.split(".")
        column = daft.col(name).get(fields[0]) if fields else daft.col(name)
        values = [daft.lit(read_value(value, one.kind)) for value in one.values]
        return frame.where(one.expression(column, values)).select("id").to_pydict()["id"]

    return read


def by_chdb(path: str, version: int) -> Callable[[Predicate], list[int]]:
    os.chdir(path)  # it reads nothing beside the folder of its process
    import chdb

    chosen = f"SETTINGS delta_lake_snapshot_version = {version}, session_timezone = 'UTC'"

    def read(one: Predicate) -> list[int]:
        query = f"SELECT id FROM deltaLakeLocal('{path}') WHERE {one.clickhouse} {chosen}"
        return [int(line) for line in str(chdb.query(query, "CSV")).split()]

    return read


READERS: dict[str, tuple[str, Callable[[str, int], Callable[[Predicate], list[int]]]]] = {
    "DuckDB, `delta_scan`": ("duckdb", by_duckdb),
    "Polars, `scan_delta`": ("polars", by_polars),
    "deltalake, `to_pyarrow_dataset`": ("deltalake", by_dataset),
    "deltalake, `QueryBuilder`": ("deltalake", by_query_builder),
    "Daft, `read_deltalake`": ("daft", by_daft),
    "chdb, `deltaLakeLocal`": ("chdb", by_chdb),
}
"""Reader -> its package, and what opens a version of a table."""


def answers(reader: str, path: str, version: int, filters: Sequence[Predicate]) -> list[Answer]:
    """Return what a reader answers to each filter."""
    found: list[Answer] = []
    read: Callable[[Predicate], list[int]] | None = None
    for one in filters:
        try:
            read = read or READERS[reader][1](path, version)
            found.append(sorted(read(one)))
        except BaseException as error:  # noqa: BLE001  a panic is none of Exception
            found.append(f"{type(error).__name__}: {str(error).partition(chr(10))[0][:80]}")
    return found


def answers_of_a_process(reader: str, path: str, version: int, filters: Sequence[Predicate]) -> list[Answer]:
    """Return what a reader answers in a process of its own; a filter that ends the process counts alone."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn) as pool:
        try:
            return pool.submit(answers, reader, path, version, filters).result(PATIENCE_S)
        except (BrokenProcessPool, TimeoutError) as error:
            if len(filters) == 1:
                return ["it ends the process" if isinstance(error, BrokenProcessPool) else "it does not end"]
    half = len(filters) // 2
    return [
        answer
        for part in (filters[:half], filters[half:])
        for answer in answers_of_a_process(reader, path, version, part)
    ]


@dataclass
class Differences:
    """What a reader answers otherwise than Spark on a type of columns."""

    asked: int = 0
    wrong: int = 0
    examples: dict[str, str] = field(default_factory=dict)

    def add(self, one: Predicate, right: list[int], found: Answer) -> None:
        """Count an answer."""
        self.asked += 1
        if found == right:
            return
        self.wrong += 1
        if isinstance(found, str):
            self.examples.setdefault(found, "")
        else:
            kind = "rows lost" if set(right) - set(found) else "rows too many"
            self.examples.setdefault(kind, f"`{one.spark.replace('`', '')}`")


def compare(count: int) -> tuple[dict[str, dict[str, Differences]], str]:
    """Ask all readers; return reader -> type -> differences, and a line with the counts."""
    from spark_jobs.runtime.session import own_session

    readers = [name for name, (package, _) in READERS.items() if importlib.util.find_spec(package)]
    found: dict[str, dict[str, Differences]] = {name: defaultdict(Differences) for name in readers}
    filters_asked = 0
    shared_server()
    session = own_session({"spark.databricks.delta.retentionDurationCheck.enabled": "false"})
    with session as spark, tempfile.TemporaryDirectory(prefix="millrace-readers-") as folder:
        paths = LakehousePaths(Path(folder))
        for table in (PLAIN, BY_VALUE):
            path = create(spark, paths, table)
            for state in STATES:
                change(spark, path, state)
                filters = filters_of(table, f"foreign {state}", count)
                right = ids_of_spark(spark, path, filters)
                filters_asked += len(filters)
                for name in readers:
                    answered = answers_of_a_process(name, str(path), open_table(path).version(), filters)
                    for one, ids, answer in zip(filters, right, answered, strict=True):
                        place = f"partition {one.kind}" if table == BY_VALUE else one.kind
                        found[name][place].add(one, ids, answer)
    wrong = sum(each.wrong for kinds in found.values() for each in kinds.values())
    return found, f"{filters_asked} filters, {len(STATES)} states, {len(readers)} readers, {wrong} differences"


def as_markdown(found: dict[str, dict[str, Differences]], counts: str) -> str:
    """Return the list for the guide."""
    lines = [f"{counts}.", "", "| reader | column | filters with other rows | for example |", "|---|---|---|---|"]
    for reader, kinds in found.items():
        package, _ = READERS[reader]
        name = reader.replace(",", f" {version_of(package)},", 1)
        alike: dict[str, list[str]] = defaultdict(list)
        for kind, each in kinds.items():
            if each.wrong:
                examples = [f"{what}: {example}".rstrip(": ") for what, example in each.examples.items()]
                alike[f"{each.wrong} of {each.asked} | {'; '.join(examples[:2]).replace('|', '/')}"].append(kind)
        lines += [f"| {name} | {', '.join(each)} | {what} |" for what, each in alike.items()]
        if not alike:
            lines.append(f"| {name} | all | none | |")
    return "\n".join([*lines, ""])


def main(*, write: bool = False, count: int = FILTERS_OF_A_COLUMN) -> None:
    """Compare, and print or write the list."""
    text = as_markdown(*compare(count))
    if write:
        guide = GUIDE.read_text()
        GUIDE.write_text(guide[: guide.index(BEGIN) + len(BEGIN)] + text + guide[guide.index(END) :])
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    choose_server_address()
    typer.run(main)
