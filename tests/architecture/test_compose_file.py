"""docker-compose.yaml: Docker Compose accepts it, and each service keeps the promises of the guide for teams."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from containers.first_start import COMMAND_LINE, FOLDERS, TASKS
from containers.spark_connect import REMOTE
from embedded.airflow.standalone import FORKED_TASKS
from embedded.clone import CLONE

Service = dict[str, Any]

TOOLS = Path(sys.executable).parent
OWN_IMAGE = "millrace"
WEB = "airflow-api-server"
ONCE = {"secrets", "setup", "lakehouse"}
"""Services that end: two of them before the others start, the third is the command line."""
SECRETS = re.compile(r"PASSWORD|SECRET|TOKEN|FERNET|CREDENTIALS|SQL_ALCHEMY_CONN|ACCESS_KEY")


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a command without the settings of whoever runs the tests."""
    foreign = ("MILLRACE_", "LAKEHOUSE_", "COMPOSE_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    return subprocess.run(command, cwd=CLONE, env=environment, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture(scope="module")
def model() -> dict[str, Any]:
    """The file as Docker Compose understands it; this needs no daemon."""
    config = run(TOOLS / "docker-compose", "--profile", "*", "config", "--format", "json")
    assert config.returncode == 0, config.stderr
    assert config.stderr == "", "it has no warning"
    return dict(json.loads(config.stdout))


@pytest.fixture(scope="module")
def services(model: dict[str, Any]) -> dict[str, Service]:
    return dict(model["services"])


def test_the_compose_file_of_a_new_project_names_what_the_image_has() -> None:
    file = CLONE / "include/millrace/new_project/docker-compose.yaml"
    config = run(TOOLS / "docker-compose", "--file", file, "--profile", "*", "config", "--format", "json")
    assert (config.returncode, config.stderr) == (0, "")
    image = (CLONE / "Dockerfile").read_text()
    own = json.loads(config.stdout)["services"]
    assert own.keys() == {"airflow", "lakehouse"}
    for service in own.values():
        assert service["image"] == OWN_IMAGE
        assert (TOOLS / (service["entrypoint"] or service["command"])[0]).is_file(), "a command of its packages"
        assert service["environment"]["LAKEHOUSE_JARS"] == "/opt/millrace/.jars"
        targets = {volume["target"] for volume in service["volumes"]}
        assert targets == {service["environment"]["LAKEHOUSE_PROJECT"], "/var/lib/millrace"}
    assert "WORKDIR /opt/millrace\nCOPY --from=build /opt/java /opt/java\n" in image
    assert "COPY --from=build /opt/millrace/.jars .jars\n" in image
    assert re.search(r"install .* --owner millrace .*\n.* /var/lib/millrace ", image), "a volume is its user's"


def those(services: dict[str, Service], is_wrong: Any) -> list[str]:
    """Return the names of the services for which `is_wrong` is true; there are services at all."""
    assert len(services) > 10
    return sorted(name for name, service in services.items() if is_wrong(service))


def test_a_team_gets_each_part_of_airflow_and_spark(services: dict[str, Service]) -> None:
    assert services.keys() == {
        *("secrets", "setup", "postgres", "object-store", "kafka", "lakehouse"),
        *("airflow-api-server", "airflow-scheduler", "airflow-dag-processor", "airflow-triggerer"),
        *("spark-master", "spark-worker", "spark-connect"),
    }
    assert services["spark-worker"]["deploy"]["replicas"] >= 2
    assert {name for name, service in services.items() if service.get("profiles")} == {"kafka", "lakehouse"}
    assert services["lakehouse"]["environment"]["SPARK_REMOTE"] == REMOTE, "the server that tasks use"
    for name in ("airflow-scheduler", "airflow-triggerer", "lakehouse"):
        assert services[name]["environment"]["LAKEHOUSE_SECOND_PERSON"] == "true", "a team has a second person"
    preloaded = {f"AIRFLOW__SCHEDULER__{name}": value for name, value in FORKED_TASKS.items()}
    assert preloaded.items() <= services["airflow-scheduler"]["environment"].items(), "as in the local stack"


def test_each_machine_user_has_the_rights_it_needs_and_is_no_administrator(services: dict[str, Service]) -> None:
    # Imported here, so that a worker that runs other files does not load Airflow's web server.
    from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser

    for name in ("secrets", WEB):
        users = services[name]["environment"]["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS"].split(",")
        assert users == ["admin:admin", f"{TASKS}:user", f"{COMMAND_LINE}:op"]
    airflow = SimpleAuthManager()
    for name, role, may_create_events in ((TASKS, "user", False), (COMMAND_LINE, "op", True)):
        user = SimpleAuthManagerUser(username=name, role=role)
        assert airflow.is_authorized_dag(method="PUT", user=user), "it may clear tasks"
        assert airflow.is_authorized_asset(method="POST", user=user) is may_create_events
        assert airflow.is_authorized_connection(method="PUT", user=user) is may_create_events


def test_only_the_web_server_has_a_published_port_and_the_database_no_way_out(model: dict[str, Any]) -> None:
    services = model["services"]
    assert those(services, lambda service: service.get("ports")) == [WEB]
    (port,) = services[WEB]["ports"]
    assert (port["host_ip"], port["target"]) == ("127.0.0.1", 8080)
    assert model["networks"]["airflow"]["internal"]
    assert set(services["postgres"]["networks"]) == {"airflow"}


def test_every_image_is_our_own_or_pinned_by_version_and_digest(services: dict[str, Service]) -> None:
    pinned = re.compile(r"[a-z/]+:v?\d+(\.\d+)+(-[a-z]+)?@sha256:[0-9a-f]{64}")
    images = {service["image"] for service in services.values()}
    assert len(images) == 4
    assert [image for image in images if image != OWN_IMAGE and not pinned.fullmatch(image)] == []
    base = re.search(r"^ARG MILLRACE_BASE_IMAGE=(\S+)$", (CLONE / "Dockerfile").read_text(), flags=re.MULTILINE)
    assert re.fullmatch(r"debian:bookworm-\d{8}-slim@sha256:[0-9a-f]{64}", base[1])


def test_every_service_that_stays_has_a_healthcheck_and_starts_when_those_it_needs_are_healthy_or_done(
    services: dict[str, Service],
) -> None:
    assert set(those(services, lambda service: not service.get("healthcheck"))) == ONCE
    assert set(those(services, lambda service: service["restart"] != "unless-stopped")) == ONCE
    waits = [each for service in services.values() for each in service.get("depends_on", {}).items()]
    assert len(waits) > 10
    for needed, need in waits:
        ready = "service_completed_successfully" if needed in ONCE else "service_healthy"
        assert need["condition"] == ready, needed
    assert set(services["airflow-scheduler"]["depends_on"]) == {"setup", "airflow-api-server", "spark-connect"}


def test_every_service_has_limits_no_root_rights_and_a_read_only_file_system(services: dict[str, Service]) -> None:
    limits = {name: service["deploy"]["resources"]["limits"] for name, service in services.items()}
    assert {name for name, limit in limits.items() if limit.keys() != {"cpus", "memory", "pids"}} == set()
    assert max(float(limit["cpus"]) for limit in limits.values()) <= 2, "Docker refuses more than the machine has"
    assert those(services, lambda service: service.get("user", "root").split(":")[0] in ("root", "0")) == []
    assert those(services, lambda service: service["cap_drop"] != ["ALL"]) == []
    assert those(services, lambda service: "no-new-privileges:true" not in service["security_opt"]) == []
    assert those(services, lambda service: service.get("privileged") or service.get("cap_add")) == []
    assert those(services, lambda service: not service.get("read_only")) == []


def test_no_secret_is_in_the_environment(services: dict[str, Service]) -> None:
    secrets = {
        name: value
        for service in services.values()
        for name, value in service.get("environment", {}).items()
        if SECRETS.search(name)
    }
    assert len(secrets) > 5
    kept_in_files = re.compile(r"(cat )?/run/millrace/\w+/[\w.]+")
    assert {name: value for name, value in secrets.items() if not kept_in_files.fullmatch(value)} == {}


def test_a_secret_reaches_only_the_services_that_need_it(services: dict[str, Service]) -> None:
    mounts = {
        name: {
            volume["source"]: volume.get("read_only", False)
            for volume in service.get("volumes", ())
            if "source" in volume
        }
        for name, service in services.items()
    }
    with_secret = {
        secret: {name for name, volumes in mounts.items() if f"secrets-{secret}" in volumes} - {"secrets"}
        for secret in FOLDERS
    }
    airflow = {name for name in services if name.startswith("airflow-")} | {"setup"}
    assert with_secret == {
        "airflow": airflow,
        "cluster": {"spark-master", "spark-worker", "spark-connect"},
        "connect": {"spark-connect", "lakehouse"},
        "database": {"postgres"},
        "lakehouse": {"lakehouse"},
        "store": {*airflow, "object-store", "spark-worker", "spark-connect", "lakehouse"},
        "users": {WEB},
    }
    writable = {
        (name, volume) for name, volumes in mounts.items() for volume, is_safe in volumes.items() if not is_safe
    }
    assert {name for name, volume in writable if volume.startswith("secrets-")} == {"secrets", WEB}


@pytest.mark.parametrize(("name", "program"), [("object-store", "versitygw"), ("lakehouse", "lakehouse")])
def test_a_service_without_its_secret_names_the_file_and_does_not_start(
    services: dict[str, Service], tmp_path: Path, name: str, program: str
) -> None:
    for missing in (0, 1):
        secrets = tmp_path / f"run{missing}"
        script = services[name]["entrypoint"][2].replace("$$", "$").replace("/run/millrace", str(secrets))
        files = [Path(file) for file in re.findall(r"cat (\S+?)\)", script)]
        assert len(files) == 2
        for file in files:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"secret of {file.name}")
        started = tmp_path / program
        started.write_text("#!/bin/sh\necho started\n")
        started.chmod(0o755)
        command = ["/usr/bin/env", f"PATH={tmp_path}:/usr/bin:/bin", "sh", "-euc", script]
        assert run(*command).stdout == "started\n"
        files[missing].unlink()
        refused = run(*command)
        assert (refused.returncode != 0, refused.stdout) == (True, "")
        assert str(files[missing]) in refused.stderr
        assert "secret of" not in refused.stderr


