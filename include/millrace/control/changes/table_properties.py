"""The Delta table properties of a spec, and how those of a table differ from them."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum

from deltalake import DeltaTable

from millrace.contracts.lake_path import LakePath
from millrace.contracts.spec.column_types import BYTES, TRUTH, types_of
from millrace.contracts.spec.duration import RETENTION
from millrace.contracts.spec.nested_type import NESTED, nested_type
from millrace.contracts.spec.table_spec import AnySpec, BronzeSpec, SilverSpec
from millrace.control.changes.table_columns import columns_of
from millrace.control.ledger.spec_history import SpecHistory
from millrace.control.log.delta_log import Commit, commit_versions, read_commit
from millrace.control.log.stored_tables import identity

LOG_RETENTION = timedelta(days=30)
"""How long the log of a table is kept at least."""

LOG_RETENTION_KEY = "delta.logRetentionDuration"

READER_SAFE = {
    "delta.enableDeletionVectors": "false",
    "delta.columnMapping.mode": "none",
    "delta.checkpointPolicy": "classic",
    "delta.checkpointInterval": "10",
    LOG_RETENTION_KEY: f"interval {LOG_RETENTION.days} days",
    "delta.deletedFileRetentionDuration": "interval 30 days",
}
"""The profile that DuckDB, Polars, Trino and delta-rs all read: protocol reader version 1 (ADR 0004)."""

_OWNER, _CONTACT, _CLASSIFICATION = (f"millrace.{key}" for key in ("owner", "contact", "classification"))
"""The properties by which other systems see whom to ask, and who may see the data."""

COMMENT = "comment"
"""The name under which Spark sets the description of a table as if it were a property."""

_FEATURE = "delta.feature."
_OLD_FEATURES = {
    **dict.fromkeys(("appendonly", "invariants"), 2),
    "checkconstraints": 3,
    **dict.fromkeys(("changedatafeed", "generatedcolumns"), 4),
    "identitycolumns": 6,
}
"""Feature in small letters -> the first writer version that has it without naming it."""
_OF_NEW_TABLES = ("delta.minReaderVersion", "delta.minWriterVersion")
"""Delta makes other versions of them, those that the table's features need, and does not keep them."""

MAX_COLUMNS = 32
"""The most columns with statistics: Delta's own default."""

_WITHOUT_STATISTICS = (*types_of(BYTES, TRUTH), *NESTED)
"""Types without a least and greatest value in Delta, which refuses a column of such a type here."""

LOG_CLEANING = "delta.enableExpiredLogCleanup"
"""Whether the log of a table is cleaned. Whoever has set it to false needs the whole log, so it is not set back."""

STATISTICS = "delta.dataSkippingStatsColumns"

LOG_KEPT_FOR = "millrace.log_kept_for"
"""For whom Millrace itself has set `LOG_CLEANING` to false."""

HOLD_NAMES = "millrace.holds"
"""The names of the holds on a table, as JSON: each has to be released, also one that `ops.holds` has lost."""

KEPT_BY_OTHERS = "millrace.log_kept_by_others"
"""Whether somebody else had set `LOG_CLEANING` to false before a hold: then it stays so after the hold."""

_SETTING = ("SET TBLPROPERTIES", "UNSET TBLPROPERTIES")


class KeptFor(StrEnum):
    """For whom Millrace keeps the whole log of a table, as the table itself says."""

    HOLDS = "holds"
    READERS = "readers"
    NOBODY = "nobody"


@dataclass(frozen=True)
class PropertyChange:
    """A property of a table that is not as its spec says.

    Attributes:
        key: its name; `comment` for the description of the table.
        stored: its value in the table; None if the table does not have it.
        declared: its value by the spec; None if the spec has named it before, and does not any more.
        setter: the commit that has set or removed it, such as `version 7, delta-rs:py-1.6.6`; empty if it is unknown.
    """

    key: str
    stored: str | None
    declared: str | None
    setter: str = ""

    @property
    def done(self) -> str:
        """What was done, in words."""
        return f"removed {self.key}" if self.declared is None else f"set {self.key} = {self.declared}"

    def __str__(self) -> str:
        return f"{self.key}: {self.text}"

    @property
    def text(self) -> str:
        """The two values in words."""
        stored = "not set" if self.stored is None else self.stored or "empty"
        declared = "not named any more" if self.declared is None else self.declared or "empty"
        return f"{stored} in the table{f' ({self.setter})' if self.setter else ''}, {declared} in the spec"


