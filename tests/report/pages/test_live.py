"""The live view: what it shows, to whom, and that it stays a reader."""

from __future__ import annotations

import http.client
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

import autotune
from autotune.report.pages.live import LiveView
from autotune.report.pages.live_server import COOKIE, LiveServer, Shown
from autotune.space.reading.reader import parse_spec
from autotune.store.store import Store
from tests.report.studies import Written

SPACE = """
autotune: 1
name: first
objective: objective.py:measure
knobs:
  how: {choices: ["<b>x", a, bb, ccc, dddd, eeeee, ffffff]}
"""

Answer = tuple[int, dict[str, str], str]


@contextmanager
def serving(server: LiveServer) -> Iterator[LiveServer]:
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join()


def ask(server: LiveServer, path: str, method: str = "GET", **headers: str) -> Answer:
    connection = http.client.HTTPConnection(server.host, server.port, timeout=30)
    try:
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read().decode()
    finally:
        connection.close()


@pytest.fixture
def place(tmp_path: Path) -> str:
    place = f"sqlite:///{tmp_path / 'live.db'}"
    searched(place, tmp_path, 4)
    return place


def searched(place: str, folder: Path, trials: int) -> None:
    spec = parse_spec(SPACE, folder / "space.yaml", {})
    autotune.search(spec, objective=lambda how: 1.0 + len(how), store=place, trials=trials)


def test_a_search_whose_process_is_gone_is_at_work_no_more(tmp_path: Path) -> None:
    written = Written(tmp_path)
    with subprocess.Popen(
        [sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE
    ) as searching:
        settings = {"process": psutil.Process(searching.pid).create_time()}
        process = (searching.pid, socket.gethostname())
        written.session = written.store.open_session(written.study.id, settings, "", *process)
        written.begin({"tile": 1, "layout": "row"})
        view = LiveView(written.store)
        assert "one search is at work" in view("/", False).html
        assert "A search is running" in view("/study/1", False).html
        assert searching.stdin is not None
        searching.stdin.close()
    assert "no search is at work" in view("/", False).html
    assert "A search is running" not in view("/study/1", False).html, "the page of before is not kept"
    assert view("/", False).again == view("/study/1", False).again == 30.0


def test_all_studies_and_each_of_them(place: str) -> None:
    view = LiveView(place)
    overview = view("/", False)
    assert "first" in overview.html and 'href="/study/1"' in overview.html and overview.again
    page = view("/study/1", False)
    assert "<svg" in page.html and 'href="/"' in page.html and "<b>x" not in page.html
    assert view("/study/1", True).again is None


@pytest.mark.parametrize(
    "path", ["/study/2", "/study/", "/study/-1", "/../etc", "/study/1/x", f"/study/{'9' * 40}"]
)
def test_what_is_not_there(place: str, path: str) -> None:
    assert LiveView(place)(path, False).status == 404


def test_a_page_is_made_anew_only_when_the_study_changed(place: str, tmp_path: Path) -> None:
    times = iter([1e9, 2e9, 3e9])
    view = LiveView(place, clock=lambda: next(times))
    first = view("/study/1", False).html
    assert "2001-09-09" in first and view("/study/1", False).html == first
    searched(place, tmp_path, 5)
    assert "2033-05-18" in view("/study/1", False).html


def test_a_page_is_made_anew_when_a_session_begins_or_ends(place: str, tmp_path: Path) -> None:
    times = iter([1e9, 2e9, 3e9])
    view = LiveView(place, clock=lambda: next(times))
    assert "2001-09-09" in view("/study/1", False).html
    with Store.open(place) as store:
        study = store.study()
        session = store.open_session(study.id, {}, study.environment_hash, 1, "host")
    assert "2033-05-18" in view("/study/1", False).html
    with Store.open(place) as store:
        store.close_session(session, "interrupted")
    assert "2065-01-24" in view("/study/1", False).html


def test_who_may_ask(place: str) -> None:
    def pages(path: str, still: bool) -> Shown:
        return Shown("the page", None if still else 7.0)

    with serving(LiveServer(pages)) as server:
        status, headers, text = ask(server, "/")
        assert (status, text, headers["refresh"]) == (200, "the page", "7")
        assert headers["cache-control"] == "no-store" and headers["x-frame-options"] == "DENY"
        assert "refresh" not in ask(server, "/?still")[1]
        assert ask(server, "/", Host="evil.example")[0] == 403
        assert ask(server, "/", "POST")[0] == 501 and ask(server, "/", "DELETE")[0] == 501
        assert ask(server, "/", "HEAD")[2] == ""
    with serving(LiveServer(pages, token="sesame")) as server:
        assert server.address.endswith("/?token=sesame")
        assert (
            ask(server, "/")[0] == ask(server, "/?token=wrong")[0] == ask(server, "/?token=%C3%A9")[0] == 403
        )
        status, headers, _ = ask(server, "/?token=sesame")
        assert status == 200 and "HttpOnly" in headers["set-cookie"]
        assert ask(server, "/", Cookie=f"{COOKIE}=sesame")[0] == 200
        assert ask(server, "/", Cookie=f"{COOKIE}=other")[0] == 403


@pytest.mark.parametrize("token", ["", "sesame"])
def test_what_is_sent_for_a_token_does_not_write_the_answer(token: str) -> None:
    sent = "/?token=sesame%0d%0aX-Planted:%20yes%0d%0a%0d%0a%3Cscript%3E"
    with serving(LiveServer(lambda path, still: Shown("<p>page</p>"), token=token)) as server:
        status, headers, body = ask(server, sent)
    assert status == (403 if token else 200)
    assert "x-planted" not in headers and "set-cookie" not in headers and "script" not in body


def test_what_is_no_address(capfd: pytest.CaptureFixture[str]) -> None:
    with serving(LiveServer(lambda path, still: Shown("<p>page</p>"))) as server:
        assert ask(server, "http://[", Host="localhost")[0] == 400
        assert ask(server, "/", Host="[")[0] == 403
    assert capfd.readouterr().err == ""


def test_of_a_browser_that_goes_away_nothing_is_said(capfd: pytest.CaptureFixture[str]) -> None:
    large = "x" * 50_000_000
    with serving(LiveServer(lambda path, still: Shown(large))) as server:
        others = set(threading.enumerate())
        with socket.create_connection((server.host, server.port)) as browser:
            browser.sendall(b"GET / HTTP/1.0\r\nHost: localhost\r\n\r\n")
            browser.recv(10)
        for thread in set(threading.enumerate()) - others:
            thread.join()  # what it says is said by then
        assert ask(server, "/", "HEAD")[0] == 200
    assert capfd.readouterr().err == ""


def test_a_store_that_cannot_be_read_is_said_in_the_browser(tmp_path: Path) -> None:
    shown = LiveView(f"sqlite:///{tmp_path / 'missing.db'}")("/", False)
    assert "cannot be shown" in shown.html and "missing.db" in shown.html


def test_studies_of_one_name_are_told_apart_by_their_workload(tmp_path: Path) -> None:
    written = Written(tmp_path, workload={"m": 960})
    assert "m 960" in LiveView(written.store)("/", False).html
