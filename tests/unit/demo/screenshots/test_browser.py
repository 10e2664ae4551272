"""The browser of the tests and of the pictures, on machines with and without one."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from demo.screenshots.browser import NoBrowserError, chromium
from tests.support.commands import require_command


def test_the_browser_that_playwright_has_installed_is_started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    require_command("chromium", package="chromium")
    system = shutil.which("chromium")
    with monkeypatch.context() as patch:
        patch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path))
        patch.setattr(shutil, "which", lambda _: None)
        with pytest.raises(NoBrowserError) as error, chromium():
            pass
        assert str(error.value).splitlines() == [
            "this machine has no browser",
            "Run `make browser`, or install Chromium (Debian/Ubuntu: apt install chromium).",
        ]
        [place] = re.findall(rf"{tmp_path}/\S+", str(error.value.__cause__))
        assert "headless_shell" in place, "what `playwright install --only-shell` installs"
        Path(place).parent.mkdir(parents=True)
        Path(place).symlink_to(str(system))
        with chromium() as browser:
            assert browser.version
