"""Refuse Delta table properties that a spec must not set, such as those that lock out readers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from millrace.contracts.spec.common_settings import VacuumSpec
from millrace.contracts.spec.duration import RETENTION, interval_of
from millrace.contracts.spec.table_features import RESTORABLE, WRITER_FEATURES
from millrace.specs.checks.columns import stored_columns_in, unknown_column
from millrace.specs.document import Document, mapping_at
from millrace.specs.problem import Defect, did_you_mean

READERS = "readers such as Polars, DuckDB or delta-rs could no longer open the table"
"""What happens if the reader version of a table is raised."""

_FEATURE = "delta.feature."
_SWITCHES = {
    "delta.enableincommittimestamps": "inCommitTimestamp",
    "delta.enablematerializepartitioncolumnsfeature": "materializePartitionColumns",
    "delta.enablerowtracking": "rowTracking",
}
"""Property in small letters -> the feature that it brings if it is true."""

_RESTORABLE = frozenset(map(str.lower, RESTORABLE))
_ALLOWED = frozenset(f"{_FEATURE}{name}".lower() for name in WRITER_FEATURES)
_NEW_READER_NEEDED = {
    r"delta\.enableDeletionVectors": r"true",
    r"delta\.columnMapping\.mode": r"(?!none).*",
    r"delta\.checkpointPolicy": r"(?!classic).*",
    r"delta\.enableTypeWidening": r"true",
    r"delta\.universalFormat\.enabledFormats": r".+",
    r"delta\.enableIcebergCompatV\d": r"true",
    r"delta\.minReaderVersion": r"(?!1$).*",
    r"delta\.enableVariantShredding": r"true",
    r"delta\.coordinatedCommits\..*": r".*",
}
"""Property -> the values (both as patterns) that raise the table's reader version above 1."""

_SET_OTHERWISE = {
    "delta.deletedfileretentionduration": "write `maintenance: {vacuum: {retain: 30 days}}`",
    "delta.enablechangedatafeed": "write `maintenance: {change_data_feed: ...}`",
    "delta.autooptimize.autocompact": "table maintenance compacts; write `maintenance: {optimize: auto}`",
    "delta.autooptimize.optimizewrite": "table maintenance compacts; write `maintenance: {optimize: auto}`",
    "delta.feature.clustering": "Delta has it only by CLUSTER BY; write `zorder_by`",
    "delta.appendonly": "leave it out: merges, deletes and repair must be able to change the table",
}
"""Property in small letters -> what to write instead."""

_LOG_RETENTION = "delta.logRetentionDuration"
_COUNTED_COLUMNS, _STATS_COLUMNS = "delta.dataSkippingNumIndexedCols", "delta.dataSkippingStatsColumns"
_NAMED_COLUMNS = {"bronze": "a,b,_interval_start", "silver": "a,b,_batch_seq"}
"""Layer whose tables list the columns with statistics -> an example."""


def check_properties(document: Document) -> Iterator[Defect]:
    """Find properties that raise the reader version, that another setting controls, or that are not Delta's."""
    for name, value in mapping_at(document, "delta").items():
        path = ("delta", name)
        raises_reader_version = any(
            re.fullmatch(names, str(name), re.IGNORECASE) and re.fullmatch(values, str(value), re.IGNORECASE)
            for names, values in _NEW_READER_NEEDED.items()
        )
        if raises_reader_version:
            yield Defect(path, f"this raises the table's reader version: {READERS}", value, "leave it out")
        elif otherwise := _SET_OTHERWISE.get(str(name).lower()):
            yield Defect(path, "this is not set as a property", value, otherwise)
        elif str(name).lower().startswith(_FEATURE) and str(name).lower() not in _ALLOWED:
            fix = did_you_mean(str(name)[len(_FEATURE) :], WRITER_FEATURES)
            yield Defect(path, f"this raises the table's reader version, or may raise it: {READERS}", value, fix)
        elif str(name).lower() == _LOG_RETENTION.lower() and (message := _short_log(document, str(value))):
            yield Defect(path, message, value, f"write interval {_retain_of(document)}, or longer")
        elif document.get("on_refusal") == "restore" and (feature := _feature_of(str(name), value)):
            message = f"on_refusal: restore cannot write a table with the feature {feature}"
            yield Defect(path, message, value, "leave it out, or write on_refusal: keep")
        elif name == _COUNTED_COLUMNS and (example := _NAMED_COLUMNS.get(str(document.get("table")).split(".")[0])):
            fix = f"name the columns: delta.dataSkippingStatsColumns: {example}"
            yield Defect(path, "this table has statistics only of named columns", value, fix)
        elif name == _STATS_COLUMNS and document.get("on_drift") != "evolve":
            stored = stored_columns_in(document) or []
            for column in (part.strip().strip("`") for part in str(value).split(",")):
                if stored and not column.startswith("_") and column.lower() not in stored:
                    yield replace(unknown_column(path, column, stored), value=value)
        elif not str(name).startswith("delta."):
            yield Defect(path, "not a Delta table property: their names start with 'delta.'", value, "leave it out")


def _short_log(document: Document, stated: str) -> str:
    """Return what is wrong with a stated retention of the log; empty if nothing is."""
    retain, retention = _retain_of(document), interval_of(stated)
    if retention is None:
        return "this is no number of weeks, days or hours, such as interval 30 days"
    if retention < RETENTION.parse(retain):
        return f"the log is kept for a shorter time than the files, {retain}: without it nobody can read a version"
    return ""


def _retain_of(document: Document) -> str:
    """Return how long the files of a table are kept; the default if the document states no retention."""
    stated = str(mapping_at(mapping_at(document, "maintenance"), "vacuum").get("retain"))
    return stated if re.fullmatch(RETENTION.pattern, stated) else VacuumSpec().retain


def _feature_of(name: str, value: object) -> str:
    """Return the feature that a property brings, if no restore can write a table with it; else empty."""
    is_switch = str(value).lower() == "true"
    feature = name[len(_FEATURE) :] if name.lower().startswith(_FEATURE) else ""
    feature = feature or (_SWITCHES.get(name.lower(), "") if is_switch else "")
    return feature if feature.lower() not in _RESTORABLE else ""
