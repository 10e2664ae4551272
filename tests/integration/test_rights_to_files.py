"""Who can read what a run writes: its tables, quarantine, reports and logs hold values of rows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from embedded.airflow.standalone import clean_environment
from embedded.clone import CLONE
from millrace.paths import LakehousePaths
from tests.support.documents.specs import bronze_document, silver_document
from tests.support.lakehouse import AT_LEAST_0, Lakehouse, order
from tests.support.rights import open_to_others

LAKEHOUSE = Path(sys.executable).parent / "lakehouse"


@pytest.mark.timeout(600)
def test_other_users_of_the_machine_can_read_nothing_that_a_run_with_refused_rows_wrote(tmp_path: Path) -> None:
    shop = Lakehouse(tmp_path)
    shop.specs(bronze_document(), silver_document(expectations=[AT_LEAST_0]))
    shop.deliver(1, "orders.json", [order(1, 5, 8), order(2, -7, 8)])
    environment = {**clean_environment(), **shop.environment(), "LAKEHOUSE_JARS": str(CLONE / ".jars")}
    command = [LAKEHOUSE, "run", "--interval", "2013-01-01"]
    done = subprocess.run(command, env=environment, umask=0, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stdout + done.stderr

    root = Path(environment["LAKEHOUSE_ROOT"])
    assert LakehousePaths(root).quarantine("silver.orders").is_dir()
    assert len(list(root.rglob("*.parquet"))) > 5
    assert len(list(root.rglob("driver.log"))) == 1
    assert open_to_others(root) == []
