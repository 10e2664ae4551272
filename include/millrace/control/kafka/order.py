"""Notes about the order of Kafka messages, for people."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from millrace.contracts.counted import counted
from millrace.contracts.spec.bronze_sources import EPOCH
from millrace.contracts.spec.table_spec import AnySpec, BronzeSpec, SilverSpec
from millrace.control.log.batch import BatchSources

_WAY_OUT = f"begin its sequence_by with a column whose `from` is coalesce({EPOCH}, 0)"


def sequence_notes(specs: Mapping[str, AnySpec]) -> Iterator[str]:
    """Yield a line about each silver table that orders the messages of a topic by their offsets alone."""
    topics = [spec.table for spec in specs.values() if isinstance(spec, BronzeSpec) and spec.reads_kafka]
    for spec in specs.values():
        if isinstance(spec, SilverSpec) and (by_offset := [table for table in topics if _is_by_offset(spec, table)]):
            yield (
                f"{spec.table}: offsets start again when a topic is made again or gets partitions, and new events of "
                f"{', '.join(by_offset)} would lose against older ones: {_WAY_OUT}"
            )


def order_notes(table: str, sources: BatchSources, specs: Iterable[AnySpec]) -> Iterator[str]:
    """Yield a line about each topic whose messages in a batch have no known order, with their number.

    Args:
        table: the bronze table.
        sources: those of the batch.
        specs: of all tables. A silver table that orders rows by their offsets alone takes those of a later epoch for
            older ones.
    """
    for topic, number in sources.unordered.items():
        yield (
            f"{topic}: it got partitions; {counted(number, 'message')} of its older ones came before or after that, so "
            "that events of a key that has moved between these may be in the wrong order"
        )
    by_offset = [spec.table for spec in specs if isinstance(spec, SilverSpec) and _is_by_offset(spec, table)]
    for topic, epochs in sources.epochs.items() if by_offset else ():
        spans = sources.offsets[topic]
        if number := sum(spans[at][1] - spans[at][0] for at, epoch in epochs.items() if epoch):
            yield (
                f"{topic}: {counted(number, 'message')} of a later epoch, whose offsets start again, may lose against "
                f"older ones in {', '.join(by_offset)}: {_WAY_OUT}"
            )


def _is_by_offset(spec: SilverSpec, table: str) -> bool:
    """Return whether a table orders the rows of a bronze table by their offsets, and not by their epochs before."""
    if table not in spec.source_tables:
        return False
    columns = spec.of_source(table).columns
    read = [columns[name].expression or name if name in columns else name for name in spec.sequence_by]
    upto = next((at for at, text in enumerate(read) if re.search(r"\b_offset\b", text)), None)
    return upto is not None and not any(re.search(rf"\b{EPOCH}\b", text) for text in read[: upto + 1])
