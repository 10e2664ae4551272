"""Count the values of a batch that fit no declared column, from the data files that it committed. No Spark."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from millrace.contracts.job.findings import MAX_SAMPLES, MAX_TEXT, FieldsOfOneColumn, RescuedValues
from millrace.contracts.lake_path import LakePath
from millrace.contracts.restricted import RESTRICTED
from millrace.contracts.spec.record_fields import field_text
from millrace.control.log.batch import Winner
from millrace.control.storage.arrow_files import open_for_arrow
from millrace_spark.layers.bronze.file_rows import is_all_null
from millrace_spark.transforms.record_parts import RecordColumns
from millrace_spark.transforms.records import RESCUED

_TOKEN = "_batch_token"


def rescued_fields(
    added: Sequence[LakePath], winner: Winner, columns: RecordColumns, any_case: bool = False
) -> tuple[tuple[RescuedValues, ...], tuple[FieldsOfOneColumn, ...]]:
    """Return the fields and parts in `_rescued` of a batch's rows, by name, and fields that are several for one column.

    Of a list's elements the numbers, and of a map's the keys are left out: `items[].price`.

    Args:
        added: the data files that its commit added to the table; if it replaced rows, they also contain rows of other
            batches.
        winner: the batch.
        columns: what was read from its records.
        any_case: whether fields are read without regard to upper and lower case.
    """
    rows, samples = Counter[str](), defaultdict[str, list[str]](list)
    repeated, values_of = Counter[tuple[str, ...]](), dict[tuple[str, ...], tuple[str, ...]]()
    names_read = {name: field_text(field) for name, field in columns.fields.items()}
    read = {field.lower(): field for field in names_read.values()} if any_case else dict[str, str]()
    fits, names = dict[str, str](), dict[str, str]()
    for text, number in _rescued_texts(added, winner):
        values: dict[str, str] = json.loads(text)
        for fields in _same_in_any_case(values, read):
            repeated[fields] += number
            values_of.setdefault(fields, tuple(str(values[field])[:MAX_TEXT] for field in fields))
            values = {field: value for field, value in values.items() if field not in fields}
        if read:
            values = {read.get(field.lower(), field): value for field, value in values.items()}
        for key in (key for key in values if key not in names):
            names[key] = columns.name_of(key)
            fits[names[key]] = columns.fit_of(key)
        for field, value in {names[key]: value for key, value in values.items()}.items():
            rows[field] += number
            if len(samples[field]) < MAX_SAMPLES and value not in samples[field]:
                samples[field].append(value)
    whole = {name: field for name, field in names_read.items() if field in rows and name not in columns.parts}
    earlier = _with_a_later_value(added, winner, whole, any_case) if whole else Counter[str]()
    return tuple(
        RescuedValues(
            field=field, type=fits[field], rows=rows[field], earlier=earlier[field], samples=tuple(samples[field])
        )
        for field in sorted(rows)
    ), tuple(
        FieldsOfOneColumn(fields=fields, rows=repeated[fields], samples=values_of[fields])
        for fields in sorted(repeated)
    )


def without_samples(
    rescued: Sequence[RescuedValues], repeated: Sequence[FieldsOfOneColumn]
) -> tuple[tuple[RescuedValues, ...], tuple[FieldsOfOneColumn, ...]]:
    """Return the findings without values.

    Those of any column may be values of a restricted one, where a comma that nobody quoted has moved them.
    """
    hidden = {"samples": (RESTRICTED,)}
    return (
        tuple(each.model_copy(update=hidden) for each in rescued),
        tuple(each.model_copy(update=hidden) for each in repeated),
    )


def _same_in_any_case(fields: Iterable[str], read: Mapping[str, str]) -> list[tuple[str, ...]]:
    """Return the fields that are for one column, of the columns that read the keys of `read`."""
    found = defaultdict[str, list[str]](list)
    for field in fields:
        if field.lower() in read:
            found[field.lower()].append(field)
    return [tuple(sorted(names)) for names in found.values() if len(names) > 1]


def _with_a_later_value(
    added: Iterable[LakePath], winner: Winner, field_of: Mapping[str, str], any_case: bool
) -> Counter[str]:
    """Return how many of the batch's rows have a field in `_rescued` whose column has a value: a later one of it.

    Args:
        added: the data files; winner: the batch.
        field_of: column -> the field that it reads; any_case: whether in any case.
    """
    found, same = Counter[str](), str.lower if any_case else str
    for rows in _rescued_rows(added, winner, field_of):
        for name, field in ((name, field_of[name]) for name in rows.column_names if name in field_of):
            text = json.dumps(field, ensure_ascii=False)
            may_have_it = pc.match_substring(rows[RESCUED], text, ignore_case=any_case)
            for count in pc.value_counts(rows[RESCUED].filter(pc.and_(may_have_it, pc.is_valid(rows[name])))):
                has_it = same(field) in map(same, json.loads(count["values"].as_py()))
                found[field] += count["counts"].as_py() if has_it else 0
    return found


def _rescued_texts(added: Iterable[LakePath], winner: Winner) -> Iterator[tuple[str, int]]:
    """Return each value of `_rescued` in the batch's rows, and how many rows of a row group have it."""
    for rows in _rescued_rows(added, winner):
        for count in pc.value_counts(rows[RESCUED]):
            yield count["values"].as_py(), count["counts"].as_py()


def _rescued_rows(added: Iterable[LakePath], winner: Winner, names: Iterable[str] = ()) -> Iterator[pa.Table]:
    """Return the batch's rows with a value of `_rescued`: that, and the columns of these names."""
    for file in added:
        with open_for_arrow(file) as content:
            parquet = pq.ParquetFile(content, read_dictionary=[_TOKEN])
            for group in range(parquet.num_row_groups):
                if not is_all_null(parquet.metadata.row_group(group), RESCUED):
                    rows = parquet.read_row_group(group, columns=[RESCUED, _TOKEN, *names])
                    of_batch = pc.equal(rows[_TOKEN], pa.scalar(winner.token))
                    yield rows.filter(pc.and_(pc.is_valid(rows[RESCUED]), of_batch))
