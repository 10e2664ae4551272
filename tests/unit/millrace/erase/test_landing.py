"""Landing files without the records of a subject: nothing else of them changes, and they still count as loaded."""

from __future__ import annotations

import gzip
import io
import json
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from deltalake import DeltaTable, write_deltalake

from millrace.contracts.spec.table_spec import BronzeSpec, EraseSpec
from millrace.control.landing.earlier_runs import EarlierRuns
from millrace.control.landing.file_states import file_states
from millrace.control.landing.ingest import FilePlan, plan_files
from millrace.control.landing.inspection import inspect
from millrace.control.landing.on_disk import LocalLanding
from millrace.control.leases.store import lakehouse_leases
from millrace.control.ledger.ledger import Ledger
from millrace.control.ledger.resolution import table_id
from millrace.control.log.batch import BatchSources, Stream, Winner
from millrace.erase.landing import LandingWork, erase_landing
from millrace.erase.stripping import NotExactError, Stripping
from millrace.erase.subjects import Subjects
from millrace.settings import Settings
from tests.support.documents.specs import bronze_spec
from tests.support.ledger.delta_tables import day, intent_of

GONE = Subjects("customer", ("C-17", "17"))


def stripping(format_of: str, **more: Any) -> Stripping:
    """Return what strips files of a source with the key in `who.id` and `number`."""
    is_csv = format_of == "csv"
    columns = {
        "order_id": {"type": "string"},
        "buyer": {"type": "string", **({} if is_csv else {"from": "who.id"})},
        "number": {"type": "bigint"},
    }
    source = {"landing": "orders", "files": "*", "format": format_of, **more}
    spec = bronze_spec(columns=columns, source=source, subject_keys={"buyer": "customer", "number": "customer"})
    return Stripping(spec, GONE)


def stripped(tool: Stripping, content: bytes, name: str = "a") -> tuple[bytes, int]:
    target = io.BytesIO()
    removed = tool.strip(name, io.BytesIO(content), target)
    return target.getvalue(), removed


@pytest.mark.parametrize(
    ("before", "after", "removed"),
    [
        (b'{"who": {"id": "C-17"}}\n\n{"who":{"id":"C-18"}}\r\n', b'\n{"who":{"id":"C-18"}}\r\n', 1),
        (b'\xef\xbb\xbf{"number": 17}\r{"number": "17.0"}\r{"number": 18 }', b'\xef\xbb\xbf{"number": 18 }', 2),
        (b'{"who": {"id": "C-18", "id": "C-17"}}\n{"text": "C-17"}\n{bro', b'{"text": "C-17"}\n{bro', 1),
        (b'{"who": "{\\"id\\": \\"C-17\\"}"}\n', b"", 1),
        (b'{"who": {"id": "0017"}}\n', b'{"who": {"id": "0017"}}\n', 0),  # a text: another key
        (b' [ {"number":17} ,\n {"number": 1.0e1},{"number":17}\t]\n', b' [ {"number": 1.0e1}\t]\n', 2),
        (b'[{"number":1}\n, {"number":17}\n, {"number":2}\n]', b'[{"number":1}\n, {"number":2}\n]', 1),
        (b'[{"number":17}]', b"[]", 1),
        (b"[ ]", b"[ ]", 0),
        (b"", b"", 0),
    ],
)
def test_json_records_keep_their_bytes(before: bytes, after: bytes, removed: int) -> None:
    assert stripped(stripping("json"), before) == (after, removed)


@pytest.mark.parametrize(
    ("settings", "before", "after", "removed"),
    [
        ({}, 'order_id,buyer,number\no1,C-17,\n\no2, "x"\r,1\no3,,17\n', 'order_id,buyer,number\n\no2, "x"\r,1\n', 2),
        ({}, '\ufeff"buyer",order_id\r\n"C-17","several\nlines"\r\n"C-18","a ""b"""\r\n', None, 1),
        ({"header": False, "delimiter": ";", "encoding": "ISO-8859-1"}, "ö1;C-17;\nö2;C-18;\n", "ö2;C-18;\n", 1),
        ({"multi_line": False}, 'order_id,buyer\n"o1,C-18\no2,C-17\n', 'order_id,buyer\n"o1,C-18\n', 1),
        ({"escape": "\\"}, 'order_id,buyer\no1,"C-17"\no2,"a \\"b\\\\"\n', 'order_id,buyer\no2,"a \\"b\\\\"\n', 1),
        ({"field_names": "any_case"}, "ORDER_ID,Buyer\ro1,C-17\ro2,C-18\r", "ORDER_ID,Buyer\ro2,C-18\r", 1),
    ],
)  # fmt: skip
def test_csv_records_keep_their_bytes(settings: dict[str, Any], before: str, after: str | None, removed: int) -> None:
    after = '\ufeff"buyer",order_id\r\n"C-18","a ""b"""\r\n' if after is None else after
    encoding = settings.get("encoding", "UTF-8")
    assert stripped(stripping("csv", **settings), before.encode(encoding)) == (after.encode(encoding), removed)


