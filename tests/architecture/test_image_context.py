"""What goes into the image is the code alone: no tables, no caches, and nobody's secrets."""

from __future__ import annotations

import subprocess

import pytest
from pathspec import GitIgnoreSpec

from embedded.clone import CLONE

SECRET = [
    *(".env", ".home/token", "backup/secrets-store.tar.gz", "data/lakehouse/x.parquet"),
    "docker-compose.override.yaml",
]


@pytest.mark.parametrize("name", SECRET)
def test_what_lies_beside_the_code_gets_into_no_image_and_no_commit(name: str) -> None:
    ignored = GitIgnoreSpec.from_lines((CLONE / ".dockerignore").read_text().split("\n"))
    assert not ignored.match_file("include/millrace/errors.py"), "it finds what is not ignored"
    assert ignored.match_file(name)
    is_untracked = subprocess.run(["git", "check-ignore", "--quiet", "--no-index", name], cwd=CLONE, check=False)
    assert is_untracked.returncode == 0


def test_the_image_gets_all_that_its_build_copies_and_compiles() -> None:
    ignored = GitIgnoreSpec.from_lines((CLONE / ".dockerignore").read_text().split("\n"))
    tracked = subprocess.run(["git", "ls-files"], cwd=CLONE, capture_output=True, text=True, check=True).stdout
    context = {name.partition("/")[0] for name in tracked.split() if not ignored.match_file(name)}
    code = {"containers", "dags", "demo", "embedded", "include", "plugins", "races", "spark_jobs"}
    assert context == {*code, "LICENSE", "NOTICE", "README.md", "pyproject.toml", "uv.lock"}
