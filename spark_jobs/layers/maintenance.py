"""What the maintenance jobs have in common."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from include.contracts.job_args import Job
from include.contracts.job_report import JobReport
from include.control.batch import new_token
from include.control.conservation import table_rows
from include.control.delta_log import MAINTENANCE_KEY, latest_version
from include.errors import NotReadyError, Outcome
from spark_jobs.runtime.context import JobContext


def require_table(context: JobContext) -> Path:
    """The folder of the job's table.

    Raises:
        NotReadyError: there is no table yet.
    """
    path = context.paths.table(context.spec.table)
    if not DeltaTable.is_deltatable(str(path)):
        msg = f"{context.spec.table}: there is no table at {path} yet; run the task that writes it first"
        raise NotReadyError(msg)
    return path


def maintenance_conf(context: JobContext) -> dict[str, str]:
    """Marks the commits of maintenance with the run and a token; never with a txn."""
    told = {MAINTENANCE_KEY: {"run_id": context.args.run_id, "token": new_token()}}
    return {"spark.databricks.delta.commitInfo.userMetadata": json.dumps(told)}


def maintenance_report(
    context: JobContext,
    job: Job,
    outcome: Outcome,
    message: str,
    details: dict[str, Any],
    notes: tuple[str, ...] = (),
) -> JobReport:
    """The report of a maintenance job."""
    path = context.paths.table(context.spec.table)
    version = latest_version(path)
    return JobReport(
        job=job.value,
        table=context.spec.table,
        outcome=outcome,
        message=f"{context.spec.table}: {message}",
        interval=context.args.interval,
        run_id=context.args.run_id,
        version=version,
        certified_version=context.gates.certified(context.spec.table),
        table_rows=table_rows(path, version),
        details=details,
        notes=notes,
    )
