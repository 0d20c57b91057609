"""Whether there is noise at all, by what was read so far."""

from __future__ import annotations

from autotune.measure.rules.steadiness import LOOK_AGAIN, NOISELESS, Steadiness


def steady(found: Steadiness | None = None) -> Steadiness:
    found = found or Steadiness()
    for _ in range(NOISELESS):
        assert not found.noiseless and not found.enough(9)
        found.note(3, noisy=False)
    return found


def test_one_reading_is_enough_after_some_without_noise() -> None:
    assert steady().noiseless and steady().enough(1)


def looks_again_ever_more_seldom(found: Steadiness) -> None:
    for wait in (LOOK_AGAIN, 2 * LOOK_AGAIN, 4 * LOOK_AGAIN):
        for _ in range(wait):
            assert found.enough(1)
            found.note(1, noisy=False)
        assert not found.enough(1) and found.enough(2)
        found.note(2, noisy=False)


def test_it_is_looked_at_again_ever_more_seldom() -> None:
    looks_again_ever_more_seldom(steady())


def test_noise_begins_it_anew() -> None:
    found = steady()
    found.note(2, noisy=True)
    looks_again_ever_more_seldom(steady(found))