def table_properties(spec: AnySpec) -> dict[str, str]:
    """Return all properties that a spec gives its table."""
    classification = spec.classification if spec.classification != "internal" else ""
    labels = {_OWNER: spec.owner, _CONTACT: spec.contact, _CLASSIFICATION: classification}
    return {
        **READER_SAFE,
        **retention_properties(spec),
        "delta.enableChangeDataFeed": str(spec.maintenance.change_data_feed).lower(),
        **_statistics(spec),
        **{key: text for key, text in labels.items() if text},
        **spec.delta,
    }


def cleans_log(properties: Mapping[str, str]) -> bool:
    """Return whether the log of a table with these properties is cleaned."""
    return properties.get(LOG_CLEANING, "true") != "false"


def log_kept_for(properties: Mapping[str, str]) -> KeptFor:
    """Return for whom Millrace keeps the log of a table with these properties; nobody if it has set none."""
    return {each.value: each for each in KeptFor}.get(properties.get(LOG_KEPT_FOR, ""), KeptFor.NOBODY)


def retention_properties(spec: AnySpec) -> dict[str, str]:
    """Return the properties by which Delta keeps old files, and the log at least as long, as Delta requires."""
    retain = f"interval {spec.maintenance.vacuum.retain}"
    longer = RETENTION.parse(spec.maintenance.vacuum.retain) > LOG_RETENTION
    return {"delta.deletedFileRetentionDuration": retain, **({LOG_RETENTION_KEY: retain} if longer else {})}


def property_changes(
    declared: Mapping[str, str], delta: DeltaTable, comment: str, earlier: Collection[str] = ()
) -> list[PropertyChange]:
    """Return the properties of an open table that are not as its spec says, sorted by name.

    Other systems' properties that no spec has ever named stay as they are; so does a log that is to be kept.

    Args:
        declared: the properties by the spec.
        delta: the table.
        comment: the description by the spec.
        earlier: the properties that earlier specs have named.
    """
    metadata = delta.metadata()
    stored = {key.lower(): value for key, value in metadata.configuration.items()}
    if stored.get(LOG_CLEANING.lower()) == "false":
        declared = {**declared, LOG_CLEANING: "false"}
    changes = [
        PropertyChange(key, stored.get(key.lower()), value)
        for key, value in declared.items()
        if stored.get(key.lower()) != value and key not in _OF_NEW_TABLES and not _has_feature(delta, key)
    ]
    if comment != (metadata.description or ""):
        changes.append(PropertyChange(COMMENT, metadata.description or "", comment))
    named = set(map(str.lower, declared))
    gone = {key for key in (_OWNER, _CONTACT, _CLASSIFICATION, *earlier) if key.lower() in stored.keys() - named}
    changes += [PropertyChange(key, stored[key.lower()], None) for key in gone]
    return sorted(changes, key=lambda change: change.key)


def changes_of_properties(spec: AnySpec, delta: DeltaTable, specs: SpecHistory) -> list[PropertyChange]:
    """Return the properties of an open table that are not as its spec says, sorted by name.

    Statistics of a column that the table does not have yet come with the column, by the next run: Delta refuses them.
    """
    declared, columns = table_properties(spec), columns_of(delta).keys()
    names = (name.strip(" `").partition(".")[0].strip("`") for name in declared.get(STATISTICS, "").split(","))
    if not columns >= {name for name in names if name}:
        del declared[STATISTICS]
    # The history of specs is only read if it can matter.
    undeclared = delta.metadata().configuration.keys() - declared.keys()
    has_foreign = any(key.startswith("delta.") for key in undeclared)
    documents = specs.of(spec.table, identity(delta)).values() if has_foreign else ()
    earlier = {key for document in documents for key in document.get("delta", ())}
    return property_changes(declared, delta, spec.description, earlier)


def differing(changes: Sequence[PropertyChange]) -> str:
    """Return in one line which properties differ; empty if none does.

    >>> differing([PropertyChange("delta.enableChangeDataFeed", "false", "true")])
    'not as the spec says: delta.enableChangeDataFeed'
    """
    return f"not as the spec says: {', '.join(change.key for change in changes)}" if changes else ""


