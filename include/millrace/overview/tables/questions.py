"""What runs have asked about a table and nobody has answered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from millrace.contracts.spec.table_spec import AnySpec, BronzeSpec
from millrace.control.ledger.deletes import Deletes
from millrace.control.ledger.new_columns import NewColumn
from millrace.control.ledger.states.streams import Streams


@dataclass(frozen=True)
class Questions:
    """What runs have asked about a table and nobody has answered.

    Attributes:
        deletes: deletes that need an approval.
        columns: fields of records without a declared column.
    """

    deletes: Sequence[Deletes] = ()
    columns: Sequence[NewColumn] = ()


def still_open(questions: Questions, spec: AnySpec, streams: Streams | None) -> Questions:
    """Return the questions that still stop a run: later batches, or another spec, may have settled them."""
    read = [end.intent.sources for end in streams.ends.values()] if streams else []
    deletes = [
        deletes
        for deletes in questions.deletes
        if not any((sources.ranges.get(deletes.source) or (None, -1))[1] >= deletes.source_version for sources in read)
    ]
    asks = isinstance(spec, BronzeSpec) and spec.needs_column_approval
    return Questions(deletes, questions.columns if asks else ())
