"""What early stopping saves: epochs of a real training until a good model is there.

    python -m benchmarks.early_stopping --seeds 10 --out benchmarks/results/early_stopping.md

A network of scikit-learn (`MLPClassifier`, `partial_fit`) learns its digits for up to 27 epochs: width,
learning rate, penalty, batch size, momentum and activation are searched, and the loss on a third of the data
that it never trains on is minimised. A run ends when a complete trial is as good as the best in a hundred
drawn at random, or when it has used as many epochs as 60 complete trials. What is counted are epochs. A curve
is trained once, by whichever run comes to it first, and remembered for the others.

Once trainings are stopped, ``bayes`` counts the seconds that a step takes, which say little here, where most
curves are remembered. So its runs differ from time to time, those of the same seed too. ``training`` compares
whole searches in equal time, with all trained for real.
"""

from __future__ import annotations

import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.options import Options
from benchmarks.publishing import head, page, publish, software
from benchmarks.running import at_least_one, one_thread_each, run_as_command

EPOCHS = 27
BUDGET = 60 * EPOCHS
DRAWN = 300
ONE_IN = 100

SPACE = """
autotune: 1
name: digits
objective: inline.py:train
metrics: {loss: {goal: minimize}}
knobs:
  width: {values: [16, 32, 64], default: 32}
  lr: {values: [1.0e-4, 3.0e-4, 1.0e-3, 3.0e-3, 1.0e-2, 3.0e-2, 0.1, 0.3, 1.0], default: 1.0e-3}
  alpha: {values: [1.0e-5, 1.0e-3, 1.0e-1], default: 1.0e-5}
  batch: {values: [32, 64, 128, 256], default: 256}
  momentum: {values: [0.0, 0.5, 0.9], default: 0.9}
  activation: {choices: [relu, tanh, logistic], default: relu}
search: {early_stopping: {policy: none, resource: epochs, max: 27}}
measure: {finalists: 0}
"""


@dataclass(frozen=True)
class Way:
    """A policy with a strategy; ``resumes``: promoted trials go on from a checkpoint."""

    policy: str
    strategy: str = "bayes"
    resumes: bool = False

    @property
    def label(self) -> str:
        return f"{self.policy}{', from checkpoints' if self.resumes else ''}"


WAYS = (
    Way("none", "random"),
    Way("none"),
    Way("asha", "random"),
    Way("asha"),
    Way("async-hyperband"),
    Way("successive-halving"),
    Way("hyperband"),
    Way("hyperband", resumes=True),
    Way("optuna-median"),
    Way("optuna-successive-halving"),
    Way("optuna-hyperband"),
)


@cache
def data() -> tuple[Any, Any, Any, Any]:
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    features, labels = load_digits(return_X_y=True)
    split = train_test_split(features / 16.0, labels, test_size=1 / 3, random_state=0, stratify=labels)
    return tuple(split)


@cache
def curve(width: int, lr: float, alpha: float, batch: int, momentum: float, activation: str) -> list[float]:
    """The validation loss after each epoch; it stays at infinity where the training broke off."""
    import numpy as np
    from sklearn.metrics import log_loss
    from sklearn.neural_network import MLPClassifier

    train, test, labels, held_out = data()
    model = MLPClassifier(
        (width,),
        activation=activation,
        solver="sgd",
        alpha=alpha,
        batch_size=batch,
        learning_rate_init=lr,
        momentum=momentum,
        random_state=0,
    )
    losses: list[float] = []
    classes = np.unique(labels)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for _ in range(EPOCHS):
            try:
                model.partial_fit(train, labels, classes=classes)
                losses.append(float(log_loss(held_out, model.predict_proba(test), labels=classes)))
            except ValueError as error:
                if "non-finite" not in str(error):
                    raise
                losses += [float("inf")] * (EPOCHS - len(losses))
                break
    return losses


