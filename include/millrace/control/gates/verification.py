"""The verification of a gold table: its certified version is compared with a computation from the same sources.

If they differ, the version is refused although readers stay on it: the certified version never moves back. From then on
the gate refuses each version that keeps rows of the wrong one, until a run computes the table whole (ADR 39).
"""

from __future__ import annotations

from millrace.contracts.job.report import CheckResult
from millrace.contracts.lake_path import LakePath
from millrace.contracts.spec.table_spec import AnySpec
from millrace.control.gates.gates import Gates
from millrace.control.gates.verdicts import Verdicts
from millrace.control.log.batch import BatchSources
from millrace.control.log.delta_log import remaining_commits

RULE = "rows_equal_their_sources()"
"""The rule of a verification, as it stands among the rules of a spec."""


def wrong_rows_way_out(table: str) -> str:
    """Return what to do about a table that was found wrong."""
    return (
        f"`lakehouse run --table {table} --reprocess --interval ...` computes all of its groups again; in Airflow, "
        "trigger the DAG with Reprocess."
    )


def record_verification(
    spec: AnySpec, verdicts: Verdicts, failure: CheckResult | None, gates: Gates, *, is_whole: bool
) -> str:
    """Record that the certified version differs from its sources, and return the refusal; empty if it does not differ.

    A later verification of all groups that finds no difference withdraws the refusal.

    Args:
        spec: the table's spec.
        verdicts: the summary of the table's gate results, with a certified version.
        failure: the failed check; None if no group differs.
        gates: the results of the lakehouse.
        is_whole: whether all groups were compared.
    """
    certificate, wrong = verdicts.passed[-1], verdicts.found_wrong
    if failure is None:
        if wrong and is_whole:
            gates.record(certificate.model_copy(update={"is_verification": True}))
        return ""
    refused = (
        f"{spec.table} version {certificate.version} refused: {failure.observed} ({failure.reason}); readers stay on "
        f"version {verdicts.certified}, and the next version must be computed from all rows\n"
        f"{wrong_rows_way_out(spec.table)}"
    )
    if wrong is None or wrong.version != certificate.version:
        of_version = {"suite_hash": spec.suite_hash, "passed": False, "override": None, "is_verification": True}
        gates.record(certificate.model_copy(update={**of_version, "checks": (failure,), "refused": refused}))
    return refused


def failed_verification(verdicts: Verdicts | None, table: LakePath, version: int) -> CheckResult | None:
    """Return the failed check of a version that keeps rows of a version that was found wrong; None if it keeps none."""
    wrong = verdicts.found_wrong if verdicts else None
    if wrong is None or version <= wrong.version:
        return None
    is_sound = {wrong.version: False}
    for commit in remaining_commits(table, wrong.version):
        if commit.version <= version:
            sources = BatchSources.model_validate(commit.metadata.get("sources", {}))
            before = commit.version - 1 if sources.restores is None else sources.restores
            is_sound[commit.version] = reads_all(sources) or is_sound.get(before, False)
    if is_sound.get(version):
        return None
    (check,) = wrong.checks
    return check.model_copy(update={"against": f"version {wrong.version}, whose rows this version keeps"})


def verification_note(table: str, verdicts: Verdicts | None) -> tuple[str, ...]:
    """Return a note while readers use a version that a verification found wrong; else nothing."""
    wrong = verdicts.found_wrong if verdicts else None
    if wrong is None or verdicts is None:
        return ()
    (check,) = wrong.checks
    return (
        f"readers use version {verdicts.certified} of {table}, which `lakehouse verify` found wrong: {check.observed}",
    )


def reads_all(sources: BatchSources) -> bool:
    """Return whether a batch computes all groups from all rows of its sources."""
    return sources.reprocess or bool(sources.rebuild) or any(after is None for after, _ in sources.ranges.values())
