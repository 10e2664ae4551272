"""What goes into the image is the project alone: no tables, no caches, and none of the local stack's secrets."""

from __future__ import annotations

from include.settings import PROJECT


def patterns(name: str) -> set[str]:
    lines = (PROJECT / name).read_text().splitlines()
    return {line.removeprefix("**/").rstrip("/") for line in lines if line and not line.startswith("#")}


def test_what_git_leaves_out_the_image_leaves_out_too() -> None:
    assert {".home", "data"} <= patterns(".gitignore"), "secrets and tables"
    assert patterns(".gitignore") | {".git"} <= patterns(".dockerignore")
