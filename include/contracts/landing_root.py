"""The root of the landing area, to which source systems deliver: a folder of this machine, or a prefix of a bucket."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator

from include.contracts.lake_path import bucket_url


def _normalize_root(value: object) -> object:
    if not isinstance(value, str | os.PathLike):
        return value
    return bucket_url(os.fspath(value)) or str(Path(value).resolve())


LandingRoot = Annotated[str, BeforeValidator(_normalize_root)]
"""An absolute folder, or `s3://bucket/prefix`.

>>> from pydantic import TypeAdapter
>>> [TypeAdapter(LandingRoot).validate_python(root) for root in ("/data/landing/", "s3a://lake/landing/")]
['/data/landing', 's3://lake/landing']
"""
