"""`lakehouse suggest`: rules that fit the certified version of a table, as YAML for its spec."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import pyarrow as pa
from deltalake.exceptions import DeltaError

from millrace.catalog import load_catalog
from millrace.contracts.spec.table_spec import AnySpec, GoldSpec, SilverSpec
from millrace.control.gates.gates import Gates
from millrace.control.gates.result import GateResult
from millrace.control.log.stored_tables import logged_files, open_table, tables_in
from millrace.errors import SpecError, TornLogError, UnknownNameError
from millrace.inference.first_spec import flow
from millrace.inference.suggested_rules import Past, Suggestion, suggest_rules
from millrace.overview.lineage.restricted import Restrictions
from millrace.reading.certified import CertifiedTable, certified
from millrace.reading.duckdb_in_utc import spilling_duckdb
from millrace.settings import Settings
from millrace.specs.problem import did_you_mean

_MOST_VERSIONS = 12
_WITHOUT_VALUES = ("expect_column_values_to_not_be_null", "expect_column_values_to_be_unique")
"""The suggested rules on a column that tell nothing of its values."""


def suggestions(table: str, settings: Settings) -> tuple[CertifiedTable, list[Suggestion]]:
    """Return the certified version of a table, and the rules that are suggested for it and that its spec lacks.

    Pages show the rules of a spec: none of a restricted column has its values.

    Raises:
        UnknownNameError: there is no such table.
        NotReadyError: no version of it is certified.
    """
    specs = _specs(settings)
    if (known := {*specs, *tables_in(settings.root)}) and table not in known:
        raise UnknownNameError(f"there is no table {table!r}", did_you_mean(table, sorted(known)))
    version = certified(table, settings.root)
    results = list(islice(Gates(settings.paths).certificates_below(table, version.version + 1), 3 * _MOST_VERSIONS))
    past = Past([result.facts for result in results], list(_nulls_of(version, results[1:_MOST_VERSIONS])))
    fields = [field for field in version.dataset().schema if not pa.types.is_nested(field.type)]
    columns = {field.name: field.type for field in fields if not field.name.startswith("_")}
    with spilling_duckdb() as connection:
        version.duckdb(connection).create_view("version")
        found = suggest_rules(connection, "version", columns, past)
    if spec := specs.get(table):
        restricted = Restrictions(specs).of(table)
        found = [
            rule for rule in found if rule.name in _WITHOUT_VALUES or rule.arguments.get("column") not in restricted
        ]
        found = [rule for rule in found if not _is_stated(rule, spec)]
    return version, found


def suggested_yaml(version: CertifiedTable, found: Sequence[Suggestion]) -> str:
    """Return the rules as YAML, each with its evidence as a comment."""
    lines = [
        f"# suggested from {version.table} version {version.version}: review each, and say by `reason` why it holds"
    ]
    lines.append("expectations:" if found else "expectations: []")
    for rule in found:
        lines += [f"  # {rule.evidence}", f"  - {rule.name}: {flow(rule.arguments)}", "    action: warn"]
    return "\n".join(lines) + "\n"


def as_items(found: Sequence[Suggestion]) -> list[dict[str, Any]]:
    """Return the rules for `--json`: each in the form of a spec, with its evidence."""
    return [{"rule": {rule.name: rule.arguments, "action": "warn"}, "evidence": rule.evidence} for rule in found]


def _nulls_of(version: CertifiedTable, results: Sequence[GateResult]) -> Iterator[dict[str, int]]:
    """Yield the NULLs by column of earlier versions, by the statistics in Delta's log, as far back as it reaches."""
    for result in results:
        try:
            actions = logged_files(open_table(version.path, result.version))
        except (DeltaError, TornLogError):
            return
        counts = [name for name in actions.column_names if name.startswith("null_count.")]
        # A file without statistics has no count.
        known = [name for name in counts if not actions[name].null_count]
        yield {name.removeprefix("null_count."): sum(actions[name].to_pylist()) for name in known}


def _specs(settings: Settings) -> Mapping[str, AnySpec]:
    """Return the sound specs; none if there are none."""
    try:
        return load_catalog(settings.tables).specs
    except SpecError:
        return {}


def _is_stated(rule: Suggestion, spec: AnySpec) -> bool:
    """Whether the spec has a rule of this kind for the same column, or guarantees it in another way."""
    column = rule.arguments.get("column", "")
    if any(stated.name == rule.name and stated.checked_columns == [column] for stated in spec.expectations if column):
        return True
    if not column:
        return any(stated.name == rule.name for stated in spec.expectations)
    if rule.name == "expect_column_values_to_not_be_null":
        return not isinstance(spec, GoldSpec) and column in spec.columns and not spec.columns[column].nullable
    is_key = isinstance(spec, SilverSpec) and spec.stored_as_scd_type == 1 and tuple(spec.keys) == (column,)
    return rule.name == "expect_column_values_to_be_unique" and is_key
