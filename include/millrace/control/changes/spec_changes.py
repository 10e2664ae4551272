"""The changes of the spec of a table, and their effects on the table. This module reads and writes nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import inf
from typing import Any

import yaml

from millrace.contracts.spec.bronze_sources import EPOCH
from millrace.contracts.spec.expectation import ROW_ACTIONS
from millrace.contracts.spec.expectation_arguments import REFERENCES
from millrace.contracts.spec.value_reading import ValueReading
from millrace.control.changes.table_columns import delta_type
from millrace.control.ledger.spec_history import RULE, Document


class Effect(StrEnum):
    """The effect of a change of a spec on its table, from the smallest to the largest."""

    MAINTAINED = "applied by the next run or maintenance"
    APPLIED = "applied by the next run"
    RECOMPUTE = "recompute"
    REBUILD = "rebuild"


@dataclass(frozen=True)
class SpecChange:
    """One change of a spec.

    Attributes:
        key: the key of the spec, such as `columns.amount.from`.
        effect: its effect on the table.
        text: the change in words.
        needs_run: whether a run has to change the table for it, even if its sources have nothing new.
        by_rebuild: whether only a rebuild computes the rows again, although runs go on.
    """

    key: str
    effect: Effect
    text: str
    needs_run: bool = False
    by_rebuild: bool = False

    @property
    def computes_all_groups(self) -> bool:
        """Whether the next batch of a gold table computes all groups for it, also those that no change touches."""
        return self.needs_run and (self.key.startswith(MEASURES) or self.key in ("query", "sources", "lookback"))

    def __str__(self) -> str:
        return f"{self.key}: {self.text}"


MEASURES = "measures."
"""The prefix of the keys of measures."""

VALUES = "values"
"""The key of the change that values are read by another rule."""

_REBUILD_KEYS = ("keys", "sequence_by", "stored_as_scd_type", "snapshot", "source_priority")
"""Keys on which every row of a table depends."""

_RECOMPUTE_KEYS = (
    *("apply_as_deletes", "apply_as_truncates", "ignore_null_updates"),
    *("track_history_column_list", "track_history_except_column_list"),
)
"""Keys that affect how rows are computed from the source."""

_PROPERTY_KEYS = ("description", "maintenance", "delta", "zorder_by", "concurrent_by")
"""Keys that set comments and properties of the table."""

_MOST_CHARACTERS = 200
"""How much of a value is shown."""

_HANDLED_KEYS = frozenset(
    {"columns", "except_column_list", "partitioned_by", "group_by", "measures", "query", "sources", "expectations"}
    | {"domain", "table", "lookback", RULE}
)
"""Keys that other functions compare, or that only name the table."""


def spec_changes(before: Document, now: Document, converted: Collection[str] = ()) -> list[SpecChange]:
    """Return the changes between two specs of a table.

    The columns of a bronze or silver table, and their types, are compared with the table itself (`column_changes`).

    Args:
        before: the earlier spec.
        now: the later one.
        converted: the columns whose values are converted, so that it matters by which rule.
    """
    if bool(old := before.get("query")) != bool(new := now.get("query")):
        return [_changed("query", Effect.REBUILD, old, new)]
    of_parts = (_columns, _groups, _merge_sources, _rules, _others)
    return [change for of_part in of_parts for change in of_part(before, now)] + _values(before, now, converted)


def column_changes(now: Document, on_disk: Mapping[str, str], partitions: Sequence[str]) -> Iterator[SpecChange]:
    """Yield the differences between the columns of a bronze or silver table and its spec.

    Args:
        now: the spec.
        on_disk: column of the table -> type in Delta's names; columns that begin with `_` are Millrace's own.
        partitions: its partition columns.
    """
    declared = {name: delta_type(now["columns"][name]["type"]) for name in _stored(now)}
    for name, kind in declared.items():
        if name not in on_disk:
            text = f"a new column ({kind}), null in the rows that are there"
            yield SpecChange(f"columns.{name}", Effect.APPLIED, text, needs_run=True)
        elif on_disk[name] != kind:
            yield _changed(f"columns.{name}.type", Effect.REBUILD, on_disk[name], kind)
    if isinstance(now.get("source"), dict) and "kafka" in now["source"] and EPOCH not in on_disk:
        text = "a new column (integer), null, which counts as 0, in the rows that are there"
        yield SpecChange(f"columns.{EPOCH}", Effect.APPLIED, text, needs_run=True)
    for name in on_disk:
        if name not in declared and not name.startswith("_"):
            text = f"the table has it ({on_disk[name]}), the spec does not"
            yield SpecChange(f"columns.{name}", Effect.REBUILD, text)
    if list(partitions) != now["partitioned_by"]:
        yield _changed("partitioned_by", Effect.REBUILD, list(partitions), now["partitioned_by"])


def sort_by_effect(changes: Iterable[SpecChange]) -> list[SpecChange]:
    """Return the changes, those with the largest effect first."""
    return sorted(changes, key=lambda change: (-list(Effect).index(change.effect), change.key))


def _columns(before: Document, now: Document) -> Iterator[SpecChange]:
    for name, new in now.get("columns", {}).items():
        old = before["columns"].get(name)
        computed = Effect.REBUILD if name in _placing(now) else Effect.RECOMPUTE
        if old and name not in _stored(now) and old["type"] != new["type"]:
            yield _changed(f"columns.{name}.type", computed, old["type"], new["type"])
        for key, yaml_key, effect in (
            ("expression", "from", computed),
            ("nullable", "nullable", Effect.APPLIED),
            ("description", "description", Effect.APPLIED),
            ("classification", "classification", Effect.APPLIED),
        ):
            if old and old.get(key) != new.get(key):
                needs_run = key == "description" and name in _stored(now)
                changed = _changed(f"columns.{name}.{yaml_key}", effect, old.get(key), new.get(key))
                yield replace(changed, needs_run=needs_run)
        for key in ValueReading.model_fields if old else ():
            if old.get(key) != new.get(key):
                yield _changed(f"columns.{name}.{key}", computed, old.get(key), new.get(key))


def _values(before: Document, now: Document, converted: Collection[str]) -> list[SpecChange]:
    types = {name: column["type"] for name, column in before.get("columns", {}).items()}
    names = [name for name in converted if name in types and types[name] == now["columns"][name]["type"]]
    if not names or before.get(RULE) == now.get(RULE):
        return []
    text = f"an earlier Millrace may have rounded, cut off or guessed values of {', '.join(names)}"
    return [SpecChange(VALUES, Effect.RECOMPUTE, text, by_rebuild=not _placing(now).isdisjoint(names))]


def _groups(before: Document, now: Document) -> Iterator[SpecChange]:
    """Yield the changes of the keys that only gold tables have."""
    if (old := before.get("group_by")) != (new := now.get("group_by")):
        yield _changed("group_by", Effect.REBUILD, old, new)
    old, new = before.get("measures", {}), now.get("measures", {})
    for name in dict.fromkeys([*old, *new]):
        if name not in old:
            text = "a new measure, computed for all groups"
            yield SpecChange(f"{MEASURES}{name}", Effect.APPLIED, text, needs_run=True)
        elif name not in new:
            yield SpecChange(f"{MEASURES}{name}", Effect.REBUILD, "gone from the spec; the table has it")
        elif old[name] != new[name]:
            yield _in_all_groups(f"{MEASURES}{name}", old[name], new[name])
    if (old := before.get("query")) != (new := now.get("query")) and old and new:
        yield _changed_query(old, new)
    for key in ("sources", "lookback") if "group_by" in now else ():
        if (old := before.get(key)) != (new := now.get(key)):
            yield _in_all_groups(key, old, new)


def _in_all_groups(key: str, old: Any, new: Any) -> SpecChange:
    changed = _changed(key, Effect.APPLIED, old, new)
    return replace(changed, text=f"{changed.text}, computed for all groups", needs_run=True)


def _merge_sources(before: Document, now: Document) -> Iterator[SpecChange]:
    """Yield the changes of the list of sources of a silver table; a source that is added at its end changes no row."""
    old, new = before.get("sources", ()), now.get("sources", ())
    if "group_by" in now or old == new:
        return
    tables, names = ([source["table"] for source in sources] for sources in (old, new))
    if not old or names[: len(tables)] != tables:
        yield _changed("sources", Effect.REBUILD, tables, names)
        return
    for earlier, source in zip(old, new, strict=False):
        if _own(earlier) != _own(source):
            had, has = earlier["columns"], source["columns"]
            moves_rows = any(had.get(name) != has.get(name) for name in _placing(now))
            effect = Effect.REBUILD if moves_rows else Effect.RECOMPUTE
            yield _changed(f"sources.{source['table']}", effect, _own(earlier), _own(source))
        if (had := earlier.get("partitions")) != (has := source.get("partitions")):
            key = f"sources.{source['table']}.partitions"
            yield replace(_changed(key, Effect.APPLIED, had, has), needs_run=True)
    for table in names[len(tables) :]:
        yield SpecChange(f"sources.{table}", Effect.APPLIED, "a new source, read from its beginning")


def _own(source: Document) -> Document:
    return {key: value for key, value in source.items() if key not in ("table", "partitions") and value}


def _changed_query(old: str, new: str) -> SpecChange:
    from millrace.sql.query.select_query import query_of  # loads sqlglot, which takes half a second

    columns = query_of(new).columns
    if gone := [name for name in query_of(old).columns if name not in columns]:
        return SpecChange("query", Effect.REBUILD, f"without {', '.join(gone)}, which the table has")
    return SpecChange("query", Effect.APPLIED, "another one, by which the whole table is computed", needs_run=True)


def _rules(before: Document, now: Document) -> Iterator[SpecChange]:
    # The reason of a rule and its severity do not affect the data.
    old, new = (
        [{key: value for key, value in rule.items() if key not in ("reason", "severity")} for rule in rules]
        for rules in (before["expectations"], now["expectations"])
    )
    for rules, others, change in ((old, new, "gone"), (new, old, "new")):
        for rule in (rule for rule in rules if rule not in others):
            # A reference judges a row only when it arrives.
            judges_again = rule["action"] in ROW_ACTIONS and not REFERENCES.keys() & rule.keys()
            effect = Effect.RECOMPUTE if judges_again else Effect.APPLIED
            yield SpecChange("expectations", effect, f"{change}: {_short(rule)}")


def _others(before: Document, now: Document) -> Iterator[SpecChange]:
    for key in dict.fromkeys([*before, *now]):
        if key in _HANDLED_KEYS or before.get(key) == now.get(key):
            continue
        is_source_table = key == "source" and isinstance(now.get(key) or before[key], str)
        effect = Effect.REBUILD if key in _REBUILD_KEYS or is_source_table else Effect.APPLIED
        changed = _changed(key, Effect.RECOMPUTE if key in _RECOMPUTE_KEYS else effect, before.get(key), now.get(key))
        yield replace(changed, needs_run=key in _PROPERTY_KEYS)


def _placing(document: Document) -> set[str]:
    """Return the columns that find a row and order its events: with other values, no event meets its stored row."""
    return {*document.get("keys", ()), *document.get("sequence_by", ())}


def _stored(document: Document) -> list[str]:
    return [name for name in document.get("columns", {}) if name not in document.get("except_column_list", ())]


def _changed(key: str, effect: Effect, old: Any, new: Any) -> SpecChange:
    old, new = _differing_parts(old, new)
    if old in (None, "", [], {}):
        return SpecChange(key, effect, f"now {_short(new)}")
    is_gone = new in (None, "", [], {})
    return SpecChange(key, effect, f"{_short(old)} is gone" if is_gone else f"{_short(old)} becomes {_short(new)}")


def _differing_parts(old: Any, new: Any) -> tuple[Any, Any]:
    """Return two values; of mappings only the parts that differ, which a text of limited length would else cut off."""
    if not (old and new and isinstance(old, Mapping) and isinstance(new, Mapping)):
        return old, new
    differ = [key for key in dict.fromkeys([*old, *new]) if old.get(key) != new.get(key)]
    parts = {key: _differing_parts(old.get(key), new.get(key)) for key in differ}
    return {key: parts[key][0] for key in differ if key in old}, {key: parts[key][1] for key in differ if key in new}


def _short(value: Any) -> str:
    """Return a value as a spec writes it, in one line of limited length."""
    text = value if isinstance(value, str) else _in_yaml(value)
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}..."


def _in_yaml(value: Any) -> str:
    return yaml.safe_dump(value, default_flow_style=True, sort_keys=False, allow_unicode=True, width=inf).split("\n")[0]
