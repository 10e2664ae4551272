"""`lakehouse init`: it writes a whole domain or says why not, and overwrites nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import polars
import pytest
from click.testing import Result

from millrace.errors import ExitCode
from tests.support.cli import Lakehouse
from tests.support.ledger.delta_tables import file_contents

ORDERS = "id,amount\n1,2\n2,3\n"
Init = Callable[..., Result]


@pytest.fixture
def landing(place: Mapping[str, str]) -> Path:
    """A landing root with one source, which lacks a day; the domain `shop` has a table `orders` already."""
    landing = Path(place["LAKEHOUSE_LANDING"])
    for day in (1, 2, 4):
        (landing / f"orders/date=2013-01-0{day}").mkdir(parents=True)
        (landing / f"orders/date=2013-01-0{day}/a.csv").write_text(ORDERS)
    return landing


@pytest.fixture
def init(lakehouse: Lakehouse, tmp_path: Path, landing: Path) -> Init:
    def run(domain: str = "store", folder: Path = landing) -> Result:
        return lakehouse("init", domain, str(folder), "--dags", str(tmp_path / "dags"))

    return run


def test_it_names_what_it_wrote_and_the_command_that_loads_it(
    init: Init, landing: Path, tmp_path: Path, lakehouse: Lakehouse
) -> None:
    (landing / "lines/2013").mkdir(parents=True)
    (landing / "lines/2013/a.csv").write_text("same,same_too\n1,1\n1,1\n")
    answer = init()
    assert answer.exit_code == 0, answer.output
    written = ["bronze/store/lines", "bronze/store/store_orders", "silver/store/store_orders"]
    files = [*(tmp_path / "tables" / f"{name}.yaml" for name in written), tmp_path / "dags/store.py"]
    assert answer.stdout.split("\n")[: len(files)] == [f"wrote {file}" for file in files]
    assert "lakehouse run --domain store --interval 2013-01-01 --to 2013-01-04 --skip-missing\n" in answer.stdout
    assert "# decide: no column and no pair of columns identifies a row" in files[0].read_text()
    assert "start_date=datetime(2013, 1, 1" in files[-1].read_text()
    assert lakehouse("check").exit_code == 0


def test_the_dag_file_is_written_beside_the_folder_of_the_specs(
    lakehouse: Lakehouse, landing: Path, tmp_path: Path
) -> None:
    answer = lakehouse("init", "store", str(landing))
    assert f"wrote {tmp_path / 'dags/store.py'}\n" in answer.stdout, answer.output


def test_nothing_is_overwritten(init: Init, tmp_path: Path) -> None:
    assert init().exit_code == 0
    before = file_contents(tmp_path / "tables")
    answer = init()
    assert (answer.exit_code, file_contents(tmp_path / "tables")) == (ExitCode.BAD_SPEC, before)
    assert "the domain store exists already" in answer.stderr
    assert init("shop").exit_code == ExitCode.BAD_SPEC


def test_a_broken_file_stops_its_source_alone(init: Init, landing: Path, tmp_path: Path) -> None:
    (landing / "broken").mkdir()
    (landing / "broken/a.parquet").write_bytes(b"no parquet")
    (landing / "unknown").mkdir()
    polars.DataFrame({"id": polars.Series([10**30], dtype=polars.Int128)}).write_parquet(landing / "unknown/a.parquet")
    answer = init()
    assert answer.exit_code == ExitCode.BAD_INPUT
    assert "broken: no table is proposed" in answer.stderr
    assert "unknown: no table is proposed" in answer.stderr
    assert (tmp_path / "tables/silver/store/store_orders.yaml").exists()


@pytest.mark.parametrize(
    ("domain", "folder", "said"),
    [
        ("No Name", "landing", "'No Name' is not a valid name of a domain"),
        ("store", "elsewhere", "export LAKEHOUSE_LANDING="),
        ("store", "landing/empty", "holds no file of a known format"),
        ("store", "landing/missing", "there is no folder {folder}\n"),
        ("store", "missing", "{folder} is not below the landing root"),
    ],
)
def test_a_wrong_call_writes_nothing_and_says_what_to_do(
    init: Init, landing: Path, tmp_path: Path, domain: str, folder: str, said: str
) -> None:
    for name in ("elsewhere", "landing/empty"):
        (tmp_path / name).mkdir()
    before = file_contents(tmp_path / "tables")
    answer = init(domain, tmp_path / folder)
    assert answer.exit_code != 0
    assert said.format(folder=tmp_path / folder) in answer.stderr
    assert (file_contents(tmp_path / "tables"), (tmp_path / "dags").exists()) == (before, False)
