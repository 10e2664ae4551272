"""The places of an installation, as types of fields: a folder, or a prefix of a bucket."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, PlainSerializer, PlainValidator

from millrace.contracts.lake_path import LakePath, bucket_url, lake_path


def _normalize_root(value: object) -> object:
    if not isinstance(value, str | os.PathLike):
        return value
    return bucket_url(os.fspath(value)) or str(Path(value).resolve())


def _lake_path_or_none(value: object) -> LakePath | None:
    return None if value is None else lake_path(value)


def _require_folder(value: object) -> object:
    if isinstance(value, str | os.PathLike) and "://" in os.fspath(value):
        raise ValueError(f"{os.fspath(value)} is no folder: this cannot be in a bucket")
    return value


def _require_existing(folder: Path) -> Path:
    if not folder.is_dir():
        raise ValueError(f"there is no folder {folder}")
    return folder.absolute()


LakeRoot = Annotated[LakePath, PlainValidator(lake_path), PlainSerializer(str)]
"""The root of a lakehouse: a folder, or `s3://bucket/prefix`."""

ViewsRoot = Annotated[
    LakePath | None, PlainValidator(_lake_path_or_none), PlainSerializer(str, when_used="unless-none")
]
"""The place of the views of certified versions: a folder, `s3://bucket/prefix`, or None."""

Folder = Annotated[Path, BeforeValidator(_require_folder)]
"""A folder or a file of this machine. Without the check `s3://bucket` would name a folder `s3:` of this machine."""

ExistingFolder = Annotated[Folder, AfterValidator(_require_existing)]
"""A folder that exists, as an absolute path."""

LandingRoot = Annotated[str, BeforeValidator(_normalize_root)]
"""The root of the landing area: an absolute folder, or `s3://bucket/prefix`.

>>> from pydantic import TypeAdapter
>>> [TypeAdapter(LandingRoot).validate_python(root) for root in ("/data/landing/", "s3a://lake/landing/")]
['/data/landing', 's3://lake/landing']
"""
