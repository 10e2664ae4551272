"""`lakehouse init` and `infer` on files in a bucket: the same specs as from a folder."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from embedded.servers.s3 import Bucket
from tests.support.cli import Lakehouse

ORDERS = "id,amount\n1,2\n2,3\n"


@pytest.fixture(autouse=True)
def landing_root(bucket: Bucket, place: dict[str, str], tmp_path: Path) -> None:
    """The landing root in the bucket, which the environment names; no spec is there yet."""
    for day in (1, 2):
        bucket.put(f"init/landing/orders/date=2013-01-0{day}/a.csv", ORDERS)
    bucket.put("init/landing/shop/lines/2013/a.csv", ORDERS)
    bucket.put("init/landing-of-others/a.csv", ORDERS)
    place |= {"LAKEHOUSE_LANDING": "s3://lake/init/landing", "LAKEHOUSE_TABLES": str(tmp_path / "specs")}


def landings(folder: Path) -> dict[str, str]:
    """Return the bronze tables below a folder of specs, each with its landing folder."""
    specs = (yaml.safe_load(file.read_text()) for file in folder.rglob("bronze/**/*.yaml"))
    return {spec["table"]: spec["source"]["landing"] for spec in specs}


OTHERS = "s3://lake/init/landing-of-others"


@pytest.mark.parametrize(
    ("folder", "sources"),
    [
        ("s3://lake/init/landing/", ["orders", "shop/lines"]),
        (".", ["orders", "shop/lines"]),
        ("s3://lake/init/landing/orders", ["orders"]),
        ("orders", ["orders"]),
        (OTHERS, [OTHERS]),
    ],
)
def test_a_source_is_named_by_its_place_below_the_landing_root(
    lakehouse: Lakehouse, tmp_path: Path, folder: str, sources: list[str]
) -> None:
    answer = lakehouse("init", "store", folder, "--dags", str(tmp_path / "dags"))
    assert answer.exit_code == 0, answer.output
    assert sorted(landings(tmp_path / "specs").values()) == sources
    if len(sources) == 1:
        assert yaml.safe_load(lakehouse("infer", folder).stdout)["source"]["landing"] == sources[0]
    else:
        assert landings(tmp_path / "specs").keys() == {"bronze.orders", "bronze.shop_lines"}
        assert answer.stdout.endswith("  lakehouse run --domain store --interval 2013-01-01 --to 2013-01-02\n")
        assert lakehouse("check").exit_code == 0


def test_files_in_the_landing_root_itself_are_a_source(
    lakehouse: Lakehouse, place: dict[str, str], tmp_path: Path
) -> None:
    place["LAKEHOUSE_LANDING"] = OTHERS
    answer = lakehouse("init", "store", place["LAKEHOUSE_LANDING"], "--dags", str(tmp_path / "dags"))
    assert answer.exit_code == 0, answer.output
    assert list(landings(tmp_path / "specs").values()) == ["."]
    plan = lakehouse("plan", "--interval", "2013-01-01", "--table", next(iter(landings(tmp_path / "specs"))))
    assert "1 file" in plan.stdout, plan.output
