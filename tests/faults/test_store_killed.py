"""The store when the process that writes to it is killed, at any moment."""

from __future__ import annotations

import random
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from autotune.status import Status
from autotune.store.store import Store
from tests.faults.storing import python
from tests.store.build import outcome, results

WRITER = """
    import sys
    from autotune.status import Status
    from autotune.store.store import Store
    from tests.store.build import *
    store = Store.open(sys.argv[1])
    found = store.studies()
    study = found[0].id if found else bench(store).study.id
    session = store.open_session(study, {}, "e", 1, "h")
    segment = store.open_segment(study, {}, {}, "").id
    print("ready", flush=True)
    tile = int(sys.argv[2])
    while True:
        tile += 1
        [trial] = store.propose(Place(study, session, segment), [new_trial(tile)])
        print("proposed", trial.id, flush=True)
        store.start(trial.id, "w")
        print("finished", trial.id, store.finish(trial.id, outcome(n=30)), flush=True)
"""


@pytest.mark.long
def test_kill_9_at_any_moment_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    file, dice = tmp_path / "a.db", random.Random(0)
    proposed: set[int] = set()
    told: dict[int, int] = {}
    for round_ in range(12):
        process = python(WRITER, file, round_ * 100_000)
        lines = _kill_after(process, dice.randrange(1, 120), dice.random)
        for what, trial, *place in (
            line.split() for line in lines if line != "ready\n" and line.endswith("\n")
        ):
            if what == "proposed":
                proposed.add(int(trial))
            else:
                told[int(trial)] = int(place[0])
        with Store.open(file) as store:
            assert store.integrity() == []
            records = {t.id: t for t in store.trials(store.study().id)}
            assert proposed <= records.keys()
            assert {i: records[i].told for i in told} == told
            assert all(len(store.readings(i)) == 30 for i in list(told)[-5:])
            places = [t.told for t in results(store, store.study().id)]
            assert places == list(range(len(places)))
            assert [t.number for t in records.values()] == list(range(len(records)))
    assert len(told) > 100


def _kill_after(process: subprocess.Popen[str], lines: int, chance: Callable[[], float]) -> list[str]:
    """Kill -9 once it has written so many lines, and a random stretch of work later; all that it wrote."""
    assert process.stdout is not None
    read = [process.stdout.readline() for _ in range(lines)]
    busy = int(chance() * 20_000)  # a fraction of a trial's time: so that the moment has no pattern
    while busy:
        busy -= 1
    process.send_signal(signal.SIGKILL)
    read += process.stdout.readlines()
    process.stdout.close()
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait() == -signal.SIGKILL
    return read


def test_trials_of_a_killed_session_become_lost_and_are_tried_again(tmp_path: Path) -> None:
    file = tmp_path / "a.db"
    process = python(WRITER, file, 0)
    _kill_after(process, 20, lambda: 0.0)
    with Store.open(file) as store:
        study = store.study()
        unfinished = [t.id for t in store.trials(study.id) if not t.status.finished]
        [session] = [s for s in store.sessions(study.id) if s.settings == {}]
        store.close_session(session.id, "its process is gone")
        lost = store.expire(study.id, store.sessions(study.id)[-1].started_at)
        assert [t.id for t in lost] == unfinished
        for trial in lost:
            assert store.retry(trial.id) is not None
            store.finish(trial.id, outcome())
        assert {t.status for t in store.trials(study.id)} == {Status.OK}
