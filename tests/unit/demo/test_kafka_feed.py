"""The specs of the Kafka demo: those of the landing files, with another source."""

from __future__ import annotations

from pathlib import Path

from demo.kafka.feed import write_specs
from include.catalog import load_catalog
from include.settings import Settings


def test_the_tables_are_those_of_the_landing_files_but_for_their_source(tmp_path: Path) -> None:
    write_specs(Settings().tables, tmp_path)
    fed, of_files = load_catalog(tmp_path), load_catalog(Settings().tables)
    assert list(fed.specs) == ["bronze.flight_events", "silver.flights"]
    assert fed.spec("silver.flights") == of_files.spec("silver.flights")
    bronze = fed.spec("bronze.flight_events")
    assert bronze.model_dump(exclude={"source"}) == of_files.spec("bronze.flight_events").model_dump(exclude={"source"})
    assert bronze.source.label == "Kafka demo: flight_events"  # type: ignore[union-attr]
