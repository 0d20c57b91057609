"""The strategies by name. Each is imported when it is asked for, with the packages it needs."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass, field

from autotune.errors import InputError, nearest
from autotune.errors import Problem as Fault
from autotune.search.contract import Problem, Strategy


@dataclass(frozen=True)
class Entry:
    """Where a strategy's class is, and what it needs besides numpy.

    ``needs`` maps each module to what a user installs to have it.
    """

    module: str
    name: str
    needs: Mapping[str, str] = field(default_factory=dict)


_OPTUNA = {"optuna": "optuna"}
_SKOPT = {"skopt": "scikit-optimize", "sklearn": "scikit-learn"}

STRATEGIES: Mapping[str, Entry] = {
    "auto": Entry("auto", "Auto"),  # what measured best; the default
    "grid": Entry("grid", "Grid"),  # everything once, in an order that spreads
    "random": Entry("random", "Random"),  # uniform over the feasible set
    "evolution": Entry("evolution", "Evolution"),  # tournament, crossover and mutation
    "bandit": Entry("bandit", "Bandit"),  # hands each try to the strategy or region that does best
    "policy": Entry("policy", "Policy"),  # policy gradient, for assignments and orders
    "bayes": Entry("bayes", "Bayes", {"scipy": "scipy"}),  # Gaussian process over the feasible set
    "structured": Entry("structured", "Structured", {"scipy": "scipy"}),  # bayes from a pipeline's arithmetic
    "optuna-tpe": Entry("optuna_samplers", "OptunaTpe", _OPTUNA),  # tree-structured Parzen estimator
    "optuna-gp": Entry("optuna_samplers", "OptunaGp", {**_OPTUNA, "torch": "torch"}),
    "optuna-nsga2": Entry("optuna_samplers", "OptunaNsga2", _OPTUNA),  # for several metrics
    "optuna-cmaes": Entry("cma", "OptunaCmaEs", {"cmaes": "cmaes"}),
    "skopt-gp": Entry("skopt_models", "SkoptGp", _SKOPT),
    "skopt-forest": Entry("skopt_models", "SkoptForest", _SKOPT),
}


def strategy_names() -> tuple[str, ...]:
    """Every strategy that can be asked for, installed or not."""
    return tuple(STRATEGIES)


def missing_packages(name: str) -> tuple[str, ...]:
    """What would have to be installed (as written after ``pip install``) before ``name`` can be used."""
    needs = _entry(name).needs
    return tuple(package for module, package in needs.items() if importlib.util.find_spec(module) is None)


def strategy_class(name: str) -> type[Strategy]:
    """The class of the strategy called ``name``, imported now.

    Raises :class:`~autotune.errors.InputError` where there is no such strategy, and where a package that
    it needs is not installed.
    """
    entry = _entry(name)
    if missing := missing_packages(name):
        install = " ".join(f"'{package}'" for package in missing)
        raise InputError(
            Fault(f"the strategy {name!r} needs a package that is missing", hint=f"pip install {install}")
        )
    module = importlib.import_module(f"autotune.search.strategies.{entry.module}")
    found: type[Strategy] = getattr(module, entry.name)
    return found


def make_strategy(name: str, problem: Problem, seed: int = 0) -> Strategy:
    """The strategy called ``name`` for ``problem``; :class:`~autotune.errors.InputError` where it
    cannot be had (see :func:`strategy_class`), and for options that it does not have."""
    return strategy_class(name)(problem, seed)


def _entry(name: str) -> Entry:
    if name not in STRATEGIES:
        known = ", ".join(STRATEGIES)
        raise InputError(
            Fault(f"there is no strategy {name!r}", expected=known, hint=nearest(name, STRATEGIES))
        )
    return STRATEGIES[name]
