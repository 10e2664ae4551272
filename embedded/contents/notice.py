"""Write NOTICE, the licences of the packages and jars of others: `python -m embedded.contents.notice`.

pip-licenses reads those of the installed packages, and the POMs in Maven's repository state those of the jars.
"""

from __future__ import annotations

import csv
import io
import ssl
import subprocess
import sys
from tempfile import gettempdir
from xml.etree import ElementTree

import httpx

from embedded.clone import CLONE
from embedded.contents.bill_of_materials import bill_of_materials
from millrace.jars.maven_jars import DRIVER_GROUPS, locked_jars, repository

NOTICE = CLONE / "NOTICE"
_PIP_LICENSES = "pip-licenses==5.5.5"
_POM = "{http://maven.apache.org/POM/4.0.0}"
_ABOUT = """\
Millrace
It is under the licence in the file LICENSE. An installation also holds these packages and jars of others, each with its
version, licence and home; `make notice` writes this list. What is within a package, such as the jars of pyspark and the
scripts of apache-airflow-core, has its licences there, in folders named `licenses`.
"""


def packages() -> list[str]:
    """Return a line for each installed package that uv.lock has for users."""
    names = [part["name"] for part in bill_of_materials()["components"] if part["purl"].startswith("pkg:pypi/")]
    uvx = [str(CLONE / ".venv" / "bin" / "uvx"), "--quiet", _PIP_LICENSES]
    which = ["--python", sys.executable, "--from", "mixed", "--with-urls", "--format", "csv", "--packages", *names]
    # Elsewhere than in the project, whose pyproject.toml it would take for its settings.
    done = subprocess.run([*uvx, *which], cwd=gettempdir(), check=True, stdout=subprocess.PIPE, text=True)
    return [
        _line(f"{row['Name']} {row['Version']}", row["License"], row["URL"])
        for row in csv.DictReader(io.StringIO(done.stdout))
    ]


def jars() -> list[str]:
    """Return a line for each jar of Spark's sessions."""
    with httpx.Client(verify=ssl.create_default_context(), follow_redirects=True) as http:
        return [_jar(http, jar.coordinate) for jar in locked_jars(*DRIVER_GROUPS)]


def _jar(http: httpx.Client, coordinate: str) -> str:
    licence, home, of = "", "", coordinate
    while of and not (licence and home):  # what a POM does not state, its parent states
        group, name, version = of.split(":")
        pom = http.get(f"{repository()}/{group.replace('.', '/')}/{name}/{version}/{name}-{version}.pom")
        project = ElementTree.fromstring(pom.raise_for_status().content)
        stated = [each.text or "" for each in project.iterfind(f"{_POM}licenses/{_POM}license/{_POM}name")]
        licence, home = licence or "; ".join(stated), home or project.findtext(f"{_POM}url", "")
        parent = [project.findtext(f"{_POM}parent/{_POM}{key}", "") for key in ("groupId", "artifactId", "version")]
        of = ":".join(parent) if all(parent) else ""
    return _line(coordinate, licence, home)


def _line(name: str, licence: str, home: str) -> str:
    licence, home = ("" if part == "UNKNOWN" else part.strip() for part in (licence, home))
    return " | ".join([name, licence or "states no licence", *([home] if home else [])])


if __name__ == "__main__":
    NOTICE.write_text("\n".join([_ABOUT, *sorted(packages(), key=str.lower), "", *sorted(jars()), ""]))
