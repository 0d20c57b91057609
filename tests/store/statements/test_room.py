"""Budgets hold although several propose at once, on a file, in memory and on a PostgreSQL server."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from autotune.space.configuration import Configuration
from autotune.store.records import NO_ROOM, NewAsk
from autotune.store.statements.room import Counted, Room
from autotune.store.store import Store
from tests.store.build import Bench, bench, new_trial


def every(configuration: Configuration) -> bool:
    return True


def test_the_answer_ends_where_the_room_does(store: Store) -> None:
    b = bench(store)
    b.propose(1)
    room = Room(2, (Counted(b.study.id, 1, every),))
    new = [new_trial(tile) for tile in (1, 2, 3, 4)]
    written = store.propose(b.place, new, ask=NewAsk(0, 4, 1, 0), rooms=[room])
    assert [trial and trial.number for trial in written] == [None, 1, 2]
    assert store.asks(b.study.id)[0].trials == (None, 1, 2, NO_ROOM)


def test_what_others_proposed_since_the_count_takes_from_it(store: Store) -> None:
    b = bench(store)
    room = Room(3, (Counted(b.study.id, 0, lambda c: c["tile"] != 9),))
    b.propose(1, 9)  # the second lies outside the space that is searched
    b.propose(5, purpose="final")
    new = [new_trial(tile) for tile in (2, 3, 4)]
    written = store.propose(b.place, new, rooms=[room])
    assert [trial and trial.configuration["tile"] for trial in written] == [2, 3]
    assert store.propose(b.place, new[2:], rooms=[room]) == []


def test_of_two_rooms_the_smaller_counts(store: Store) -> None:
    one, two = bench(store, "one"), bench(store, "two")
    own = Room(3, (Counted(one.study.id, 0, every),))
    both = Room(3, (Counted(one.study.id, 0, every), Counted(two.study.id, 0, every)))
    two.propose(1, 2)
    new = [new_trial(tile) for tile in range(4)]
    assert len(store.propose(one.place, new, rooms=[own, both])) == 1


def test_many_at_once_take_no_more_than_there_is(
    shared_url: str, store: Store, open_store: Callable[[str], Store]
) -> None:
    one, two = bench(store, "one"), bench(store, "two")
    room = Room(40, (Counted(one.study.id, 0, every), Counted(two.study.id, 0, every)))

    def take(place: int) -> int:
        own = open_store(shared_url)
        b = [one, two][place % 2]
        mine = Bench(own, b.study, b.session, b.segment)
        return sum(_take(mine, tile, room) for tile in range(1000 * place, 1000 * place + 30))

    with ThreadPoolExecutor(4) as pool:
        taken = list(pool.map(take, range(4)))
    assert sum(taken) == 40
    assert store.count_trials(one.study.id) + store.count_trials(two.study.id) == 40


def _take(b: Bench, tile: int, room: Room) -> int:
    return len(b.store.propose(b.place, [new_trial(tile)], rooms=[room]))