def test_compressed_files_stay_compressed_and_the_same_content_has_the_same_bytes() -> None:
    lines = b'{"number": 17}\n{"number": 18}\n'
    for name, pack, unpack in (
        ("a.gz", gzip.compress, gzip.decompress),
        ("a.zst", zstandard.compress, lambda data: zstandard.ZstdDecompressor().stream_reader(data).read()),
    ):
        first, again = (stripped(stripping("json"), pack(lines), name) for _ in range(2))
        assert unpack(first[0]) == b'{"number": 18}\n'
        assert first == again


def test_a_parquet_file_keeps_its_types_codecs_notes_and_other_rows() -> None:
    who = pa.array([{"id": "C-17"}, {"id": "C-18"}, None], pa.struct({"id": pa.string()}))
    rows = pa.table({"who": who, "n": pa.array([1, 2, 3], pa.uint8()), "t": pa.array([1, None, 3], pa.timestamp("us"))})
    rows = rows.replace_schema_metadata({"note": "kept"})
    stored = io.BytesIO()
    pq.write_table(rows, stored, compression={"who.id": "gzip", "n": "none", "t": "zstd"}, row_group_size=2)
    new, removed = stripped(stripping("parquet"), stored.getvalue())
    assert removed == 1
    assert pq.read_table(io.BytesIO(new)).equals(rows.slice(1), check_metadata=True)
    before, after = (pq.ParquetFile(io.BytesIO(each)).metadata for each in (stored.getvalue(), new))
    codecs = [[each.row_group(0).column(at).compression for at in range(3)] for each in (before, after)]
    assert codecs[0] == codecs[1] == ["GZIP", "UNCOMPRESSED", "ZSTD"]


def old_times(*times: int) -> bytes:
    """Return a Parquet file with times in microseconds, of the old type INT96; the first row is of a subject."""
    stored = io.BytesIO()
    rows = pa.table({"number": range(17, 17 + len(times)), "t": pa.array(times, pa.timestamp("us"))})
    pq.write_table(rows, stored, use_deprecated_int96_timestamps=True, store_schema=False)
    return stored.getvalue()


def test_a_parquet_file_keeps_times_of_the_old_type() -> None:
    new, removed = stripped(stripping("parquet"), old_times(0, -2_208_970_799_999_993))
    written = pq.ParquetFile(io.BytesIO(new))
    assert (removed, written.schema.column(1).physical_type) == (1, "INT96")
    assert written.read()["t"].cast(pa.int64()).to_pylist() == [-2_208_970_799_999_993_000]


def test_what_cannot_be_written_again_exactly_is_refused() -> None:
    with pytest.raises(NotExactError, match="times in t"):
        stripped(stripping("parquet"), old_times(0, 32_503_680_000_000_000))
    with pytest.raises(NotExactError, match="UTF-16"):
        stripped(stripping("csv", encoding="UTF-16"), json.dumps("").encode("UTF-16"))
    for odd in ("o1,C-17\\\no2,C-18\n", 'o1,"C\\-17"\n', 'o1,\\"C-17\no2,"\n'):
        with pytest.raises(NotExactError, match="escapes nothing"):
            stripped(stripping("csv", escape="\\"), f"order_id,buyer\n{odd}".encode())
    with pytest.raises(NotExactError, match="Avro"):
        stripped(stripping("avro"), b"Obj\x01")


@pytest.fixture
def lake(settings: Settings) -> Lake:
    """Orders of two buyers in two files, which two tables load."""
    columns = {"order_id": {"type": "string"}, "buyer": {"type": "string"}}
    common = {"columns": columns, "subject_keys": {"buyer": "customer"}}
    source = {"landing": "orders", "files": "*.json", "format": "json"}
    return Lake(settings, {table: bronze_spec(table=table, source=source, **common) for table in TABLES})