def test_what_must_outlive_a_container_is_in_a_named_volume(model: dict[str, Any]) -> None:
    secrets = {f"secrets-{secret}" for secret in FOLDERS}
    assert model["volumes"].keys() == {"database", "logs", "objects", "runs", "topics", *secrets}
    mounts = [volume for service in model["services"].values() for volume in service.get("volumes", ())]
    assert {volume["type"] for volume in mounts} == {"volume"}, "nothing of the host is mounted"
    unnamed = {volume["target"] for volume in mounts if "source" not in volume}
    assert unnamed == {"/var/lib/millrace/spark"}, "shuffle files"


def test_the_guide_names_every_service_and_variable_and_backs_up_every_secret(services: dict[str, Service]) -> None:
    guide = (CLONE / "docs" / "guides" / "run-for-a-team.md").read_text()
    variables = set(re.findall(r"\$\{(\w+)", (CLONE / "docker-compose.yaml").read_text()))
    assert len(variables) > 5
    assert [name for name in (*variables, *services) if f"`{name}`" not in guide] == []
    volumes = re.findall(r"^for volume in (.+); do$", guide, flags=re.MULTILINE)
    assert [set(names.split()) for names in volumes] == [{"objects", *(f"secrets-{name}" for name in FOLDERS)}] * 2
