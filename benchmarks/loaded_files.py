"""``python -m benchmarks.loaded_files FOLDER NUMBER``: make a bronze table that has loaded many small files, without
Spark, for the planner to read.

Its ledger is that of real runs: each file is planned, then loaded, with its own checksum and row counts.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import yaml
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from millrace.catalog import load_catalog
from millrace.contracts.interval import Interval
from millrace.contracts.job.report import FileRows, RowCounts
from millrace.contracts.spec.table_spec import BronzeSpec
from millrace.control.landing.landing import interval_files
from millrace.control.landing.on_disk import LocalLanding
from millrace.control.ledger.ledger import Ledger
from millrace.control.ledger.resolution import table_id
from millrace.control.log.batch import BatchSources, FileFact, Intent, Stream, Winner, files_digest, new_token
from millrace.control.log.delta_log import latest_version
from millrace.paths import LakehousePaths

TABLE = "bronze.files"
DAY = Interval(start=datetime(2013, 1, 1, tzinfo=UTC), end=datetime(2013, 1, 1, tzinfo=UTC) + timedelta(days=1))
_FOLDERS = 100
_A_BATCH = 1000
_SOURCE = {"landing": "files", "path": ".", "format": "json", "files": "*.json"}
_ROWS = pa.table({"id": pa.array([], pa.string())})


def make(folder: Path, number: int) -> None:
    """Lay out `number` files below `folder`, and a table whose ledger has batches of 1,000 that loaded them."""
    lay_out(folder, number)
    _load(folder, spec_of(folder))


def lay_out(folder: Path, number: int) -> None:
    """Lay out `number` files below `folder`, and the spec of a table that would load them."""
    spec_file = folder / "tables" / "bronze" / "bench" / "files.yaml"
    spec_file.parent.mkdir(parents=True)
    document = {"table": TABLE, "source": _SOURCE, "columns": {"id": {"type": "string"}}}
    spec_file.write_text(yaml.safe_dump(document, sort_keys=False))
    for index in range(number):
        path = folder / "landing" / "files" / f"{index % _FOLDERS:03d}" / f"{index:06d}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text('{"id": "1"}\n')


def spec_of(folder: Path) -> BronzeSpec:
    """Return the spec of the table that loads the files below `folder`."""
    spec = load_catalog(folder / "tables").spec(TABLE)
    assert isinstance(spec, BronzeSpec)
    return spec


def environment(folder: Path) -> dict[str, str]:
    """Return the settings of `lakehouse` for these files."""
    return {
        "LAKEHOUSE_ROOT": str(folder / "lake"),
        "LAKEHOUSE_LANDING": str(folder / "landing"),
        "LAKEHOUSE_TABLES": str(folder / "tables"),
    }


def _load(folder: Path, spec: BronzeSpec) -> None:
    landed = interval_files(spec, LocalLanding(str(folder / "landing")), DAY)
    files = sorted(landed, key=lambda file: file.path)
    ledger = Ledger(LakehousePaths(folder / "lake"))
    create(folder)
    for seq, first in enumerate(range(0, len(files), _A_BATCH), start=1):
        part = files[first : first + _A_BATCH]
        # Any checksum will do that is different for each file.
        facts = [replace(file, checksum=hashlib.sha256(file.path.encode()).hexdigest()) for file in part]
        commit(folder, ledger, spec, seq, facts)


def create(folder: Path) -> None:
    """Make the table, without rows."""
    DeltaTable.create(str(table_of(folder)), _ROWS.schema)


def commit(folder: Path, ledger: Ledger, spec: BronzeSpec, seq: int, files: Sequence[FileFact]) -> None:
    """Record batch `seq` of the files as a run does, without rows, which no plan reads."""
    table = table_of(folder)
    intent = Intent(
        table=TABLE,
        table_id=table_id(table),
        stream=Stream(TABLE).name,
        batch_seq=seq,
        token=new_token(),
        interval_start=DAY.start,
        interval_end=DAY.end,
        run_id="benchmark",
        spec_hash=spec.spec_hash,
        sources=BatchSources(files=len(files), files_digest=files_digest(tuple(files))),
    )
    ledger.record_intent(intent, files)
    properties = CommitProperties(
        custom_metadata={"userMetadata": intent.user_metadata()},
        app_transactions=[Transaction(intent.app_id, seq)],
    )
    write_deltalake(str(table), _ROWS, mode="append", commit_properties=properties)
    winner = Winner(intent, latest_version(table))
    ledger.record_committed([winner])
    rows, each = RowCounts(read=len(files), applied=len(files), inserted=len(files)), FileRows(read=1, written=1)
    ledger.record_closed(winner, rows, {file.path: each for file in files})


def table_of(folder: Path) -> Path:
    """Return the folder of the table."""
    return Path(LakehousePaths(folder / "lake").table(TABLE))


if __name__ == "__main__":
    make(Path(sys.argv[1]), int(sys.argv[2]))
