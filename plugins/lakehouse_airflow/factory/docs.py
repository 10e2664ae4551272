"""The pages that Airflow shows for a DAG and its tables, written from the specs."""

from __future__ import annotations

from collections.abc import Iterable

from lakehouse_airflow.ui.links import glossary_path, table_path
from millrace.contracts.spec.common_settings import ColumnSpec
from millrace.contracts.spec.expectation import Expectation
from millrace.contracts.spec.expectation_arguments import COLUMN_ARGUMENTS, COLUMN_LIST_ARGUMENTS
from millrace.contracts.spec.table_spec import AnySpec, BronzeSpec, GoldSpec, SilverQuerySpec, SilverSpec
from millrace.specs.invalid_spec import InvalidSpec, MaybeInvalidSpec

_FRESHNESS = "expect_table_to_be_fresh"


def domain_doc(domain: str, specs: Iterable[MaybeInvalidSpec]) -> str:
    """Return the page of a domain: its tables, their descriptions and what they read."""
    tables = _table(
        "table | what it is | reads", ((_link(spec.table), _description(spec), _reads(spec)) for spec in specs)
    )
    words = f"The [glossary]({glossary_path()}) explains words such as batch, gate, certified version and quarantine."
    return _without_pictures("\n\n".join([f"The tables of **{domain}**, in the order they are built.", tables, words]))


def table_doc(spec: MaybeInvalidSpec, owner: str = "") -> str:
    """Return the page of a table: what it is, its columns and its rules with their bounds; or its spec's problems.

    Args:
        spec: the spec of the table.
        owner: the owner of a table whose spec names none.
    """
    if isinstance(spec, InvalidSpec):
        problems = [f"- {problem}" for problem in spec.problems]
        return _without_pictures("\n".join(["**Its spec is wrong**, so it does not run:", "", *problems]))
    rules = [band for rule in spec.expectations for band in rule.bands]
    fresh = [f"`{_rule_text(rule)}`, else {rule.action}" for rule in rules if rule.name == _FRESHNESS]
    facts = {
        "reads": _reads(spec),
        "one row for each": _key_of(spec),
        "owner": spec.owner or owner,
        "contact": spec.contact,
        "classification": spec.classification,
        "freshness": "; ".join(fresh) or "no rule checks the age of the rows",
    }
    parts = [spec.description, _table(f"table | {_link(spec.table)}", (fact for fact in facts.items() if fact[1]))]
    parts += ["### Columns", _columns_of(spec)]
    if spec.expectations:
        rows = (
            (f"`{_rule_text(band)}`", band.action, band.reason) for rule in spec.expectations for band in rule.bands
        )
        parts += ["### Rules", _table("rule | if it fails | why", rows)]
    return _without_pictures("\n\n".join(part for part in parts if part))


def files_doc(spec: MaybeInvalidSpec, of_table: str) -> str:
    """Return the page of the task that waits for the landing files of a table; the page of the table follows.

    Args:
        spec: the spec of the bronze table.
        of_table: the page of the table, as `table_doc` returns it.
    """
    if not isinstance(spec, BronzeSpec):
        return of_table
    source = spec.landing_source
    wait = f"""Waits for the landing folder of the run's interval, `{source.landing}/{source.path}`: at most
{source.wait.timeout} (hours:minutes:seconds), with a look every {source.wait.poke_interval} (`source.wait` of the
spec). It takes no worker while it waits. In a backfill it looks once. If it fails, clear it with the tasks after it
when the source has delivered."""
    return f"{wait}\n\n{of_table}"


def _without_pictures(page: str) -> str:
    """Return a page with its pictures as text: the browser of a reader would load them from anywhere."""
    return page.replace("![", r"!\[")


def _link(table: str) -> str:
    return f"[`{table}`]({table_path(table)})"


def _columns_of(spec: AnySpec) -> str:
    if isinstance(spec, GoldSpec):
        if spec.query is not None:
            return f"```sql\n{spec.query.strip()}\n```"
        groups = ((f"`{name}`", "group", f"`{sql}`") for name, sql in spec.group_by.items())
        measures = ((f"`{name}`", "measure", f"`{sql}`") for name, sql in spec.measures.items())
        return _table("column | is a | computed as", (*groups, *measures))
    stored = spec.stored_columns if isinstance(spec, SilverSpec) else spec.columns
    rows = ((f"`{name}`", _type_of(spec.columns[name]), spec.columns[name].description) for name in stored)
    return _table("column | type | meaning and unit", rows)


def _type_of(column: ColumnSpec) -> str:
    return f"{column.type}{'' if column.nullable else ', never null'}{', required' if column.required else ''}"


def _rule_text(rule: Expectation) -> str:
    """Return a rule with its columns and bounds, such as `expect_column_max_to_be_between(a, max_value=9)`."""
    named = (*COLUMN_ARGUMENTS, *COLUMN_LIST_ARGUMENTS)
    bounds = [f"{name}={value}" for name, value in rule.arguments.items() if name not in named]
    columns = [rule.arguments[name] for name in named if name in rule.arguments]
    texts = [", ".join(map(str, column)) if isinstance(column, list | tuple) else str(column) for column in columns]
    return f"{rule.name}({', '.join(texts + bounds)})"


def _key_of(spec: AnySpec) -> str:
    if isinstance(spec, SilverSpec | SilverQuerySpec):
        return ", ".join(spec.keys)
    return ", ".join(spec.group_by) if isinstance(spec, GoldSpec) else ""


def _description(spec: MaybeInvalidSpec) -> str:
    return "**its spec is wrong**" if isinstance(spec, InvalidSpec) else spec.description


def _reads(spec: MaybeInvalidSpec) -> str:
    if isinstance(spec, BronzeSpec):
        return f"{'messages of' if spec.reads_kafka else 'landing files'} `{spec.source.label}`"
    return ", ".join(f"`{table}`" for table in dict.fromkeys(spec.source_tables))


def _table(head: str, rows: Iterable[tuple[str, ...]]) -> str:
    """Return a Markdown table; `head` has the titles of its columns, with ` | ` between them."""
    lines = [" | ".join(_cell(text) for text in row) for row in rows]
    return "\n".join(f"| {line} |" for line in (head, " | ".join("---" for _ in head.split(" | ")), *lines))


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