@dataclass(frozen=True)
class Lake:
    """A lakehouse whose tables load the same landing files, without Spark."""

    settings: Settings
    specs: Mapping[str, BronzeSpec]

    @property
    def ledger(self) -> Ledger:
        return Ledger(self.settings.paths)

    def deliver(self, name: str, content: str) -> Path:
        file = Path(self.settings.landing) / "orders/date=2013-01-01" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
        return file

    def id_of(self, table: str) -> str:
        path = str(self.settings.paths.table(table))
        if not DeltaTable.is_deltatable(path):
            write_deltalake(path, pa.table({"buyer": ["x"]}))
        return table_id(self.settings.paths.table(table))

    def plan(self, table: str) -> FilePlan:
        spec, landing = self.specs[table], LocalLanding(str(self.settings.landing))
        loaded = self.ledger.loaded_files(table, self.id_of(table))
        earlier = EarlierRuns(table, self.id_of(table), self.ledger, [])
        return plan_files(spec, landing, day(1), loaded, earlier, partial(inspect, landing=landing, spec=spec))

    def load(self, table: str) -> Winner:
        new = self.plan(table).new
        sources = BatchSources(files=len(new))
        winner = Winner(intent_of(self.id_of(table), 1, stream=Stream(table), sources=sources), 1)
        self.ledger.record_intent(winner.intent, new)
        self.ledger.record_committed([winner])
        return winner

    def erase(self, policy: str = "rewrite", of_others: str = "") -> list[LandingWork]:
        specs = {
            table: spec.model_copy(update={"erase": EraseSpec(landing_files=each)})
            for (table, spec), each in zip(self.specs.items(), (policy, of_others or policy), strict=True)
        }
        leases = lakehouse_leases(self.settings.paths, "erasure", timedelta(seconds=1))
        landing = str(self.settings.landing)
        return list(erase_landing(specs[TABLES[0]], GONE, landing, specs, self.ledger, leases))


TABLES = "bronze.orders", "bronze.others"
ORDER, OTHER = '{"order_id": "1", "buyer": "C-17"}\n', '{"order_id": "2", "buyer": "C-18"}\n'


def test_a_rewritten_file_counts_as_loaded_for_all_tables_that_loaded_it_and_no_longer_if_that_is_undone(
    lake: Lake,
) -> None:
    file, untouched = lake.deliver("a.json", ORDER + OTHER), lake.deliver("b.json", OTHER)
    file.chmod(0o640)
    first, _ = map(lake.load, TABLES)
    late = lake.deliver("late.json", ORDER)
    before = untouched.stat()

    done = lake.erase()

    assert [(Path(each.path).name, each.action, each.records, each.why) for each in sorted(done, key=str)] == [
        ("a.json", "rewrite", 1, ""), ("late.json", "rewrite", 1, "")
    ]  # fmt: skip
    assert (file.read_text(), late.read_text(), untouched.stat()) == (OTHER, "", before)
    assert file.stat().st_mode & 0o777 == 0o640
    assert sorted(each.name for each in file.parent.iterdir()) == ["a.json", "b.json", "late.json"]
    for table in TABLES:
        plan = lake.plan(table)
        assert (plan.loaded, plan.seen, [Path(each.path).name for each in plan.new]) == (2, (), ["late.json"])
    [state, _] = file_states(lake.ledger, TABLES[0], lake.id_of(TABLES[0]))
    assert (state.status, state.size, state.reason) == (
        "loaded",
        len(OTHER),
        "an erasure has taken out 1 of its records",
    )
    assert lake.erase() == []

    lake.ledger.record_rewound(Winner(intent_of(lake.id_of(TABLES[0]), 2, stream=Stream(TABLES[0])), 2), [first], [])
    assert len(lake.plan(TABLES[0]).new) == 3, "a restore has undone its rows: it is loaded again as it is now"
    assert lake.plan(TABLES[1]).loaded == 2


