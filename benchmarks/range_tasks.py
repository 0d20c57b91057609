"""The models of :mod:`benchmarks.mixed_tasks`, each with some of its ranges as the only knobs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from autotune.space.configuration import Value
from autotune.space.space import Space
from benchmarks.mixed_tasks import TASKS, Task


def narrowed(name: str, ranges: str, **fixed: Value) -> Task:
    """The task ``name`` where only the ``ranges`` are searched, a space between their names.

    Of the other knobs those that still exist keep their defaults, unless they are ``fixed`` otherwise.
    """
    whole = TASKS[name]
    searched = ranges.split()
    space = Space(whole.knobs)
    values = {knob.name: knob.default for knob in whole.knobs} | fixed
    rest = {other: values[other] for other in space.active(values) if other not in searched}
    knobs = tuple(replace(space.knob(one), when=None) for one in searched)
    return replace(
        whole,
        name=f"{name} {'+'.join(searched)}",
        knobs=knobs,
        build=lambda found: whole.build(rest | dict(found)),
    )


RBF: Mapping[str, Value] = {"kernel": "rbf"}
SGD: Mapping[str, Value] = {"activation": "tanh", "solver": "sgd"}
PROJECTED: Mapping[str, Value] = {"products": True, "projected": True, "scaling": "standard"}

RANGE_TASKS: Mapping[str, Task] = {
    task.name: task
    for task in (
        narrowed("svm-digits", "c gamma tolerance", **RBF),
        narrowed("svm-diabetes", "c gamma", **RBF),
        narrowed("svm-diabetes", "c gamma tube tolerance", **RBF),
        narrowed("mlp-wine", "width alpha rate batch", solver="adam"),
        narrowed("mlp-digits", "rate momentum", **SGD),
        narrowed("mlp-digits", "width alpha rate batch momentum", **SGD),
        narrowed("boosting-diabetes", "trees rate rows features"),
        narrowed("logistic-iris", "kept c intercept_scale tolerance", **PROJECTED),
    )
}
