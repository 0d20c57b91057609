"""How often finalists are read, and how many of them, in the time that there is."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.measure.outcome import Estimate
from autotune.session.finale.contender import Contender
from autotune.session.finale.finale import affordable, foreseen
from autotune.session.finale.rounds import FEWEST_ROUNDS, MIN_ROUNDS, ReadingSeconds, Rounds
from autotune.session.finale.stakes import Stakes
from autotune.space.configuration import Configuration
from autotune.space.reading.reader import parse_spec
from autotune.status import Status
from autotune.store.records import TrialRecord

SPACE = """
autotune: 1
name: small
objective: objective.py:unused
metrics: {time: {goal: minimize, unit: s}}
knobs: {x: {range: [1, 4], default: 1}}
"""
TRAINING = SPACE + "search: {early_stopping: {policy: asha, resource: epochs, min: 1, max: 9}}\n"


@pytest.mark.parametrize(
    ("budget", "searched", "seconds"),
    [
        ("budget: {time: 10m}", 600.0, 120.0),
        ("budget: {time: 20s}", 20.0, 5.0),
        ("", 3.0, 5.0),
        ("", 20.0, 20.0),
        ("", 100.0, 30.0),
        ("", 3600.0, 720.0),
        ("", None, 30.0),
    ],
)
def test_a_finale_has_a_fifth_of_the_search(budget: str, searched: float | None, seconds: float) -> None:
    assert Rounds.of(parse_spec(SPACE + budget), searched).seconds == pytest.approx(seconds)


def test_slow_readings_are_fewer_and_so_are_their_finalists() -> None:
    rounds = Rounds.of(parse_spec(SPACE + "budget: {time: 100s}"))  # 20 s for the finale
    assert rounds.among(6, 1.5).least == MIN_ROUNDS and rounds.among(6, 2.4).least == FEWEST_ROUNDS
    assert rounds.among(6, 0.0).least == MIN_ROUNDS
    assert rounds.longest(0.2) == 20.0
    assert rounds.among(2, 18.0).longest(18.0) == FEWEST_ROUNDS * 18.0


@given(st.integers(2, 9), st.floats(1e-6, 100.0), st.floats(1.0, 1e5))
def test_rounds_fit_unless_they_are_the_fewest(contenders: int, reading: float, searched: float) -> None:
    rounds = Rounds.of(parse_spec(SPACE), searched).among(contenders, contenders * reading)
    assert rounds.fewest <= rounds.least <= MIN_ROUNDS
    assert rounds.least == rounds.fewest or rounds.least * contenders * reading <= rounds.seconds


@given(st.integers(1, 100))
def test_runs_that_share_the_rounds_have_as_many_together(runs: int) -> None:
    whole = Rounds.of(parse_spec(SPACE))
    each = whole.split(runs)
    assert 1 <= each.fewest == each.least <= each.most
    assert runs * each.least >= whole.least > runs * (each.least - 1)
    assert runs * each.most <= max(whole.most, runs * each.least) and runs * (each.most + 1) > whole.most
    assert runs * each.seconds == pytest.approx(whole.seconds)


@pytest.mark.parametrize(("most", "fewest"), [(1, 3), (5, 5), (100, 8)])
def test_whom_few_readings_are_enough_gets_few_rounds_where_they_are_slow(most: int, fewest: int) -> None:
    text = SPACE + f"measure: {{min_readings: 1, max_readings: {most}}}"
    assert Rounds.of(parse_spec(text), 60.0).among(2, 120.0).least == fewest
    assert Rounds.of(parse_spec(text), 60.0).among(2, 0.2).least == MIN_ROUNDS


def test_a_finale_goes_on_where_that_would_show_the_gain_of_the_search() -> None:
    rounds = Rounds.of(parse_spec(SPACE + "budget: {time: 100s}"), 100.0)  # 20 s, and 40 s at the longest
    assert not rounds.promising(0.1, 8, each=2.5, taken=20.0), "no gain is known"
    gained = rounds.facing(Stakes(gain=0.2), 2.5)
    assert gained.promising(0.21, 8, each=2.5, taken=20.0)
    assert not gained.promising(0.23, 8, each=2.5, taken=20.0)
    assert not gained.promising(0.2, 14, each=2.5, taken=39.0), "no further round fits"
    assert gained.promising(0.14, 14, each=2.5, taken=37.0)
    assert not gained.promising(0.1, 60, each=0.1, taken=20.0), "as many rounds as there may be"


def test_noisy_readings_have_more_rounds_than_a_trial_has_readings_if_they_fit() -> None:
    text = SPACE + "measure: {max_readings: 3}\nbudget: {time: 40s}"  # 8 s
    rounds = Rounds.of(parse_spec(text), 40.0)
    noisy = Stakes(gain=0.4, noise=0.2)
    assert rounds.fewest == 3 and rounds.facing(Stakes(gain=0.4), 1.0).fewest == 3
    assert rounds.facing(noisy, 1.0).fewest == 5
    assert rounds.facing(noisy, 2.0).fewest == 4, "no more fit"
    assert rounds.facing(noisy, 4.0).fewest == 3
    assert rounds.facing(noisy, 0.0).fewest == 5


def test_one_alone_is_compared_with_nobody_and_yet_read_twice() -> None:
    assert Rounds.of(parse_spec(SPACE)).among(1, 0.1).least == 2


def test_a_reading_of_a_training_is_all_of_it() -> None:
    def trial(number: int, seconds: float, readings: int) -> TrialRecord:
        own = Configuration({"x": number})
        made = TrialRecord(number, 1, number, 1, 1, "search", own, own.hash, Status.OK)
        known = {"time": Estimate(1.0, 1.0, 1.0, readings)}
        return replace(made, phases={"measure": seconds, "prepare": 9.0}, metrics=known)

    trials = [trial(1, 1.0, 10), trial(2, 2.0, 10), trial(3, 9.0, 10)]
    seconds = ReadingSeconds.of(parse_spec(SPACE), trials)
    assert seconds.usual == pytest.approx(0.2) and seconds(None) == seconds.usual
    assert seconds(Configuration({"x": 3})) == pytest.approx(0.9)
    assert seconds(Configuration({"x": 9})) == seconds.usual, "was not tried"
    assert ReadingSeconds.of(parse_spec(TRAINING), trials)(Configuration({"x": 2})) == pytest.approx(2.0)
    assert ReadingSeconds.of(parse_spec(SPACE), []).usual == 0.0
    checked = [replace(one, phases={"load": 1.0, "check": 3.0, "measure": 1.0}) for one in trials]
    assert ReadingSeconds.of(parse_spec(SPACE), checked).entering == 4.0


def test_the_last_finalists_are_left_out_first_and_nobody_else() -> None:
    def contender(x: int, finalist: bool) -> Contender:
        return Contender(f"{x}", Configuration({"x": x}), finalist=finalist)

    all_of_them = [contender(1, False), *(contender(x, True) for x in (2, 3, 4)), contender(5, False)]
    rounds = Rounds.of(parse_spec(SPACE + "budget: {time: 100s}"))  # 8 rounds of 2.5 s

    def labels(seconds: ReadingSeconds) -> str:
        return "".join(c.label for c in affordable(all_of_them, rounds, seconds))

    assert [labels(ReadingSeconds(usual)) for usual in (0.0, 0.5, 0.6, 0.7, 9.0)] == [
        "12345",
        "12345",
        "1235",
        "125",
        "125",
    ]
    slow_default = {Configuration({"x": 1}).hash: 5.0}
    assert labels(ReadingSeconds(0.1, slow_default)) == "12345", "they take next to nothing beside it"
    assert labels(ReadingSeconds(1.0, slow_default)) == "1235"
    assert labels(ReadingSeconds(0.1, entering=1.0)) == "12345"
    assert foreseen(all_of_them, rounds, ReadingSeconds(0.1, entering=20.0)) == 5 * 20.0 + 20.0
    assert labels(ReadingSeconds(0.1, entering=20.0)) == "125", "loading and checking takes time as well"
