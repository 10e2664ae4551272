"""Loads of landing files whose content a table does not have any more, also where a rebuild has renumbered its rows."""

from __future__ import annotations

from collections.abc import Collection

from millrace.control.ledger.ledger import Ledger


def replaced_loads(
    ledger: Ledger, table: str, table_id: str, loads: Collection[tuple[int, str]], upto: int
) -> set[tuple[int, str]]:
    """Return those loads whose rows were replaced, or whose files had another content when the table was rebuilt.

    Args:
        ledger: the ledger.
        table: a bronze table.
        table_id: its present id, which is another one since a rebuild.
        loads: the number of a batch, and the path of a file whose rows it has stamped.
        upto: the version of the table that is read.
    """
    contents = ledger.loaded_files(table, table_id).facts({path for _, path in loads})
    present = {(file.path, file.checksum) for file in contents}
    since_rebuild = {*ledger.replaced_files(table, table_id, -1, upto)}
    gone = set[tuple[int, str]]()
    for number, batch in ledger.history.numbered(table, {number for number, _ in loads}).items():
        paths = {path for at, path in loads if at == number}
        replaced = {*ledger.replaced_files(table, batch.intent.table_id, batch.version, upto)}
        if batch.intent.table_id != table_id:
            replaced |= since_rebuild
        # A replay of bronze, a rebuild and an undo list no files: they stamp rows of the last content.
        loaded = ledger.loaded_files(table, batch.intent.table_id).last_of(paths)
        loaded |= {file.path: file for file in ledger.files_of(batch.intent)}
        others = {path for path in paths & loaded.keys() if (path, loaded[path].checksum) not in present}
        gone |= {(number, path) for path in others | (paths & replaced)}
    return gone
