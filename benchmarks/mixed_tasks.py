"""Training real scikit-learn models on its bundled data: eight tasks with mixed and conditional knobs.

Each task is a space and a loss, the mean over three folds of a cross-validation: log loss or error for
classes, mean squared error over that of the mean for numbers (answers kept within the range of the
training data). Training is deterministic (fixed folds and seeds) and made cheap on purpose: few rows, few
trees, few epochs; a trial takes some ten to hundred milliseconds, so that ten seeds of many tuners can be
compared on a small machine.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np

from autotune.space.configuration import Value
from autotune.space.knobs import Choice, Flag, FloatRange, IntegerRange
from autotune.space.knobs.knob import Knob
from autotune.space.space import Space

FOLDS = 3
Metric = Literal["log loss", "error", "squared error"]
Values = Mapping[str, Value]


@dataclass(frozen=True)
class Task:
    """A model on a data set. ``build`` makes the untrained model of a configuration."""

    name: str
    knobs: tuple[Knob, ...]
    build: Callable[[Values], Any]
    data: str
    metric: Metric
    rows: int = 10_000
    """How many rows of the data are used, at most; a fixed random part."""

    @property
    def space(self) -> Space:
        return Space(self.knobs)

    def loss(self, values: Values) -> float | None:
        """The cross-validated loss of a configuration; ``None`` where training fails or diverges."""
        features, target = _data(self.data, self.rows)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # that few epochs do not converge is meant
            try:
                losses = [
                    _fold_loss(self.metric, self.build(values), features, target, *rows)
                    for rows in _folds(self.data, self.rows)
                ]
            except (ValueError, FloatingPointError):  # weights that are not finite any more
                return None
        loss = math.fsum(losses) / len(losses)
        return loss if math.isfinite(loss) else None


@cache
def _data(name: str, rows: int) -> tuple[Any, Any]:
    from sklearn import datasets

    features, target = getattr(datasets, f"load_{name}")(return_X_y=True)
    chosen = np.random.default_rng(0).permutation(len(target))[:rows]
    return features[chosen], target[chosen]


@cache
def _folds(name: str, rows: int) -> list[tuple[Any, Any]]:
    from sklearn.model_selection import KFold, StratifiedKFold

    features, target = _data(name, rows)
    kind = KFold if name == "diabetes" else StratifiedKFold
    return list(kind(FOLDS, shuffle=True, random_state=0).split(features, target))


def _fold_loss(metric: Metric, model: Any, features: Any, target: Any, train: Any, test: Any) -> float:
    from sklearn.metrics import log_loss

    model.fit(features[train], target[train])
    truth = target[test]
    if metric == "log loss":
        return float(log_loss(truth, model.predict_proba(features[test]), labels=np.unique(target)))
    answer = model.predict(features[test])
    if metric == "error":
        return float(np.mean(answer != truth))
    within = np.clip(answer, target[train].min(), target[train].max())
    return float(np.mean((within - truth) ** 2) / np.var(target))


# --- models ------------------------------------------------------------------------------------------


def _scaled(model: Any) -> Any:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), model)


PERCEPTRON = (
    Choice("activation", ("relu", "tanh", "logistic")),
    IntegerRange("layers", 1, 2),
    IntegerRange("width", 4, 64, scale="log", default=32),
    IntegerRange("second_width", 4, 64, scale="log", default=32, when="layers == 2"),
    FloatRange("alpha", 1e-7, 1.0, scale="log", default=1e-4),
    Choice("solver", ("adam", "sgd", "lbfgs")),
    FloatRange("rate", 1e-4, 1.0, scale="log", default=1e-3, when="solver != 'lbfgs'"),
    IntegerRange("batch", 8, 128, scale="log", default=32, when="solver != 'lbfgs'"),
    FloatRange("momentum", 0.0, 0.99, default=0.9, when="solver == 'sgd'"),
    Choice("schedule", ("constant", "invscaling"), when="solver == 'sgd'"),
    IntegerRange("epochs", 2, 16, default=8),
)


def perceptron(values: Values) -> Any:
    from sklearn.neural_network import MLPClassifier

    options = {
        "batch_size": "batch",
        "learning_rate_init": "rate",
        "momentum": "momentum",
        "learning_rate": "schedule",
    }
    sizes = [values[name] for name in ("width", "second_width") if name in values]
    return _scaled(
        MLPClassifier(
            tuple(sizes),
            activation=values["activation"],
            solver=values["solver"],
            alpha=values["alpha"],
            max_iter=values["epochs"],
            random_state=0,
            **{option: values[knob] for option, knob in options.items() if knob in values},
        )
    )


MACHINE = (
    Choice("kernel", ("rbf", "linear", "poly", "sigmoid")),
    FloatRange("c", 1e-3, 1e3, scale="log", default=1.0),
    FloatRange("gamma", 1e-5, 10.0, scale="log", default=0.02, when="kernel != 'linear'"),
    IntegerRange("degree", 2, 5, default=3, when="kernel == 'poly'"),
    FloatRange("offset", -1.0, 1.0, default=0.0, when="kernel in ['poly', 'sigmoid']"),
    Flag("shrinking", default=True),
    FloatRange("tolerance", 1e-4, 1e-1, scale="log", default=1e-3),
)
MACHINE_STEPS = 20_000


def _machine(kind: Any, values: Values, **more: Any) -> Any:
    options = {"gamma": "gamma", "degree": "degree", "coef0": "offset"}
    return _scaled(
        kind(
            kernel=values["kernel"],
            C=values["c"],
            shrinking=values["shrinking"],
            tol=values["tolerance"],
            max_iter=MACHINE_STEPS,
            **{option: values[knob] for option, knob in options.items() if knob in values},
            **more,
        )
    )


def classifying_machine(values: Values) -> Any:
    from sklearn.svm import SVC

    return _machine(SVC, values)


REGRESSION_MACHINE = (*MACHINE, FloatRange("tube", 0.01, 100.0, scale="log", default=1.0))


def regression_machine(values: Values) -> Any:
    from sklearn.svm import SVR

    return _machine(SVR, values, epsilon=values["tube"])


BOOSTING = (
    IntegerRange("trees", 5, 50, scale="log", default=30),
    FloatRange("rate", 1e-3, 1.0, scale="log", default=0.1),
    IntegerRange("depth", 1, 6, default=3),
    FloatRange("rows", 0.3, 1.0, default=1.0),
    FloatRange("features", 0.1, 1.0, default=1.0),
    IntegerRange("leaf", 1, 32, scale="log", default=1),
)


def _boosting(kind: Any, values: Values, **more: Any) -> Any:
    return kind(
        n_estimators=values["trees"],
        learning_rate=values["rate"],
        max_depth=values["depth"],
        subsample=values["rows"],
        max_features=values["features"],
        min_samples_leaf=values["leaf"],
        random_state=0,
        **more,
    )


CLASSIFYING_BOOSTING = (*BOOSTING, Choice("criterion", ("friedman_mse", "squared_error")))


def classifying_boosting(values: Values) -> Any:
    from sklearn.ensemble import GradientBoostingClassifier

    return _boosting(GradientBoostingClassifier, values, criterion=values["criterion"])


REGRESSION_BOOSTING = (
    *BOOSTING,
    Choice("loss", ("squared_error", "absolute_error", "huber")),
    FloatRange("alpha", 0.5, 0.99, default=0.9, when="loss == 'huber'"),
)


def regression_boosting(values: Values) -> Any:
    from sklearn.ensemble import GradientBoostingRegressor

    more = {"alpha": values["alpha"]} if "alpha" in values else {}
    return _boosting(GradientBoostingRegressor, values, loss=values["loss"], **more)


FOREST = (
    IntegerRange("trees", 4, 24, scale="log", default=16),
    Choice("criterion", ("gini", "entropy", "log_loss")),
    Flag("limited"),
    IntegerRange("depth", 1, 16, default=8, when="limited"),
    FloatRange("features", 0.05, 1.0, scale="log", default=0.25),
    IntegerRange("split", 2, 32, scale="log", default=2),
    Flag("bootstrap", default=True),
    FloatRange("rows", 0.2, 1.0, default=1.0, when="bootstrap"),
    FloatRange("pruning", 1e-6, 1e-1, scale="log", default=1e-6),
)


def forest(values: Values) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(
        n_estimators=values["trees"],
        criterion=values["criterion"],
        max_depth=values.get("depth"),
        max_features=values["features"],
        min_samples_split=values["split"],
        bootstrap=values["bootstrap"],
        max_samples=values.get("rows"),
        ccp_alpha=values["pruning"],
        random_state=0,
    )


LOGISTIC = (
    Choice("scaling", ("none", "standard", "range")),
    Flag("products"),
    Flag("projected"),
    FloatRange("kept", 0.5, 0.999, default=0.95, when="projected"),
    FloatRange("c", 1e-4, 1e4, scale="log", default=1.0),
    Choice("penalty", ("l2", "l1")),
    Flag("intercept", default=True),
    FloatRange("intercept_scale", 0.1, 10.0, scale="log", default=1.0, when="intercept"),
    Flag("balanced"),
    FloatRange("tolerance", 1e-5, 1e-1, scale="log", default=1e-4),
)


def logistic(values: Values) -> Any:
    from sklearn.decomposition import PCA
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MinMaxScaler, PolynomialFeatures, StandardScaler

    steps: list[Any] = []
    if values["products"]:
        steps.append(PolynomialFeatures(2, interaction_only=True, include_bias=False))
    if values["scaling"] != "none":
        steps.append(StandardScaler() if values["scaling"] == "standard" else MinMaxScaler())
    if values["projected"]:
        steps.append(PCA(values["kept"], svd_solver="full"))
    model = LogisticRegression(
        C=values["c"],
        **_penalty(values["penalty"]),
        solver="liblinear",
        fit_intercept=values["intercept"],
        intercept_scaling=values.get("intercept_scale", 1.0),
        class_weight="balanced" if values["balanced"] else None,
        tol=values["tolerance"],
        max_iter=50,
        random_state=0,
    )
    return make_pipeline(*steps, OneVsRestClassifier(model))


def _penalty(penalty: Value) -> dict[str, Any]:
    """The same in the words of this scikit-learn, which changed with 1.8."""
    import sklearn

    if tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 8):
        return {"l1_ratio": float(penalty == "l1")}
    return {"penalty": penalty}


TASKS: Mapping[str, Task] = {
    task.name: task
    for task in (
        Task("mlp-digits", PERCEPTRON, perceptron, "digits", "log loss", rows=300),
        Task("mlp-wine", PERCEPTRON, perceptron, "wine", "log loss"),
        Task("svm-digits", MACHINE, classifying_machine, "digits", "error", rows=600),
        Task("svm-diabetes", REGRESSION_MACHINE, regression_machine, "diabetes", "squared error"),
        Task("boosting-diabetes", REGRESSION_BOOSTING, regression_boosting, "diabetes", "squared error"),
        Task(
            "boosting-cancer",
            CLASSIFYING_BOOSTING,
            classifying_boosting,
            "breast_cancer",
            "log loss",
            rows=250,
        ),
        Task("forest-wine", FOREST, forest, "wine", "log loss"),
        Task("logistic-iris", LOGISTIC, logistic, "iris", "log loss"),
    )
}
