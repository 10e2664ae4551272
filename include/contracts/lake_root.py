"""The root of a lakehouse, as a field of settings and arguments."""

from __future__ import annotations

from typing import Annotated

from pydantic import PlainSerializer, PlainValidator

from include.contracts.lake_path import LakePath, lake_path

LakeRoot = Annotated[LakePath, PlainValidator(lake_path), PlainSerializer(str)]
"""A folder, or `s3://bucket/prefix`."""
