"""Where source systems deliver: a folder of this machine, or a prefix of a bucket."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator

S3 = "s3://"
_BUCKETS = ("s3", "s3a", "s3n")


def _as_a_root(value: object) -> object:
    if not isinstance(value, str | os.PathLike):
        return value
    scheme, is_url, rest = os.fspath(value).partition("://")
    if not is_url:
        return str(Path(value).resolve())
    if scheme in _BUCKETS and rest.strip("/"):
        return f"{S3}{rest.rstrip('/')}"
    msg = f"{value} is no landing root: write a folder, or s3://bucket/prefix"
    raise ValueError(msg)


LandingRoot = Annotated[str, BeforeValidator(_as_a_root)]
"""An absolute folder, or `s3://bucket/prefix`.

>>> from pydantic import TypeAdapter
>>> [TypeAdapter(LandingRoot).validate_python(root) for root in ("/data/landing/", "s3a://lake/landing/")]
['/data/landing', 's3://lake/landing']
"""
