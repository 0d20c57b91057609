"""The report and the live view in a real browser: the figures are drawn, and nobody else is asked."""

from __future__ import annotations

import io
import threading
from pathlib import Path

import numpy as np
import pytest

from autotune.report import drawing
from autotune.report.pages.html import html_page
from autotune.report.pages.live import LiveView
from autotune.report.pages.live_server import LiveServer
from autotune.report.pages.study_page import study_page
from autotune.store.store import Store
from tests.browser import draw, find
from tests.report.pages.test_live import searched

pytestmark = pytest.mark.skipif(find() is None, reason="no Chromium: apt-get install chromium")

SIZE = (900, 4000)
LINE = drawing.RANDOM
"""What random draws would come to, a colour that only a figure has."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("browser")
    place = f"sqlite:///{folder / 'store.db'}"
    searched(place, folder, 7)
    return place


def pixels(picture: bytes, colour: str) -> int:
    """How many are of a ``#rrggbb``."""
    from matplotlib.image import imread

    image = (imread(io.BytesIO(picture), format="png")[..., :3] * 255).round().astype(int)
    wanted = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
    return int(np.all(np.abs(image - wanted) <= 2, axis=-1).sum())


def test_the_report_is_drawn_and_asks_nobody(place: str, tmp_path: Path) -> None:
    with Store.open(place, readonly=True) as store:
        text = html_page(study_page(store, None, 1.8e9))
    file = tmp_path / "report.html"
    file.write_text(text)
    drawn = draw(file.as_uri(), SIZE)
    assert drawn.outside() == []
    assert pixels(drawn.picture, LINE) > 100
    without = tmp_path / "without.html"
    without.write_text(text.replace("<svg", "<template").replace("</svg>", "</template>"))
    assert pixels(draw(without.as_uri(), SIZE).picture, LINE) == 0


def test_what_a_page_asks_for_is_seen(tmp_path: Path) -> None:
    """Else the tests here could not fail."""
    file = tmp_path / "asking.html"
    file.write_text('<!doctype html><img src="http://elsewhere.example/picture.png">')
    assert draw(file.as_uri()).outside() == ["http://elsewhere.example/picture.png"]


def test_the_live_view_is_drawn_and_asks_only_its_server(place: str) -> None:
    server = LiveServer(LiveView(place))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        page = draw(f"{server.address}study/1?still", SIZE)
        overview = draw(f"{server.address}?still")
    finally:
        server.stop()
        thread.join()
    assert page.outside(server.address) == overview.outside(server.address) == []
    assert pixels(page.picture, LINE) > 100
