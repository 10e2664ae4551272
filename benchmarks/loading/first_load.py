"""``python -m benchmarks.loading.first_load FOLDER``: load the files below FOLDER batch after batch in one process,
as a driver does, without Spark's work; each output line is the cost of planning a batch."""

from __future__ import annotations

import json
import resource
import sys
import time
from dataclasses import asdict
from functools import partial
from pathlib import Path

from benchmarks.cost import Cost
from benchmarks.loaded_files import DAY, TABLE, commit, create, spec_of, table_of
from millrace.control.landing.earlier_runs import EarlierRuns
from millrace.control.landing.ingest import FilePlan, plan_files
from millrace.control.landing.inspection import inspect
from millrace.control.landing.landing import Landing, landing_of
from millrace.control.landing.matching import ReadFile
from millrace.control.ledger.ledger import Ledger
from millrace.control.ledger.resolution import table_id
from millrace.paths import LakehousePaths


def main(folder: Path) -> None:
    """Plan and record batches until nothing is left."""
    create(folder)
    spec, ledger = spec_of(folder), Ledger(LakehousePaths(folder / "lake"))
    landing = landing_of(spec.landing_source.landing, str(folder / "landing"))
    read_file = partial(inspect, landing=landing, spec=spec)
    seq, later = 0, 1
    while later:
        seq, started, cpu = seq + 1, time.monotonic(), time.process_time()
        planned = _plan(folder, ledger, landing, read_file)
        peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        cost = Cost(time.monotonic() - started, time.process_time() - cpu, peak_mb)
        sys.stdout.write(f"{json.dumps(asdict(cost))}\n")
        commit(folder, ledger, spec, seq, planned.new)
        later = planned.later


def _plan(folder: Path, ledger: Ledger, landing: Landing, read_file: ReadFile) -> FilePlan:
    of_table = TABLE, table_id(table_of(folder))
    loaded, earlier = ledger.loaded_files(*of_table), EarlierRuns(*of_table, ledger, [])
    return plan_files(spec_of(folder), landing, DAY, loaded, earlier, read_file)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
