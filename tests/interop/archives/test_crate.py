"""What the description of an archive says, in the terms of RO-Crate and PROV."""

from __future__ import annotations

import math
from typing import Any

import pytest

from autotune.interop.archives.crate import NO_LICENCE, CrateFile, CrateStudy, crate


def entities(finished: float = 0.0, licence: str = "") -> dict[str, dict[str, Any]]:
    """By their ids, of an archive with one study that had two searches."""
    ended = {"place": 0, "started": 0.0, "finished": 86400.0, "strategy": "auto", "environment": "e0"}
    running = {"place": 1, "started": 90000.0, "finished": None, "strategy": "", "environment": "e0"}
    study = CrateStudy("studies/0", "gemm", 7, [ended, running])
    files = [CrateFile("README.md", 5, "abc", "what this is"), CrateFile("files/abc", 5, "abc")]
    found = crate([study], files, {"e0": "a machine"}, finished, licence)["@graph"]
    return {entity["@id"]: entity for entity in found}


def test_a_search_says_when_it_began_and_ended_and_on_what_it_ran() -> None:
    found = entities()
    ended, running = found["#search-studies-0-0"], found["#search-studies-0-1"]
    assert ended["name"] == "search 0 of gemm by auto"
    assert ended["startTime"] == ended["prov:startedAtTime"] == "1970-01-01T00:00:00+00:00"
    assert ended["endTime"] == ended["prov:endedAtTime"] == "1970-01-02T00:00:00+00:00"
    assert running["name"] == "search 1 of gemm by measuring again" and "endTime" not in running
    assert found[ended["instrument"]["@id"]]["name"] == "a machine"


@pytest.mark.parametrize(
    ("licence", "said"),
    [
        ("", NO_LICENCE),
        ("CC-BY-4.0", "CC-BY-4.0"),
        ("https://example.org/licence", {"@id": "https://example.org/licence"}),
    ],
)
def test_the_licence_is_what_was_stated(licence: str, said: object) -> None:
    assert entities(licence=licence)["./"]["license"] == said


def test_files_have_their_size_and_kind_as_far_as_it_is_known() -> None:
    readme, stored = entities()["README.md"], entities()["files/abc"]
    assert (readme["name"], readme["contentSize"], readme["encodingFormat"]) == (
        "what this is",
        "5",
        "text/markdown",
    )
    assert stored["name"] == "files/abc" and "encodingFormat" not in stored


@pytest.mark.parametrize("at", [math.nan, math.inf, 1e300])
def test_a_time_that_is_none_of_this_era_is_no_error(at: float) -> None:
    """A row of an archive from elsewhere may have any number."""
    assert entities(finished=at)["./"]["datePublished"].startswith("1970-01-01T")
