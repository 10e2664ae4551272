"""The metrics of a lakehouse: the same facts as its pages, valid names, few labels, and counters that only grow."""

from __future__ import annotations

import json
import re
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from prometheus_client import generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families
from typer.testing import CliRunner

from embedded.clone import CLONE
from millrace.cli.app import app
from millrace.contracts.job.contention import LeaseWait, LostRace
from millrace.control.ledger.commit_history import CommitHistory, TableWrite
from millrace.control.ledger.events import FileEvent
from millrace.control.ledger.ledger import Ledger
from millrace.control.ledger.resolution import table_id
from millrace.control.log.batch import FileFact
from millrace.control.ops_tables import OPS_TABLES
from millrace.metrics.collector import LakehouseCollector
from millrace.overview.lakehouse import LakehouseReader
from millrace.paths import LakehousePaths
from tests.support.airflow.shown_lakehouse import EVIL, make_shown_lakehouse
from tests.support.commands import require_command
from tests.support.documents.specs import bronze_spec
from tests.support.ledger.delta_tables import day, judge, load_batch

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lakehouse with a table in each condition, hostile texts, and two runs that lost a commit."""
    root = tmp_path_factory.mktemp("lake")
    make_shown_lakehouse(root / "tables", root / "specs")
    paths = LakehousePaths(root / "tables")
    broken = FileFact(path=EVIL, size=9, mtime_ns=1, checksum="aa", defect=EVIL)
    for _ in range(3):
        identity = table_id(paths.table("bronze.orders"))
        Ledger(paths).record_files(FileEvent.FAILED, "bronze.orders", identity, day(), [broken])
    race = LostRace(conflict="ConcurrentAppendException", operation=EVIL, run_id=EVIL, version=4)
    waited = LeaseWait(seconds=2.5, holders=EVIL)
    write = TableWrite("bronze.orders", EVIL, datetime.now(UTC), attempts=2, waited=waited, lost=(race,))
    for _ in range(2):
        CommitHistory(paths).record(write)
    return root


def scraped(root: Path, later: timedelta = timedelta()) -> Samples:
    text = generate_latest(collector(root, later)).decode()
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def collector(root: Path, later: timedelta = timedelta()) -> LakehouseCollector:
    reader = LakehouseReader(LakehousePaths(root / "tables"), root / "specs")
    return LakehouseCollector(reader, clock=lambda: datetime.now(UTC) + later)


def value(samples: Samples, name: str, table: str, **labels: str) -> float | None:
    layer, domain = table.split(".")[0], "shop"
    return samples.get((name, frozenset({"layer": layer, "domain": domain, "table": table, **labels}.items())))


def test_each_fact_of_a_table_is_a_number(lake: Path) -> None:
    samples = scraped(lake)
    orders, refused = "bronze.orders", "silver.orders"
    assert value(samples, "millrace_table_condition", orders, condition="certified") == 1
    assert value(samples, "millrace_table_condition", orders, condition="refused") == 0
    assert value(samples, "millrace_table_rows", orders) == 24
    assert value(samples, "millrace_table_files", orders) == 3
    assert value(samples, "millrace_quarantine_rows", orders) == 4
    assert value(samples, "millrace_landing_given_up_files", orders) == 1
    assert value(samples, "millrace_batches_total", orders, kind="load") == 3
    assert value(samples, "millrace_batches_total", orders, kind="restore") == 0
    assert value(samples, "millrace_rows_total", orders, action="applied") == 24
    assert value(samples, "millrace_row_changes_total", orders, action="inserted") == 24
    assert value(samples, "millrace_lease_wait_seconds_total", orders) == 5
    assert value(samples, "millrace_commit_retries_total", orders) == 2
    assert value(samples, "millrace_commit_conflicts_total", orders, kind="ConcurrentAppendException") == 2
    assert value(samples, "millrace_commit_retries_total", refused) == 0
    versions = ("millrace_table_newest_version", "millrace_table_certified_version")
    assert [value(samples, name, refused) for name in versions] == [2, 1]
    assert value(samples, "millrace_table_attention", refused, kind="refused") == 1
    assert value(samples, "millrace_table_newest_version", "bronze.never") is None
    assert value(samples, "millrace_table_condition", "bronze.never", condition="never run") == 1
    assert samples["millrace_ledger_bytes", frozenset({("ops_table", "batches")})] > 0
    ops = {path.name for path in (lake / "tables" / "ops").iterdir()}
    assert ops <= set(OPS_TABLES), "each table of the ledger has a size"


def test_the_certified_version_is_behind_by_versions_and_by_time(lake: Path) -> None:
    for later in (timedelta(), timedelta(hours=2)):
        samples = scraped(lake, later)
        assert value(samples, "millrace_table_certified_lag_versions", "silver.orders") == 1
        assert value(samples, "millrace_table_certified_lag_versions", "bronze.unchecked") == 2, "0 and 1"
        for table, least in (("silver.orders", later), ("bronze.unchecked", later), ("bronze.orders", timedelta())):
            lag = value(samples, "millrace_table_certified_lag_seconds", table)
            assert lag is not None
            assert least.total_seconds() <= lag < least.total_seconds() + (600 if table != "bronze.orders" else 1)


def test_no_label_has_a_value_of_a_source_a_run_or_a_person(lake: Path) -> None:
    names, values = set(), set()
    for _, labels in scraped(lake):
        names |= {name for name, _ in labels}
        values |= {value for name, value in labels if name not in ("table", "layer")}
    assert names == {"layer", "domain", "table", "condition", "kind", "action", "ops_table"}
    assert len(values) < 50
    assert not [value for value in values if "script" in value or "run" in value.split("-")]


def test_a_counter_never_becomes_smaller_and_a_lost_state_does_not_reset_it(tmp_path: Path) -> None:
    make_shown_lakehouse(tmp_path / "tables", tmp_path / "specs")
    spec, before = bronze_spec(), scraped(tmp_path)
    for step in ("batch", "lose", "batch"):
        if step == "lose":
            (tmp_path / "tables" / "_millrace" / "state" / spec.table).unlink()
            continue
        judge(tmp_path / "tables", spec, load_batch(tmp_path / "tables", spec, rows=3).version)
        after = scraped(tmp_path)
        counters = [key for key in before if key[0].endswith("_total")]
        assert counters
        assert not [key for key in counters if after[key] < before[key]]
        before = after
    assert value(before, "millrace_rows_total", spec.table, action="applied") == 30


def test_each_name_is_valid_in_both_formats_and_the_guide_explains_it(lake: Path) -> None:
    families = list(parse_openmetrics(generate_openmetrics(collector(lake)).decode()))
    assert {sample.name for family in families for sample in family.samples} == {name for name, _ in scraped(lake)}
    guide = (CLONE / "docs" / "guides" / "metrics.md").read_text()
    collected = [(family.name, family.type) for family in collector(lake).collect()]
    names = {f"{name}_total" if kind == "counter" else name for name, kind in collected}
    assert set(re.findall(r"`(millrace_\w+)`", guide)) == names


def test_promtool_accepts_each_name_and_each_query(lake: Path, tmp_path: Path) -> None:
    require_command("promtool", package="prometheus")
    checked = subprocess.run(
        ["promtool", "check", "metrics"], input=generate_latest(collector(lake)), capture_output=True, check=False
    )
    assert (checked.returncode, checked.stderr.decode()) == (0, "")
    rules = [{"record": f"query:{number}", "expr": query} for number, query in enumerate(queries())]
    (tmp_path / "rules.yml").write_text(json.dumps({"groups": [{"name": "all", "rules": rules}]}))  # JSON is YAML
    command = ["promtool", "check", "rules", "--lint=none", str(tmp_path / "rules.yml")]
    of_rules = subprocess.run(command, capture_output=True, text=True, check=False)
    assert f"{len(rules)} rules found" in of_rules.stdout, of_rules.stderr


def queries() -> list[str]:
    """Return the queries of the dashboard, with a value for each of its variables, and of the rule in the guide."""
    text = (CLONE / "docs" / "examples" / "grafana" / "lakehouse.json").read_text()
    found = [json.loads(f'"{query}"') for query in re.findall(r'"expr": "((?:[^"\\]|\\.)*)"', text)]
    [rule] = re.findall(r"expr: (.*)", (CLONE / "docs" / "guides" / "alerts.md").read_text())
    return [re.sub(r"\$__rate_interval", "5m", re.sub(r"\$(domain|layer)", ".*", query)) for query in (*found, rule)]


def test_each_query_names_metrics_and_labels_that_exist(lake: Path) -> None:
    labels = {name: {label for label, _ in pairs} for name, pairs in scraped(lake)}
    assert len(queries()) > 15
    for query in queries():
        metrics = re.findall(r"\bmillrace_\w+", query)
        assert metrics, query
        used = {label for group in re.findall(r"by \(([\w, ]+)\)", query) for label in group.split(", ")}
        used |= set(re.findall(r"(\w+)=~?\"", query))
        assert used <= set.intersection(*(labels[metric] for metric in metrics)), query


def test_the_command_prints_the_same_and_writes_it_whole(lake: Path, tmp_path: Path) -> None:
    place = {"LAKEHOUSE_ROOT": str(lake / "tables"), "LAKEHOUSE_TABLES": str(lake / "specs")}
    printed = CliRunner().invoke(app, ["metrics"], env=place).stdout
    assert "# TYPE millrace_batches_total counter\n" in printed
    CliRunner().invoke(app, ["metrics", "--write-to", str(tmp_path / "millrace.prom")], env=place)
    assert [path.name for path in tmp_path.iterdir()] == ["millrace.prom"]
    written = (tmp_path / "millrace.prom").read_text()
    assert [line for line in written.splitlines() if "lag_seconds" not in line] == [
        line for line in printed.splitlines() if "lag_seconds" not in line
    ]
    missing = CliRunner().invoke(app, ["metrics", "--write-to", "/nowhere/millrace.prom"], env=place)
    assert (missing.exit_code, "there is no folder /nowhere" in missing.stderr) == (2, True)
