"""Build the Data Docs of a run from what its gates have recorded; without Spark, in a process of its own.

Prints the name of the folder that holds the pages. Other results make another folder, so that a page never changes
while somebody reads it; what is built already is not built again.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from tempfile import mkdtemp

from deltalake.exceptions import DeltaError
from filelock import FileLock

from include.contracts.job.data_docs_args import DataDocsArgs
from include.control.gates.gates import Gates, RecordedResult
from include.control.ledger.measures import table_rows
from include.errors import NotReadyError
from include.paths import LakehousePaths

_PARTIAL = "partial-"


def build(args: DataDocsArgs) -> str:
    """The name of the folder with the pages of what is recorded now; they are written unless they are there.

    Raises:
        NotReadyError: nothing of it is recorded.
    """
    paths = LakehousePaths(args.root)
    judged = list(_recorded(args, Gates(paths)))
    if not judged:
        msg = f"{args.run_id}: no result of its gates is recorded in {paths.ops('gates')}"
        raise NotReadyError(msg)
    name = _digest(judged)
    args.folder.mkdir(parents=True, exist_ok=True)
    with FileLock(args.folder / "lock"):
        if not (args.folder / name).exists():
            _write(name, judged, args, paths)
    return name


def _recorded(args: DataDocsArgs, gates: Gates) -> Iterable[RecordedResult]:
    for judged in args.versions:
        result = gates.result(judged.table, judged.version, judged.suite_hash)
        yield from [one for one in gates.results(judged.table) if one.result == result][-1:]


def _write(name: str, judged: list[RecordedResult], args: DataDocsArgs, paths: LakehousePaths) -> None:
    # Imported here, since Great Expectations takes seconds to import, and who asks again finds the pages there.
    from spark_jobs.quality.gx.data_docs import write_pages

    partial = Path(mkdtemp(dir=args.folder, prefix=_PARTIAL))
    write_pages(args.run_id, [(one, _rows(one, paths)) for one in judged], partial)
    for earlier in args.folder.glob("*/"):
        if earlier != partial:
            shutil.rmtree(earlier)
    partial.chmod(0o755)
    partial.rename(args.folder / name)


def _rows(recorded: RecordedResult, paths: LakehousePaths) -> int | None:
    try:
        return table_rows(paths.table(recorded.result.table), recorded.result.version)
    except DeltaError:  # the table's log was cleaned up since
        return None


def _digest(judged: Iterable[RecordedResult]) -> str:
    texts = sorted(one.result.model_dump_json() for one in judged)
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]


if __name__ == "__main__":
    sys.stdout.write(build(DataDocsArgs.from_argv(sys.argv[1:])))
