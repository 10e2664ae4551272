"""Overriding a gate: a person lets one refused version pass, once, with a reason.

An override is one more result in `ops.gates`: of exactly one version, by the rules as they are. It moves the certified
version forward to it, never back, and says nothing of later versions: the rules judge those (ADR 0017).
"""

from __future__ import annotations

from urllib.parse import unquote

from include.contracts.lake_path import LakePath, lake_path
from include.contracts.spec.table_spec import AnySpec
from include.control.gates.gates import Gates
from include.control.gates.restore import taken_back_by
from include.control.gates.result import GateResult, Override
from include.control.gates.verdicts import Verdicts
from include.control.log.delta_log import latest_version
from include.control.log.stored_tables import open_table
from include.control.storage.stored_files import is_file
from include.errors import OverrideError
from include.paths import LakehousePaths


def override(spec: AnySpec, version: int, said: Override, paths: LakehousePaths) -> GateResult:
    """Let the refused `version` pass; one that this very run has let pass before stays as it is.

    Raises:
        OverrideError: no reason is given, or `refusal_to_override` finds none.
    """
    if not said.reason.strip():
        msg = f"Why may version {version} of {spec.table} be read? An override needs a reason, for those who ask later."
        raise OverrideError(msg)
    gates = Gates(paths)
    known = gates.result(spec.table, version, spec.suite_hash)
    if known and known.override and known.override.run_id == said.run_id:
        return known  # made by the try before this one, which was killed afterwards
    refusal = refusal_to_override(spec, version, paths, gates)
    checks = tuple(check.model_copy(update={"overridden": check.refuses}) for check in refusal.checks)
    result = refusal.model_copy(update={"passed": True, "refused": "", "checks": checks, "override": said})
    if not gates.record_override(result):
        msg = f"{spec.table}: somebody else has just let version {version} pass\n{_look(spec.table)}"
        raise OverrideError(msg)
    return result


def refusal_to_override(spec: AnySpec, version: int, paths: LakehousePaths, gates: Gates) -> GateResult:
    """The refusal of `version` by the rules as they are, which a person may override.

    Raises:
        OverrideError: there is no such version, or it passed, or a later one is certified or refused, or the rules have
            changed since, or its files are gone; the message says what is meant instead.
    """
    table, path = spec.table, paths.table(spec.table)
    _require_version(table, version, path)
    _require_newest(table, version, gates)
    _require_not_taken_back(table, version, path)
    result = gates.result(table, version, spec.suite_hash)
    if result is None:
        msg = (
            f"{table}: the rules have changed since version {version} was refused, or a table that they look at has\n"
            "Clear the gate's task (or run the table again): the version is judged by the rules as they are, and what "
            "they refuse can be overridden."
        )
        raise OverrideError(msg)
    _require_files(table, path, gates.with_the_same_rows(table, version))
    return result


def override_note(table: str, standing: Verdicts | None) -> tuple[str, ...]:
    """A remark while readers use a version of the table that a person let pass, by what all verdicts come to."""
    result = standing.override_in_force if standing else None
    if result is None or result.override is None:
        return ()
    failed = ", ".join(check.rule for check in result.checks if check.overridden)
    return (f"readers use version {result.version} of {table}, {result.override}; it had failed {failed}",)


def _require_version(table: str, version: int, path: LakePath) -> None:
    newest = latest_version(path)
    if newest < 0:
        msg = f"{table} was never built: there is no version that could be overridden."
        raise OverrideError(msg)
    if not 0 <= version <= newest:
        msg = f"{table} has no version {version}: its newest is {newest}\n{_look(table)}"
        raise OverrideError(msg)


def _require_newest(table: str, version: int, gates: Gates) -> None:
    """That the version was refused, and no later one was judged."""
    results = [recorded.result for recorded in gates.results(table)]
    passed = {result.version: result for result in results if result.passed}
    certified = max(passed, default=-1)
    standing = sorted({result.version for result in results if result.version > certified})
    if version in passed:
        said = passed[version].override
        msg = (
            f"{table}: version {version} {f'was {said}' if said else 'passed its gate'}: there is nothing to override."
        )
    elif version < certified:
        msg = f"{table}: readers use version {certified}, a later one than {version}: they are never led back."
    elif version not in standing:
        refused = f"refused are {', '.join(map(str, standing))}" if standing else "none stands refused"
        msg = f"{table}: no gate has refused version {version}; {refused}\n{_look(table)}"
    elif version != standing[-1]:
        msg = (
            f"{table}: version {standing[-1]} came after {version}, and was refused too\nIt holds the batches of both: "
            f"override version {standing[-1]} if both may be read. {_look(table)}"
        )
    else:
        return
    raise OverrideError(msg)


def _require_not_taken_back(table: str, version: int, path: LakePath) -> None:
    restore = taken_back_by(path, version)
    if restore is not None:
        msg = (
            f"{table}: version {version} was taken back by version {restore} (on_refusal: restore), and later batches "
            "build on that one\nTo read such rows all the same, state `on_refusal: keep`, run the table again, which "
            "reads again what was taken back, and override the version that it makes."
        )
        raise OverrideError(msg)


def _require_files(table: str, path: LakePath, version: int) -> None:
    gone = [file for file in open_table(path, version=version).file_uris() if not is_file(lake_path(unquote(file)))]
    if gone:
        msg = (
            f"{table}: {len(gone)} files of version {version} were removed by VACUUM, so that nobody can read it\nRun "
            "the table and its gate again: what they make can be judged."
        )
        raise OverrideError(msg)


def _look(table: str) -> str:
    return f"`lakehouse gate show {table}` lists what was judged."
