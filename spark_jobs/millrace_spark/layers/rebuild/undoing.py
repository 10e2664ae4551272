"""Undo a rebuild: restore the earlier table together with its ledger (ADR 26)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

from millrace.control.gates.verification import wrong_rows_way_out
from millrace.control.ledger.resolution import resolve, table_id
from millrace.control.log.batch import UNDO, Stream, Winner
from millrace.control.log.delta_log import latest_version
from millrace.control.log.stored_tables import identity, is_table, open_table
from millrace.control.repair.erased import last_erasure
from millrace.errors import BadInputError, NotReadyError
from millrace_spark.layers.rebuild.switching import close_replacement, replace_rows
from millrace_spark.runtime.context import JobContext


def tables_to_undo(context: JobContext, tables: Iterable[str]) -> list[str]:
    """Return the tables that were replaced by the last rebuild of the job's table, and that are not undone yet.

    Raises:
        NotReadyError: no rebuild has replaced the job's table.
    """
    rebuild = _last_rebuild(context, context.spec.table).removeprefix(UNDO)
    if not rebuild:
        raise NotReadyError(f"{context.spec.table}: there is no rebuild to undo")
    return [table for table in tables if _last_rebuild(context, table) == rebuild]


def undo_rebuild(context: JobContext) -> Winner:
    """Restore the rows that the last rebuild of the job's table replaced; the caller holds the table's lease.

    The earlier table id makes the earlier records valid again: files, certificates, refused rows, deleted keys. The
    next run reads everything that arrived after the rebuild.

    Raises:
        NotReadyError: no rebuild has replaced the table, or the last rebuild was undone.
        BadInputError: subjects were erased since.
        ConflictError: another writer committed in the meantime; nothing was replaced.
    """
    table, ops = context.spec.table, context.ops
    path, stream = context.paths.table(table), Stream(context.spec.table)
    position = resolve(path, stream, ops.ledger)
    switch = ops.ledger.history.last_rebuild(table, position.table_id)
    if switch is None or switch.intent.sources.rebuild.startswith(UNDO):
        raise NotReadyError(f"{table}: there is no rebuild to undo")
    before = switch.version - 1
    if erased := last_erasure(path, before):
        raise BadInputError(
            f"{table}: version {before} is from before the {erased.name}, and would bring back who was erased",
            f"Correct what the rebuild got wrong, and rebuild it again: lakehouse rebuild {table}",
        )
    earlier = identity(open_table(path, version=before, without_files=True))
    last = ops.ledger.last_recorded(table, earlier, stream.name, before)
    if last is None:
        raise NotReadyError(f"{table}: the ledger does not have the batches of version {before} any more")
    own = {
        "table_id": earlier,
        "batch_seq": position.next_seq,
        "token": hashlib.sha256(f"{UNDO}{switch.token}".encode()).hexdigest()[:32],
        "run_id": context.args.run_id,
        "sources": last.intent.sources.at_same_position(rebuild=f"{UNDO}{switch.intent.sources.rebuild}"),
    }
    intent = last.intent.model_copy(update=own)
    last_word = ops.gates.last_word_on(table, earlier, before)
    ops.ledger.record_intent(intent)
    expected = latest_version(path) + 1
    if last_word:
        own_result: dict[str, Any] = {"version": expected, "batches": (f"{intent.stream}/{intent.batch_seq}",)}
        if not last_word.passed:
            of_version = f"{table} version {expected} refused: it has the rows of version {last_word.version}"
            own_result["refused"] = f"{of_version}, which a verification found wrong\n{wrong_rows_way_out(table)}"
        ops.gates.record(last_word.model_copy(update=own_result))
    ops.ledger.record_committed([Winner(intent, expected)])
    winner = replace_rows(context, intent, position, path, before)
    if winner.version != expected:
        ops.ledger.record_committed([winner])
    close_replacement(context, winner)
    return winner


def _last_rebuild(context: JobContext, table: str) -> str:
    """Return the id of the last rebuild of a table, `UNDO` before it if it was undone; empty without a rebuild."""
    path = context.paths.table(table)
    switch = context.ops.ledger.history.last_rebuild(table, table_id(path)) if is_table(path) else None
    return switch.intent.sources.rebuild if switch else ""
