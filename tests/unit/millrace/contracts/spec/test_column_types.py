"""Each type of a column is what the table of types says, for all who read it."""

from __future__ import annotations

import duckdb
import pytest
from deltalake.schema import PrimitiveType
from sqlglot import exp

from millrace.contracts.spec.column_types import TYPES, types_of
from millrace.contracts.spec.common_settings import ColumnSpec
from millrace.contracts.spec.nested_type import nested_type
from millrace.control.landing.formats.avro_schema import column_type
from millrace.inference.delivered_fields import spark_type

STORED = types_of(*{kind.values for kind in TYPES.values()})


@pytest.mark.parametrize("name", STORED)
def test_a_type_is_known_by_its_names_to_delta_sqlglot_duckdb_and_avro(name: str) -> None:
    kind, stated = TYPES[name], "decimal(9,2)" if name == "decimal" else name
    assert ColumnSpec(type=stated).type == stated
    assert PrimitiveType(kind.delta or stated)
    if name != "binary":
        assert nested_type(f"array<{stated}>").parts == {"element": stated}
    assert exp.DataType.build(stated, dialect="spark").this.value == (kind.sqlglot or name.upper())
    assert {spark_type(duckdb.sqltype(each)) for each in kind.duckdb if each != "GEOMETRY"} <= {name}
    assert {column_type({"type": each}) for each in kind.avro} <= {name}
