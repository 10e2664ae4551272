"""The pages that Airflow shows for a DAG and its tables, written from the specs."""

from __future__ import annotations

from collections.abc import Iterable

from include.contracts.spec.table_spec import BronzeSpec, SilverSpec
from include.specs.invalid_spec import InvalidSpec, MaybeInvalidSpec
from lakehouse_airflow.ui.links import glossary_path


def domain_doc(domain: str, specs: Iterable[MaybeInvalidSpec]) -> str:
    """Return the page of a domain: its tables, their descriptions and what they read."""
    rows = [f"| `{spec.table}` | {_cell(_description(spec))} | {_cell(_reads(spec))} |" for spec in specs]
    head = ["| table | what it is | reads |", "|---|---|---|"]
    words = f"The [glossary]({glossary_path()}) explains words such as batch, gate, certified version and quarantine."
    return "\n".join([f"The tables of **{domain}**, in the order they are built.", "", *head, *rows, "", words])


def table_doc(spec: MaybeInvalidSpec) -> str:
    """Return the page of a table: its description, sources and expectations; or the problems of its spec."""
    if isinstance(spec, InvalidSpec):
        problems = [f"- {problem}" for problem in spec.problems]
        return "\n".join(["**Its spec is wrong**, so it does not run:", "", *problems])
    facts = [spec.description, f"Reads {_reads(spec)}."]
    if isinstance(spec, SilverSpec):
        facts.append(f"One row for each {', '.join(spec.keys)}.")
    rules = [
        f"- `{rule.rule}`, else {rule.action}" + (f": {rule.reason}" if rule.reason else "")
        for rule in spec.expectations
    ]
    return "\n\n".join([fact for fact in facts if fact] + (["Expectations:\n" + "\n".join(rules)] if rules else []))


def _description(spec: MaybeInvalidSpec) -> str:
    return "**its spec is wrong**" if isinstance(spec, InvalidSpec) else spec.description


def _reads(spec: MaybeInvalidSpec) -> str:
    if isinstance(spec, BronzeSpec):
        return f"{'messages of' if spec.reads_kafka else 'landing files'} `{spec.source.label}`"
    return ", ".join(f"`{table}`" for table in spec.source_tables)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
