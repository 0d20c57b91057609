"""What is said of trials whose processes had other links and devices than were asked for."""

from __future__ import annotations

from pathlib import Path

import autotune
from autotune.measure.facts import MISSING
from autotune.measure.groups.network import Loopback
from autotune.measure.objective import Context
from autotune.measure.readings import Sample
from autotune.session.remarks.substituted import say_substituted
from autotune.space.reading.reader import parse_spec
from tests.session.heard import Heard

SPACE = """
autotune: 1
name: linked
objective: given.py:Given
knobs: {chunk: {values: [1, 2, 4]}}
"""


FACTS = {**Loopback("no interface can be made").facts, MISSING: ["no group with a quota"]}


class Given(autotune.Objective):
    """As an objective of ranks that found no rights for its links."""

    def __init__(self, context: Context) -> None:
        self.context = context

    def measure(self, loaded: dict[str, int], rng: object) -> Sample:
        return Sample({"time": float(loaded["chunk"])}, facts=FACTS)


def test_a_search_and_its_answer_say_what_could_not_be_had(tmp_path: Path) -> None:
    (tmp_path / "given.py").write_text("class Given: ...\n")
    spec = parse_spec(SPACE, tmp_path / "space.yaml", {})
    heard = Heard()
    result = autotune.search(spec, objective=Given, store=tmp_path / "study.db", progress=heard, trials=3)
    said = "no links (no interface can be made); no group with a quota"
    assert len([note for note in heard.notes if said in note]) == 1
    assert said in result.remark


def test_where_all_is_as_asked_nothing_is_said() -> None:
    assert say_substituted({0: {"network": "shaped"}, 1: Loopback().facts}) == ""
    assert say_substituted({0: {"missing": ["a word of the objective's own"]}}) == ""
