"""Check that a lakehouse has exactly the rows that its feed delivered, and that its logs and ledger agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

from millrace.contracts.job.requests import RowFilter
from millrace.contracts.lake_path import LakePath
from millrace.contracts.row_status import PENDING
from millrace.control.gates.conservation import require_conserved
from millrace.control.ledger.resolution import table_id
from millrace.control.log.batch import Stream, Winner, winner_of
from millrace.control.log.delta_log import Commit, commit_actions, latest_version, remaining_commits
from millrace.control.log.stored_tables import is_table, open_table
from millrace.control.ops_tables import OpsTables
from millrace.control.quarantine.rows import quarantined_rows
from millrace.control.quarantine.stored_rows import StoredRows
from millrace.errors import ConservationError
from millrace.paths import LakehousePaths
from races.drivers import torn
from races.soak.feed import Event, gold_rows, refused, silver_rows
from races.soak.lives import BRONZE, GOLD, SILVER, TABLES

_SOME = 5


def problems(paths: LakehousePaths, events: Collection[Event]) -> list[str]:
    """Return what is wrong, one line per problem; nothing if every event is in its place, once.

    If a log lacks a commit, nothing else is checked.
    """
    if torn_logs := list(_of_logs(paths)):
        return torn_logs
    return [*_of_batches(paths), *_of_rows(paths, events), *_of_quarantine(paths, events)]


def batches(paths: LakehousePaths, table: str) -> list[Winner]:
    """Return the batches in what a table's log still has."""
    app_id = Stream(table).app_id
    return [winner for commit in remaining_commits(paths.table(table), None) if (winner := winner_of(commit, app_id))]


def folders(paths: LakehousePaths) -> list[LakePath]:
    """Return the Delta tables that Spark writes."""
    tables = [*map(paths.table, TABLES), paths.quarantine(SILVER)]
    if is_table(silver := paths.table(SILVER)):
        tables.append(paths.tombstones(SILVER, table_id(silver)))
    return [path for path in tables if is_table(path)]


def traces(paths: LakehousePaths) -> Counter[str]:
    """Return how often the logs and the ledger show that what deletes something did so, over all tables."""
    found, ops = Counter[str](), OpsTables(paths)
    for table in TABLES:
        recorded = ops.ledger.batches(table, table_id(paths.table(table)), -1, with_undone=True)
        found["restores"] += sum(batch.intent.sources.restores is not None for batch in recorded)
    for path in folders(paths):
        commits = list(remaining_commits(path, None))
        found["commits cleaned up"] += commits[0].version
        ends = (commit for commit in commits if commit.operation == "VACUUM END")
        found["files deleted by VACUUM"] += sum(int(_metrics(path, commit)["numDeletedFiles"]) for commit in ends)
    return found


def _of_logs(paths: LakehousePaths) -> Iterator[str]:
    for path in folders(paths):
        versions = [int(file.stem) for file in (Path(str(path)) / "_delta_log").glob("*.json") if file.stem.isdigit()]
        first = min(versions)  # what came before was cleaned up
        if missing := torn(version - first for version in versions):
            yield f"{path}: {missing}, counted from version {first}"


def _of_batches(paths: LakehousePaths) -> Iterator[str]:
    """Check that batch numbers have no gap, tokens are unique, and batches are closed with all their rows counted."""
    ops = OpsTables(paths)
    for table in TABLES:
        winners = batches(paths, table)
        numbers, tokens = [winner.batch_seq for winner in winners], Counter(winner.token for winner in winners)
        recorded = ops.ledger.batches(table, table_id(paths.table(table)), -1, with_undone=True)
        if [batch.batch_seq for batch in recorded] != list(range(1, len(recorded) + 1)):
            yield f"{table}: its batches are numbered {numbers}, by the ledger {[each.batch_seq for each in recorded]}"
        if recorded[len(recorded) - len(winners) :] != winners:
            yield f"{table}: the ledger and the log have different batches"
        yield from (f"{table}: token {token} is there {count} times" for token, count in tokens.items() if count > 1)
        for winner in winners:
            rows = ops.ledger.closed_rows(winner)
            if rows is None:
                yield f"{table}: batch {winner.batch_seq} was never closed"
                continue
            try:
                require_conserved(winner, rows)
            except ConservationError as error:
                yield str(error)
        newest = latest_version(paths.table(table))
        if (certified := ops.gates.certified(table)) != newest:
            yield f"{table}: version {newest} is not certified; {certified} is"


def _of_rows(paths: LakehousePaths, events: Collection[Event]) -> Iterator[str]:
    yield from _differences("bronze rows", [event.event for event in events], _column(paths.table(BRONZE), "event"))
    silver = silver_rows(events)
    yield from _differences("silver rows", silver, _rows(paths, SILVER, "order_id", "event", "amount", "day"))
    yield from _differences("gold rows", gold_rows(silver), _rows(paths, GOLD, "day", "orders", "revenue"))


def _of_quarantine(paths: LakehousePaths, events: Collection[Event]) -> Iterator[str]:
    """Check that every refused event was quarantined once, and replayed."""
    path = paths.quarantine(SILVER)
    ids = Counter(_column(path, "row_id") if is_table(path) else ())
    if len(ids) != (expected := len(list(refused(events)))) or ids.total() != expected:
        yield f"quarantine: {ids.total()} rows with {len(ids)} ids, but {expected} events were refused"
    if waiting := quarantined_rows(StoredRows(SILVER, paths), RowFilter(statuses=PENDING)):
        yield f"quarantine: {len(waiting)} rows still wait"


def _differences(what: str, expected: Iterable[Any], actual: Iterable[Any]) -> Iterator[str]:
    wanted, stored = Counter(expected), Counter(actual)
    for name, difference in (("lost", wanted - stored), ("too many", stored - wanted)):
        if difference:
            yield f"{what}: {difference.total()} {name}, such as {list(difference)[:_SOME]}"


def _metrics(path: LakePath, commit: Commit) -> dict[str, str]:
    [info] = [action["commitInfo"] for action in commit_actions(path, commit.version) if "commitInfo" in action]
    metrics: dict[str, str] = info["operationMetrics"]
    return metrics


def _column(path: LakePath, name: str) -> list[Any]:
    values: list[Any] = open_table(path).to_pyarrow_table(columns=[name])[name].to_pylist()
    return values


def _rows(paths: LakehousePaths, table: str, *columns: str) -> list[tuple[Any, ...]]:
    rows = open_table(paths.table(table)).to_pyarrow_table(columns=list(columns))
    return [tuple(row[name] for name in columns) for row in rows.to_pylist()]
