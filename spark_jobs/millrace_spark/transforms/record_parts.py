"""Read columns from parts of a field's value: `from: customer.address.city`, `from: items[0].price`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from operator import add

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from millrace.contracts.job.findings import PARTS
from millrace.contracts.spec.column_types import TIMES
from millrace.contracts.spec.nested_type import type_at
from millrace.contracts.spec.record_fields import (
    FieldPath,
    field_text,
    fields_among,
    fields_of,
    path_of,
    path_text,
    paths_of,
)
from millrace.contracts.spec.table_spec import BronzeSpec
from millrace.contracts.spec.value_reading import AS_WRITTEN, ValueReading
from millrace_spark.transforms.values.exact_values import without_mark
from millrace_spark.transforms.values.nested_values import (
    HAS_MORE,
    MISFIT,
    VALUE,
    WHOLE,
    bound,
    elements_in,
    fields_in,
    json_union,
    losses,
    read_as,
    result,
)

LOST = "lost"
"""The further field of what `with_parts` adds."""

_Below = dict[FieldPath, tuple[str, str]]
"""Path from a place on -> (the column that reads it, the type of the column)."""


@dataclass(frozen=True)
class Parts:
    """The columns that read parts of the value of one field.

    Attributes:
        columns: column -> (the path below the field, the type of the column).
        readings: column -> how its values are read.
        any_case: whether names are compared without regard to upper and lower case.
    """

    columns: Mapping[str, tuple[FieldPath, str]]
    readings: Mapping[str, ValueReading]
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
        readings: column -> how its values are read, if its spec says so.
        parts: column with a struct of parts -> the declared columns in it.
    """

    kinds: Mapping[str, str]
    fields: Mapping[str, str]
    readings: Mapping[str, ValueReading] = field(default_factory=dict)
    parts: Mapping[str, Parts] = field(default_factory=dict)

    def reading(self, name: str) -> ValueReading:
        """Return how the values of a column are read."""
        return self.readings.get(name, AS_WRITTEN)

    def has_commas(self, name: str) -> bool:
        """Return whether a column's numbers are texts with commas."""
        return self.reading(name).decimal_comma

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

    def fit_of(self, rescued: str) -> str:
        """Return what a rescued value did not fit, for a person; empty if no column or part is declared for it.

        Args:
            rescued: the key of the value in `_rescued`: the path of a field or part.
        """
        try:
            field_name, *below = path = path_of(rescued)
        except ValueError:  # a field without a name
            return ""
        if not below and (parts := self.parts.get(self._reader_of(field_name))):
            return f"{PARTS} {', '.join(path_text((field_name, *to_part)) for to_part, _ in parts.columns.values())}"
        return _fitting(*self._part_at(path))

    def name_of(self, rescued: str) -> str:
        """Return the path of a rescued value without what its row alone has: numbers of elements, keys of maps.

        >>> columns = RecordColumns({"sizes": "array<int>", "people": "map<string,struct<age:int>>"}, {})
        >>> columns.name_of("sizes[2]"), columns.name_of("people.Ann.age"), columns.name_of("a field")
        ('sizes[]', 'people[].age', 'a field')
        """
        try:
            path = path_of(rescued)
        except ValueError:
            return rescued
        if len(path) == 1:
            return rescued
        name = field_text(str(path[0]))
        for at, step in enumerate(path[1:], start=1):
            is_own = isinstance(step, int) or self._part_at(path[:at])[0].startswith("map<")
            name += "[]" if is_own else f".{field_text(str(step))}"
        return name

    def _reader_of(self, field_name: str | int) -> str:
        """Return the column of a field; empty if none reads it."""
        return {self.fields.get(name, name): name for name in self.kinds}.get(str(field_name), "")

    def _part_at(self, path: FieldPath) -> tuple[str, ValueReading]:
        """Return the type of what a column reads at a path, and how it is read; an empty type for another path."""
        name, below = self._reader_of(path[0]), path[1:]
        if name not in self.parts:
            return type_at(self.kinds.get(name, ""), below), self.reading(name)
        read = (
            (type_at(kind, below[len(above) :]), self.reading(column))
            for column, (above, kind) in self.parts[name].columns.items()
            if below[: len(above)] == above
        )
        return next(read, ("", AS_WRITTEN))

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


def _fitting(kind: str, reading: ValueReading) -> str:
    """Return what fits a type, for a person."""
    if kind in TIMES and reading.epoch:
        return f"{kind} as a number of {reading.epoch} since 1970"
    return "date or midnight in UTC" if kind == "date" and not reading.format else kind