def test_a_run_that_dies_before_the_file_is_replaced_is_repeated(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    file = lake.deliver("a.json", ORDER + OTHER)
    lake.load(TABLES[0])
    monkeypatch.setattr("millrace.control.landing.on_disk.os.replace", Mock(side_effect=KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        lake.erase()
    monkeypatch.undo()
    assert lake.plan(TABLES[0]).loaded == 1, "the file as it was counts as loaded too"
    assert len(lake.erase()) == 1
    plan = lake.plan(TABLES[0])
    assert (file.read_text(), plan.loaded, plan.new) == (OTHER, 1, ())


def test_what_is_left_is_named_and_a_file_is_deleted_only_where_the_spec_says_so(lake: Lake) -> None:
    file = lake.deliver("a.json", ORDER + OTHER)
    lake.deliver("note.json", '{"order_id": "as C-17 said", "buyer": "C-18"}\n')
    twin = lake.deliver("twin.json", ORDER)
    twin.with_name("linked.json").hardlink_to(twin)
    lake.load(TABLES[0])

    kept = {Path(each.path).name: each for each in lake.erase("keep")}

    assert {name: (each.action, each.records) for name, each in kept.items()} == {
        "a.json": ("keep", 1), "linked.json": ("keep", 1), "twin.json": ("keep", 1), "note.json": ("keep", 0)
    }  # fmt: skip
    assert "C-17" not in str(kept.values())
    assert file.read_text() == ORDER + OTHER
    deleted = {Path(each.path).name: each.action for each in lake.erase("delete")}
    assert deleted == {"a.json": "delete", "linked.json": "delete", "twin.json": "delete", "note.json": "keep"}
    assert [each.name for each in file.parent.iterdir()] == ["note.json"]
    reasons = {state.path[-6:]: state.reason for state in file_states(lake.ledger, TABLES[0], lake.id_of(TABLES[0]))}
    assert reasons["a.json"].startswith("an erasure has deleted it")


def test_files_that_the_table_does_not_load_stay_and_the_most_careful_table_decides_about_the_others(
    lake: Lake,
) -> None:
    file, readme = lake.deliver("a.json", ORDER + OTHER), lake.deliver("readme.txt", ORDER)
    elsewhere = Path(lake.settings.landing) / "orders/odd/a.json"
    elsewhere.parent.mkdir()
    elsewhere.write_text(ORDER)
    (link := file.with_name("link.json")).symlink_to(elsewhere)
    [linked] = [each for each in lake.erase() if "link" in each.path]
    assert "is a link to another file" in linked.why
    link.unlink()
    file.write_text(ORDER + OTHER)

    [kept] = lake.erase("delete", "keep")

    assert (Path(kept.path).name, kept.action, kept.why) == (
        "a.json",
        "keep",
        "erase.landing_files of bronze.others is keep",
    )
    [rewritten] = lake.erase("delete", "rewrite")
    assert (Path(rewritten.path).name, rewritten.action) == ("a.json", "rewrite")
    assert [each.read_text() for each in (file, readme, elsewhere)] == [OTHER, ORDER, ORDER]


def test_short_numbers_are_found_within_structs_and_lists_of_parquet_files(lake: Lake) -> None:
    columns = {"order_id": {"type": "string"}, "buyer": {"type": "bigint", "from": "who[0].`the.id`"}}
    source = {"landing": "orders", "format": "parquet"}
    lake = Lake(
        lake.settings,
        {
            each: bronze_spec(table=each, source=source, columns=columns, subject_keys={"buyer": "customer"})
            for each in TABLES
        },
    )
    rows = pa.table({"order_id": ["1", "2"], "who": [[{"the.id": 17}], [{"the.id": 18}]]})
    pq.write_table(rows, file := lake.deliver("a", ""))
    [done] = lake.erase()
    assert (done.action, done.records, done.why) == ("rewrite", 1, "")
    assert pq.read_table(file, partitioning=None).equals(rows.slice(1))


def test_a_file_is_never_readable_for_more_than_before_while_it_is_replaced(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, seen = lake.deliver("a.json", ORDER + OTHER), list[int]()
    file.chmod(0o600)
    written = file.with_name(".a.json.erasing")
    written.write_text("of a run that died")

    def copy(source: Any, target: Any) -> None:
        seen.extend((stat.S_IMODE(written.stat().st_mode), written.stat().st_uid))
        target.write(source.read())

    monkeypatch.setattr("millrace.control.landing.on_disk.shutil.copyfileobj", copy)
    lake.erase()
    assert seen == [0o600, file.stat().st_uid]
    assert (file.read_text(), written.exists()) == (OTHER, False)
