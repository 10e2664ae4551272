"""Build the documentation as a site with search, in data/site/html: `python -m embedded.documentation.site`.

MkDocs takes its pages from one folder. So they are copied into one as they lie in the repository, with the files to
which they link: a link leads to the same place on the site, on a code host, and in Airflow's web UI.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from embedded.clone import CLONE

_PAGES = CLONE / "data" / "site" / "pages"
_LINK = re.compile(r"\]\(([^)#\s]+)")


def linked_files(page: Path) -> set[Path]:
    """Return the files of the project to which a page links."""
    targets = (target for target in _LINK.findall(page.read_text(encoding="utf-8")) if "://" not in target)
    return {file for target in targets if (file := (page.parent / target).resolve()).is_file()}


def main() -> int:
    """Copy the pages, and build the site; links that lead nowhere end it."""
    shutil.rmtree(_PAGES.parent, ignore_errors=True)
    folders = (CLONE / name for name in ("docs", "benchmarks", "spark_jobs"))
    found = [*CLONE.glob("*.md"), *(page for folder in folders for page in folder.rglob("*.md"))]
    for file in sorted({*found, *(file for page in found for file in linked_files(page))}):
        copy = _PAGES / file.relative_to(CLONE)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)
    # With `--quiet` MkDocs does not count its warnings, and would not fail.
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run([sys.executable, "-m", "mkdocs", "build"], cwd=CLONE, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
