"""A headless Chromium: what it draws of a page, and whom it asks for what.

    python -m tests.browser report.html picture.png --size 900x1400

writes a picture of a page.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

NAMES = ("chromium", "chromium-browser", "google-chrome")
QUIET = (
    "--headless",
    "--no-sandbox",  # a test may run as root
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)
NOBODY = "not an origin"
"""Who a request is made for that the browser makes for itself: updates, accounts."""


def find() -> str | None:
    """The browser, or ``None`` where there is none."""
    return next(filter(None, map(shutil.which, NAMES)), None)


@dataclass(frozen=True)
class Drawn:
    """A page as it was drawn."""

    picture: bytes
    """PNG."""
    asked: tuple[str, ...]
    """The addresses that the page asked for, and its own."""

    def outside(self, inside: str = "") -> list[str]:
        """What it asked for elsewhere than in itself and at ``inside``."""
        own = ("data:", "file:", *([inside] if inside else []))
        return [url for url in self.asked if not url.startswith(own)]


def draw(url: str, size: tuple[int, int] = (900, 1400), dark: bool = False) -> Drawn:
    """Open ``url`` in a window of ``size`` pixels. Raises ``RuntimeError`` where nothing was drawn."""
    browser = find()
    assert browser is not None
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        command = [
            browser,
            *QUIET,
            *(["--force-dark-mode", "--blink-settings=preferredColorScheme=0"] if dark else []),
            f"--user-data-dir={folder / 'profile'}",
            f"--window-size={size[0]},{size[1]}",
            f"--screenshot={folder / 'picture.png'}",
            f"--log-net-log={folder / 'net.json'}",
            url,
        ]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        if not (folder / "picture.png").exists():
            raise RuntimeError(ended.stderr)
        return Drawn((folder / "picture.png").read_bytes(), tuple(_asked(folder / "net.json", url)))


def _asked(log: Path, own: str) -> list[str]:
    events: list[dict[str, Any]] = json.loads(log.read_text())["events"]
    found = [own]
    for event in events:
        said = event.get("params")
        if isinstance(said, dict) and "url" in said and said.get("initiator", NOBODY) != NOBODY:
            found.append(said["url"])
    return list(dict.fromkeys(found))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("page")
    parser.add_argument("picture", type=Path)
    parser.add_argument("--size", default="900x1400")
    parser.add_argument("--dark", action="store_true")
    options = parser.parse_args()
    url = options.page if urlsplit(options.page).scheme else Path(options.page).absolute().as_uri()
    width, _, height = options.size.partition("x")
    options.picture.write_bytes(draw(url, (int(width), int(height)), options.dark).picture)


if __name__ == "__main__":
    main()
