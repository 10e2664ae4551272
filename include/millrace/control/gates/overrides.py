"""Overriding a gate: a person lets one refused version pass, once, with a reason.

An override is one more result in `ops.gates`, for exactly one version and the current rules. It moves the certified
version forward, never back. It does not cover later versions: the rules check those (ADR 17).
"""

from __future__ import annotations

from urllib.parse import unquote

from millrace.contracts.counted import counted
from millrace.contracts.lake_path import lake_path
from millrace.contracts.spec.table_spec import AnySpec
from millrace.control.gates.gates import Gates
from millrace.control.gates.result import GateResult, Override
from millrace.control.gates.verdicts import Verdicts, equal_versions, restoring_version
from millrace.control.log.delta_log import latest_version
from millrace.control.log.stored_tables import open_table
from millrace.control.storage.stored_files import is_file
from millrace.errors import OverrideError
from millrace.paths import LakehousePaths


def override(spec: AnySpec, version: int, decision: Override, paths: LakehousePaths) -> GateResult:
    """Let the refused `version` pass; if the same run has done it before, return its result.

    Raises:
        OverrideError: the decision has no reason, or `refusal_to_override` finds no refusal.
    """
    if recorded := overridden_by(decision.run_id, spec, version, paths):
        return recorded
    gates = Gates(paths)
    return let_pass(refusal_to_override(spec, version, paths, gates), decision, gates)


def let_pass(refusal: GateResult, decision: Override, gates: Gates) -> GateResult:
    """Record that a person lets the version of a refusal pass, and return the result.

    Raises:
        OverrideError: the decision has no reason, or another person was first.
    """
    table, version = refusal.table, refusal.version
    if not decision.reason.strip():
        raise OverrideError(
            f"{table}: the override of version {version} has no reason",
            "An override needs a reason, for those who ask later why the version may be read.",
        )
    checks = tuple(check.model_copy(update={"overridden": check.refuses}) for check in refusal.checks)
    result = refusal.model_copy(update={"passed": True, "refused": "", "checks": checks, "override": decision})
    if not gates.record_override(result):
        raise OverrideError(f"{table}: somebody else has just let version {version} pass", _hint(table))
    return result


def overridden_by(run_id: str, spec: AnySpec, version: int, paths: LakehousePaths) -> GateResult | None:
    """Return the result by which an earlier try of a run, which was killed afterwards, has let a version pass."""
    recorded = Gates(paths).result(spec.table, version, spec.suite_hash)
    return recorded if recorded and recorded.override and recorded.override.run_id == run_id else None


def refusal_to_override(
    spec: AnySpec, version: int, paths: LakehousePaths, gates: Gates, *, was_asked: bool = False
) -> GateResult:
    """Return the refusal of `version` by the current rules, which a person may override.

    Args:
        spec: the spec of the table.
        version: the version.
        paths: the folders of the lakehouse.
        gates: its gates.
        was_asked: whether a person was asked about it when it was the newest; then a later refusal does not matter.

    Raises:
        OverrideError: there is no such version, or it passed, or a later one is certified or refused, or the rules have
            changed since, or its files are gone. The message names the way out.
    """
    table, path = spec.table, paths.table(spec.table)
    newest = latest_version(path)
    if newest < 0:
        raise OverrideError(f"{table} was never built: there is no version to override.")
    if not 0 <= version <= newest:
        raise OverrideError(f"{table} has no version {version}: its newest is {newest}", _hint(table))
    current = gates.result(table, version, spec.suite_hash)
    is_refused_now = current is not None and not current.passed
    _require_refusal(table, version, gates, is_newest=not was_asked, is_refused_now=is_refused_now)
    restore = restoring_version(path, version)
    if restore is not None:
        raise OverrideError(
            f"{table}: version {restore} has undone version {version} (on_refusal: restore), and later batches build "
            "on it",
            "To read such rows all the same, set `on_refusal: keep` and run the table again: the run reads the undone "
            "batches again. Then override the version that it writes.",
        )
    if current is None:
        raise OverrideError(
            f"{table}: the rules, or a table that they read, have changed since version {version} was refused",
            "Clear the gate's task (or run the table again): it checks the version by the current rules, and what they "
            "refuse can be overridden.",
        )
    last = max(equal_versions(path, (version,), version).versions)
    files = [lake_path(unquote(file)) for file in open_table(path, version=last).file_uris()]
    missing = [file for file in files if not is_file(file)]
    if missing:
        files_were = counted(len(missing), f"file of version {last} was", f"files of version {last} were")
        raise OverrideError(
            f"{table}: {files_were} removed by VACUUM, so that nobody can read it",
            "Run the table and its gate again: the gate can check the version that this run writes.",
        )
    return current


def override_note(table: str, verdicts: Verdicts | None) -> tuple[str, ...]:
    """Return a note while readers use a version of the table that a person let pass; else nothing."""
    result = verdicts.override_in_force if verdicts else None
    if result is None or result.override is None:
        return ()
    failed = ", ".join(check.rule for check in result.checks if check.overridden)
    return (f"readers use version {result.version} of {table}, {result.override}; it had failed {failed}",)


def _require_refusal(table: str, version: int, gates: Gates, *, is_newest: bool, is_refused_now: bool) -> None:
    """Raise if the version was not refused, a later one is certified or, with `is_newest`, a later one was refused.

    With `is_refused_now` the rules have changed since it passed, and refuse it now.
    """
    results = [recorded.result for recorded in gates.results(table)]
    passed = {result.version: result for result in results if result.passed}
    certified = max(passed, default=-1)
    refused = sorted({result.version for result in results if result.version > certified})
    if version == certified and is_refused_now and not refused:
        return
    if version in passed:
        decision = passed[version].override
        how = f"was {decision}" if decision else "passed its gate"
        raise OverrideError(f"{table}: version {version} {how}: there is nothing to override.")
    if version < certified:
        raise OverrideError(f"{table}: readers use version {certified}, and never go back to {version}.")
    if version not in refused:
        others = f"refused are {', '.join(map(str, refused))}" if refused else "no version is refused"
        raise OverrideError(f"{table}: no gate has refused version {version}; {others}", _hint(table))
    if is_newest and version != refused[-1]:
        raise OverrideError(
            f"{table}: version {refused[-1]} came after {version}, and was refused too",
            f"It holds the batches of both: override version {refused[-1]} if both may be read. {_hint(table)}",
        )


def _hint(table: str) -> str:
    return f"`lakehouse gate show {table}` lists the results."
