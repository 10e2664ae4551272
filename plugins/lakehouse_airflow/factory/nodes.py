"""What a DAG is made of, as plain data: which tables, in which layers, after which others. No Airflow here."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from include.contracts.job.args import WRITER_OF_LAYER, Job
from include.contracts.spec.table_spec import BronzeSpec
from include.specs.refused import StatedSpec
from lakehouse_airflow.factory.docs import table_doc


@dataclass(frozen=True)
class TableNode:
    """One table: a task that writes it, and one that judges it.

    Attributes:
        table: `<layer>.<name>`.
        name: the name of both tasks within their layer's group.
        writer: the job that writes it.
        after: tables of the same DAG whose gates must pass first.
        owner: who looks after it; empty for the DAG's owner.
        doc: the page that Airflow shows for it.
        asks_for_columns: whether people are asked before a new field becomes a column.
    """

    table: str
    name: str
    writer: Job
    after: tuple[str, ...]
    owner: str
    doc: str
    asks_for_columns: bool = False


@dataclass(frozen=True)
class LayerNode:
    """One layer and its tables: a group of tasks."""

    layer: str
    tables: tuple[TableNode, ...]


def layers_of(specs: Iterable[StatedSpec]) -> tuple[LayerNode, ...]:
    """The specs as layers, both in the order of `specs`, which is the order they are built in."""
    ordered = tuple(specs)
    present = frozenset(spec.table for spec in ordered)
    layers = dict.fromkeys(spec.layer for spec in ordered)
    return tuple(
        LayerNode(layer, tuple(_node(spec, present) for spec in ordered if spec.layer == layer)) for layer in layers
    )


def _node(spec: StatedSpec, present: frozenset[str]) -> TableNode:
    return TableNode(
        table=spec.table,
        name=spec.name,
        writer=WRITER_OF_LAYER[spec.layer],
        after=tuple(dict.fromkeys(table for table in spec.source_tables if table in present)),
        owner=spec.owner,
        doc=table_doc(spec),
        asks_for_columns=isinstance(spec, BronzeSpec) and spec.asks_for_columns,
    )
