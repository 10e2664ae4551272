"""The structure of a domain's DAG as plain data, without Airflow: the tables, their layers and their order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from include.contracts.job.args import WRITER_OF_LAYER, Job
from include.contracts.spec.table_spec import BronzeSpec
from include.specs.invalid_spec import MaybeInvalidSpec
from lakehouse_airflow.factory.docs import table_doc


@dataclass(frozen=True)
class TableNode:
    """One table: a task that writes it, and one that checks it.

    Attributes:
        table: `<layer>.<name>`.
        name: the name of both tasks within their layer's group.
        writer: the job that writes it.
        after: tables of the same DAG whose gates must pass first.
        owner: its owner; empty for the DAG's owner.
        doc: the page that Airflow shows for it.
        needs_column_approval: whether people are asked before a new field becomes a column.
    """

    table: str
    name: str
    writer: Job
    after: tuple[str, ...]
    owner: str
    doc: str
    needs_column_approval: bool = False


def layers_of(specs: Iterable[MaybeInvalidSpec]) -> dict[str, list[TableNode]]:
    """Return layer -> its tables; layers and tables keep the order of `specs`, which is the build order."""
    in_order = tuple(specs)
    present = frozenset(spec.table for spec in in_order)
    layers: dict[str, list[TableNode]] = {}
    for spec in in_order:
        layers.setdefault(spec.layer, []).append(_node(spec, present))
    return layers


def _node(spec: MaybeInvalidSpec, present: frozenset[str]) -> TableNode:
    return TableNode(
        table=spec.table,
        name=spec.name,
        writer=WRITER_OF_LAYER[spec.layer],
        after=tuple(dict.fromkeys(table for table in spec.source_tables if table in present)),
        owner=spec.owner,
        doc=table_doc(spec),
        needs_column_approval=isinstance(spec, BronzeSpec) and spec.needs_column_approval,
    )
