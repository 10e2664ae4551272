"""Build the Data Docs of a run from the recorded results of its gates; without Spark, in its own process.

Print the name of the folder with the pages. Other results make another folder, so that a page never changes while a
person reads it; pages that exist are not built again.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from tempfile import mkdtemp

from deltalake.exceptions import DeltaError
from filelock import FileLock

from millrace.contracts.interval import Interval
from millrace.contracts.job.args import DataDocsArgs
from millrace.control.gates.gates import Gates, RecordedResult, folder_name, results_of
from millrace.control.ledger.states.measures import table_rows
from millrace.control.log.delta_log import read_commit
from millrace.errors import NotReadyError
from millrace.new_files import restrict_new_files, umask_of_process
from millrace.paths import LakehousePaths
from millrace.settings import Settings

_PARTIAL = "partial-"


def build(args: DataDocsArgs) -> str:
    """Write the pages of the recorded results, unless they exist, and return the name of their folder.

    Raises:
        NotReadyError: no result of the run is recorded.
    """
    paths = LakehousePaths(args.root)
    results = results_of(Gates(paths), args.versions)
    if not results:
        raise NotReadyError(f"{args.run_id}: no result of its gates is recorded in {paths.ops('gates')}")
    name = folder_name(results)
    args.folder.mkdir(parents=True, exist_ok=True)
    with FileLock(args.folder / "lock"):
        if not (args.folder / name).exists():
            _write(name, results, args, paths)
    return name


def _write(name: str, results: list[RecordedResult], args: DataDocsArgs, paths: LakehousePaths) -> None:
    # Imported here, because Great Expectations takes seconds to import, and the pages may exist already.
    from millrace_spark.quality.gx.data_docs import CheckedTable, write_pages

    partial = Path(mkdtemp(dir=args.folder, prefix=_PARTIAL))
    tables = [CheckedTable(result, _rows(result, paths), _interval(result, paths)) for result in results]
    write_pages(args.run_id, tables, partial)
    for earlier in args.folder.glob("*/"):
        if earlier != partial:
            shutil.rmtree(earlier)
    partial.chmod(0o777 & ~umask_of_process())
    partial.rename(args.folder / name)


def _rows(recorded: RecordedResult, paths: LakehousePaths) -> int | None:
    try:
        return table_rows(paths.table(recorded.result.table), recorded.result.version)
    except DeltaError:  # The table's log does not have the version any more.
        return None


def _interval(recorded: RecordedResult, paths: LakehousePaths) -> Interval | None:
    commit = read_commit(paths.table(recorded.result.table), recorded.result.version)
    return commit.interval if commit else None


if __name__ == "__main__":
    os.nice(10)  # It computes for ten seconds, beside the web server of which one person has asked for the pages.
    restrict_new_files(Settings())
    sys.stdout.write(build(DataDocsArgs.from_argv(sys.argv[1:])))