def with_setters(changes: Sequence[PropertyChange], path: LakePath) -> list[PropertyChange]:
    """Return the changes with the commits that have last set the properties, as far as the log still has them."""
    unknown, setters = {change.key for change in changes}, dict[str, str]()
    for version in reversed(commit_versions(path)):
        if not unknown:
            break
        if (commit := read_commit(path, version)) and commit.operation in _SETTING:
            known = unknown & _named_by(commit)
            setters |= dict.fromkeys(known, f"version {version}, {commit.run_id or commit.engine}")
            unknown -= known
    return [replace(change, setter=setters.get(change.key, "")) for change in changes]


def _named_by(commit: Commit) -> set[str]:
    """Return the properties that a commit has set or removed, by its parameters; other systems may write any text."""
    with suppress(ValueError, TypeError):
        return set(json.loads(commit.parameters["properties"]))
    return set()


def _has_feature(delta: DeltaTable, key: str) -> bool:
    """Whether a property demands a feature that the table has: Delta keeps it in the protocol, not as a property."""
    name, protocol = key.lower().removeprefix(_FEATURE), delta.protocol()
    if protocol.writer_features is None:
        has = _OLD_FEATURES.get(name, protocol.min_writer_version + 1) <= protocol.min_writer_version
    else:
        has = name in map(str.lower, protocol.writer_features)
    return key.lower().startswith(_FEATURE) and has


def _statistics(spec: AnySpec) -> dict[str, str]:
    """Return the property that names the columns with statistics; Delta's own choice is good enough for gold."""
    if isinstance(spec, BronzeSpec):
        # Statistics of all columns would take a fifth of a large load, and no query filters bronze by received values.
        # Those of `_rescued` are needed: they count the rescued rows.
        declared, origin = {name: column.type for name, column in spec.columns.items()}, spec.source.origin_columns
        parts, own = first_parts(declared), {"_rescued": "string", "_interval_start": "timestamp"}
        added_by_drift = dict.fromkeys(spec.zorder_by, "string")
        types = {**added_by_drift, **declared, **origin, **own, **parts}
        return statistics_of((*origin, *own, *spec.zorder_by, *parts), types, spec.partitioned_by)
    if isinstance(spec, SilverSpec):
        # No query filters by a hash or a token, and their statistics would cost time for every copied row.
        stored = {name: spec.columns[name].type for name in spec.stored_columns}
        types = {**stored, **dict.fromkeys(spec.period_columns, spec.start_type), "_batch_seq": "bigint"}
        wanted = (*spec.keys, *spec.period_columns, "_batch_seq", *spec.zorder_by, *stored)
        return statistics_of(wanted, types, spec.partitioned_by)
    return {}


def statistics_of(names: Iterable[str], columns: Mapping[str, str], partitioned_by: Sequence[str]) -> dict[str, str]:
    """Return the table property that names the columns with statistics.

    Args:
        names: columns that readers filter by, the most important first; columns without statistics are left out.
        columns: the table's columns, name -> Spark SQL type.
        partitioned_by: partition columns, which need no statistics.

    >>> statistics_of(["id", "tags"], {"id": "bigint", "tags": "array<string>"}, [])
    {'delta.dataSkippingStatsColumns': 'id'}
    """
    candidates = [name for name in dict.fromkeys(names) if name not in partitioned_by]
    skippable = [name for name in candidates if not columns[name].startswith(_WITHOUT_STATISTICS)]
    return {STATISTICS: ",".join(skippable[:MAX_COLUMNS])}


def first_parts(columns: Mapping[str, str]) -> dict[str, str]:
    """Return a part with statistics of each struct of the columns, as its path -> its type.

    After a struct of which no part has statistics, delta-rs reads those of no further column.

    >>> first_parts({"id": "int", "shop": "struct<tags:array<int>,city:string,geo:struct<lat:double,lon:double>>"})
    {'shop.city': 'string', 'shop.geo.lat': 'double'}
    """
    return {path: kind for name, of_column in columns.items() for path, kind in _first_parts(name, of_column)}


def _first_parts(name: str, kind: str) -> Iterator[tuple[str, str]]:
    if not kind.lower().startswith("struct<"):
        return
    parts = {f"{name}.{part}": of_part for part, of_part in nested_type(kind).parts.items()}
    yield from [(path, of_part) for path, of_part in parts.items() if not of_part.startswith(_WITHOUT_STATISTICS)][:1]
    for path, of_part in parts.items():
        yield from _first_parts(path, of_part)
