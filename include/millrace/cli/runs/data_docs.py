"""Build the Data Docs of a table's newest gate result, for a person without Airflow."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from millrace.cli.catalog import command_catalog
from millrace.contracts.job.args import CheckedVersion, DataDocsArgs
from millrace.control.gates.gates import Gates
from millrace.errors import MillraceError, NotReadyError
from millrace.settings import Settings

BUILDER = "millrace_spark.jobs.data_docs"


def build_data_docs(table: str, settings: Settings) -> Path:
    """Write the pages of the table's newest result, unless they exist, and return the page of the table.

    Raises:
        SpecError: a spec is wrong, or there is no such table.
        NotReadyError: its gate has checked no version.
        MillraceError: the pages could not be built.
    """
    command_catalog(settings.tables).require_known(table)
    newest = next(Gates(settings.paths).newest_results(table), None)
    if newest is None:
        run = f"`lakehouse run --table {table} --interval DAY`"
        raise NotReadyError(f"{table}: its gate has checked no version", f"{run} runs both.")
    version = CheckedVersion(table=table, version=newest.result.version, suite_hash=newest.result.suite_hash)
    own = settings.absolute()
    args = DataDocsArgs(
        root=own.root,
        folder=own.run_paths.data_docs / "cli" / table,
        run_id=f"version {version.version} of {table}",
        versions=(version,),
    )
    environment = {**os.environ, "GX_ANALYTICS_ENABLED": "False"}
    command = [sys.executable, "-m", BUILDER, *args.to_argv()]
    # Great Expectations takes seconds to import, and writes to stderr as it likes: it has a process of its own.
    builder = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if builder.returncode:
        last_line = builder.stderr.strip().rpartition("\n")[2]
        raise MillraceError(
            f"the Data Docs could not be built: {last_line}", "`lakehouse gate show` lists the results."
        )
    return args.folder / builder.stdout.strip() / f"{table}.html"
