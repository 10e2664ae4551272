"""A bronze table that has loaded many small files, made without Spark: what a plan has to go through."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import yaml
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from include.catalog import load_catalog
from include.contracts.interval import Interval
from include.contracts.table_spec import BronzeSpec
from include.control.batch import BatchSources, FileFact, Intent, Stream, Winner, new_token
from include.control.delta_log import latest_version
from include.control.landing import list_files
from include.control.ledger import Ledger
from include.control.local_landing import LocalLanding
from include.paths import LakehousePaths

TABLE = "bronze.files"
DAY = Interval(start=datetime(2013, 1, 1, tzinfo=UTC), end=datetime(2013, 1, 1, tzinfo=UTC) + timedelta(days=1))
_FOLDERS = 100
_A_BATCH = 1000
_SOURCE = {"landing": "files", "path": ".", "format": "json", "files": "*.json"}
_ROWS = pa.table({"id": pa.array([], pa.string())})


def make(folder: Path, number: int) -> None:
    """Lay out `number` files below `folder`, and a table whose ledger says that batches of 1,000 loaded them all."""
    spec_file = folder / "tables" / "bronze" / "bench" / "files.yaml"
    spec_file.parent.mkdir(parents=True)
    document = {"table": TABLE, "source": _SOURCE, "columns": {"id": {"type": "string"}}}
    spec_file.write_text(yaml.safe_dump(document, sort_keys=False))
    for one in range(number):
        path = folder / "landing" / "files" / f"{one % _FOLDERS:03d}" / f"{one:06d}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text('{"id": "1"}\n')
    _load(folder, load_catalog(folder / "tables").spec(TABLE))  # type: ignore[arg-type]


def environment(folder: Path) -> dict[str, str]:
    """Where `lakehouse plan` finds them."""
    return {
        "LAKEHOUSE_ROOT": str(folder / "lake"),
        "LAKEHOUSE_LANDING": str(folder / "landing"),
        "LAKEHOUSE_TABLES": str(folder / "tables"),
    }


def _load(folder: Path, spec: BronzeSpec) -> None:
    files = list_files(spec, LocalLanding(str(folder / "landing")), DAY)
    table = LakehousePaths(folder / "lake").table(TABLE)
    DeltaTable.create(str(table), _ROWS.schema)
    for seq, first in enumerate(range(0, len(files), _A_BATCH), start=1):
        facts = [replace(file, checksum="ab" * 32) for file in files[first : first + _A_BATCH]]
        _commit(folder, table, spec, seq, facts)


def _commit(folder: Path, table: Path, spec: BronzeSpec, seq: int, files: list[FileFact]) -> None:
    ledger = Ledger(LakehousePaths(folder / "lake"))
    intent = Intent(
        table=TABLE,
        table_id=str(DeltaTable(str(table)).metadata().id),
        stream=Stream(TABLE).name,
        batch_seq=seq,
        token=new_token(),
        interval_start=DAY.start,
        interval_end=DAY.end,
        run_id="benchmark",
        spec_hash=spec.spec_hash,
        sources=BatchSources(files=len(files)),
    )
    ledger.record_intent(intent, files)
    told = CommitProperties(
        custom_metadata={"userMetadata": intent.user_metadata()},
        app_transactions=[Transaction(intent.app_id, seq)],
    )
    write_deltalake(str(table), _ROWS, mode="append", commit_properties=told)
    ledger.record_committed([Winner(intent, latest_version(table))])
