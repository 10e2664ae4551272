"""What the image holds of others."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from packaging.utils import canonicalize_name

from embedded.clone import CLONE
from embedded.contents.bill_of_materials import bill_of_materials
from embedded.contents.notice import NOTICE
from millrace.jars.maven_jars import DRIVER_GROUPS, locked_jars


def test_it_has_each_package_and_each_jar_with_its_version_and_checksum() -> None:
    parts = {part["purl"]: part for part in bill_of_materials()["components"]}
    lines = (CLONE / "requirements.txt").read_text().split("\n")
    packages = [line.split(" ")[0] for line in lines if "==" in line]
    assert len(packages) > 100
    assert {f"pkg:pypi/{package.replace('==', '@')}" for package in packages} <= parts.keys()
    jars = locked_jars(*DRIVER_GROUPS)
    assert jars
    for jar in jars:
        part = parts[f"pkg:maven/{jar.coordinate.replace(':', '/', 1).replace(':', '@')}"]
        assert part["hashes"][0]["content"] == jar.sha256


def is_installed(package: str) -> bool:
    try:
        return bool(version(package))
    except PackageNotFoundError:  # it is for another system
        return False


def test_the_notice_has_the_licence_of_each_part_that_is_installed() -> None:
    expected = {jar.coordinate for jar in locked_jars(*DRIVER_GROUPS)}
    for part in bill_of_materials()["components"]:
        if part["purl"].startswith("pkg:pypi/") and is_installed(part["name"]):
            expected.add(f"{part['name']} {part['version']}")
    lines = [line.partition(" | ")[0].split(" ") for line in NOTICE.read_text().split("\n") if " | " in line]
    named = {" ".join([canonicalize_name(name), *version]) if version else name for name, *version in lines}
    assert len(expected) > 150
    assert named == expected, "`make notice` writes it anew"
