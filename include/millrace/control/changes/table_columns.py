"""The columns of a Delta table, and their types in Delta's names."""

from __future__ import annotations

import json
import re

from deltalake import DeltaTable

from millrace.contracts.spec.column_types import TYPES

_DELTA_TYPES = {name: kind.delta for name, kind in TYPES.items() if kind.delta}


def columns_of(delta: DeltaTable) -> dict[str, str]:
    """Return column -> type in Delta's names."""
    return types_in(delta.schema().to_json())


def types_in(schema: str) -> dict[str, str]:
    """Return column -> type in Delta's names, of a schema in Delta's JSON.

    >>> types_in('{"type": "struct", "fields": [{"name": "day", "type": "date", "nullable": true, "metadata": {}}]}')
    {'day': 'date'}
    """
    return {field["name"]: _type_name(field["type"]) for field in json.loads(schema)["fields"]}


def delta_type(kind: str) -> str:
    """Return a Spark SQL type in Delta's names, for comparisons; the names of fields do not change.

    >>> delta_type("map<string,struct<int:bigint>>")
    'map<string,struct<int:long>>'
    """
    return re.sub(rf"\b({'|'.join(_DELTA_TYPES)})\b(?!:)", lambda word: _DELTA_TYPES[word[0]], kind)


def _type_name(kind: object) -> str:
    """Return a Delta schema type as short text; a struct with its fields.

    >>> _type_name({"type": "map", "keyType": "string", "valueType": {"type": "array", "elementType": "long"}})
    'map<string,array<long>>'
    """
    if not isinstance(kind, dict):
        return str(kind)
    if kind["type"] == "struct":
        parts = (f"{part['name']}:{_type_name(part['type'])}" for part in kind["fields"])
        return f"struct<{','.join(parts)}>"
    if kind["type"] == "map":
        return f"map<{_type_name(kind['keyType'])},{_type_name(kind['valueType'])}>"
    return f"array<{_type_name(kind['elementType'])}>"
