"""What is measured again later leaves a report as it was: no search, strategy or time of one."""

from __future__ import annotations

from pathlib import Path

from autotune.report.evidence import load_evidence
from autotune.report.overview import studies
from autotune.report.pages.markdown import markdown
from autotune.report.pages.study_page import study_page
from autotune.report.spend import spend
from autotune.session.searches import VERIFIED
from tests.report.studies import Written

NOW = 1_700_001_000.0


def verified(written: Written, *, closed: bool = True) -> None:
    """A replay of the study, ten seconds long."""
    settings = {VERIFIED: ["trial 0", "the default"]}
    session = written.store.open_session(written.study.id, settings, "", 1, "host0")
    written.clock.advance(10.0)
    if closed:
        written.store.close_session(session, "verified")


def test_a_replay_changes_nothing_of_what_is_said_of_the_search(tmp_path: Path) -> None:
    written = Written(tmp_path)
    written.trial({"tile": 1}, 1.0)
    written.store.close_session(written.session, "50 trials")
    page = markdown(study_page(written.store, None, NOW))
    assert "strategy random" in page and "--trials 50" in page
    rows, seconds = studies(written.store), spend(load_evidence(written.store))

    verified(written)

    assert markdown(study_page(written.store, None, NOW)) == page
    assert studies(written.store).equals(rows)
    assert spend(load_evidence(written.store)).equals(seconds)


def test_a_study_that_is_measured_again_just_now_is_not_called_stopped(tmp_path: Path) -> None:
    written = Written(tmp_path)
    written.trial({"tile": 1}, 1.0)
    written.store.close_session(written.session, "50 trials")
    verified(written, closed=False)
    assert studies(written.store)["state"].tolist() == ["finished"]
