"""Which columns hold the keys of subjects, by the specs alone: those that state it, and their copies downstream."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from millrace.contracts.spec.duration import RETENTION, interval_of
from millrace.contracts.spec.table_spec import AnySpec, BronzeSpec, GoldSpec, SilverSpec
from millrace.control.changes.table_properties import LOG_RETENTION_KEY, STATISTICS, table_properties
from millrace.erase.subjects import kinds_in
from millrace.overview.described_columns import column_names
from millrace.overview.lineage.origins import DELIVERED, Origin, origins_of_columns
from millrace.sql.expression import Use

_CAST = re.compile(
    r"cast\((?:\w|\.|`[^`]+`)+ as (?!float|double|real)[a-z]+(\([0-9, ]+\))?\)( with .*)?", re.IGNORECASE
)
"""A column of another type with the same values: floating numbers are the same for several keys of many digits."""


@dataclass(frozen=True)
class Reach:
    """What a table has of the keys of a kind.

    Attributes:
        keys: the columns whose values are keys.
        fields: the fields of what a source delivers that become these columns; bronze only.
        computed: column -> how it is computed from a key: it holds another value, or a part of the key.
        reads: the tables with keys of which it is made; with no key of its own it has figures of several subjects.
        received: the fields of keys in the rows that it receives, as its quarantine keeps them.
        numbers: those of all these whose values are numbers, also if they are written as texts, such as 17.00.
    """

    keys: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    computed: Mapping[str, str] = field(default_factory=dict)
    reads: tuple[str, ...] = ()
    received: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()


def reach_of(kind: str, specs: Mapping[str, AnySpec]) -> dict[str, Reach]:
    """Return table -> what it has of the keys of a kind, of the tables that have something.

    Args:
        kind: the kind.
        specs: table -> sound spec, sources first, as a catalog has them.
    """
    found = dict[str, Reach]()
    for table, spec in specs.items():
        stated = {name for name, stated_kind in spec.subject_keys.items() if stated_kind == kind}
        reads = tuple(source for source in spec.source_tables if source in found)
        if stated or reads:
            found[table] = _reach(spec, stated, reads, specs, found)
    return found


def limits_of(table: str, reach: Reach) -> Iterator[str]:
    """Yield what keys do not find of a table: columns that are computed from them, and rows of several subjects."""
    for column, text in reach.computed.items():
        yield f"{table}.{column} is computed from a key ({text}): of its values only whole keys are found"
    if not reach.keys and not reach.computed:
        sources = " and ".join(reach.reads)
        yield f"{table} has no key: its rows are computed from {sources}, and follow when these have changed"


def reach_notes(specs: Mapping[str, AnySpec]) -> Iterator[str]:
    """Yield what an erasure does not find by keys, or what keeps them longer; nothing if no spec states keys.

    Args:
        specs: table -> sound spec, sources first, as a catalog has them.
    """
    for kind in kinds_in(specs):
        for table, reach in reach_of(kind, specs).items():
            yield from (f"{limit} (subject_keys: {kind})" for limit in limits_of(table, reach))
            yield from _kept_in_the_log(specs[table], reach.keys)


def _kept_in_the_log(spec: AnySpec, keys: Collection[str]) -> Iterator[str]:
    """Yield a line if statistics in the log keep keys longer than the old files do."""
    properties, retain = table_properties(spec), spec.maintenance.vacuum.retain
    log = interval_of(properties[LOG_RETENTION_KEY])
    if log is None or log <= RETENTION.parse(retain):
        return
    # Without names Delta has statistics of the first columns.
    named = properties.get(STATISTICS)
    has_statistics = {name.strip(" `") for name in named.split(",")} if named is not None else keys
    if kept := [key for key in keys if key in has_statistics]:
        yield (
            f"{spec.table}: its log keeps the least and greatest {' and '.join(kept)} of a file for {log.days} days, "
            f"longer than the file ({retain}): shorten {LOG_RETENTION_KEY}, or leave keys by which nobody searches or "
            f"merges out of {STATISTICS}"
        )


def _reach(
    spec: AnySpec,
    stated: Collection[str],
    reads: tuple[str, ...],
    specs: Mapping[str, AnySpec],
    found: dict[str, Reach],
) -> Reach:
    origins = origins_of_columns(spec, specs)
    stored = spec.stored_columns if isinstance(spec, SilverSpec) else column_names(spec)
    keys, computed = list[str](), dict[str, str]()
    for name in stored:
        of_keys = list(_of_keys(origins.get(name, ()), spec, origins, found))
        if name in stated or any(_is_copy(origin, found) for origin in of_keys):
            keys.append(name)
        elif of_keys:
            computed[name] = of_keys[0].text or of_keys[0].path
    own = [(name, each) for name in keys for each in origins.get(name, ())]
    fields = [each.path for _, each in own if each.table == DELIVERED]
    received = {*keys, *fields} if isinstance(spec, BronzeSpec) else set[str]()
    if isinstance(spec, SilverSpec):
        received = set(_received(spec, own, specs, found))
    of_sources = {(source, name) for source in reads for name in found[source].numbers}
    numbers = {name for name in keys if _has_numbers(spec, name)}
    numbers |= {name for name, each in own if (each.table, each.path) in of_sources}
    numbers |= {each.path for name, each in own if each.table == DELIVERED and name in numbers}
    numbers |= {name for _, name in of_sources if name in received}
    return Reach(
        tuple(keys), tuple(dict.fromkeys(fields)), computed, reads, tuple(sorted(received)), tuple(sorted(numbers))
    )


def _received(
    spec: SilverSpec, own: Iterable[tuple[str, Origin]], specs: Mapping[str, AnySpec], found: Mapping[str, Reach]
) -> Iterator[str]:
    """Yield the fields of keys in rows of the sources, but for those that other sources have for something else."""
    of_source = {
        table: {*found[table].keys, *found[table].fields} if table in found else set() for table in spec.source_tables
    }
    for _, each in own:
        if each.table in of_source and (each.subtype == Use.IDENTITY or _CAST.fullmatch(each.text)):
            of_source[each.table].add(each.path)
    for name in {name for names in of_source.values() for name in names}:
        others = (table for table, names in of_source.items() if name not in names and table in specs)
        if not any(name in column_names(specs[table]) for table in others):
            yield name


def _has_numbers(spec: AnySpec, column: str) -> bool:
    """Whether the spec declares a type of numbers for a column."""
    return not isinstance(spec, GoldSpec) and spec.columns[column].type not in ("string", "binary")


def _of_keys(
    origins: Iterable[Origin],
    spec: AnySpec,
    of_columns: Mapping[str, list[Origin]],
    found: Mapping[str, Reach],
) -> Iterator[Origin]:
    """Yield the origins whose values are keys, or parts of keys, in a source."""
    for origin in origins:
        if origin.table == spec.table:
            if any(True for _ in _of_keys(of_columns.get(origin.field, []), spec, of_columns, found)):
                yield origin
        elif origin.is_direct and origin.table in found:
            of_source = found[origin.table]
            if origin.field in of_source.keys or origin.field in of_source.computed:
                yield origin


def _is_copy(origin: Origin, found: Mapping[str, Reach]) -> bool:
    """Whether a column has the values of a key: a cast keeps what they identify."""
    is_key = origin.table in found and origin.field in found[origin.table].keys and not origin.part
    return is_key and (origin.subtype == Use.IDENTITY or _CAST.fullmatch(origin.text) is not None)
