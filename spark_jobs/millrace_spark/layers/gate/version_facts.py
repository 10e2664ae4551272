"""What rules can compare a version with: its facts, earlier versions, its sources and other tables."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from pyspark.sql import DataFrame, SparkSession

from millrace.contracts.lake_path import LakePath
from millrace.contracts.spec.column_types import TYPES
from millrace.contracts.spec.expectation_arguments import COMPARISONS, REFERENCES
from millrace.control.ledger.states.measures import table_rows
from millrace.control.log.batch import BatchSources
from millrace.control.log.delta_log import EPOCH_START, commit_mark, read_commit, remaining_commits
from millrace.control.log.stored_tables import open_table
from millrace.errors import TornLogError
from millrace_spark.delta_io.reads import read_version
from millrace_spark.quality.verdicts.comparable_version import APPLIED, IN_TABLE, ComparableVersion
from millrace_spark.runtime.context import JobContext


def version_facts(context: JobContext, version: int, certified: int | None) -> dict[str, int]:
    """Return the facts of a version with which later versions are compared; `certified` is the last certified version.

    They are recorded with every result, so that a rule that is added later can compare with earlier versions.
    """
    table = context.paths.table(context.spec.table)
    facts = {IN_TABLE: table_rows(table, version)}
    applied = context.ops.ledger.history.applied_rows(
        context.spec.table, _batches_of_the_run(table, version, certified)
    )
    return facts if applied is None else {**facts, APPLIED: applied}


def other_tables(context: JobContext) -> dict[str, int | None]:
    """Return the other tables that rules name -> their certified version."""
    named = {table for rule in context.spec.table_rules for table in rule.other_tables}
    return {table: context.ops.gates.certified(table) for table in sorted(named)}


def required_tables(context: JobContext, others: Mapping[str, int | None]) -> dict[str, tuple[LakePath, int]]:
    """Return the tables in which values must exist, as far as their logs are there -> path and certified version."""
    named = {rule.arguments["other_table"] for rule in context.spec.table_rules if rule.name in REFERENCES}
    certified = {other: (context.paths.table(other), others[other]) for other in sorted(named)}
    return {other: (path, at) for other, (path, at) in certified.items() if at is not None and commit_mark(path, at)}


def comparable_version(
    context: JobContext,
    session: SparkSession,
    version: int,
    facts: dict[str, int],
    others: dict[str, int | None],
) -> ComparableVersion | None:
    """Return the version with everything that it can be compared with; None if no rule compares.

    Raises:
        TornLogError: the log has no entry for the version's commit any more, or no time of a commit of another tool.
    """
    if not any(rule.name in COMPARISONS for rule in context.spec.table_rules):
        return None
    table = context.spec.table
    path = context.paths.table(table)
    commit = read_commit(path, version)
    if commit is None:
        raise TornLogError(
            f"The log of {path} has no commit of version {version} any more, so that the version cannot be compared "
            "with anything\nRun the table's writer again, then its gate."
        )
    # A commit of another tool has no interval and no sources: it is compared at the time of its commit.
    batch = commit.metadata
    if not batch and commit.at == EPOCH_START:
        raise TornLogError(
            f"The commit of version {version} in the log of {path} has no timestamp, so that nobody can say how fresh "
            "its rows were\nHave the tool that writes the table record `commitInfo.timestamp`, or leave out the rules "
            "that compare versions."
        )
    sources = BatchSources.model_validate(batch.get("sources", {}))
    gates = context.ops.gates
    last = next(gates.certificates_below(table, version), None)

    def read(other: str, at: int) -> DataFrame:
        return read_version(session, context.paths.table(other), at)

    def columns_of(other: str, at: int) -> dict[str, str]:
        fields = open_table(context.paths.table(other), version=at, without_files=True).schema().fields
        return {field.name: _type_name(field.type) for field in fields}

    return ComparableVersion(
        table=table,
        version=version,
        interval_end=datetime.fromisoformat(batch["interval_end"]) if batch else commit.at,
        committed_at=commit.at,
        facts=facts,
        past=lambda: (result.facts for result in gates.certificates_below(table, version)),
        certified=last.version if last else None,
        others=others,
        sources={source: upto for source, (_, upto) in sources.ranges.items()},
        read=read,
        rows_of=lambda other, at: table_rows(context.paths.table(other), at),
        columns_of=columns_of,
    )


def _batches_of_the_run(table: LakePath, version: int, certified: int | None) -> dict[str, int]:
    """Return token -> number of the batches, since the certified version, of the run that made `version`."""
    after = None if certified is None else min(certified, version - 1)
    commits = remaining_commits(table, after)
    batches = [commit for commit in commits if commit.metadata and commit.version <= version]
    run_id = batches[-1].metadata["run_id"] if batches else ""
    of_run = [batch.metadata for batch in batches if batch.metadata["run_id"] == run_id]
    return {batch["token"]: batch["batch_seq"] for batch in of_run}


def _type_name(delta_type: object) -> str:
    """Return the type as a spec writes it.

    >>> from deltalake.schema import PrimitiveType
    >>> _type_name(PrimitiveType("integer"))
    'int'
    """
    name = getattr(delta_type, "type", "")
    name = name if isinstance(name, str) else str(delta_type)
    return next((kind for kind, facts in TYPES.items() if facts.delta == name), name)
