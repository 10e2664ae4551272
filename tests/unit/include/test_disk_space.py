"""A full disk is told from whatever error it comes as, and the folder that has no space left is named."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from include.disk_space import disk_full_error
from include.errors import ExitCode

SPARK = "[TASK_WRITE_FAILED] Task failed while writing rows to file:{}. SQLSTATE: 58030\nCaused by: {}"
JAVA = "java.io.IOException: No space left on device"
RUST = "Failed to parse parquet: External: Unable to copy data to file: No space left on device (os error 28)"


def of_java(folder: Path) -> Exception:
    """As Spark Connect hands it on."""
    return RuntimeError(SPARK.format(folder, JAVA))


def raised_from(error: Exception) -> Exception:
    outer = ValueError("the batch failed")
    outer.__cause__ = error
    return outer


def with_cause(error: Exception) -> Exception:
    """As classic PySpark hands it on: the message says only what was being done."""
    outer = RuntimeError("[TASK_WRITE_FAILED] Task failed while writing rows. SQLSTATE: 58030")
    outer._cause = error  # type: ignore[attr-defined]
    return outer


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
        OSError(errno.EDQUOT, os.strerror(errno.EDQUOT)),
        RuntimeError(RUST),
        with_cause(RuntimeError(JAVA)),
        with_cause(with_cause(OSError(errno.ENOSPC, ""))),
        raised_from(OSError(errno.ENOSPC, "full")),
    ],
)
def test_every_form_of_a_full_disk_is_told_with_the_folder_and_what_to_do(tmp_path: Path, error: Exception) -> None:
    full = disk_full_error(error, "bronze.orders", [tmp_path])
    assert full is not None
    assert full.exit_code is ExitCode.DISK_FULL
    first, *more = str(full).splitlines()
    assert first.startswith(f"bronze.orders: the disk is full: no space left for {tmp_path} (")
    assert len(more) == 1
    assert more[0].startswith("Make room there, then run the same again")


def test_the_folder_that_the_error_names_is_told(tmp_path: Path) -> None:
    folders = [tmp_path, tmp_path / "bronze" / "orders", tmp_path / "bronze_quarantine" / "orders"]
    full = disk_full_error(of_java(folders[2]), "bronze.orders", folders)
    assert f"no space left for {folders[2]} (" in str(full)


def test_any_other_error_is_none(tmp_path: Path) -> None:
    for error in (OSError(errno.EIO, "Input/output error"), ValueError("space"), KeyError()):
        assert disk_full_error(error, "bronze.orders", [tmp_path]) is None
