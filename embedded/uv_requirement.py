"""Print the requirement of uv with the checksums of uv.lock, for pip: `python uv_requirement.py uv.lock`.

It runs before anything is installed, by the Python of the machine alone.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path


def uv_requirement(lock: Path) -> str:
    """Return the line of a requirements file for uv, in the version of the lock."""
    packages = tomllib.loads(lock.read_text())["package"]
    uv = next(package for package in packages if package["name"] == "uv")
    files = [*uv["wheels"], uv["sdist"]]
    return " ".join([f"uv=={uv['version']}", *(f"--hash={file['hash']}" for file in files)])


if __name__ == "__main__":
    sys.stdout.write(uv_requirement(Path(sys.argv[1])))
