"""A study with one trial of each kind, for what is written to other tools."""

from __future__ import annotations

import math
from pathlib import Path

from autotune.measure.outcome import Estimate, Report
from autotune.space.configuration import Configuration
from autotune.space.knobs import Choice, FloatRange, IntegerRange, OrderedValues, Permutation
from autotune.space.space import Space
from autotune.status import Status
from autotune.store.records import NewTrial, Place
from autotune.store.store import Store
from tests.store.build import new_study, outcome

SPACE = Space(
    [
        OrderedValues("tile", (1, 2, 4, 8), default=1),
        IntegerRange("depth", 1, 9, 2, "linear"),
        IntegerRange("width", 1, 64, 1, "log"),
        FloatRange("lr", 1e-5, 1.0, None, "log"),
        Choice("layout", ("row", "column")),
        Permutation("order", ("i", "j")),
    ],
    [],
)


def configuration(tile: int, **changed: object) -> Configuration:
    values = {
        "tile": tile,
        "depth": 3,
        "width": tile * 4,
        "lr": 0.01 * tile,
        "layout": "row",
        "order": ("i", "j"),
    }
    return Configuration({**values, **changed})  # type: ignore[dict-item]


def make(file: Path) -> Store:
    """Eight trials: six that ended well, a failure, one that was stopped; and one that still runs."""
    store = Store.open(file)
    study = store.create_study(
        new_study("odd <name>", document={"space": SPACE.to_document()}, spec_text="", workload={"m": 960})
    )
    session = store.open_session(study.id, {}, "environment0", 1, "host")
    segment = store.open_segment(study.id, {}, {}, "the study begins")
    configurations = [
        configuration(tile, order=order) for tile in (1, 2, 4) for order in (("i", "j"), ("j", "i"))
    ]
    configurations += [configuration(8), configuration(8, layout="column"), configuration(1, lr=0.5)]
    new = [NewTrial(each, "search", "random", {"kind": "uniform"}) for each in configurations]
    trials = [
        t for t in store.propose(Place(study.id, session, segment.id), new, worker="w") if t is not None
    ]
    for place, trial in enumerate(trials[:6]):
        store.finish(trial.id, outcome(value=1.0 / (1 + place)), "environment1")
    store.finish(trials[6].id, outcome(Status.CRASHED, message="\x1b[31mno\x00"))
    early = {"time": Estimate(0.9, 0.8, math.inf, 1, 0.0)}
    store.report(trials[7].id, [Report(1, {"time": 2.0, "loss": math.nan}), Report(2, {"time": 0.9})])
    store.finish(trials[7].id, outcome(Status.PRUNED, metrics=early))
    store.save_verdict(study.id, session, {"configuration": {"tile": 4}, "label": "trial 5", "speedup": None})
    return store


MIXED = Space(
    [
        Choice("layout", ("row", (1, 2), {"block": 4, "deep": {"er": (1,)}}, True, 1.5)),
        OrderedValues("tile", (1, 2.5)),
    ],
    [],
)


def make_mixed(file: Path) -> Store:
    """A trial for each value of a choice of texts, lists, maps, flags and numbers."""
    return make_of(MIXED, file)


def make_of(space: Space, file: Path, value: float = 0.5) -> Store:
    """A trial for each configuration of a space, all of the same time."""
    store = Store.open(file)
    study = store.create_study(new_study("mixed", document={"space": space.to_document()}, spec_text=""))
    session = store.open_session(study.id, {}, "environment0", 1, "host")
    segment = store.open_segment(study.id, {}, {}, "the study begins")
    new = [
        NewTrial(space.configuration(values), "search", "grid", {"kind": "grid"}) for values in space.feasible
    ]
    for trial in store.propose(Place(study.id, session, segment.id), new, worker="w"):
        assert trial is not None
        store.finish(trial.id, outcome(value=value))
    return store
