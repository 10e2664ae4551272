"""Where a driver's Python finds PySpark."""

from __future__ import annotations

from pathlib import Path

import pyspark

import millrace_spark

INSTALLED = Path(pyspark.__file__).parent


def test_the_archives_of_the_installed_pyspark_are_passed_over() -> None:
    archives = [str(INSTALLED / "python" / "lib" / name) for name in ("pyspark.zip", "py4j-0.10.9.9-src.zip")]
    assert all(Path(archive).exists() for archive in archives), "spark-submit names archives that are there"
    folders = ["/project", str(INSTALLED.parent)]
    assert millrace_spark.without_archives([*archives, *folders]) == folders


def test_those_of_another_spark_and_those_without_an_installed_pyspark_stay(tmp_path: Path) -> None:
    of_another = [str(tmp_path / "python" / "lib" / "pyspark.zip"), str(INSTALLED.parent)]
    not_installed = [str(INSTALLED / "python" / "lib" / "pyspark.zip"), str(tmp_path)]
    for path in (of_another, not_installed):
        assert millrace_spark.without_archives(path) == path
