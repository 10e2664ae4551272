"""The columns that a document declares, and checks of the settings that name them.

All checks in this folder read the document, not the model, so that they also work if another part of it is wrong.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from millrace.contracts.spec.record_fields import MAX_PARTS, FieldPath, path_of, path_text, quoted
from millrace.specs.document import Document, list_at, mapping_at
from millrace.specs.problem import Defect, KeyPath, did_you_mean

_LISTS_OF_COLUMNS = ("keys", "sequence_by", "except_column_list")
_LISTS_OF_STORED = ("partitioned_by", "zorder_by", "track_history_column_list", "track_history_except_column_list")

_IDENTIFYING = ("string", "bigint", "int", "smallint", "tinyint", "decimal")
"""How the types of columns begin whose values can identify a person."""


def declared_columns(document: Document) -> list[str] | None:
    """Return the columns that the document declares; None if its declarations are wrong."""
    parts = [document[key] for key in ("columns", "group_by", "measures") if key in document]
    if not parts or not all(isinstance(part, dict) for part in parts):
        return None
    return [str(name) for part in parts for name in part]


def stored_columns_in(document: Document) -> list[str] | None:
    """Return the declared columns that the table stores; None if the document's declarations are wrong."""
    excluded = document.get("except_column_list")
    columns = declared_columns(document)
    return [name for name in columns if name not in excluded] if columns and isinstance(excluded, list) else columns


def type_of_column(document: Document, column: object) -> str | None:
    """Return the declared type of a column; None if the document does not declare it, or declares it wrong."""
    declaration = mapping_at(document, "columns").get(str(column))
    kind = declaration.get("type", "string") if isinstance(declaration, dict) else None
    return kind if isinstance(kind, str) else None


def unknown_column(path: KeyPath, name: object, columns: list[str], owner: str = "the table") -> Defect:
    """Return the defect that `owner` has no column `name`."""
    return Defect(path, f"{owner} has no such column", name, did_you_mean(name, columns))


def check_columns(document: Document) -> Iterator[Defect]:
    """Check that keys, sequence, partitions and similar settings name existing columns."""
    columns, stored = declared_columns(document), stored_columns_in(document)
    if columns is None or stored is None:
        return
    for key, existing in (*((key, columns) for key in _LISTS_OF_COLUMNS), *((key, stored) for key in _LISTS_OF_STORED)):
        for index, name in enumerate(list_at(document, key)):
            if isinstance(name, str) and name not in existing:
                yield unknown_column((key, index), name, existing)
    for name in mapping_at(document, "classifications"):
        if name not in columns:
            yield unknown_column(("classifications", name), name, columns)
    for name in mapping_at(document, "subject_keys"):
        if name not in stored:
            yield unknown_column(("subject_keys", name), name, stored)
        elif (kind := type_of_column(document, name)) and not kind.startswith(_IDENTIFYING):
            fix = "name a column of text, or of numbers"
            yield Defect(("subject_keys", name), f"{kind} identifies nobody", fix=fix)


def check_fields(document: Document) -> Iterator[Defect]:
    """Check `from` of bronze columns: each names a field or a part of it, and no two columns read the same."""
    source, columns = mapping_at(document, "source"), mapping_at(document, "columns")
    if not str(document.get("table", "")).startswith("bronze."):
        return
    same = str.lower if source.get("field_names") == "any_case" else str
    # A column is compared with those of the same field alone: a spec may have thousands.
    filled, readers = mapping_at(source, "transforms"), defaultdict[object, dict[FieldPath, str]](dict)
    for name, column in columns.items():
        stated = column.get("from") if isinstance(column, dict) else None
        path = ("columns", name, "from") if isinstance(stated, str) else ("columns", name)
        if isinstance(stated, str) and (problem := _unreadable_field(stated, source, is_filled=name in filled)):
            yield Defect(path, problem[0], stated, problem[1])
        elif name not in filled:
            field = path_of(stated) if isinstance(stated, str) else (name,)
            place = tuple(same(step) if isinstance(step, str) else step for step in field)
            of_field = readers[place[0]]
            if defect := _read_already(place, of_field):
                yield Defect(path, defect[0], path_text(field), defect[1])
            of_field.setdefault(place, name)


def _read_already(path: FieldPath, readers: Mapping[FieldPath, str]) -> tuple[str, str] | None:
    """Return why a column cannot read a path in addition to those that others read, and the likely fix."""
    for place, other in readers.items():
        shared = next((at for at, steps in enumerate(zip(path, place, strict=False)) if steps[0] != steps[1]), None)
        if shared is None and len(path) == len(place):
            fix = "read it once, and state the other column in silver"
            return f"the column {other} reads this {'field' if len(path) == 1 else 'part'} too", fix
        if shared is None:
            fix = "read it whole, and state the part in silver; or read each part in a column of its own"
            what = "a part of this" if len(path) < len(place) else "the whole of which this is a part"
            return f"the column {other} reads {what}", fix
        if shared and type(path[shared]) is not type(place[shared]):
            return f"this part is in a list, and that of the column {other} in an object", "correct one of them"
    return None


def _unreadable_field(stated: str, source: Document, *, is_filled: bool) -> tuple[str, str] | None:
    """Return why a bronze column cannot read the field that its `from` states, and the likely fix; None if it can."""
    if is_filled:
        return "an expression of source.transforms fills this column", "keep one of them"
    kind = source.get("format")
    if kind == "raw" or (kind == "csv" and ("kafka" in source or source.get("header") is False)):
        return "the records do not name their fields", "leave it out: values are taken in the order of the columns"
    try:
        path = path_of(stated)
    except ValueError:
        return (
            "this is not the name of a field",
            f"bronze reads fields as they are: state SQL in silver. A field of this name is written {quoted(stated)!r}",
        )
    if len(path) > 1 and kind == "csv":
        return (
            f"this is a part of the field {path[0]}, and CSV values have no parts",
            f"a field of this name is written {quoted(stated)!r}; take a part of {path[0]} in silver",
        )
    if len(path) > MAX_PARTS + 1:
        fix = f"read {path_text(path[: MAX_PARTS + 1])} as string, which keeps JSON, and take the part in silver"
        return f"no column reads so deep: at most {MAX_PARTS} parts", fix
    return None


def check_kafka(document: Document) -> Iterator[Defect]:
    """Find transforms of columns that the table does not have, and columns that raw bytes cannot provide."""
    source, columns = mapping_at(document, "source"), mapping_at(document, "columns")
    if "kafka" not in source or not columns:
        return
    transforms = mapping_at(source, "transforms")
    for name in (name for name in transforms if name not in columns):
        fix = f"{did_you_mean(name, columns)} A transform fills a column that `columns` declares"
        yield Defect(("source", "transforms", name), "the table has no such column", transforms[name], fix)
    if source.get("format") == "raw":
        for name in (name for name in columns if name not in {"value", *transforms}):
            fix = "add an expression for it to source.transforms, or name it `value` to keep the bytes"
            yield Defect(("columns", name), "raw bytes have no fields", name, fix)
