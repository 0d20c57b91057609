"""Trials read in parts, and values read past the decoder."""

from __future__ import annotations

import math
from collections import Counter

from hypothesis import example, given
from hypothesis import strategies as st

from autotune.measure.outcome import Estimate
from autotune.status import Status
from autotune.store.brief import MOST_OF_A_MESSAGE, _value_behind
from autotune.store.documents import encode, encode_metrics
from autotune.store.store import Store
from tests.store.build import Bench, bench, outcome

NUMBERS = st.floats()
MESSAGE = "no more registers: " + "x" * 10_000


@given(st.dictionaries(st.text(max_size=20), NUMBERS, max_size=4), st.text(max_size=20))
@example({'"': 0.0}, "")
@example({'a"b': 0.0, "b": 1.0}, "b")
def test_a_value_is_found_as_the_decoder_finds_it(values: dict[str, float], name: str) -> None:
    text = encode_metrics({n: Estimate(v, v, v, 1) for n, v in values.items()})
    found = _value_behind(f'{encode(name)}:{{"value":', text)
    expected = values.get(name)
    assert found is expected is None or (found == expected or (math.isnan(found) and math.isnan(expected)))  # type: ignore[arg-type]


def test_brief_trials_are_the_trials(store: Store) -> None:
    one = bench(store)
    trials = [one.trial(tile) for tile in range(3)]
    store.finish(trials[0].id, outcome(value=0.25))
    store.finish(trials[1].id, outcome(Status.CRASHED, message=MESSAGE, stderr="y" * 10_000))
    brief = list(store.brief_trials(one.study.id))
    assert [trial.status for trial in brief] == ["ok", "crashed", "waiting"]
    assert brief[0].metrics["time"].value == 0.25 and brief[0].configuration["tile"] == 0
    assert brief[1].message == MESSAGE[:MOST_OF_A_MESSAGE]
    assert store.values_of(one.study.id, ["time"]) == [(0, (0.25,))]
    assert store.values_of(one.study.id, ["time", "none"]) == []


def test_readings_of_some_trials(store: Store) -> None:
    one = bench(store)
    trials = [one.trial(tile) for tile in range(3)]
    for trial in trials:
        store.finish(trial.id, outcome())
    found = store.readings_in([trials[2].id, trials[0].id])
    assert [trial for trial, _ in found] == [trials[0].id, trials[2].id]
    assert found[0][1] == store.readings(trials[0].id)
    assert [trial.number for trial in store.numbered(one.study.id, [2, 0])] == [0, 2]


def test_more_trials_are_looked_up_than_one_statement_can_name(store: Store) -> None:
    """PostgreSQL takes 65,535 values."""
    one = bench(store)
    trial = one.trial(1)
    assert store.numbered(one.study.id, range(70_000)) == [trial]
    hashes = [f"{number:x}" for number in range(70_000)]
    assert store.numbers_of(one.study.id, [*hashes, trial.hash]) == {trial.hash: 0}


def test_trials_are_counted_without_being_read(store: Store) -> None:
    one = bench(store)
    store.finish(one.trial(1).id, outcome())
    store.finish(one.trial(2).id, outcome(Status.CRASHED))
    store.finish(one.trial(1, "final").id, outcome())
    one.propose(3, 4)
    later = store.open_session(one.study.id, {}, "environment0", 1, "host")
    Bench(store, one.study, later, one.segment).trial(5)
    bench(store, "another").trial(1)
    counted = Counter((t.session_id, t.purpose, str(t.status)) for t in store.trials(one.study.id))
    assert store.tally(one.study.id) == counted and counted[one.session, "search", "waiting"] == 2
    assert store.tally(999) == {}


def test_those_with_a_fact_are_found(store: Store) -> None:
    one = bench(store)
    name = 'a "b"_%'
    said: list[dict[str, object]] = [{name: 1, "cores": [1]}, {name.upper(): 1}, {"text": f"{encode(name)}:"}]
    said += [{"in": {name: 2}}, {name: None}]
    for tile, facts in enumerate(said):
        store.finish(one.trial(tile).id, outcome(facts=facts))
    store.finish(one.trial(0, "final").id, outcome(facts=said[0]))
    assert store.facts_with(one.study.id, name) == [(0, said[0]), (4, said[4])]
    assert store.facts_with(one.study.id, "none") == []
