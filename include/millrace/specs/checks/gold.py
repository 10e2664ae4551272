"""Check that the parts of a gold document agree on aliases, groups and columns."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from millrace.specs.checks.columns import stored_columns_in, unknown_column
from millrace.specs.document import Document, mapping_at
from millrace.specs.problem import Defect, KeyPath, did_you_mean

_TEXT = r"'[^'\\]*'|\"[^\"\\]*\""
_PLAIN = re.compile(rf"(?:{_TEXT}|[\w\s.,()+=<*%!|:]|[->](?![->])|/(?!\*))*", re.ASCII)
"""Texts without comments, lambdas and escapes, where names look like nothing else: sqlglot loads in half a second."""
_QUALIFIED = re.compile(r"(?<![\w.])([A-Za-z_]\w*)\.([A-Za-z_]\w*)(?![\w.]*\()", re.ASCII)


def check_gold_names(document: Document) -> Iterator[Defect]:
    """Check that joins and refresh settings agree with `sources` and `group_by`."""
    sources = mapping_at(document, "sources")
    if not sources or "query" in document:
        return
    yield from _check_joins(sources)
    yield from _check_refresh(document, sources)
    for path, expression in _expressions_of_one_source(document, sources):
        for alias, column in (name for name in qualified_names(expression) if name[0] in sources):
            message = "this uses the source's own columns, without an alias"
            yield Defect(path, message, expression, f"write {column!r} instead of '{alias}.{column}'")


def check_gold_columns(document: Document, documents: Mapping[str, Document]) -> Iterator[Defect]:
    """Check that each `<alias>.<column>` is in the alias's table; `documents` has all specs by table.

    A name without an alias may be a field of a struct: `address.city`.
    """
    sources = mapping_at(document, "sources")
    tables = {alias: str(mapping_at(sources, alias).get("table")) for alias in sources}
    columns_of = {alias: stored_columns_in(documents.get(table, {})) for alias, table in tables.items()}
    are_known = all(columns_of.values())
    for path, expression in _expressions_with_aliases(document, sources):
        for alias, column in qualified_names(expression):
            columns, table = columns_of.get(alias), tables.get(alias, "")
            if alias not in sources and are_known and not any(alias in own for own in columns_of.values() if own):
                yield Defect(path, f"no source has the alias {alias!r}", expression, did_you_mean(alias, sources))
            if columns and column not in columns and not column.startswith("_"):
                yield unknown_column(path, f"{alias}.{column}", [f"{alias}.{name}" for name in columns], table)


def qualified_names(expression: str) -> list[tuple[str, str]]:
    """Return the `<alias>.<column>` names of a Spark SQL expression that are not in backquotes, each once.

    >>> qualified_names("sum(f.dep_delay) / 2.5 + f.dep_delay - length('a.b') - w.visib")
    [('f', 'dep_delay'), ('w', 'visib')]
    >>> qualified_names("transform(o.items, (item, at) -> item.price + at) -- as q.price")
    [('o', 'items')]
    """
    if _PLAIN.fullmatch(expression):
        found = _QUALIFIED.findall(re.sub(_TEXT, " ", expression))
    else:
        from millrace.sql.expression import expression_of

        names = (name[:2] for name in expression_of(expression).columns if len(name) > 1)
        found = [name for name in names if not any(f"`{part}`" in expression for part in name)]
    return list(dict.fromkeys(found))


def _check_joins(sources: Mapping[str, Any]) -> Iterator[Defect]:
    for index, (alias, source) in enumerate(sources.items()):
        has_join = isinstance(source, dict) and bool({"join", "on"} & set(source))
        if index == 0 and has_join:
            yield Defect(("sources", alias), "the first source joins nothing", None, "leave out its join and on")
        if index > 0 and isinstance(source, dict) and not has_join:
            fix = f"add `join: left` and `on: ...` with columns written {alias}.<column>"
            yield Defect(("sources", alias), "every source but the first needs a join", None, fix)
        if index == 0 and mapping_at(sources, alias).get("lookup"):
            fix = "put the source whose rows are counted before it"
            yield Defect(("sources", alias, "lookup"), "the first source is no lookup: its rows are counted", True, fix)
        later = list(sources)[index + 1 :]
        on = str(mapping_at(sources, alias).get("on") or "")
        for name in {name: None for name, _ in qualified_names(on) if name in later}:
            message = f"{name!r} is joined after {alias!r}"
            yield Defect(("sources", alias, "on"), message, on, f"move {name} before {alias}")


def _check_refresh(document: Document, sources: Mapping[str, Any]) -> Iterator[Defect]:
    groups = mapping_at(document, "group_by")
    refresh_by = document.get("refresh_by")
    if groups and isinstance(refresh_by, str) and refresh_by not in groups:
        yield Defect(
            ("refresh_by",), "no column of group_by has this name", refresh_by, did_you_mean(refresh_by, groups)
        )
    refresh_from = mapping_at(document, "refresh_from")
    for alias in refresh_from:
        if alias not in sources:
            yield Defect(("refresh_from", alias), "no source has this alias", alias, did_you_mean(alias, sources))
        elif _is_lookup(sources, alias):
            message = "it is a lookup: what its changed rows affect is found by the join"
            yield Defect(("refresh_from", alias), message, refresh_from[alias], "leave it out")
    for alias in sources if refresh_from else ():
        if alias not in refresh_from and not _is_lookup(sources, alias):
            message = f"no entry for the source {alias!r}: a change in it would not reach this table"
            fix = f"add `{alias}: <SQL that gives {refresh_by}>`, or `lookup: true` to the source"
            yield Defect(("refresh_from",), message, None, fix)
    for alias, column in qualified_names(str(groups.get(str(refresh_by)))):
        if _is_lookup(sources, alias):
            message = (
                f"a row of the lookup {alias!r} may belong to many values of refresh_by, so that it cannot give them"
            )
            fix = f"compute {refresh_by} from {next(iter(sources))}"
            yield Defect(("group_by", str(refresh_by)), message, f"{alias}.{column}", fix)
    for column in set(groups) & set(mapping_at(document, "measures")):
        yield Defect(("measures", column), "a column of group_by has this name already", column, "rename one of them")


def _is_lookup(sources: Mapping[str, Any], alias: str) -> bool:
    """Whether the alias is that of a lookup; the first source is none, whatever it says."""
    return alias != next(iter(sources)) and mapping_at(sources, alias).get("lookup") is True


def _expressions_with_aliases(document: Document, sources: Mapping[str, Any]) -> Iterator[tuple[KeyPath, str]]:
    for key in ("group_by", "measures"):
        for name, expression in mapping_at(document, key).items():
            yield (key, name), str(expression)
    for alias, source in sources.items():
        if isinstance(source, dict) and isinstance(source.get("on"), str):
            yield ("sources", alias, "on"), source["on"]


def _expressions_of_one_source(document: Document, sources: Mapping[str, Any]) -> Iterator[tuple[KeyPath, str]]:
    for alias, expression in mapping_at(document, "refresh_from").items():
        yield ("refresh_from", alias), str(expression)
    for alias, source in sources.items():
        if isinstance(source, dict) and isinstance(source.get("where"), str):
            yield ("sources", alias, "where"), source["where"]
