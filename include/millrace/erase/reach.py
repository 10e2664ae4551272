"""Which columns hold the keys of subjects, by the specs alone: those that state it, and their copies downstream."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from millrace.contracts.spec.table_spec import AnySpec, SilverSpec
from millrace.overview.described_columns import column_names
from millrace.overview.lineage.origins import DELIVERED, Origin, origins_of_columns
from millrace.sql.expression import Use

_CAST = re.compile(r"cast\((?:\w|\.|`[^`]+`)+ as [a-z]+(\([0-9, ]+\))?\)( with .*)?", re.IGNORECASE)
"""A column of another type with the same values."""


@dataclass(frozen=True)
class Reach:
    """What a table has of the keys of a kind.

    Attributes:
        keys: the columns whose values are keys.
        fields: the fields of what a source delivers that become these columns; bronze only.
        computed: column -> how it is computed from a key: it holds another value, or a part of the key.
        reads: the tables with keys of which it is made; with no key of its own it has figures of several subjects.
    """

    keys: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    computed: Mapping[str, str] = field(default_factory=dict)
    reads: tuple[str, ...] = ()


def kinds_in(specs: Mapping[str, AnySpec]) -> list[str]:
    """Return the kinds that the specs state."""
    return sorted({kind for spec in specs.values() for kind in spec.subject_keys.values()})


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
    fields = [each.path for name in keys for each in origins.get(name, ()) if each.table == DELIVERED]
    return Reach(tuple(keys), tuple(dict.fromkeys(fields)), computed, reads)


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
