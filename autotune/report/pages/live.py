"""The live view: the studies of a store and the report of each, as they are when a browser asks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from threading import Lock

from autotune import __version__
from autotune.errors import AutotuneError
from autotune.report.evidence import Place, opened
from autotune.report.numbers import say_count
from autotune.report.overview import held
from autotune.report.pages.html import html_page
from autotune.report.pages.live_server import Shown
from autotune.report.pages.page import Answer, Page, Paragraph, Section, Table
from autotune.report.pages.study_page import answer_of, study_page
from autotune.report.pages.subject import say_time
from autotune.session.answers import load_answer
from autotune.space.spec import say_workload
from autotune.status import Status
from autotune.store.records import StudyRecord
from autotune.store.store import Store

AGAIN_SECONDS = 5.0
"""How often a page is loaded again while trials run; otherwise it is six times that."""
SHARE = 0.1
"""The largest share of a processor that making one page again and again may take from measurements."""
MOST_STUDIES = 200

AROUND = (("/", "all studies"), ("?still", "keep this page as it is"))


@dataclass
class LiveView:
    """Pages of the store at ``place``; a study's page is made again only when it has changed.

    ``clock`` gives POSIX seconds.
    """

    place: Place
    clock: Callable[[], float] = time.time
    _made: dict[int, tuple[object, str, float]] = field(default_factory=dict)
    """By study: what its page depends on, the page, and the seconds that making it took."""
    _lock: Lock = field(default_factory=Lock)

    def __call__(self, path: str, still: bool) -> Shown:
        try:
            with opened(self.place) as store:
                shown = self._page(store, path)
        except AutotuneError as error:
            shown = Shown(html_page(_message("This cannot be shown", str(error))), AGAIN_SECONDS)
        return Shown(shown.html, None, shown.status) if still else shown

    def _page(self, store: Store, path: str) -> Shown:
        if path == "/":
            studies = store.studies()
            at_work = {study.id: len(held(store, study)) for study in studies}
            page = overview(store, studies, at_work, self.clock())
            return Shown(html_page(page), _often(any(at_work.values())))
        kind, _, number = path.strip("/").partition("/")
        known = {study.id: study for study in store.studies()} if kind == "study" else {}
        study = known.get(int(number)) if number.isdecimal() and len(number) < 19 else None
        if study is None:
            return Shown(html_page(_message("There is no such page", path)), status=HTTPStatus.NOT_FOUND)
        return self._study(store, study)

    def _study(self, store: Store, study: StudyRecord) -> Shown:
        sessions = [(session.id, session.finished_at) for session in store.sessions(study.id)]
        at_work = len(held(store, study))
        looks = (dict(study.counts), sessions, len(store.verdicts(study.id)), at_work)
        with self._lock:  # two browsers do not make the same page twice
            found = self._made.get(study.id)
            if found is None or found[0] != looks:
                began = time.perf_counter()
                page = html_page(study_page(store, study.id, self.clock()), AROUND)
                found = self._made[study.id] = (looks, page, time.perf_counter() - began)
        _, html, seconds = found
        return Shown(html, max(_often(at_work > 0), seconds / SHARE))


def _often(at_work: bool) -> float:
    return AGAIN_SECONDS if at_work else 6 * AGAIN_SECONDS


def overview(store: Store, studies: list[StudyRecord], at_work: Mapping[int, int], now: float) -> Page:
    """All studies of a store, those that are searched now first, then the newest.

    ``at_work`` is how many trials of each study, by its id, a live search has in flight.
    """
    working = sum(map(bool, at_work.values()))
    order = sorted(studies, key=lambda study: (not at_work[study.id], -study.id))
    shown = order[:MOST_STUDIES]
    table = Table(
        "each with its report",
        ("study", "workload", "answer", "how sure", "trials", "failed", "at work", "begun"),
        [tuple(_row(store, study, at_work[study.id])) for study in shown],
        links=[f"/study/{study.id}" for study in shown],
    )
    count = say_count(len(studies), "study", "studies")
    beside = {0: "no search is at work", 1: "one search is at work"}.get(
        working, f"{working} searches are at work"
    )
    left = len(studies) - len(shown)
    note = [Paragraph(f"{left:,} older studies are left out.", "note")] if left else []
    return Page(
        title="autotune",
        answer=Answer("store", count, beside, good=False),
        facts=(),
        sections=(Section("Studies", [table, *note]),),
        roomy=True,
        footer=f"autotune {__version__}, {store.url}, as of {say_time(now)}. This page reloads by itself.",
    )


def _row(store: Store, study: StudyRecord, at_work: int) -> Iterator[str]:
    answer = answer_of(load_answer(store, study))
    yield study.label + (" (replayed)" if study.replayed else "")
    yield say_workload(study.workload)
    yield answer.big
    yield answer.beside
    yield f"{sum(study.counts.values()):,}"
    yield f"{sum(n for status, n in study.counts.items() if Status(status).failed):,}"
    yield str(at_work or "")
    yield say_time(study.created_at)


def _message(what: str, more: str) -> Page:
    answer = Answer("autotune", what, more, good=False)
    return Page(title="autotune", answer=answer, facts=(), sections=())