def record_columns(spec: BronzeSpec) -> RecordColumns:
    """Return what is read from the records of a bronze table."""
    kinds, fields = {name: column.type for name, column in spec.columns.items()}, fields_of(spec)
    any_case = spec.source.field_names == "any_case"
    same, of_field = str.lower if any_case else str, dict[str, dict[str, tuple[FieldPath, str]]]()
    for name, path in paths_of(spec).items():
        if len(path) > 1:
            of_field.setdefault(same(str(path[0])), {})[name] = path[1:], kinds[name]
    readings = dict[str, ValueReading](spec.columns)
    parts = {f"_parts_{number}": Parts(columns, readings, any_case) for number, columns in enumerate(of_field.values())}
    read = {name for each in parts.values() for name in each.columns}
    of_parts = {column: fields[next(iter(each.columns))] for column, each in parts.items()}
    return RecordColumns(
        kinds={name: kind for name, kind in kinds.items() if name not in read}
        | {column: each.kind for column, each in parts.items()},
        fields={name: of for name, of in fields.items() if name not in read} | of_parts,
        readings=readings,
        parts=parts,
    )


def with_parts(df: DataFrame, name: str, text: Column, parts: Parts, field_name: str) -> DataFrame:
    """Add what is read from parts of JSON text, as the column `name`: a struct like that of `read_as`.

    `value` is a struct of the columns. A part that is missing, or whose parent is null or missing, is null; so is one
    that does not fit its type. `misfit` is `HAS_MORE` if the text has a value that no column reads. `lost` has the
    `losses` of what the columns read.

    Args:
        df: the frame; name: the new column; text: the JSON text of a field's value; parts: what is read of it.
        field_name: the name of the field.
    """
    leaves, lost, misfits = dict[str, Column](), list[Column](), [F.lit(WHOLE)]
    level = [(text, {path: (column, kind) for column, (path, kind) in parts.columns.items()}, f"{name}_")]
    while level:
        read, below = dict[str, Column](), list[tuple[Column, _Below, str]]()
        for text_there, columns, at in level:
            if () in columns:
                column, kind = columns[()]
                read[at], leaves[column] = read_as(text_there, kind, parts.readings[column]), F.col(at)
                path = path_text((field_name, *parts.columns[column][0]))
                lost.append(losses(text_there, F.col(at), kind, path, parts.readings[column]))
            else:
                steps = _by_step(columns, parts.any_case)
                read[at] = _texts_at(text_there, steps, parts)
                misfits.append(F.col(at)[MISFIT])
                below += [(F.col(at)[f"_{n}"], rest, f"{at}_{n}") for n, rest in enumerate(steps.values())]
        # Each level in a projection of its own: Spark Connect takes no expression that is as deep as a long path.
        df, level = df.withColumns(read), below
    value = F.struct(*(leaves[column][VALUE].alias(column) for column in parts.columns))
    is_lost = F.greatest(*(leaf[MISFIT] for leaf in leaves.values()), F.lit(WHOLE)) != WHOLE
    every_loss = F.when(is_lost, json_union(lost))
    return df.withColumn(name, result(value, F.greatest(*misfits)).withField(LOST, every_loss))


def _by_step(columns: _Below, any_case: bool) -> dict[str | int, _Below]:
    steps: dict[str | int, _Below] = {}
    for (step, *rest), column in columns.items():
        steps.setdefault(step.lower() if any_case and isinstance(step, str) else step, {})[tuple(rest)] = column
    return steps


def _texts_at(text: Column, steps: Mapping[str | int, _Below], parts: Parts) -> Column:
    """Return the texts of an object's fields, or a list's elements, as a struct, `_0` and so on, and a misfit.

    The misfit says whether the text has more than these.
    """
    numbers = [step for step in steps if isinstance(step, int)]
    with_commas = [
        str(step) for step, below in steps.items() if () in below and parts.readings[below[()][0]].decimal_comma
    ]
    if not numbers:
        return bound(
            fields_in(text, map(str, steps), parts.any_case, with_commas),
            lambda record: _texts(
                [record["texts"][at] for at in range(len(steps))], text, record.isNull() | record["more"].isNotNull()
            ),
        )

    def of_list(every: Column) -> Column:
        size = F.size(every)
        known = reduce(add, ((F.lit(number) < size).cast("int") for number in numbers))
        elements = [F.get(every, F.lit(number)) for number in numbers]
        if with_commas:
            elements = [
                each if str(number) in with_commas else without_mark(each)
                for number, each in zip(numbers, elements, strict=True)
            ]
        return _texts(elements, text, every.isNull() | (size > known))

    return bound(elements_in(text, bool(with_commas)), of_list)


def _texts(values: list[Column], text: Column, has_more: Column) -> Column:
    misfit = F.when(text.isNotNull() & has_more, HAS_MORE).otherwise(WHOLE)
    return F.struct(*(value.alias(f"_{at}") for at, value in enumerate(values)), misfit.alias(MISFIT))
