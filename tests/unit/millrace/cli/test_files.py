"""`lakehouse files`: the landing files of a bronze table, from the ledger."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from millrace.contracts.job.report import FileRows, RowCounts
from millrace.control.ledger.events import FileEvent
from millrace.control.ledger.ledger import Ledger
from millrace.control.log.batch import FileFact, Stream, Winner
from millrace.errors import ExitCode
from millrace.paths import LakehousePaths
from millrace.settings import Settings
from tests.support.cli import Lakehouse
from tests.support.ledger.delta_tables import day, intent_of


class TestFiles:
    @pytest.fixture
    def paths(self, settings: Settings) -> LakehousePaths:
        """A bronze table whose first batch loaded one file and found a broken one."""
        paths = settings.paths
        write_deltalake(paths.table("bronze.orders"), pa.table({"amount": [1]}))
        table_id = str(DeltaTable(str(paths.table("bronze.orders"))).metadata().id)
        ledger, intent = Ledger(paths), intent_of(table_id, 1, stream=Stream("bronze.orders"))
        ledger.record_intent(intent, [FileFact(path="orders/a.json", size=1200, mtime_ns=1)])
        ledger.record_committed([Winner(intent, 4)])
        ledger.record_closed(
            Winner(intent, 4), RowCounts(), {"orders/a.json": FileRows(read=34, written=31, quarantined=3)}
        )
        broken = FileFact(path="orders/b.json", size=7, mtime_ns=1, defect="truncated gzip: [it] ends")
        ledger.record_files(FileEvent.FAILED, "bronze.orders", table_id, day(), [broken])
        return paths

    @pytest.mark.usefixtures("paths")
    def test_each_file_has_its_batch_and_its_row_counts_and_files_are_selected(self, lakehouse: Lakehouse) -> None:
        answer = lakehouse("files", "bronze.orders")
        assert answer.exit_code == 0, answer.stderr
        words = next(line for line in answer.stdout.splitlines() if "orders/a.json" in line).split()
        assert (words[1], words[4:]) == ("loaded", ["1.2", "kB", "1", "1", "4", "34", "31", "0", "3"])
        assert "truncated gzip: [it] ends" in answer.stdout
        assert "2 files: 1 loaded, 1 failed" in answer.stdout
        assert "1 file: 1 failed" in lakehouse("files", "bronze.orders", "--status", "failed").stdout
        assert "2 files:" in lakehouse("files", "bronze.orders", "--interval", "2013-01-01").stdout
        assert "0 files" in lakehouse("files", "bronze.orders", "--interval", "2013-01-02").stdout

    def test_a_file_that_the_storage_delivers_now_is_not_unreachable(
        self, lakehouse: Lakehouse, paths: LakehousePaths, settings: Settings
    ) -> None:
        landing, names = Path(settings.landing), ("orders/c.json", "orders/d.json", "orders/a.json")
        (landing / "orders").mkdir(parents=True, exist_ok=True)
        silent = [FileFact(path=name, size=7, mtime_ns=2, defect="Input/output error") for name in names]
        table_id = str(DeltaTable(str(paths.table("bronze.orders"))).metadata().id)
        Ledger(paths).record_files(FileEvent.UNREACHABLE, "bronze.orders", table_id, day(), silent)
        (landing / "orders" / "a.json").write_text("{}\n")
        for name in names[:2]:
            (landing / name).symlink_to("/proc/self/mem")  # whose first page cannot be read: EIO
        assert "4 files: 1 loaded, 1 failed, 2 unreachable" in lakehouse("files", "bronze.orders").stdout

        (landing / "orders/c.json").unlink()
        (landing / "orders/d.json").unlink()
        (landing / "orders/d.json").write_text("{}\n")
        assert "2 files: 1 loaded, 1 failed" in lakehouse("files", "bronze.orders").stdout

    def test_a_table_that_loads_no_files_is_refused(self, lakehouse: Lakehouse) -> None:
        answer = lakehouse("files", "silver.orders")
        assert answer.exit_code == ExitCode.WRONG_USAGE
        assert "silver.orders loads no files\nIt reads bronze.orders" in answer.stderr
