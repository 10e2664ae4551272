"""What a driver puts aside lies in a folder of its own, and goes with it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from include.scratch_folder import with_scratch_folder

LEAVES_A_FILE = "import os, signal, tempfile; tempfile.mkstemp(); os.kill(os.getpid(), signal.SIGKILL)"


def test_python_and_java_use_the_folder_and_nothing_stays_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a folder").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "a folder"))
    with with_scratch_folder({**os.environ, "JDK_JAVA_OPTIONS": "-Downed=kept"}) as environment:
        folder = Path(environment["TMPDIR"])
        subprocess.run([sys.executable, "-c", LEAVES_A_FILE], env=environment, check=False)
        assert len(list(folder.iterdir())) == 1, "what was killed has left something"
        asked = ["java", "-XshowSettings:properties", "-version"]
        said = subprocess.run(asked, env=environment, capture_output=True, text=True, check=True).stderr
        assert f"java.io.tmpdir = {folder}\n" in said
        assert "owned = kept\n" in said
        assert environment["SPARK_LOCAL_DIRS"] == str(folder)
    assert list((tmp_path / "a folder").iterdir()) == []


def test_who_names_a_place_for_sparks_files_has_them_there() -> None:
    with with_scratch_folder({"SPARK_LOCAL_DIRS": "/large/disk"}) as environment:
        assert environment["SPARK_LOCAL_DIRS"] == "/large/disk"
