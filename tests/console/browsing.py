"""A real browser on a real deployment: `reversi up` as a process of its own, and Chromium looking at it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tests.console.conftest import PASSWORD
from tests.console.world import FOLDER, TOOLS, World
from tests.databases import Database
from tests.postgres import REPOSITORY

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
DESK, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
START_SECONDS = 60
# Opened pages that answer a refusal are told by Chromium as errors of the page; the tests that want them say so.
REFUSED = re.compile(r"Failed to load resource: the server responded with a status of (40[0-9])")


@contextmanager
def deployment(db: Database, world: World, log: Path) -> Iterator[str]:
    """Run console, API and worker for the block and give the console's address."""
    environment = {**db.env(), FOLDER: str(world.folder), "REVERSI_TOOLS": TOOLS}
    environment["REVERSI_DATA"] = os.environ["REVERSI_DATA"]
    with log.open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "reversi_site.cli", "up", "--port", "0"],
            cwd=REPOSITORY,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        )
        try:
            yield _address(process, log)
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=START_SECONDS)


def _address(process: subprocess.Popen[str], log: Path) -> str:
    assert process.stdout is not None
    for line in process.stdout:
        found = re.match(r"console: (http://\S+)/", line)
        if found:
            return found[1]
    raise AssertionError(f"it did not start: {log.read_text()}")


@dataclass
class Watched:
    """A page, and what went wrong on it: errors in its console, and requests to anybody else."""

    page: Page
    address: str
    refused: set[str] = field(default_factory=set)
    complaints: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("console", lambda message: self._hear(message.type, message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self._see(request.url))

    def _hear(self, kind: str, text: str) -> None:
        refused = REFUSED.match(text)
        if refused:
            self.refused.add(refused[1])
        elif kind in ("error", "warning"):
            self.complaints.append(text)

    def _see(self, url: str) -> None:
        if not url.startswith(f"{self.address}/"):
            self.complaints.append(f"asked somebody else: {url}")

    def open(self, path: str) -> None:
        """Go to a page of the console."""
        self.page.goto(f"{self.address}/console/{path}")

    def text(self) -> str:
        """What the page reads like."""
        return " ".join(self.page.inner_text("body").split())

    def sign_in(self, name: str) -> None:
        """Sign in by hand."""
        self.open("")
        self.page.fill("#id_username", name)
        self.page.fill("#id_password", PASSWORD)
        self.page.click("text=Sign in >> nth=-1")
        self.page.wait_for_selector("nav.menu")


def watch(context: BrowserContext, address: str) -> Watched:
    """Open a page that is watched from its beginning."""
    return Watched(context.new_page(), address)
