"""What changed in the spec of a table, and what follows for the table. Nothing is read or written here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from include.contracts.spec.expectation import ROW_ACTIONS
from include.control.changes.table_columns import delta_type
from include.control.ledger.spec_history import Document


class Effect(StrEnum):
    """What a change of a spec means to its table, from the least to the most."""

    APPLIED = "applied by the next run"
    RECOMPUTE = "recompute"
    REBUILD = "rebuild"


@dataclass(frozen=True)
class SpecChange:
    """One change.

    Attributes:
        key: the key of the spec, such as `columns.amount.from`.
        effect: what follows.
        what: the change in words.
        is_work: whether a run has to change the table for it, though its sources have nothing new.
    """

    key: str
    effect: Effect
    what: str
    is_work: bool = False

    def __str__(self) -> str:
        return f"{self.key}: {self.what}"


MEASURES = "measures."
"""How the keys of measures begin."""

_BUILT_ON = ("keys", "sequence_by", "stored_as_scd_type", "snapshot")
"""Keys on which every row of a table stands."""

_WORKED_OUT_BY = (
    *("apply_as_deletes", "apply_as_truncates", "ignore_null_updates"),
    *("track_history_column_list", "track_history_except_column_list"),
)
"""Keys by which rows are worked out of those of the source."""

_IN_THE_LOG = ("description", "maintenance", "delta", "zorder_by")
"""Keys by which comments and properties of a table are set."""

_ELSEWHERE = frozenset(
    {"columns", "except_column_list", "partitioned_by", "group_by", "measures", "sources", "expectations"}
    | {"domain", "table"}
)
"""Keys that are looked at by themselves, or say only where the spec lies."""


def spec_changes(before: Document, now: Document) -> list[SpecChange]:
    """What the rows of a table mean by one spec and by another.

    Which columns a bronze or silver table has, and of which types, is asked of the table (`column_changes`).
    """
    return [*_columns(before, now), *_groups(before, now), *_rules(before, now), *_others(before, now)]


def column_changes(now: Document, on_disk: Mapping[str, str], partitions: Sequence[str]) -> Iterator[SpecChange]:
    """How the columns of a bronze or silver table differ from those that its spec states.

    Args:
        now: the spec.
        on_disk: column of the table -> type in Delta's words; those that begin with `_` are Millrace's own.
        partitions: its partition columns.
    """
    wanted = {name: delta_type(now["columns"][name]["type"]) for name in _stored(now)}
    for name, kind in wanted.items():
        if name not in on_disk:
            what = f"a new column ({kind}), null in the rows that are there"
            yield SpecChange(f"columns.{name}", Effect.APPLIED, what, is_work=True)
        elif on_disk[name] != kind:
            yield _changed(f"columns.{name}.type", Effect.REBUILD, on_disk[name], kind)
    for name in on_disk:
        if name not in wanted and not name.startswith("_"):
            what = f"the table has it ({on_disk[name]}), the spec does not"
            yield SpecChange(f"columns.{name}", Effect.REBUILD, what)
    if list(partitions) != now["partitioned_by"]:
        yield _changed("partitioned_by", Effect.REBUILD, list(partitions), now["partitioned_by"])


def by_weight(changes: Iterable[SpecChange]) -> list[SpecChange]:
    """The changes, those first of which most follows."""
    return sorted(changes, key=lambda change: (-list(Effect).index(change.effect), change.key))


def _columns(before: Document, now: Document) -> Iterator[SpecChange]:
    for name, new in now.get("columns", {}).items():
        old = before["columns"].get(name)
        if old and name not in _stored(now) and old["type"] != new["type"]:
            yield _changed(f"columns.{name}.type", Effect.RECOMPUTE, old["type"], new["type"])
        for key, said, effect in (
            ("expression", "from", Effect.RECOMPUTE),
            ("nullable", "nullable", Effect.APPLIED),
            ("description", "description", Effect.APPLIED),
        ):
            if old and old[key] != new[key]:
                is_work = key == "description" and name in _stored(now)
                yield replace(_changed(f"columns.{name}.{said}", effect, old[key], new[key]), is_work=is_work)


def _groups(before: Document, now: Document) -> Iterator[SpecChange]:
    """What only gold has: its groups and its measures."""
    if (old := before.get("group_by")) != (new := now.get("group_by")):
        yield _changed("group_by", Effect.REBUILD, old, new)
    old, new = before.get("measures", {}), now.get("measures", {})
    for name in _union(old, new):
        if name not in old:
            what = "a new measure; the next run computes all groups"
            yield SpecChange(f"{MEASURES}{name}", Effect.APPLIED, what, is_work=True)
        elif name not in new:
            yield SpecChange(f"{MEASURES}{name}", Effect.REBUILD, "gone from the spec; the table has it")
        elif old[name] != new[name]:
            yield _changed(f"{MEASURES}{name}", Effect.RECOMPUTE, old[name], new[name])
    if (old := before.get("sources")) != (new := now.get("sources")):
        yield _changed("sources", Effect.RECOMPUTE, old, new)


def _rules(before: Document, now: Document) -> Iterator[SpecChange]:
    old, new = ([_without_reason(rule) for rule in one["expectations"]] for one in (before, now))
    for rules, others, became in ((old, new, "gone"), (new, old, "new")):
        for rule in (one for one in rules if one not in others):
            effect = Effect.RECOMPUTE if rule["action"] in ROW_ACTIONS else Effect.APPLIED
            yield SpecChange("expectations", effect, f"{became}: {_short(rule)}")


def _others(before: Document, now: Document) -> Iterator[SpecChange]:
    for key in _union(before, now):
        if key in _ELSEWHERE or before.get(key) == now.get(key):
            continue
        is_a_table = key == "source" and isinstance(now.get(key), str)
        effect = Effect.REBUILD if key in _BUILT_ON or is_a_table else Effect.APPLIED
        changed = _changed(key, Effect.RECOMPUTE if key in _WORKED_OUT_BY else effect, before.get(key), now.get(key))
        yield replace(changed, is_work=key in _IN_THE_LOG)


def _stored(document: Document) -> list[str]:
    return [name for name in document.get("columns", {}) if name not in document.get("except_column_list", ())]


def _changed(key: str, effect: Effect, old: Any, new: Any) -> SpecChange:
    if old in (None, "", [], {}):
        return SpecChange(key, effect, f"now {_short(new)}")
    gone = new in (None, "", [], {})
    return SpecChange(key, effect, f"{_short(old)} is gone" if gone else f"{_short(old)} becomes {_short(new)}")


def _without_reason(rule: Document) -> Document:
    """What a rule asks for, and what becomes of what fails it; why it is there is for people."""
    return {key: value for key, value in rule.items() if key not in ("reason", "severity")}


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _union(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    return list(dict.fromkeys([*one, *other]))
