"""The settings of one Millrace installation, read from the environment (prefix `LAKEHOUSE_`)."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from include.contracts.landing_root import LandingRoot

PROJECT = Path(__file__).resolve().parent.parent


class Settings(BaseSettings):
    """Where this installation keeps its parts.

    Attributes:
        root: folder of the Delta tables, the ledger, leases and reports.
        landing: folder into which source systems deliver their files, or `s3://bucket/prefix`.
        tables: folder of the table specs.
        jars: folder of the jars every Spark session runs with.
        kafka: Kafka cluster -> its client's settings by librdkafka's names, as JSON:
            `{"main": {"bootstrap.servers": "broker:9092"}}`. They may hold secrets, so they are never shown.
    """

    model_config = SettingsConfigDict(env_prefix="LAKEHOUSE_", frozen=True)

    root: Path = PROJECT / "data" / "lakehouse"
    landing: LandingRoot = str(PROJECT / "data" / "landing")
    tables: Path = PROJECT / "include" / "tables"
    jars: Path = PROJECT / ".jars"
    kafka: dict[str, dict[str, str]] = Field(default_factory=dict, repr=False)

    def environment(self) -> dict[str, str]:
        """The variables by which another process has the same settings."""
        folders = {f"LAKEHOUSE_{name.upper()}": str(value.resolve()) for name, value in self if isinstance(value, Path)}
        return {**folders, "LAKEHOUSE_LANDING": self.landing, "LAKEHOUSE_KAFKA": json.dumps(self.kafka)}