def target() -> float:
    """The loss that one in a hundred of uniformly drawn configurations attains."""
    import numpy as np

    from autotune.space.reading.reader import parse_spec

    feasible = parse_spec(SPACE, "space.yaml").space.feasible
    rng = np.random.default_rng(0)
    ends = sorted(curve(**drawn)[-1] for drawn in feasible.sample(rng, DRAWN))
    return ends[DRAWN // ONE_IN - 1]


def run(way: Way, seed: int, good: float, folder: Path) -> tuple[int | None, int]:
    """Epochs until a complete trial was good enough (``None``: never), and how many trials were begun."""
    from autotune.session.api import open_session
    from autotune.space.reading.reader import parse_spec
    from autotune.store.store import Store

    spec = parse_spec(SPACE, folder / "space.yaml")
    assert spec.search.early_stopping is not None
    early = replace(spec.search.early_stopping, policy=way.policy)
    spec = replace(spec, search=replace(spec.search, strategy=way.strategy, seed=seed, early_stopping=early))
    used = 0
    begun: dict[str, int] = {}
    reached: int | None = None

    def train(configuration: Any, report: Callable[..., None]) -> None:
        nonlocal used, reached
        losses = curve(**configuration)
        done = begun.setdefault(configuration.hash, 0) if way.resumes else 0
        begun.setdefault(configuration.hash, 0)
        for epoch in range(done + 1, EPOCHS + 1):
            used += 1
            begun[configuration.hash] = epoch
            if epoch == EPOCHS and losses[-1] <= good and reached is None:
                reached = used
            if reached is not None or used >= BUDGET:
                session.stop("enough")
            report(epoch, loss=losses[epoch - 1])

    with Store.open(str(folder / f"{way.policy}-{way.strategy}-{way.resumes}-{seed}.db")) as store:
        session = open_session(spec, store, objective=train)
        session.run()
    return reached, len(begun)


def table(results: Mapping[Way, list[tuple[int | None, int]]], seeds: int) -> list[str]:
    full = _median([epochs for epochs, _ in results[Way("none")]])
    lines = head(
        "policy | strategy | reached | median epochs | p90 | of training all to the end | median trials begun"
    )
    for way, runs in results.items():
        epochs = [BUDGET if e is None else e for e, _ in runs]
        reached = sum(e is not None for e, _ in runs)
        median = statistics.median(epochs)
        p90 = sorted(epochs)[max(0, round(0.9 * len(epochs)) - 1)]
        trials = statistics.median(n for _, n in runs)
        lines.append(
            f"| {way.label} | {way.strategy} | {reached}/{seeds} | {median:.0f} | {p90} |"
            f" {median / full:.0%} | {trials:.0f} |"
        )
    return lines


def _median(epochs: list[int | None]) -> float:
    return statistics.median(BUDGET if e is None else e for e in epochs)


def main() -> None:
    one_thread_each()
    parser = Options(__file__, __doc__)
    parser.add_argument("--seeds", type=at_least_one, default=10)
    options = parser.read()
    good = target()
    results: dict[Way, list[tuple[int | None, int]]] = {way: [] for way in WAYS}
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(options.seeds):
            for way, runs in results.items():
                runs.append(run(way, seed, good, Path(folder)))
                print(f"{time.monotonic() - began:6.0f} s  seed {seed}  {way}: {runs[-1]}", flush=True)
    about = (
        f"{software('scikit-learn', 'optuna')}. {options.seeds} seeds."
        f" Target: a complete trial with a loss of {good:.4f}, which {DRAWN // ONE_IN} of {DRAWN} random"
        f" configurations attain. At most {BUDGET} epochs; one"
        " that did not get there counts as that many. Percentages are of `none` with `bayes`."
        " `optuna-successive-halving` has the rule of `asha`: what lies between the two is chance."
    )
    rows = table(results, options.seeds)
    publish(page("What early stopping saves", options.command, about, rows), options.out)


if __name__ == "__main__":
    run_as_command(main)
