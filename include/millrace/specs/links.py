"""Check that the specs fit together: one spec per table, in its folder, with sources that exist."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from millrace.contracts.spec.values import LAYERS, NAME
from millrace.specs.checks.columns import declared_columns
from millrace.specs.checks.gold import check_gold_columns
from millrace.specs.checks.landing import is_continuous
from millrace.specs.checks.nested import nested_columns
from millrace.specs.checks.other_tables import check_other_tables
from millrace.specs.document import Document, mapping_at, source_at, stated_sources
from millrace.specs.problem import Defect, did_you_mean


def check_links(document: Document, documents: Mapping[str, Document]) -> Iterator[Defect]:
    """Find sources that no spec creates, and columns that they lack; `documents` has all specs, also wrong ones."""
    for path, table in stated_sources(document):
        layer = table.partition(".")[0]
        if table not in documents and layer in LAYERS:
            tables = [name for name in documents if name.startswith(f"{layer}.")]
            yield Defect(path, "no spec creates this table", table, did_you_mean(table, tables))
    yield from _check_silver_columns(document, documents)
    yield from _check_silver_order(document, documents)
    yield from _check_snapshot_source(document, documents)
    yield from check_gold_columns(document, documents)
    yield from check_other_tables(document, documents)


def check_place(document: Document, place: PurePosixPath) -> Iterator[Defect]:
    """Check that the file is at `<layer>/<domain>/<table>.yaml` for the table that it states."""
    if len(place.parts) != 3 or place.parts[0] not in LAYERS:
        yield Defect((), f"{place} is not at <layer>/<domain>/<table>.yaml", None, f"layers are {', '.join(LAYERS)}")
        return
    layer, domain, _ = place.parts
    if not re.fullmatch(NAME, domain):
        fix = "rename the folder: small letters, digits and _, a letter first"
        yield Defect((), f"the folder {domain!r} is not a valid name of a domain", None, fix)
    stated_layer, _, name = str(document.get("table", "")).partition(".")
    if stated_layer in LAYERS and name and (stated_layer, name) != (layer, place.stem):
        fix = f"move it to {stated_layer}/{domain}/{name}.yaml, or write `table: {layer}.{place.stem}`"
        yield Defect(("table",), f"the file is {place}, which is for {layer}.{place.stem}", document["table"], fix)
    if document.get("domain", domain) != domain:
        fix = "leave the key out: the folder decides"
        yield Defect(("domain",), f"the file is in the folder of the domain {domain!r}", document["domain"], fix)


def _check_silver_columns(document: Document, documents: Mapping[str, Document]) -> Iterator[Defect]:
    """Check that a silver column without `from` has the same name in each source that states no SQL of its own."""
    if not str(document.get("table")).startswith("silver."):
        return
    for path, source in stated_sources(document):
        of_source, own = documents.get(source, {}), mapping_at(source_at(document, path), "columns")
        received, nested = declared_columns(of_source) or [], nested_columns(of_source)
        where = f" Or state it in the columns of {source}, under sources" if "sources" in path else ""
        for name, column in mapping_at(document, "columns").items() if received else ():
            if not isinstance(column, dict) or name in own:
                continue
            if name not in received and not {"from", "expression"} & set(column):
                fix = f"{did_you_mean(name, received)} Say where it comes from: `from: <SQL>`{where}"
                yield Defect(("columns", name), f"{source} has no column of this name", name, fix)
            if name in nested and column.get("from") is None and name not in nested_columns(document):
                fix = f"write this type; or take its parts: `from: {name}.<part>`; or text: `from: to_json({name})`"
                yield Defect(("columns", name), f"the column of {source} is {nested[name]}", name, fix)


def _check_snapshot_source(document: Document, documents: Mapping[str, Document]) -> Iterator[Defect]:
    """Check that full snapshots come from a table whose batches have one order."""
    source = document.get("source")
    if document.get("snapshot") and isinstance(source, str) and documents.get(source, {}).get("concurrent_by"):
        message = f"a full snapshot needs to know which batch of {source} came last, and its batches have no one order"
        fix = f"remove concurrent_by from the spec of {source}"
        yield Defect(("snapshot",), message, document["snapshot"], fix)


def _check_silver_order(document: Document, documents: Mapping[str, Document]) -> Iterator[Defect]:
    """Check that a table whose source has no intervals neither is a snapshot nor orders rows by interval."""
    for path, source in stated_sources(document) if str(document.get("table")).startswith("silver.") else ():
        if source not in documents or not is_continuous(documents[source]):
            continue
        if document.get("snapshot"):
            message = f"{source} loads whatever is new, so that its intervals do not delimit snapshots"
            fix = "deliver snapshots as files, into a path with {interval_start}"
            yield Defect(("snapshot",), message, document["snapshot"], fix)
        elif not document.get("sequence_by"):
            message = f"{source} loads whatever is new, so that its intervals do not order its rows"
            yield Defect(path, message, source, "name the columns that order the events: sequence_by")
