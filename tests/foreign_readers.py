"""Compare what other libraries read from the tables of the readers' tests with what Spark reads.

    python -m tests.foreign_readers            # minutes: prints the list of differences, and counts
    python -m tests.foreign_readers --write    # writes the list into docs/guides/read-a-table.md

Each reader gets the path of a table and a version, as the guide says, filters on each column in each state, and a join
by each column. It runs in a process of its own, which it may end.
"""

from __future__ import annotations

import importlib.util
import multiprocessing
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from importlib.metadata import version as version_of
from pathlib import Path

import typer

from millrace.control.log.stored_tables import open_table
from millrace.paths import LakehousePaths
from tests.support.reading.foreign_libraries import READERS, Join, Question, Read
from tests.support.reading.value_tables import BY_VALUE, PARTED, PLAIN, STATES, change, create, filters_of, ids_of_spark
from tests.support.spark.shared_server import choose_server_address, shared_server

GUIDE = Path("docs/guides/read-a-table.md")
BEGIN, END = "<!-- made by `make readers` -->\n", "<!-- end of what `make readers` made -->\n"
PATIENCE_S = 300
FILTERS_OF_A_COLUMN = 2

Answer = list[int] | str
"""The ids of the rows that were found, or the error."""


def answers(reader: str, path: str, version: int, filters: Sequence[Question]) -> list[Answer]:
    """Return what a reader answers to each filter."""
    found: list[Answer] = []
    read: Read | None = None
    for one in filters:
        try:
            read = read or READERS[reader][1](path, version)
            found.append(sorted(read(one)))
        except BaseException as error:  # noqa: BLE001  a panic is none of Exception
            found.append(f"{type(error).__name__}: {str(error).partition(chr(10))[0][:80]}")
    return found


def answers_of_a_process(reader: str, path: str, version: int, filters: Sequence[Question]) -> list[Answer]:
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

    wrong: int = 0
    examples: dict[str, str] = field(default_factory=dict)

    def add(self, one: Question, right: list[int], found: Answer) -> None:
        """Count an answer."""
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
    from millrace_spark.runtime.session import own_session

    readers = [name for name, (package, _) in READERS.items() if importlib.util.find_spec(package)]
    found: dict[str, dict[str, Differences]] = {name: defaultdict(Differences) for name in readers}
    filters_asked = 0
    shared_server()
    session = own_session({"spark.databricks.delta.retentionDurationCheck.enabled": "false"})
    with session as spark, tempfile.TemporaryDirectory(prefix="millrace-readers-") as folder:
        paths = LakehousePaths(Path(folder))
        tables = {table: create(spark, paths, table) for table in (PLAIN, BY_VALUE)}

        def ask(table: str, questions: Sequence[Question], right: Sequence[list[int]], what: str) -> None:
            path = tables[table]
            for name in readers:
                answered = answers_of_a_process(name, str(path), open_table(path).version(), questions)
                for one, ids, answer in zip(questions, right, answered, strict=True):
                    found[name][f"{what}{one.kind}"].add(one, ids, answer)

        other = tables[BY_VALUE]
        joins = [Join(name, kind, str(other), open_table(other).version()) for name, kind in PARTED.items()]
        sides = [f"delta.`{path}`" for path in tables.values()]
        right = [sorted(row[0] for row in spark.sql(join.sql(*sides, quote="`")).collect()) for join in joins]
        ask(PLAIN, joins, right, "join by ")
        for table, path in tables.items():
            for state in STATES:
                change(spark, path, state)
                filters = filters_of(table, f"foreign {state}", count)
                filters_asked += len(filters)
                ask(table, filters, ids_of_spark(spark, path, filters), "partition " if table == BY_VALUE else "")
    wrong = sum(each.wrong for kinds in found.values() for each in kinds.values())
    counts = f"{filters_asked} filters, {len(PARTED)} joins, {len(STATES)} states, {len(readers)} readers"
    return found, f"{counts}, {wrong} differences"


def as_markdown(found: dict[str, dict[str, Differences]], counts: str) -> str:
    """Return the list for the guide: how many questions each reader answers wrongly, and an example of each way."""
    lines = [f"{counts}.", ""]
    for reader, kinds in found.items():
        package, _ = READERS[reader]
        wrong = sum(each.wrong for each in kinds.values())
        types = ", ".join(dict.fromkeys(kind.rpartition(" ")[2] for kind, each in kinds.items() if each.wrong))
        examples: dict[str, str] = {}
        for each in kinds.values():
            examples = each.examples | examples
        shown = ", ".join(f"{what}: {example}".rstrip(": ") for what, example in examples.items())
        name = reader.replace(",", f" {version_of(package)},", 1)
        lines.append(f"- {name}: {f'{wrong}, of {types}. For example {shown}' if wrong else 'none'}")
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
