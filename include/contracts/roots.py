"""The roots of a lakehouse and of its landing area, as types of fields: a folder, or a prefix of a bucket."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, PlainSerializer, PlainValidator

from include.contracts.lake_path import LakePath, bucket_url, lake_path


def _normalize_root(value: object) -> object:
    if not isinstance(value, str | os.PathLike):
        return value
    return bucket_url(os.fspath(value)) or str(Path(value).resolve())


LakeRoot = Annotated[LakePath, PlainValidator(lake_path), PlainSerializer(str)]
"""The root of a lakehouse: a folder, or `s3://bucket/prefix`."""

LandingRoot = Annotated[str, BeforeValidator(_normalize_root)]
"""The root of the landing area: an absolute folder, or `s3://bucket/prefix`.

>>> from pydantic import TypeAdapter
>>> [TypeAdapter(LandingRoot).validate_python(root) for root in ("/data/landing/", "s3a://lake/landing/")]
['/data/landing', 's3://lake/landing']
"""
