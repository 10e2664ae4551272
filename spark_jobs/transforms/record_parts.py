"""Read columns from parts of a field's value: `from: customer.address.city`, `from: items[0].price`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from operator import add

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from include.contracts.job.findings import PARTS
from include.contracts.spec.record_fields import FieldPath, fields_among, fields_of, path_text, paths_of, quoted
from include.contracts.spec.table_spec import BronzeSpec
from spark_jobs.transforms.nested_values import (
    HAS_MORE,
    MISFIT,
    OF_ANOTHER_TYPE,
    VALUE,
    WHOLE,
    bound,
    parsed,
    read_as,
    result,
)

_Below = dict[FieldPath, tuple[str, str]]
"""Path from a place on -> (the column that reads it, the type of the column)."""


@dataclass(frozen=True)
class Parts:
    """The columns that read parts of the value of one field.

    Attributes:
        columns: column -> (the path below the field, the type of the column).
        any_case: whether names are compared without regard to upper and lower case.
    """

    columns: Mapping[str, tuple[FieldPath, str]]
    any_case: bool = False

    @property
    def kind(self) -> str:
        """The Spark type of the struct of all these columns."""
        return f"struct<{','.join(f'{name}:{kind}' for name, (_, kind) in self.columns.items())}>"


@dataclass(frozen=True)
class RecordColumns:
    """What is read from a record: a column for each field. A field of which only parts are read has a struct of them.

    Attributes:
        kinds: column -> its type.
        fields: column -> the field that it reads.
        parts: column with a struct of parts -> the declared columns in it.
    """

    kinds: Mapping[str, str]
    fields: Mapping[str, str]
    parts: Mapping[str, Parts] = field(default_factory=dict)

    def readers(self, spec: BronzeSpec, names: Iterable[str]) -> dict[str, str]:
        """Return the one of `names` -> the column that reads it.

        Raises:
            ValueError: a column could read two of the names, because the source's `field_names` are `any_case`.
        """
        of_part = {name: column for column, parts in self.parts.items() for name in parts.columns}
        return {found: of_part.get(name, name) for name, found in fields_among(names, spec).items()}

    def whole_kind(self, name: str) -> str | None:
        """Return the type of a column that reads a field as a whole; None for another column."""
        return None if name in self.parts else self.kinds.get(name)

    def fit_of(self, name: str) -> str:
        """Return what the values of a column must fit, for a person: its type, or the paths of parts in it."""
        if name not in self.parts:
            return self.kinds[name]
        paths = (path_text((self.fields[name], *path)) for path, _ in self.parts[name].columns.values())
        return f"{PARTS} {', '.join(paths)}"

    def declared(self, rows: DataFrame) -> DataFrame:
        """Return the rows with the declared columns in place of the structs of parts."""
        if not self.parts:
            return rows
        columns = [
            F.col(column)[name].alias(name) if column in self.parts else F.col(column)
            for column in rows.columns
            for name in (self.parts[column].columns if column in self.parts else (column,))
        ]
        return rows.select(*columns)


def record_columns(spec: BronzeSpec) -> RecordColumns:
    """Return what is read from the records of a bronze table."""
    kinds, fields = {name: column.type for name, column in spec.columns.items()}, fields_of(spec)
    any_case = spec.source.field_names == "any_case"
    same, of_field = str.lower if any_case else str, dict[str, dict[str, tuple[FieldPath, str]]]()
    for name, path in paths_of(spec).items():
        if len(path) > 1:
            of_field.setdefault(same(str(path[0])), {})[name] = path[1:], kinds[name]
    parts = {f"_parts_{number}": Parts(columns, any_case) for number, columns in enumerate(of_field.values())}
    read = {name for each in parts.values() for name in each.columns}
    of_parts = {column: fields[next(iter(each.columns))] for column, each in parts.items()}
    return RecordColumns(
        kinds={name: kind for name, kind in kinds.items() if name not in read}
        | {column: each.kind for column, each in parts.items()},
        fields={name: of for name, of in fields.items() if name not in read} | of_parts,
        parts=parts,
    )


def with_parts(df: DataFrame, name: str, text: Column, parts: Parts) -> DataFrame:
    """Add what is read from parts of JSON text, as the column `name`: a struct like that of `read_as`.

    `value` is a struct of the columns. A part that is missing, or whose parent is null or missing, is null; so is one
    that does not fit its type. `misfit` is `HAS_MORE` if the text has a value that is in no column.
    """
    leaves, misfits = dict[str, Column](), list[Column]()
    level = [(text, {path: (column, kind) for column, (path, kind) in parts.columns.items()}, f"{name}_")]
    while level:
        read, below = dict[str, Column](), list[tuple[Column, _Below, str]]()
        for text_there, columns, at in level:
            if () in columns:
                column, kind = columns[()]
                read[at], leaves[column] = read_as(text_there, kind), F.col(at)
            else:
                steps = _by_step(columns, parts.any_case)
                read[at] = _texts_at(
                    text_there, list(steps), ",".join(kind for _, kind in columns.values()), parts.any_case
                )
                misfits.append(F.col(at)[MISFIT])
                below += [(F.col(at)[f"_{n}"], rest, f"{at}_{n}") for n, rest in enumerate(steps.values())]
        # Each level in a projection of its own: Spark Connect takes no expression that is as deep as a long path.
        df, level = df.withColumns(read), below
    values = (F.when(leaf[MISFIT] != OF_ANOTHER_TYPE, leaf[VALUE]) for leaf in (leaves[name] for name in parts.columns))
    value = F.struct(*(value.alias(name) for name, value in zip(parts.columns, values, strict=True)))
    misfits += [F.least(leaf[MISFIT], F.lit(HAS_MORE)) for leaf in leaves.values()]
    return df.withColumn(name, result(value, F.greatest(*misfits)))


def _by_step(columns: _Below, any_case: bool) -> dict[str | int, _Below]:
    steps: dict[str | int, _Below] = {}
    for (step, *rest), column in columns.items():
        steps.setdefault(step.lower() if any_case and isinstance(step, str) else step, {})[tuple(rest)] = column
    return steps


def _texts_at(text: Column, steps: list[str | int], kinds: str, any_case: bool) -> Column:
    numbers = [step for step in steps if isinstance(step, int)]
    if numbers:
        return _elements(text, numbers, kinds)
    return (_any_case_fields if any_case else _fields)(text, [str(step) for step in steps], kinds)


def _fields(text: Column, names: list[str], kinds: str) -> Column:
    """Return the texts of an object's fields as a struct, `_0` and so on, and whether the text has more than these."""
    keys = F.json_object_keys(text)
    further = F.size(F.array_except(keys, F.array(*map(F.lit, names)))) > 0
    texts = parsed(text, f"struct<{', '.join(f'{quoted(name)}: string' for name in names)}>", kinds)
    # By position, because for Spark two fields whose names differ only in case have the same name.
    by_position = texts.cast(f"struct<{', '.join(f'_{at}: string' for at in range(len(names)))}>")
    values = F.when(keys.isNotNull(), by_position)
    return _texts([values[f"_{at}"] for at in range(len(names))], text, keys.isNull() | further)


