"""What the image holds of others."""

from __future__ import annotations

from embedded.bill_of_materials import bill_of_materials
from millrace.jars.maven_jars import DRIVER_GROUPS, locked_jars
from millrace.settings import PROJECT


def test_it_has_each_package_and_each_jar_with_its_version_and_checksum() -> None:
    parts = {part["purl"]: part for part in bill_of_materials()["components"]}
    lines = (PROJECT / "requirements.txt").read_text().split("\n")
    packages = [line.split(" ")[0] for line in lines if "==" in line]
    assert len(packages) > 100
    assert {f"pkg:pypi/{package.replace('==', '@')}" for package in packages} <= parts.keys()
    jars = locked_jars(*DRIVER_GROUPS)
    assert jars
    for jar in jars:
        part = parts[f"pkg:maven/{jar.coordinate.replace(':', '/', 1).replace(':', '@')}"]
        assert part["hashes"][0]["content"] == jar.sha256
