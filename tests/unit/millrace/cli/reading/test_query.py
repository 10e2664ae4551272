"""`lakehouse query`: certified rows as a table, CSV, JSON or Parquet, and nothing beyond the tables."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from embedded.clone import CLONE
from millrace.cli.reading.query import Query
from millrace.errors import ExitCode
from millrace.paths import LakehousePaths
from millrace.settings import Settings
from tests.support.cli import Lakehouse
from tests.support.reading.certified_lake import ORDERS, now_of, orders, write_version

COMMAND = str(CLONE / ".venv" / "bin" / "lakehouse")


LATE = "SELECT CASE WHEN n = 2000000 THEN error('late') ELSE n END FROM range(3000000) AS numbers(n)"
"""A query that fails after its first rows."""


@pytest.fixture
def paths(place: Mapping[str, str]) -> LakehousePaths:
    """A table of which the newest version was refused, and one of which none was certified."""
    paths = LakehousePaths(Path(place["LAKEHOUSE_ROOT"]))
    write_version(paths, orders("a", "b"))
    write_version(paths, orders("bad", "worse", "worst"), passed=False)
    write_version(paths, orders("x"), table="bronze.orders", passed=False)
    write_version(paths, orders("a", "a", "z"), table="gold.sales")
    return paths


ANSWERS: tuple[tuple[str, list[str]], ...] = (
    ("SELECT name, n FROM silver.orders ORDER BY n DESC;", ['"name","n"', '"b",1', '"a",0']),
    ('FROM "SILVER"."Orders" SELECT count(*) AS number -- a remark', ['"number"', "2"]),
    ("FROM silver.orders JOIN gold.sales USING (name) SELECT count(*) AS c", ['"c"', "2"]),
    ("PIVOT (SELECT name FROM gold.sales) ON name USING count(*)", ['"a","z"', "2,1"]),
    ("WITH o AS (FROM silver.orders) SELECT max(n) AS m FROM o", ['"m"', "1"]),
    ("SHOW TABLES", ['"name"', '"gold.sales"', '"silver.orders"']),
    ("SELECT NULL AS a, '' AS b, 'x,\"\n' AS c", ['"a","b","c"', ',"","x,""', '"']),
    ("SELECT {'x': [NULL, 'ü']} AS a, CAST(NULL AS MAP(INT, INT)) AS b", ['"a","b"', '"{""x"":[null,""ü""]}",']),
    ("SELECT map {'b': 1} AS a", ['"a"', '"{""b"":1}"']),
)
"""Query -> the lines that a pipe gets."""


@pytest.mark.usefixtures("paths")
def test_a_pipe_gets_csv_of_the_certified_rows(lakehouse: Lakehouse) -> None:
    for sql, lines in ANSWERS:
        answer = lakehouse("query", sql)
        assert (answer.exit_code, answer.stderr) == (0, ""), sql
        assert answer.stdout.splitlines() == lines, sql


REFUSED = (
    ("FROM silver.orders; DROP TABLE gold.sales", "there are 2 statements in the query"),
    ("PIVOT gold.sales ON name USING count(*); SELECT 1", "there are 2 statements in the query"),
    ("CREATE TYPE t AS ENUM ('a'); SELECT 1", "there are 2 statements in the query"),
    (" ;; -- nothing", "there are 0 statements in the query"),
    ("COPY silver.orders TO '{file}'", "it is a statement COPY"),
    ("EXPORT DATABASE '{file}'", "it is a statement EXPORT"),
    ("ATTACH '{file}' AS other", "it is a statement ATTACH"),
    ("INSTALL httpfs", "it is a statement LOAD"),
    ("SET enable_external_access = true", "it is a statement SET"),
    ("CALL pragma_version()", "it is a statement CALL"),
    ("EXPLAIN ANALYZE COPY silver.orders TO '{file}'", "no file or other place"),
    ("FROM read_text('{secret}')", "no file or other place"),
    ("FROM glob('/*')", "no file or other place"),
    ("FROM parquet_scan('s3://lake/x.parquet')", "no file or other place"),
    ("FROM '{secret}'", "no file or other place"),
    ("FROM query('COPY silver.orders TO ''{file}''')", "the query failed"),
    ("FROM versions", "does not exist"),
    ("FROM sys.modules", "does not exist"),
    ("SELECT getenv('HOME')", "does not exist"),
    ("SELEC 1", "syntax error"),
    ("SELECT nme FROM silver.orders", "the query failed"),
    ("SELECT 'x'::INT", "the query failed"),
)
"""Query, and why it is refused."""


@pytest.mark.usefixtures("paths")
def test_a_query_only_reads_tables(lakehouse: Lakehouse, tmp_path: Path) -> None:
    file, secret = tmp_path / "written", tmp_path / "secret.csv"
    secret.write_text("hush\n")
    for sql, problem in REFUSED:
        answer = lakehouse("query", sql.format(file=file, secret=secret))
        assert (answer.exit_code, answer.stdout) == (ExitCode.WRONG_USAGE, ""), sql
        assert problem in answer.stderr, sql
        assert not file.exists()
        assert "hush" not in answer.stderr


@pytest.mark.usefixtures("paths")
def test_a_table_without_a_certified_version_is_named_with_the_way_out(lakehouse: Lakehouse, tmp_path: Path) -> None:
    refused = lakehouse("query", "FROM bronze.orders")
    assert refused.exit_code == ExitCode.NOT_READY
    assert refused.stderr.startswith("bronze.orders: no version is certified\nbronze.orders version 0 refused")
    unbuilt = lakehouse("query", "FROM gold.revenue_daily")
    assert unbuilt.exit_code == ExitCode.NOT_READY
    assert "`lakehouse run --table gold.revenue_daily --interval DAY` builds it" in unbuilt.stderr
    unknown = lakehouse("query", "FROM silver.ordres")
    assert unknown.exit_code == ExitCode.WRONG_USAGE
    assert "`lakehouse tables` lists the tables." in unknown.stderr
    to_file = lakehouse("query", "FROM silver.ordres", "--parquet", str(tmp_path / "rows.parquet"))
    assert to_file.stderr == unknown.stderr, "the cause is not below the versions of all tables"


def test_an_earlier_time_is_read(lakehouse: Lakehouse, paths: LakehousePaths) -> None:
    at = now_of(paths)
    write_version(paths, orders("new"))
    sql = "SELECT string_agg(name) AS names FROM silver.orders"
    assert lakehouse("query", sql).stdout.splitlines()[1] == '"new"'
    assert lakehouse("query", sql, "--at", at.isoformat()).stdout.splitlines()[1] == '"a,b"'
    early = lakehouse("query", sql, "--at", "2013-01-01T00:00Z")
    assert (early.exit_code, "no version was certified at 2013-01-01" in early.stderr) == (ExitCode.NOT_READY, True)
    assert "has no offset from UTC" in lakehouse("query", sql, "--at", "2013-01-01T00:00").stderr
    assert "Write a day as" in lakehouse("query", sql, "--at", "yesterday").stderr


ODD = pa.table(
    {
        "text": ["ü 日本\n\"'\u2028", None],
        "number": pa.array([float("nan"), float("-inf")]),
        "list": [[1.5, float("inf")], None],
        "price": pa.array([Decimal("12345678901234567890.10"), None], pa.decimal128(30, 2)),
        "at": pa.array([datetime(2013, 1, 1, tzinfo=UTC), None], pa.timestamp("us", "UTC")),
        "tiny": pa.array([Decimal("0E-9"), Decimal("-1.2E-8")], pa.decimal128(20, 9)),
        "both": [{"no": float("nan"), "text": 'NaN "NaN"', "exact": Decimal("12345678901234567.25")}, None],
        "select": [b"\x00\xff", b""],
    }
)


def test_odd_values_are_written_in_each_form(lakehouse: Lakehouse, place: Mapping[str, str], tmp_path: Path) -> None:
    write_version(LakehousePaths(Path(place["LAKEHOUSE_ROOT"])), ODD)
    text = lakehouse("query", "FROM silver.orders", "--json").stdout
    first, second = json.loads(text, parse_constant=pytest.fail)
    assert (first["text"], first["number"], first["list"]) == (ODD["text"][0].as_py(), None, [1.5, None])
    assert (first["at"], second["price"]) == ("2013-01-01 00:00:00+00", None)
    assert "12345678901234567890.1" in text
    assert first["both"] == {"no": None, "text": 'NaN "NaN"', "exact": 12345678901234567.25}
    assert "12345678901234567.25" in text
    table = pyarrow.csv.read_csv(
        io.BytesIO(lakehouse("query", "FROM silver.orders", "--csv").stdout_bytes),
        parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True),
        convert_options=pyarrow.csv.ConvertOptions(strings_can_be_null=True, quoted_strings_can_be_null=False),
    )
    assert table["text"].to_pylist() == ODD["text"].to_pylist()
    assert json.loads(table["both"][0].as_py(), parse_constant=pytest.fail) == first["both"]
    as_sent = lakehouse("query", "SELECT tiny, 1.5::DOUBLE AS d, 'x' AS t, NULL::INT AS n FROM silver.orders", "--csv")
    assert as_sent.stdout.splitlines() == ['"tiny","d","t","n"', '0.000000000,1.5,"x",', '-0.000000012,1.5,"x",']
    file = tmp_path / "out.parquet"
    answer = lakehouse("query", "FROM silver.orders", "--parquet", str(file))
    assert (answer.exit_code, "wrote 2 rows" in answer.stdout) == (0, True)
    assert pq.read_table(file).drop(["number", "both"]).equals(ODD.drop(["number", "both"]))
    assert {path.name for path in tmp_path.glob("*out.parquet*")} == {"out.parquet"}


@pytest.mark.usefixtures("paths")
def test_what_cannot_be_written_leaves_no_file(lakehouse: Lakehouse, place: Mapping[str, str], tmp_path: Path) -> None:
    file = tmp_path / "no" / "folder.parquet"
    assert "cannot be written" in lakehouse("query", "SELECT 1", "--parquet", str(file)).stderr
    of_table = next(Path(place["LAKEHOUSE_ROOT"]).rglob("*.parquet"))
    before = of_table.read_bytes()
    refused = lakehouse("query", "SELECT 1", "--parquet", str(of_table))
    assert refused.exit_code == ExitCode.WRONG_USAGE
    assert "is in the lakehouse's own folder" in refused.stderr
    assert of_table.read_bytes() == before
    kept = tmp_path / "kept.parquet"
    kept.write_text("before")
    failed = lakehouse("query", "SELECT error(name) FROM silver.orders", "--parquet", str(kept))
    assert (failed.exit_code, kept.read_text()) == (ExitCode.WRONG_USAGE, "before")
    for form in (["--parquet", str(kept)], ["--csv"]):
        failed = lakehouse("query", LATE, *form)
        assert failed.exit_code == ExitCode.WRONG_USAGE
        assert "the query failed: Invalid Input Error: late" in " ".join(failed.stderr.split())
    assert [path.name for path in tmp_path.glob("*.parquet*")] == ["kept.parquet"]
    assert "same name" in lakehouse("query", "SELECT 1 AS a, 2 AS a", "--json").stderr
    assert lakehouse("query", "SELECT 1 WHERE false", "--json").stdout == "[]\n"
    assert "state one of" in lakehouse("query", "SELECT 1", "--json", "--csv").stderr


@pytest.mark.usefixtures("paths")
def test_a_terminal_gets_a_table_that_fits_and_the_versions_that_were_read(place: Mapping[str, str]) -> None:
    master, slave = pty.openpty()
    environment = {**os.environ, **place, "COLUMNS": "60", "TERM": "xterm"}
    wide = "repeat('c', 30) AS c, repeat('d', 30) AS d, n AS e"
    sql = f"SELECT n, repeat('x', 90) AS \"[b]wide\", {wide} FROM silver.orders, range(30)"
    process = subprocess.Popen(
        [COMMAND, "query", sql, "--limit", "2"], stdout=slave, stderr=subprocess.PIPE, env=environment, cwd=CLONE
    )
    os.close(slave)
    shown = b""
    while b"write\r\nall." not in shown and b"write all." not in shown:
        shown += os.read(master, 4096)
    _, problems = process.communicate(timeout=60)
    os.close(master)
    assert process.returncode == 0
    lines = re.sub(r"\x1b\[[0-9;]*m", "", shown.decode()).splitlines()
    assert lines[1].split() == ["n", "[b]wide", "c"]
    assert max(map(len, lines)) <= 60
    assert "2 more columns do not fit: d, e" in lines
    assert "... and 58 more rows" in " ".join(lines)
    assert problems.decode().startswith(f"{ORDERS}: version 0, certified ")


def test_a_file_that_vacuum_has_deleted_is_told(lakehouse: Lakehouse, paths: LakehousePaths) -> None:
    for file in paths.table(ORDERS).glob("*.parquet"):
        file.unlink()
    for form in ("--csv", "--json"):
        answer = lakehouse("query", "FROM silver.orders", form)
        assert answer.exit_code == ExitCode.FAILED
        assert "VACUUM has deleted it" in answer.stderr


def test_a_failure_that_only_says_that_the_query_was_interrupted_is_asked_for_its_cause() -> None:
    interrupted = OSError("INTERRUPT Error: Interrupted!")
    with duckdb.connect() as connection:
        connection.execute("SET lock_configuration = true")
        assert "late" in str(Query(LATE, connection, {}, {}, Settings()).cause_of(interrupted))
        assert Query("SELECT 1", connection, {}, {}, Settings()).cause_of(interrupted) is interrupted
