"""`make screenshots`: take all pictures of the documentation from a stack that has run the days of the demo.

The stack and its lakehouse are in a folder of their own, and end with it.
"""

from __future__ import annotations

import io
import sys
import time
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image
from playwright.sync_api import Page
from rich.console import Console

from demo.run import DOMAIN, FIRST, backfill_days, prepare
from demo.screenshots.browser import NoBrowserError, chromium, log_in
from demo.screenshots.pictures import LAST_DELIVERED, PICTURES, Picture
from demo.source_system import lay_out
from embedded.address import Address
from embedded.airflow.standalone import USER, passwords
from embedded.clone import CLONE
from embedded.errors import StackError
from embedded.home import Home
from embedded.interrupts import interrupt_once
from embedded.stack import Stack
from millrace.settings import Settings

FOLDER = CLONE / "docs" / "pictures"
_COLORS = 128
"""Pages have few colors; a picture with as many as these is a third as large as one with all."""


def main() -> None:
    """Take the pictures; the exit code is 0 only if all were taken."""
    interrupt_once()
    console = Console(highlight=False, soft_wrap=True)
    try:
        with chromium() as browser, TemporaryDirectory(prefix="millrace-") as folder:
            home = Home(Path(folder).resolve())
            settings = Settings(root=home.path / "lakehouse", landing=str(home.path / "landing"))
            prepare(settings, console)
            with Stack(home, settings, Address.free(home, settings)) as stack, stack.api() as api:
                days = backfill_days(api, console)
                if any(day.run.state != "success" for day in days):
                    sys.exit(1)
                while api.open_backfills(DOMAIN):
                    time.sleep(1)
                # Days that no run has loaded, for the backfill plan.
                lay_out(Path(settings.landing), FIRST, LAST_DELIVERED + timedelta(days=1))
                page = browser.new_page(base_url=stack.address.url)
                page.goto("/")
                log_in(page, USER, passwords(home)[USER])
                for name, picture in PICTURES.items():
                    size = take(page, picture, FOLDER / name)
                    console.print(f"docs/pictures/{name}: {size:,} bytes")
    except (StackError, NoBrowserError) as error:
        console.print(f"[red]{error}[/red]")
        sys.exit(1)


def take(page: Page, picture: Picture, file: Path) -> int:
    """Write a picture as a PNG file of few bytes; return their number."""
    page.set_viewport_size({"width": picture.width, "height": picture.height})
    page.goto(picture.path)
    page.wait_for_load_state("networkidle")
    picture.prepare(page)
    box = page.locator(picture.part).bounding_box() if picture.part else None
    width = box["x"] + box["width"] if box else picture.width
    png = page.screenshot(clip={"x": 0, "y": 0, "width": width, "height": picture.height})
    Image.open(io.BytesIO(png)).convert("RGB").quantize(_COLORS, dither=Image.Dither.NONE).save(file, optimize=True)
    return file.stat().st_size


if __name__ == "__main__":
    main()
