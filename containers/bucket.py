"""Make the bucket of a new installation, and check that its store can keep tables: `python -m containers.bucket`."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from botocore.exceptions import ClientError

from millrace.contracts.lake_path import S3Path
from millrace.control.storage.objects_on_s3 import require_conditional_puts
from millrace.control.storage.s3_access import s3_client
from millrace.settings import Settings


def prepare_bucket(root: S3Path) -> None:
    """Make the bucket of the tables unless it exists.

    Args:
        root: the place of the tables.

    Raises:
        StorageError: the store ignores conditional puts, so that commits could get lost.
        ClientError: the store refuses to make the bucket.
    """
    client = s3_client()
    try:
        client.head_bucket(Bucket=root.bucket)
    except ClientError as error:
        # A bucket that its user may not list is left as it is; the check below says what that user lacks.
        if error.response["ResponseMetadata"]["HTTPStatusCode"] == HTTPStatus.NOT_FOUND:
            _create(client, root.bucket)
    require_conditional_puts(root)


def _create(client: Any, bucket: str) -> None:
    # Amazon's first region is the only one that must not be named.
    region = client.meta.region_name
    place = {} if region == "us-east-1" else {"CreateBucketConfiguration": {"LocationConstraint": region}}
    client.create_bucket(Bucket=bucket, **place)


def main() -> None:
    """Prepare the bucket of this installation; tables on a disk need none."""
    root = Settings().root
    if isinstance(root, S3Path):
        prepare_bucket(root)


if __name__ == "__main__":
    main()
