"""Erase subjects from one table: its rows by a batch of it, then those of its quarantine and of its deleted keys.

Who dies in between goes on: a batch has the token of its erasure, and each other commit has a txn of it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import DataType

from millrace.contracts.lake_path import LakePath
from millrace.contracts.spec.table_spec import BronzeSpec
from millrace.control.ledger.erasures import ErasedTable
from millrace.control.log.batch import ERASURE, Stream, Winner
from millrace.control.log.delta_log import latest_version
from millrace.control.log.stored_tables import is_table, open_table
from millrace.control.maintenance.log_files import write_checkpoint
from millrace.control.maintenance.old_files import LOG_RETENTION_PROPERTY, stated_retention
from millrace.control.maintenance.retention import retention_of
from millrace.control.planning.stream_positions import stream_position
from millrace.control.quarantine.waiting import recount_waiting
from millrace.control.storage.stored_files import folders_in
from millrace.erase.reach import Reach
from millrace.erase.search import FileSearch, Keys, keys_of_type
from millrace.erase.subjects import Subjects
from millrace.reading.datasets import dataset_of
from millrace_spark.delta_io.conflict_policy import WriteKind
from millrace_spark.delta_io.contest import Contest, retry_until_committed
from millrace_spark.delta_io.merges import delete_matches
from millrace_spark.delta_io.tables import committed_txn, spark_path
from millrace_spark.layers.repair.deletion import Deletion
from millrace_spark.protocol.batches import commit_conf
from millrace_spark.runtime.context import JobContext

Values = Mapping[str, tuple[str, Sequence[object]]]
"""Expression -> (the type of its values, the values), as `delete_matches` takes them."""


@dataclass(frozen=True)
class SubjectsOfTable:
    """Subjects to erase from the job's table.

    Attributes:
        context: the job's.
        subjects: the subjects.
        reach: what the table has of their keys.
        erasure: the id of the erasure.
        request: the name of its request.
    """

    context: JobContext
    subjects: Subjects
    reach: Reach
    erasure: str
    request: str

    def erase(self) -> Winner:
        """Delete the rows, or go on where that was interrupted, and return the batch, which no gate has judged yet.

        Raises:
            LeaseLostError: a run that writes the table did not end in time.
            ConflictError: other writers won too often.
        """
        table, ops = self.context.spec.table, self.context.ops
        with self.context.leases.table(table):
            position = stream_position(self.context.spec, ops.paths, ops.ledger)
            stream = Stream(table, position.last.intent.stream) if position and position.last else Stream(table)
            token = hashlib.sha256(f"{self.erasure}/{table}".encode()).hexdigest()[:32]
            named = f"{ERASURE}{self.request}"
            winner = Deletion(self.context, stream, named, self._delete_rows, token).run()
            for path, values in self._beside():
                self._delete_beside(path, values, winner)
            for path in (ops.paths.table(table), *(path for path, _ in self._beside())):
                write_checkpoint(path)  # without it the log cannot be cleaned of what it says of these rows
        return winner

    def record(self, winner: Winner) -> ErasedTable:
        """Record that the newest version has nothing of the subjects any more, and when the earlier ones may go."""
        table, ops = self.context.spec.table, self.context.ops
        path, rows = ops.paths.table(table), ops.ledger.closed_rows(winner)
        erased = ErasedTable(
            erasure=self.erasure,
            request=self.request,
            table=table,
            table_id=winner.intent.table_id,
            version=winner.version,
            rows=rows.deleted if rows else 0,
            due=self.context.now() + max(retention_of(self.context.spec), *_stated_retentions(path)),
        )
        ops.erasures.record_table(erased, self.context.args.run_id)
        return erased

    def _delete_rows(self, session: SparkSession, path: LakePath) -> None:
        delete_matches(session, path, self._of_keys(session, path))

    def _of_keys(self, session: SparkSession, path: LakePath) -> dict[str, tuple[str, Sequence[object]]]:
        """Return the columns of keys that a table has, and the fields of what is kept in `_rescued`, with the keys."""
        schema = session.read.format("delta").load(spark_path(path)).schema
        stored = {field.name: field.dataType for field in schema.fields}
        values = dict[str, tuple[str, Sequence[object]]]()
        for name in set(self.reach.keys).intersection(stored):
            kind = stored[name].simpleString()
            is_written_number = name in self.reach.numbers and kind == "string"
            keys = self._texts_of_keys(path, name) if is_written_number else self._keys_of(stored[name])
            values[f"t.`{name}`"] = (kind, keys)
        if isinstance(self.context.spec, BronzeSpec) and path == self.context.paths.table(self.context.spec.table):
            # A field that one column reads has its path as its name; a part of a field that is kept whole is within it.
            for parts in (parts for field in self.reach.fields for parts in ([field], field.split("."))):
                place = "".join(f"[\\'{part}\\']" for part in parts)
                values[f"get_json_object(t.`_rescued`, '${place}')"] = ("string", self.subjects.values)
        return values

    def _keys_of(self, kind: DataType) -> list[object]:
        return keys_of_type(self.subjects, to_arrow_type(kind))

    def _texts_of_keys(self, path: LakePath, column: str) -> list[str]:
        """Return the texts in a column of numbers as text that are keys, such as 17.00 for 17."""
        search = FileSearch(self.subjects, Keys.of_table(self.reach))
        batches = dataset_of(open_table(path), path).to_batches(columns=[column])
        return sorted({text for batch in batches for text in search.texts_of_keys(batch.column(0), column.lower())})

    def _beside(self) -> Iterator[tuple[LakePath, Callable[[SparkSession], Values]]]:
        """Yield the quarantine and the deleted keys, also those of earlier tables, with what is deleted from each."""
        table, paths = self.context.spec.table, self.context.paths
        layer, name = table.split(".")
        if is_table(quarantine := paths.quarantine(table)):
            yield quarantine, lambda _: {"t.`row_id`": ("string", self._refused(quarantine))}
        folder = paths.root / f"{layer}_tombstones" / name
        for tombstones in (folder / each for each in folders_in(folder)):
            if is_table(tombstones):
                yield tombstones, partial(self._of_keys, path=tombstones)

    def _refused(self, quarantine: LakePath) -> list[str]:
        """Return the ids of the quarantined rows whose key is that of a subject; a row that mentions one stays."""
        search, found = FileSearch(self.subjects, Keys.of_quarantine(self.reach)), set[str]()
        for batch in dataset_of(open_table(quarantine), quarantine).to_batches(
            columns=["row_id", "record", "received"]
        ):
            of_row, _ = search.in_rows(batch)
            found |= set(batch.column("row_id").filter(pa.array(of_row)).to_pylist())
        return sorted(found)

    def _delete_beside(self, path: LakePath, values: Callable[[SparkSession], Values], winner: Winner) -> None:
        app_id, intent = f"millrace/erasures/{self.erasure}", winner.intent
        if committed_txn(path, app_id) >= 1:
            return
        own = {"spark.databricks.delta.write.txnAppId": app_id, "spark.databricks.delta.write.txnVersion": "1"}
        with (
            recount_waiting(intent.table, intent.table_id, self.context.paths),
            self.context.open_session({**commit_conf(intent), **own}) as session,
        ):
            known = latest_version(path)
            write = partial(delete_matches, session, path, values(session))
            retry_until_committed(Contest(intent.table), WriteKind.SECONDARY, path, write, known)


def _stated_retentions(path: LakePath) -> tuple[timedelta, timedelta]:
    """Return how long a table keeps files, and how long commits of its log."""
    properties = open_table(path, without_files=True).metadata().configuration
    return (
        stated_retention(properties, str(path)),
        stated_retention(properties, str(path), LOG_RETENTION_PROPERTY),
    )
