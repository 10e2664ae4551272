"""Print what the image holds of others, as CycloneDX: `python -m embedded.contents.bill_of_materials`.

uv writes the packages of uv.lock; the jars of Spark's sessions are added.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from embedded.clone import CLONE
from millrace.jars.maven_jars import DRIVER_GROUPS, Jar, locked_jars


def bill_of_materials() -> dict[str, Any]:
    """Return the bill of materials, each part with its version and checksum."""
    export = (
        "export",
        "--frozen",
        "--no-dev",
        "--group",
        "image",
        "--no-emit-project",
        "--format",
        "cyclonedx1.5",
        "--quiet",
    )
    uv = [str(CLONE / ".venv" / "bin" / "uv"), *export]
    bill = json.loads(subprocess.run(uv, cwd=CLONE, check=True, capture_output=True, text=True).stdout)
    return {**bill, "components": [*bill["components"], *map(_component, locked_jars(*DRIVER_GROUPS))]}


def _component(jar: Jar) -> dict[str, Any]:
    group, name, version = jar.coordinate.split(":")
    purl = f"pkg:maven/{group}/{name}@{version}"
    return {
        **{"type": "library", "bom-ref": purl, "group": group, "name": name, "version": version, "purl": purl},
        "hashes": [{"alg": "SHA-256", "content": jar.sha256}],
    }


if __name__ == "__main__":
    json.dump(bill_of_materials(), sys.stdout, indent=1)
