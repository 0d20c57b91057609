"""Stored studies of every kind for the tests of reports."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from autotune.measure.outcome import Estimate, Outcome, Reading
from autotune.session.liveness import identity
from autotune.space.configuration import Configuration
from autotune.status import Status
from autotune.store.records import NewTrial, Place
from autotune.store.store import Store
from benchmarks import big_study
from tests.store.build import Clock, new_study

KNOBS: Mapping[str, Any] = {
    "tile": {"values": [1, 2, 4, 8, 16], "default": 1},
    "layout": {"choices": ["row", "column"], "default": "row"},
}


@contextmanager
def generated(folder: Path, trials: int = 120) -> Iterator[Store]:
    """A study of the generator of the benchmarks: failures, pruned trials, replicates and a verdict."""
    with Store.open(folder / "generated.db", clock=big_study.Clock()) as store:
        big_study.write(store, trials)
        yield store


class Written:
    """A study that a test writes trial by trial; each takes ten seconds of its clock."""

    def __init__(self, folder: Path, knobs: Mapping[str, Any] = KNOBS, **study: Any) -> None:
        self.clock = Clock()
        self.store = Store.open(folder / "written.db", clock=self.clock)
        document = {"space": {"knobs": dict(knobs)}, "source": "/somewhere/space.yaml"}
        self.study = self.store.create_study(
            new_study(**({"document": document, "environment_hash": ""} | study))
        )
        settings = {"search": {"strategy": "random", "seed": 0}, "budget": {"trials": 50}}
        self.session = self.store.open_session(self.study.id, settings, "", 1, "host0")
        source = {
            "source_hash": "s0",
            "files": [],
            "repository": {"head": {"commit": "c" * 40, "dirty": True}},
        }
        self.segment = self.store.open_segment(self.study.id, source, {}, "the study begins").id

    def search_that_died(self) -> None:
        """What is written next is of another session, which was never ended and whose process is gone."""
        with subprocess.Popen([sys.executable, "-c", ""]) as ended:
            pass
        settings = {"process": identity()}
        self.session = self.store.open_session(self.study.id, settings, "", ended.pid, socket.gethostname())

    def trial(
        self,
        configuration: Mapping[str, Any],
        value: float | None = None,
        status: Status = Status.OK,
        *,
        purpose: str = "search",
        reason: Mapping[str, Any] | None = None,
        metrics: Mapping[str, float] | None = None,
        readings: Sequence[float] = (),
        discarded: str = "",
        **changed: Any,
    ) -> int:
        """Run one to its end; its number. ``discarded``: why its last reading does not count."""
        number = self.begin(configuration, purpose=purpose, reason=reason)
        self.clock.advance(10.0)
        values = dict(metrics or {}) | ({} if value is None else {"time": value})
        estimates = {name: Estimate(v, v * 0.9, v * 1.1, 3, 0.01) for name, v in values.items()}
        raw = tuple(Reading("time", v, place * 0.5, "", {"wall": 0.4}) for place, v in enumerate(readings))
        raw = (*raw[:-1], *(replace(one, discarded=discarded) for one in raw[-1:]))
        self.store.finish(number[0], Outcome(status, estimates, raw, **changed))
        return number[1]

    def begin(
        self,
        configuration: Mapping[str, Any],
        *,
        purpose: str = "search",
        reason: Mapping[str, Any] | None = None,
    ) -> tuple[int, int]:
        """Propose one and start it; its id and number."""
        why = {"strategy": "random", "kind": "uniform"} if reason is None else reason
        new = NewTrial(Configuration(configuration), purpose, "random", why)  # type: ignore[arg-type]
        place = Place(self.study.id, self.session, self.segment)
        [trial] = self.store.propose(place, [new], worker="w")
        assert trial is not None
        return trial.id, trial.number

    def no_verdict(self, outcomes: Mapping[str, Sequence[str]]) -> None:
        """A finale without a winner: what came of each, by its label, as status and message."""
        document = {"configuration": None, "remark": "no finalist could be measured again"}
        self.store.save_verdict(self.study.id, self.session, document | {"outcomes": dict(outcomes)})

    def verdict(self, configuration: Mapping[str, Any], **changed: Any) -> None:
        """A verdict in which this configuration won over the default by 2."""
        document = {
            "configuration": dict(configuration),
            "label": "trial 1",
            "is_default": False,
            "metrics": {"time": {"value": 0.5, "low": 0.45, "high": 0.55, "n": 12, "error": 0.01}},
            "speedup": {"against": "the default", "estimate": 2.0, "low": 1.8, "high": 2.2},
            "baselines": [],
            "remark": "",
            "confidence": 0.95,
            "rounds": 12,
        }
        self.store.save_verdict(self.study.id, self.session, document | changed)