def _any_case_fields(text: Column, names: list[str], kinds: str) -> Column:
    """Return what `_fields` returns, for fields whose names are these in any case; of several like this, none."""

    def of_map(every: Column) -> Column:
        keys = F.map_keys(every)
        found = [_named(keys, name) for name in names]
        values = [F.when(F.size(each) == 1, F.try_element_at(every, F.get(each, F.lit(0)))) for each in found]
        known = reduce(add, ((F.size(each) == 1).cast("int") for each in found))
        return _texts(values, text, every.isNull() | (F.size(keys) > known))

    return bound(F.when(F.json_object_keys(text).isNotNull(), parsed(text, "map<string,string>", kinds)), of_map)


def _named(keys: Column, name: str) -> Column:
    return F.filter(keys, lambda key: F.lower(key) == F.lower(F.lit(name)))


def _elements(text: Column, numbers: list[int], kinds: str) -> Column:
    """Return the texts of a list's elements like `_fields`."""

    def of_list(every: Column) -> Column:
        size = F.size(every)
        known = reduce(add, ((F.lit(number) < size).cast("int") for number in numbers))
        return _texts([F.get(every, F.lit(number)) for number in numbers], text, every.isNull() | (size > known))

    return bound(parsed(text, "array<string>", kinds), of_list)


def _texts(values: list[Column], text: Column, has_more: Column) -> Column:
    misfit = F.when(text.isNotNull() & has_more, HAS_MORE).otherwise(WHOLE)
    return F.struct(*(value.alias(f"_{at}") for at, value in enumerate(values)), misfit.alias(MISFIT))
