"""A new installation: secrets, cluster, bucket, health of its services, and errors of Docker Compose."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import boto3
import pytest
from airflow.secrets.local_filesystem import load_connections_dict
from cryptography.fernet import Fernet
from sqlalchemy.engine import make_url

from containers.bucket import prepare_bucket
from containers.compose import Compose, ComposeError
from containers.first_start import AIRFLOW, COMMAND_LINE, FOLDERS, TASKS, make_secrets
from containers.spark_connect import HOST, MASTER, REMOTE, command
from containers.transfer import give_out, take_in
from embedded.clone import CLONE
from embedded.home import free_port
from embedded.servers.s3 import Bucket
from millrace.contracts.airflow_access import AirflowAccess
from millrace.contracts.lake_path import S3Path
from millrace.errors import StorageError
from millrace.spark_conf import LOG_STORES
from tests.support.storage.faulty_s3 import faulty_s3

MACHINES = (TASKS, COMMAND_LINE)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return with_volumes(tmp_path)


def with_volumes(folder: Path) -> Path:
    for volume in FOLDERS:
        (folder / volume).mkdir(parents=True)
    return folder


def contents(folder: Path) -> dict[str, str]:
    return {file.relative_to(folder).as_posix(): file.read_text() for file in folder.rglob("*") if file.is_file()}


def test_a_later_start_changes_no_secret_and_gives_a_new_user_a_password(folder: Path) -> None:
    make_secrets(folder, ["admin", *MACHINES])
    before = contents(folder)
    assert len(before) > 12
    assert {name.partition("/")[0] for name in before} == set(FOLDERS)
    make_secrets(folder, ["admin", "ann", *MACHINES])
    after = contents(folder)
    first, both = json.loads(before.pop("users/passwords.json")), json.loads(after.pop("users/passwords.json"))
    assert after == before
    assert both.keys() == {"admin", "ann", *MACHINES}
    assert {name: both[name] for name in first} == first
    assert both["admin"] != both["ann"]


def test_two_installations_share_no_secret(tmp_path: Path) -> None:
    one, other = (with_volumes(tmp_path / name) for name in ("one", "other"))
    for folder in (one, other):
        make_secrets(folder, ["admin", *MACHINES])
    assert set(contents(one).values()) & set(contents(other).values()) == set()


def test_only_the_password_that_postgresql_reads_is_readable_for_another_user(folder: Path) -> None:
    make_secrets(folder, ["admin", *MACHINES])
    modes = {name: (folder / name).stat().st_mode & 0o777 for name in contents(folder)}
    assert modes.pop("database/password") == 0o444
    assert set(modes.values()) == {0o600}


def test_each_reader_finds_its_secret_in_the_form_that_it_reads(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_secrets(folder, ["admin", *MACHINES])
    found = contents(folder)
    assert make_url(found["airflow/database_url"]).password == found["database/password"]
    Fernet(found["airflow/fernet_key"])
    connections = load_connections_dict(str(folder / "airflow" / "connections.json"))
    spark, airflow = connections["spark_default"], connections["airflow_api"]
    assert (spark.host, spark.password) == (REMOTE, found["connect/token"])
    assert (airflow.host, airflow.login) == (AIRFLOW, TASKS)
    passwords = json.loads(found["users/passwords.json"])
    assert airflow.password == passwords[TASKS]
    command_line = AirflowAccess.model_validate_json(found["lakehouse/airflow.json"])
    assert (command_line.url, command_line.login) == (AIRFLOW, COMMAND_LINE)
    assert command_line.password.get_secret_value() == passwords[COMMAND_LINE]
    assert found["cluster/spark-defaults.conf"].startswith("spark.authenticate true\nspark.authenticate.secret ")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(folder / "store" / "credentials"))
    keys = boto3.Session().get_credentials()
    assert (keys.access_key, keys.secret_key) == (found["store/access_key"], found["store/secret_key"])


def test_without_docker_the_error_has_cause_and_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path / 'docker.sock'}")
    with pytest.raises(ComposeError) as raised:
        Compose("millrace-tests", 8080).start()
    first, *_, last = str(raised.value).split("\n")
    assert first.startswith("docker compose up failed: ")
    assert str(tmp_path / "docker.sock") in first
    assert last.startswith("Start Docker")


def test_the_server_keeps_commits_safe_and_is_reached_by_workers_and_clients(tmp_path: Path) -> None:
    (tmp_path / "delta.jar").touch()
    line = command(tmp_path, 4, "2g", "3g")
    assert line[line.index("--master") + 1] == MASTER
    assert line[line.index("--driver-memory") + 1] == "2g"
    settings = dict(line[at + 1].split("=", 1) for at, part in enumerate(line) if part == "--conf")
    assert LOG_STORES.items() <= settings.items(), "no commit can get lost on the cluster"
    assert settings["spark.driver.extraClassPath"] == settings["spark.executor.extraClassPath"] == f"{tmp_path}/*"
    assert "spark.jars" not in settings, "executors have the jars at the same place: nothing is shipped"
    assert settings["spark.driver.host"] == HOST
    assert settings["spark.connect.grpc.binding.address"] == "0.0.0.0"
    assert settings["spark.executor.memory"] == "3g"
    assert settings["spark.sql.shuffle.partitions"] == "4", "the cores of all workers"


FILES = {"planes/date=2013-01-01/planes.csv": b"tailnum\n", "weather/part 1.csv": bytes(range(256)), "empty": b""}
LANDING = S3Path("s3://lake/transfer/landing")


@pytest.mark.parametrize("region", ["us-east-1", "eu-central-1"])
def test_the_bucket_is_made_once_and_left_empty(bucket: Bucket, monkeypatch: pytest.MonkeyPatch, region: str) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", region)
    made = f"lake-{region}"
    for _ in range(2):
        prepare_bucket(S3Path(f"s3://{made}/tables"))
    assert made in {found["Name"] for found in bucket.client.list_buckets()["Buckets"]}
    assert bucket.client.list_objects_v2(Bucket=made)["KeyCount"] == 0


def test_a_store_that_ignores_conditional_puts_is_refused_before_anything_starts(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    with faulty_s3(bucket.endpoint) as proxy:
        for name, value in Bucket(proxy.endpoint, "lake").environment.items():
            monkeypatch.setenv(name, value)
        proxy.ignore("If-None-Match")
        with pytest.raises(StorageError, match="has no conditional puts"):
            prepare_bucket(S3Path("s3://lake/refused"))


def test_no_name_leads_out_of_the_place(bucket: Bucket) -> None:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("a/../../tables/x"))
    stream.seek(0)
    with pytest.raises(ValueError, match="leads out of s3://lake/hostile/landing"):
        take_in(S3Path("s3://lake/hostile/landing"), stream)
    assert bucket.client.list_objects_v2(Bucket="lake", Prefix="hostile")["KeyCount"] == 0


def test_a_folder_comes_out_of_the_store_as_it_went_in(bucket: Bucket, tmp_path: Path) -> None:
    for name, content in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    packed, out = io.BytesIO(), io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        tar.add(tmp_path, ".")
    packed.seek(0)
    bucket.put("transfer/landing-of-others/not-ours", b"x")
    assert take_in(LANDING, packed) == give_out(LANDING, out) == len(FILES)
    out.seek(0)
    with tarfile.open(fileobj=out) as tar:
        assert {member.name: tar.extractfile(member).read() for member in tar} == FILES  # type: ignore[union-attr]


ANSWERS = {
    "/health": b'{"scheduler": {"status": "healthy"}, "triggerer": {"status": "unhealthy"}, "dag_processor": {}}',
    "/page": b"<html>",
}


class Pages(BaseHTTPRequestHandler):
    """Serves ANSWERS."""

    def do_GET(self) -> None:
        self.send_response(200 if self.path in ANSWERS else 404)
        self.end_headers()
        self.wfile.write(ANSWERS.get(self.path, b"{}"))

    def log_message(self, *_arguments: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def pages() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Pages) as running:
        Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()


def test_a_check_succeeds_for_a_healthy_part_alone_and_names_what_is_wrong(pages: str) -> None:
    for arguments, code, said in (
        ([f"{pages}/health"], 0, ""),
        ([f"{pages}/health", "scheduler"], 0, ""),
        ([f"{pages}/health", "triggerer"], 1, "triggerer is unhealthy"),
        ([f"{pages}/health", "dag_processor"], 1, "dag_processor is unknown"),
        ([f"{pages}/page"], 1, f"{pages}/page"),
        ([f"{pages}/nothing"], 1, f"{pages}/nothing"),
        ([f"http://127.0.0.1:{free_port()}/health"], 1, "refused"),
    ):
        command = [sys.executable, "-I", "containers/health.py", *arguments]
        done = subprocess.run(command, cwd=CLONE, capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, bool(done.stderr), said in done.stderr) == (code, bool(said), True), arguments
